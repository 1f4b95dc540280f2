//! The engine over Linux AIO. `fallocate`, which AIO lacks, is done at once.
//!
//! Neighbours: `aio_context` is the context that all these engines share,
//! `sys::aio` makes the calls, `queue` does the rest.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use super::aio_context::{Member, shared, slot_of};
use super::align::Alignment;
use super::engine_sync::attempt;
use super::error::Result;
use super::io::{Fallocate, FileIo, zero_otherwise};
use super::op::OpKind;
use super::queue::{Driver, Queue, Raw, check_depth, sealed::Sealed};
use super::ready::Ready;
use super::sys::aio::{Controls, Target};
use super::sys::counters::{count_read, count_written};
use super::sys::eventfd::EventFd;
use super::sys::file::BlockFile;
use super::sys::slab::Slab;

/// An engine over Linux AIO.
pub type AioEngine = Queue<AioDriver>;

impl AioEngine {
    /// An engine for up to `depth` operations on `file`.
    ///
    /// # Errors
    ///
    /// As [`AioDriver::new`].
    pub fn open(file: Arc<BlockFile>, depth: u32) -> Result<Self> {
        Ok(Self::new(AioDriver::new(file, depth)?))
    }
}

/// Gets attempts to the kernel by `io_submit`.
pub struct AioDriver {
    file: Arc<BlockFile>,
    member: Member,
    controls: Controls,
    depth: u32,
    /// Attempts that the kernel has.
    in_kernel: usize,
    ready: Ready,
    /// Attempts in `ready` that the kernel did not signal.
    silent: bool,
    /// Attempts are in the kernel that end by themselves. Others, with the page
    /// cache in between, have ended when `io_submit` returns.
    late: bool,
    event: Option<Arc<EventFd>>,
    /// The most control blocks for one `io_submit`.
    limit: usize,
}

/// What to do about an `io_submit` that took none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Interrupted: submit again.
    Again,
    /// The context is full: something has to complete first.
    Full,
    /// The first control block is refused, and fails with this errno.
    First(i32),
}

fn refusal(error: &io::Error, in_kernel: usize) -> Refusal {
    match error.raw_os_error() {
        Some(libc::EINTR) => Refusal::Again,
        Some(libc::EAGAIN) if in_kernel > 0 => Refusal::Full,
        other => Refusal::First(other.unwrap_or(libc::EIO)),
    }
}

impl AioDriver {
    /// A driver for up to `depth` operations on `file`.
    ///
    /// # Errors
    ///
    /// `Missing` where the kernel has no AIO, `Exhausted` where the process's
    /// context has no room for `depth` more, `InvalidInput` for a depth that
    /// no queue has.
    pub fn new(file: Arc<BlockFile>, depth: u32) -> Result<Self> {
        check_depth(depth)?;
        let member = shared(depth)?.join(depth)?;
        Ok(Self {
            file,
            member,
            controls: Controls::new(depth),
            depth,
            in_kernel: 0,
            ready: Ready::with_capacity(depth as usize),
            silent: false,
            late: false,
            event: None,
            limit: usize::MAX,
        })
    }

    /// Submits what waits, as far as the kernel takes it.
    fn submit_waiting(&mut self) {
        while self.controls.waiting() > 0 {
            match self.controls.submit(self.member.context(), self.limit) {
                Ok(0) => break,
                Ok(taken) => self.in_kernel += taken,
                Err(error) => match refusal(&error, self.in_kernel) {
                    Refusal::Again => {}
                    Refusal::Full => break,
                    Refusal::First(errno) => self.fail_first(errno),
                },
            }
        }
    }

    fn fail_first(&mut self, errno: i32) {
        if let Some(data) = self.controls.first() {
            self.controls.skip();
            self.done_here(slot_of(data), -errno);
        }
    }

    fn done_here(&mut self, slot: u32, result: i32) {
        self.ready.push(Raw { slot, result });
        self.silent = true;
    }

    /// Signals what completed without the kernel's queue, once for all of it.
    fn signal_silent(&mut self) {
        if std::mem::take(&mut self.silent)
            && let Some(event) = &self.event
        {
            event.signal();
        }
    }

    /// Brings what has arrived to `ready`, which is empty, and lets what waits follow.
    #[inline(never)]
    fn refill(&mut self, slab: &mut Slab) -> Result<()> {
        if self.in_kernel > 0 {
            let result = self.member.take_ready(&mut self.ready);
            self.arrived(slab, 0);
            result?;
        }
        if self.controls.waiting() > 0 {
            self.submit(slab)?;
        }
        Ok(())
    }

    /// Waits for `min` attempts in one of the member's ways.
    fn wait_by(
        &mut self,
        way: impl FnOnce(&mut Member, usize, &mut Ready) -> Result<()>,
        slab: &Slab,
        min: usize,
    ) -> Result<()> {
        let min = min.min(self.ready.len() + self.in_kernel);
        let before = self.ready.len();
        let result = way(&mut self.member, min, &mut self.ready);
        self.arrived(slab, before);
        result
    }

    /// Accounts for what has arrived in `ready` after the first `before`.
    fn arrived(&mut self, slab: &Slab, before: usize) {
        self.in_kernel -= self.ready.len() - before;
        self.late &= self.in_kernel > 0;
        count_bytes(slab, self.ready.after(before).iter());
    }
}

impl Sealed for AioDriver {}

impl Driver for AioDriver {
    fn push(&mut self, slab: &mut Slab, slot: u32) {
        if slab.kind(slot).fallocate().is_some() {
            let result = attempt(&self.file, slab, slot);
            return self.done_here(slot, result);
        }
        self.late |= slab.kind(slot) == OpKind::Flush || !self.file.alignment().is_none();
        let target = Target {
            file: self.file.raw_fd(),
            data: self.member.address(slot),
            event: self.event.as_ref().map(|event| event.as_fd().as_raw_fd()),
        };
        self.controls.push(slot, &slab.request(slot), target);
    }

    fn submit(&mut self, _: &mut Slab) -> Result<()> {
        self.submit_waiting();
        self.signal_silent();
        Ok(())
    }

    #[inline]
    fn next(&mut self, slab: &mut Slab) -> Result<Option<Raw>> {
        if self.ready.is_empty() {
            self.refill(slab)?;
        }
        Ok(self.ready.pop())
    }

    fn wait(&mut self, slab: &mut Slab, min: usize) -> Result<()> {
        if self.controls.waiting() > 0 {
            self.submit(slab)?;
        }
        self.wait_by(Member::wait, slab, min)
    }

    fn submit_and_wait(&mut self, slab: &mut Slab, min: usize) -> Result<()> {
        self.submit(slab)?;
        // What has ended for sure is in the ring, and no call is needed for it.
        match self.late {
            true => self.wait_by(Member::wait_in_kernel, slab, min),
            false => self.wait_by(Member::wait, slab, min),
        }
    }

    fn zero_by_other_means(&mut self, kind: OpKind, offset: u64, len: u64) -> i32 {
        let how = kind.fallocate().unwrap_or(Fallocate::Zero);
        zero_otherwise(&self.file, how, offset, len)
    }

    fn alignment(&self) -> Alignment {
        self.file.alignment()
    }

    fn depth(&self) -> u32 {
        self.depth
    }

    fn notify(&mut self, event: Arc<EventFd>) -> Result<()> {
        self.event = Some(event);
        Ok(())
    }
}

/// Counts the bytes of attempts that the kernel's queue carried.
pub(crate) fn count_bytes<'a>(slab: &Slab, raws: impl Iterator<Item = &'a Raw>) {
    let (mut read, mut written) = (0u64, 0u64);
    for raw in raws {
        let bytes = u64::from(raw.result.max(0).unsigned_abs());
        match slab.kind(raw.slot) {
            OpKind::Read => read += bytes,
            OpKind::Write => written += bytes,
            OpKind::WriteZeroes | OpKind::Discard | OpKind::Flush => {}
        }
    }
    if read > 0 {
        count_read(read);
    }
    if written > 0 {
        count_written(written);
    }
}

impl Drop for AioDriver {
    fn drop(&mut self) {
        match self.in_kernel {
            0 => self.member.leave(),
            _ => self.controls.park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::buf::AlignedBuf;
    use crate::block::engine::Engine;
    use crate::block::op::Op;
    use crate::block::sys::counters::{self, Call};
    use crate::block::sys::file::FileOptions;

    #[test]
    fn refusals_are_told_apart() {
        let of = |errno, in_kernel| refusal(&io::Error::from_raw_os_error(errno), in_kernel);
        assert_eq!(of(libc::EINTR, 0), Refusal::Again);
        assert_eq!(of(libc::EAGAIN, 3), Refusal::Full);
        // Nothing will complete, so waiting for room would be for ever.
        assert_eq!(of(libc::EAGAIN, 0), Refusal::First(libc::EAGAIN));
        assert_eq!(of(libc::EBADF, 3), Refusal::First(libc::EBADF));
        assert_eq!(refusal(&io::Error::other("no errno"), 3), Refusal::First(libc::EIO));
    }

    /// A kernel that takes three at a time: a batch needs several calls, and
    /// every operation is done once.
    #[test]
    fn batches_that_are_taken_in_parts_are_whole() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("image");
        let content: Vec<u8> = (0..64 * 512u32).map(|n| (n / 512) as u8).collect();
        std::fs::write(&path, &content).expect("written");
        let file = Arc::new(BlockFile::open(&path, FileOptions::default()).expect("open"));
        let driver = match AioDriver::new(file, 16) {
            Ok(mut driver) => {
                driver.limit = 3;
                driver
            }
            // The engines' contracts report what is missing; here is nothing to try.
            Err(_) => return,
        };
        let mut engine = Queue::new(driver);
        let buf = || AlignedBuf::new(512, 512).expect("memory");
        for _ in 0..3 {
            let mut ops: Vec<Op> = (0..16).map(|n| Op::read(n, n * 2048, buf())).collect();
            let before = counters::thread();
            engine.submit_batch(&mut ops).expect("accepted");
            assert_eq!((counters::thread() - before).of(Call::AioSubmit), 6);
            let mut out = Vec::new();
            engine.wait(16, &mut out).expect("all of them");
            for done in &out {
                assert_eq!(done.result().expect("read"), 512);
                let byte = done.buffers().as_slice()[0][0];
                assert_eq!(u64::from(byte), done.tag() * 4);
            }
        }
    }
}
