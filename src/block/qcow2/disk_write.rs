//! Writing over an engine: data in place is one operation; else clusters are
//! allocated, what surrounds the data is read, all of it is written in one
//! operation, and its completion points the mapping at it, or gives the
//! clusters back.
//!
//! Neighbours: `plan` says how each part is done and links it, `disk` starts
//! writes when their clusters are free, `disk_read` reads what is copied.

use super::super::engine::Engine;
use super::super::error::Result;
use super::super::op::{Buffers, Completion, Op, OpKind};
use super::disk::QcowDisk;
use super::disk_jobs::{Owner, Part, Sub, gather};
use super::plan::{Frame, Padding, Step};

impl<E: Engine> QcowDisk<E> {
    /// Starts a write whose clusters are held.
    pub(super) fn start_write(&mut self, number: usize) {
        let result = self.start_parts(number);
        self.close_with(number, result);
    }

    fn start_parts(&mut self, number: usize) -> Result<()> {
        let Some(job) = self.jobs.get(number) else {
            return Ok(());
        };
        let (guest, len) = (job.op.offset, job.op.len);
        let mut done = 0;
        while done < len {
            let step = self.image.step(guest + done, len - done, &mut self.ahead)?;
            let taken = step.len();
            self.start_part(number, done, step, taken == len);
            done += taken;
        }
        Ok(())
    }

    fn start_part(&mut self, number: usize, from: u64, step: Step, whole: bool) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        job.open += 1;
        if let (Step::InPlace { host, .. }, true) = (&step, whole) {
            let op = self.pass(number, OpKind::Write, host.0);
            return op.map_or((), |op| self.data.push(op));
        }
        let frame = match &step {
            Step::InPlace { .. } => None,
            Step::Placed(placement) => Some(self.image.frame(placement)),
        };
        let (pads, from) = ([None, None], from as usize);
        let part = Part { job: number, step, frame, from, whole, pads, reads: 1, errno: 0 };
        let part = self.parts.insert(part);
        let result = frame.map_or(Ok(()), |frame| self.start_padding(part, &frame));
        let errno = self.judged(result).err().unwrap_or(0);
        self.padded(part, errno);
    }

    fn start_padding(&mut self, part: usize, frame: &Frame) -> Result<()> {
        for (which, padding) in [frame.head, frame.tail].iter().enumerate() {
            if padding.len > 0 {
                self.start_pad(part, which, padding)?;
            }
        }
        Ok(())
    }

    fn start_pad(&mut self, part: usize, which: usize, padding: &Padding) -> Result<()> {
        let mut buf = self.take_buffer(padding.len)?;
        if !padding.copy {
            buf.fill(0);
        }
        if let Some(part) = self.parts.get_mut(part) {
            part.pads[which] = Some(buf);
        }
        match padding.copy {
            true => self.fetch(Owner::Pad(part, which), padding.guest, padding.len),
            false => Ok(()),
        }
    }

    /// One of the reads for a part's padding is done, or its start.
    pub(super) fn padded(&mut self, number: usize, errno: i32) {
        let Some(part) = self.parts.get_mut(number) else {
            return;
        };
        part.reads -= 1;
        if part.errno == 0 {
            part.errno = errno;
        }
        let (left, errno) = (part.reads, part.errno);
        if left > 0 {
            return;
        }
        let put = if errno == 0 { self.put(number) } else { Ok(()) };
        let failed = if errno == 0 { self.judged(put).err() } else { Some(errno) };
        if let Some(errno) = failed {
            self.end_part(number, errno);
        }
    }

    /// Hands a part with its padding to the engine.
    fn put(&mut self, number: usize) -> Result<()> {
        let Some(part) = self.parts.get(number) else {
            return Ok(());
        };
        let (job, whole, from, len) = (part.job, part.whole, part.from, part.step.len());
        let (data, guest) = match whole {
            true => {
                let bufs = self.jobs.get_mut(job).map(|job| std::mem::take(&mut job.op.bufs));
                let bufs = bufs.unwrap_or_default();
                let shape = (bufs.as_slice().len(), matches!(bufs, Buffers::Many(_)));
                (bufs, Some(shape))
            }
            false => {
                let mut buf = self.take_buffer(len)?;
                if let Some(job) = self.jobs.get_mut(job) {
                    gather(job.op.bufs.as_mut_slice(), from, &mut buf);
                }
                (Buffers::One(buf), None)
            }
        };
        if let Some(part) = self.parts.get_mut(number) {
            let at = match (&part.frame, &part.step) {
                (Some(frame), _) => frame.at,
                (None, Step::InPlace { host, .. }) => host.0,
                (None, Step::Placed(_)) => return Ok(()),
            };
            let bufs = part.buffers(data);
            let tag = self.subs.insert(Sub::Put { part: number, guest }) as u64;
            self.data.push(Op::with(OpKind::Write, tag, at, bufs));
        }
        Ok(())
    }

    /// The data of a part has been written, or could not be.
    pub(super) fn written(&mut self, number: usize, guest: Option<(usize, bool)>, completion: Completion) {
        let errno = completion.errno().unwrap_or(0);
        let head = self.parts.get(number).and_then(|part| part.frame).is_some_and(|frame| frame.head.len > 0);
        let mut bufs = match completion.into_buffers() {
            Buffers::None => Vec::new(),
            Buffers::One(buf) => vec![buf],
            Buffers::Many(bufs) => bufs,
        };
        if let Some((count, list)) = guest {
            let start = usize::from(head).min(bufs.len());
            let mut own: Vec<_> = bufs.drain(start..(start + count).min(bufs.len())).collect();
            let own = match (list, own.len()) {
                (false, 1) => own.pop().map_or(Buffers::None, Buffers::One),
                _ => Buffers::Many(own),
            };
            let job = self.parts.get(number).map(|part| part.job);
            if let Some(job) = job.and_then(|job| self.jobs.get_mut(job)) {
                job.op.bufs = own;
            }
        }
        bufs.into_iter().for_each(|buf| self.pool.give(buf));
        self.end_part(number, errno);
    }

    /// Ends a part: what it wrote becomes the disk's, or its clusters are free again.
    fn end_part(&mut self, number: usize, errno: i32) {
        let Some(mut part) = self.parts.remove(number) else {
            return;
        };
        for pad in part.pads.iter_mut().filter_map(Option::take) {
            self.pool.give(pad);
        }
        let ended = match errno {
            0 => self.judged(self.accept(&part)),
            errno => Err(errno),
        };
        if let (Err(_), Step::Placed(placement)) = (ended, &part.step) {
            // The write fails with what made it fail; clusters that cannot be given back leak.
            let _ = self.judged(self.image.abandon(placement));
        }
        self.close_errno(part.job, ended.err().unwrap_or(0));
    }

    fn accept(&self, part: &Part) -> Result<()> {
        match (&part.step, &part.frame) {
            (Step::InPlace { host, len }, _) => self.image.written_elsewhere(host.0 + len),
            (Step::Placed(placement), Some(frame)) => {
                self.image.written_elsewhere(frame.file_end(placement.len));
                self.image.link(placement, frame)?;
            }
            (Step::Placed(_), None) => {}
        }
        Ok(())
    }
}
