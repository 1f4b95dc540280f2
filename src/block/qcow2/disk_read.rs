//! Reading over an engine: one extent goes straight into the guest's buffers;
//! of several, each is read for itself and copied to its place. Compressed
//! clusters are decoded when their bytes are there.
//!
//! What lies in a backing file is read at once, with the synchronous calls of
//! the chain, before the submission returns.
//!
//! Neighbours: `disk` starts reads and passes on completions, `map` has the
//! extents; `disk_write` reads padding with the same functions.

use std::sync::Arc;

use super::super::buf::AlignedBuf;
use super::super::engine::Engine;
use super::super::error::Result;
use super::super::op::{Buffers, Completion, Op, OpKind};
use super::disk::QcowDisk;
use super::disk_jobs::{Fetch, Owner, Sub, errno_of, pieces, scatter};
use super::entry::Compressed;
use super::image::Image;
use super::map::{Extents, Source};
use super::types::HostOffset;

impl<E: Engine> QcowDisk<E> {
    /// Starts a read.
    pub(super) fn start_read(&mut self, number: usize) {
        let side = self.enter_gate();
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        job.side = Some(side);
        let (guest, len) = (job.op.offset, job.op.len);
        if len == 0 {
            return self.close(number);
        }
        let image = Arc::clone(&self.image);
        let mut extents = image.extents(guest, len);
        let result = match extents.next() {
            Ok(Some(first)) => match first.source {
                Source::Data(host) if first.len == len => {
                    self.pass(number, OpKind::Read, host);
                    return;
                }
                _ => {
                    extents.put_back(first);
                    self.fetch_all(&image, Owner::Job(number), guest, &mut extents)
                }
            },
            other => other.map(drop),
        };
        self.close_with(number, result);
    }

    /// Gives all of a request's buffers to the engine; the request's own start is over with its
    /// completion.
    pub(super) fn pass(&mut self, number: usize, kind: OpKind, host: HostOffset) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        let bufs = std::mem::take(&mut job.op.bufs);
        let tag = self.subs.insert(Sub::Whole { job: number }) as u64;
        self.outbox.push(Op::with(kind, tag, host.0, bufs));
    }

    /// Fills all of `owner` with the disk's bytes from `guest` on: at once what needs no reading,
    /// the rest by operations that are open on the owner then.
    pub(super) fn fetch(&mut self, owner: Owner, guest: u64, len: u64) -> Result<()> {
        let image = Arc::clone(&self.image);
        let mut extents = image.extents(guest, len);
        self.fetch_all(&image, owner, guest, &mut extents)
    }

    fn fetch_all(&mut self, image: &Image, owner: Owner, guest: u64, all: &mut Extents<'_>) -> Result<()> {
        while let Some(extent) = all.next()? {
            let at = (extent.guest.0 - guest) as usize;
            let fetch = Fetch { owner, at, len: extent.len as usize, guest: extent.guest.0, packed: None };
            match extent.source {
                Source::Data(host) => self.read_host(fetch, host, extent.len)?,
                Source::Compressed(packed) => self.read_packed(fetch, packed)?,
                Source::Zero => pieces(self.buffers_of(owner), at, fetch.len, |_, piece| {
                    piece.fill(0);
                    Ok(())
                })?,
                Source::Unallocated => pieces(self.buffers_of(owner), at, fetch.len, |from, piece| {
                    image.read_backing(fetch.guest + from as u64, piece)
                })?,
            }
        }
        Ok(())
    }

    fn read_packed(&mut self, fetch: Fetch, packed: Compressed) -> Result<()> {
        self.read_host(Fetch { packed: Some(packed), ..fetch }, packed.host, packed.len)
    }

    /// Reads `len` bytes of the file into a buffer of our own.
    fn read_host(&mut self, fetch: Fetch, host: HostOffset, len: u64) -> Result<()> {
        let buf = self.take_buffer(len)?;
        match fetch.owner {
            Owner::Job(number) => self.jobs.get_mut(number).map(|job| job.open += 1),
            Owner::Pad(number, _) => self.parts.get_mut(number).map(|part| part.reads += 1),
        };
        let tag = self.subs.insert(Sub::Fetch(fetch)) as u64;
        self.outbox.push(Op::with(OpKind::Read, tag, host.0, Buffers::One(buf)));
        Ok(())
    }

    /// Where `owner` keeps its bytes.
    fn buffers_of(&mut self, owner: Owner) -> &mut [AlignedBuf] {
        match owner {
            Owner::Job(number) => self.jobs.get_mut(number).map(|job| job.op.bufs.as_mut_slice()),
            Owner::Pad(number, which) => self.parts.get_mut(number).map(|part| match &mut part.pads[which] {
                Some(buf) => std::slice::from_mut(buf),
                None => &mut [],
            }),
        }
        .unwrap_or_default()
    }

    /// A piece has been read, or could not be.
    pub(super) fn fetched(&mut self, fetch: Fetch, completion: Completion) {
        let mut errno = completion.errno().unwrap_or(0);
        if let Some(buf) = completion.into_buffers().into_one() {
            if errno == 0 {
                let result = self.deliver(fetch, &buf);
                errno = self.judged(result).err().unwrap_or(0);
            }
            self.pool.give(buf);
        }
        match fetch.owner {
            Owner::Job(number) => self.close_errno(number, errno),
            Owner::Pad(number, _) => self.padded(number, errno),
        }
    }

    /// Puts what was read where it belongs.
    fn deliver(&mut self, fetch: Fetch, read: &[u8]) -> Result<()> {
        let Some(packed) = fetch.packed else {
            scatter(self.buffers_of(fetch.owner), fetch.at, &read[..fetch.len]);
            return Ok(());
        };
        let image = Arc::clone(&self.image);
        let bufs = self.buffers_of(fetch.owner);
        let decoded = match bufs {
            [buf] => image.decode_part(fetch.guest, read, &mut buf[fetch.at..fetch.at + fetch.len]),
            bufs => image.decoded(read, |whole| {
                let within = image.geometry().within(fetch.guest) as usize;
                scatter(bufs, fetch.at, &whole[within..within + fetch.len]);
            }),
        };
        decoded.map_err(|error| error.with_guest(fetch.guest).with_host(packed.host.0))
    }

    /// A buffer of `len` bytes whose content is arbitrary.
    pub(super) fn take_buffer(&self, len: u64) -> Result<AlignedBuf> {
        let mut buf = match len <= self.pool.size() as u64 {
            true => self.pool.take()?,
            false => AlignedBuf::new(len as usize, self.buffer_align())?,
        };
        buf.set_len(len as usize)?;
        Ok(buf)
    }

    /// What a result means for a completion. Corruption that it tells of is noted in the image.
    pub(super) fn judged<T>(&self, result: Result<T>) -> std::result::Result<T, i32> {
        match result {
            Ok(value) => Ok(value),
            failed => self.image.finish(failed).map_err(|error| errno_of(&error)),
        }
    }
}
