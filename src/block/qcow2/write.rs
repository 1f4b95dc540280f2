//! Writing, synchronously: in place where the cluster is ours alone, else
//! allocate first, write data with what must be copied around it, and point at
//! it last.
//!
//! Neighbours: `plan` says how each part is done and has what comes before and
//! after the data is written; `disk_write` does the same over an engine.

use std::io::IoSlice;

use super::super::error::Result;
use super::super::io::ZEROES;
use super::image::Image;
use super::plan::{Ahead, Frame, Padding, Placement, Step};

impl Image {
    /// Writes `data` to the disk from `guest` on. Durable after the next [`Self::flush`].
    pub fn write(&self, guest: u64, data: &[u8]) -> Result<()> {
        let result = self.write_checked(guest, data);
        match result {
            Ok(()) => Ok(()),
            failed => self.finish(failed),
        }
    }

    fn write_checked(&self, guest: u64, data: &[u8]) -> Result<()> {
        self.check_writable()?;
        self.check_range(guest, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        self.relieve()?;
        let (first, last) = self.clusters_of(guest, data.len() as u64);
        let _range = self.ranges.lock(first, last)?;
        self.write_locked(guest, data)
    }

    /// The first and last cluster that `len` bytes at `guest` touch; `len` is above 0.
    pub(super) fn clusters_of(&self, guest: u64, len: u64) -> (u64, u64) {
        (self.geo.cluster_of(guest), self.geo.cluster_of(guest + len - 1))
    }

    /// Writes while the caller holds the range.
    pub(super) fn write_locked(&self, guest: u64, data: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            done += self.write_step(guest + done as u64, &data[done..])? as usize;
        }
        Ok(())
    }

    /// Writes a part from the start of `data`; returns its length.
    fn write_step(&self, guest: u64, data: &[u8]) -> Result<u64> {
        let step = self.step(guest, data.len() as u64, &mut Ahead::default())?;
        let data = &data[..step.len() as usize];
        match &step {
            Step::InPlace { host, len } => {
                let written = self.target().write_at(data, host.0);
                written.map_err(|e| e.with_guest(guest).with_host(host.0))?;
                self.note_written(host.0 + len);
            }
            Step::Placed(placement) => {
                if let Err(error) = self.place(placement, data) {
                    self.abandon(placement)?;
                    return Err(error);
                }
            }
        }
        Ok(step.len())
    }

    /// Writes the data with its surroundings, then points the entries at it.
    fn place(&self, placement: &Placement, data: &[u8]) -> Result<()> {
        let frame = self.frame(placement);
        let written = self.write_framed(&frame, data);
        written.map_err(|e| e.with_guest(placement.guest).with_host(frame.at))?;
        self.note_written(frame.file_end(placement.len));
        self.link(placement, &frame)
    }

    fn write_framed(&self, frame: &Frame, data: &[u8]) -> Result<()> {
        let padding = frame.head.len + frame.tail.len;
        if padding == 0 {
            return self.target().write_at(data, frame.at);
        }
        let copied = frame.head.copied() + frame.tail.copied();
        self.buffers.with(copied as usize, |buf| {
            let (before, after) = buf.split_at_mut(frame.head.copied() as usize);
            let bufs = [
                IoSlice::new(self.fill_padding(&frame.head, before)?),
                IoSlice::new(data),
                IoSlice::new(self.fill_padding(&frame.tail, after)?),
            ];
            self.target().writev_at(&bufs, frame.at)
        })
    }

    /// The bytes of `padding`: in `buf` or, where they are zeroes, without a copy of them.
    fn fill_padding<'a>(&self, padding: &Padding, buf: &'a mut [u8]) -> Result<&'a [u8]> {
        if !padding.copy {
            if let Some(zeroes) = ZEROES.get(..padding.len as usize) {
                return Ok(zeroes);
            }
            buf.fill(0);
            return Ok(buf);
        }
        self.read_unchecked(padding.guest, buf)?;
        Ok(buf)
    }
}
