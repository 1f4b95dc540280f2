//! Reading over an engine: one extent goes straight into the guest's buffers;
//! of several, each is read for itself and copied to its place. Compressed
//! clusters are decoded when their bytes are there.
//!
//! What lies under an overlay is read through an engine of its own where the
//! disk has one, else with synchronous calls before the submission returns.
//!
//! Neighbours: `disk` starts reads and passes on completions, `map` has the
//! extents; `disk_write` reads padding with the same functions.

use std::io;
use std::sync::Arc;

use super::super::buf::AlignedBuf;
use super::super::engine::Engine;
use super::super::error::{Error, Result};
use super::super::op::{Buffers, Completion, Op, OpKind};
use super::disk::QcowDisk;
use super::disk_jobs::{Fetch, Owner, Sub, errno_of, pieces, scatter};
use super::entry::Compressed;
use super::map::{Extent, Source};

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
        let first = self.image.extents(guest, len).next();
        let result = match first {
            Ok(Some(Extent { len: found, source, .. })) if found == len => match source {
                Source::Data(host) => {
                    let op = self.pass(number, OpKind::Read, host.0);
                    return op.map_or((), |op| self.data.push(op));
                }
                Source::Unallocated if self.is_below(guest, len) => {
                    let op = self.pass(number, OpKind::Read, guest);
                    return self.push_below(op);
                }
                _ => self.fetch(Owner::Job(number), guest, len),
            },
            Ok(_) => self.fetch(Owner::Job(number), guest, len),
            Err(error) => Err(error),
        };
        self.close_with(number, result);
    }

    /// The operation that is all of a request, with its buffers; its completion is one of the things
    /// that the request waits for.
    pub(super) fn pass(&mut self, number: usize, kind: OpKind, offset: u64) -> Option<Op> {
        let bufs = std::mem::take(&mut self.jobs.get_mut(number)?.op.bufs);
        let tag = self.subs.insert(Sub::Whole { job: number }) as u64;
        Some(Op::with(kind, tag, offset, bufs))
    }

    /// Whether all of a range can be read from the engine of what lies under the overlay.
    fn is_below(&self, guest: u64, len: u64) -> bool {
        self.below.is_some() && guest + len <= self.image.backing_len
    }

    fn push_below(&mut self, op: Option<Op>) {
        if let (Some(below), Some(op)) = (&mut self.below, op) {
            below.push(op);
        }
    }

    /// Fills all of `owner` with the disk's bytes from `guest` on: at once what needs no reading,
    /// the rest by operations that are open on the owner then.
    pub(super) fn fetch(&mut self, owner: Owner, guest: u64, len: u64) -> Result<()> {
        let image = Arc::clone(&self.image);
        let mut extents = image.extents(guest, len);
        while let Some(extent) = extents.next()? {
            let at = (extent.guest.0 - guest) as usize;
            let fetch = Fetch { owner, at, len: extent.len as usize, guest: extent.guest.0, packed: None };
            match extent.source {
                Source::Data(host) => {
                    let op = self.read_piece(fetch, host.0, extent.len)?;
                    self.data.push(op);
                }
                Source::Compressed(packed) => self.read_packed(fetch, packed)?,
                Source::Zero => self.fill_zero(owner, at, fetch.len)?,
                Source::Unallocated if self.below.is_some() => self.read_below(fetch)?,
                Source::Unallocated => pieces(self.buffers_of(owner), at, fetch.len, |from, piece| {
                    image.read_backing(fetch.guest + from as u64, piece)
                })?,
            }
        }
        Ok(())
    }

    fn read_packed(&mut self, fetch: Fetch, packed: Compressed) -> Result<()> {
        let fetch = Fetch { packed: Some(packed), ..fetch };
        let op = self.read_piece(fetch, packed.host.0, packed.len)?;
        self.data.push(op);
        Ok(())
    }

    /// Reads from under the overlay; what is beyond its end is zeroes.
    fn read_below(&mut self, fetch: Fetch) -> Result<()> {
        let inside = self.image.backing_len.saturating_sub(fetch.guest).min(fetch.len as u64) as usize;
        self.fill_zero(fetch.owner, fetch.at + inside, fetch.len - inside)?;
        if inside > 0 {
            let op = self.read_piece(Fetch { len: inside, ..fetch }, fetch.guest, inside as u64)?;
            self.push_below(Some(op));
        }
        Ok(())
    }

    fn fill_zero(&mut self, owner: Owner, at: usize, len: usize) -> Result<()> {
        pieces(self.buffers_of(owner), at, len, |_, piece| {
            piece.fill(0);
            Ok(())
        })
    }

    /// The operation that reads `len` bytes at `offset` into a buffer of our own, which the piece's
    /// owner waits for.
    fn read_piece(&mut self, fetch: Fetch, offset: u64, len: u64) -> Result<Op> {
        let buf = self.take_buffer(len)?;
        match fetch.owner {
            Owner::Job(number) => self.jobs.get_mut(number).map(|job| job.open += 1),
            Owner::Pad(number, _) => self.parts.get_mut(number).map(|part| part.reads += 1),
        };
        let tag = self.subs.insert(Sub::Fetch(fetch)) as u64;
        Ok(Op::with(OpKind::Read, tag, offset, Buffers::One(buf)))
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
        let buf = match len <= self.pool.size() as u64 {
            true => self.pool.take(),
            false => AlignedBuf::new(len as usize, self.buffer_align()),
        };
        let mut buf = buf.map_err(|_| Error::io("no buffer", io::Error::from_raw_os_error(libc::ENOMEM)))?;
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
