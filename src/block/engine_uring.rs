//! The engine over io_uring: a batch is one `io_uring_enter`, completions are
//! taken from memory.
//!
//! Neighbours: `sys::uring` is the ring, `queue` does the rest.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::align::Alignment;
use super::buf::AlignedBuf;
use super::engine_aio::count_bytes;
use super::engine_sync::attempt;
use super::error::{Error, Result};
use super::io::{Fallocate, FileIo, retry, zero_otherwise};
use super::op::OpKind;
use super::queue::{Driver, Queue, Raw, check_depth, sealed::Sealed};
use super::ready::Ready;
use super::sys::eventfd::EventFd;
use super::sys::file::BlockFile;
use super::sys::slab::Slab;
use super::sys::uring::Ring;

/// An engine over io_uring.
pub type UringEngine = Queue<UringDriver>;

impl UringEngine {
    /// An engine for up to `depth` operations on `file`.
    ///
    /// # Errors
    ///
    /// As [`UringDriver::new`].
    pub fn open(file: Arc<BlockFile>, depth: u32) -> Result<Self> {
        Ok(Self::new(UringDriver::new(file, depth)?))
    }

    /// Buffers registered with the ring: `count` of `size` bytes each.
    /// Operations over one of them alone spare the kernel the mapping of its
    /// pages, which pays with direct I/O. They work in any engine. Once for a ring.
    ///
    /// # Errors
    ///
    /// `Missing` where the kernel has none or no locked memory is left.
    pub fn registered_buffers(&mut self, count: usize, size: usize) -> Result<Vec<AlignedBuf>> {
        self.driver_mut().registered_buffers(count, size)
    }
}

/// Gets attempts to the kernel by a ring.
pub struct UringDriver {
    ring: Ring,
    file: Arc<BlockFile>,
    depth: u32,
    /// Attempts pushed that the ring did not complete yet.
    in_ring: usize,
    /// Attempts that have ended and were not reported.
    ready: Ready,
    event: Option<Arc<EventFd>>,
}

impl UringDriver {
    /// A driver for up to `depth` operations on `file`.
    ///
    /// # Errors
    ///
    /// `Missing` with the reason where the kernel has no io_uring, does not
    /// allow it, or lacks an opcode; `InvalidInput` for a depth that no queue has.
    pub fn new(file: Arc<BlockFile>, depth: u32) -> Result<Self> {
        check_depth(depth)?;
        Ok(Self {
            ring: Ring::new(depth, file.as_fd())?,
            file,
            depth,
            in_ring: 0,
            ready: Ready::with_capacity(depth as usize),
            event: None,
        })
    }

    fn registered_buffers(&mut self, count: usize, size: usize) -> Result<Vec<AlignedBuf>> {
        let align = self.file.alignment().memory().max(4096);
        let bufs: Result<Vec<_>> = (0..count).map(|_| AlignedBuf::new(size, align)).collect();
        let mut bufs = bufs?;
        self.ring.register_buffers(&mut bufs)?;
        Ok(bufs)
    }

    fn done_here(&mut self, slot: u32, result: i32) {
        self.ready.push(Raw { slot, result });
        if let Some(event) = &self.event {
            event.signal();
        }
    }

    /// One `io_uring_enter` that waits for `min` completions.
    fn enter(&mut self, min: usize) -> Result<()> {
        match retry(|| self.ring.enter(min)) {
            Err(error) if !has_to_wait(&error, self.in_ring) => {
                Err(Error::io("cannot enter the io_uring", error))
            }
            _ => Ok(()),
        }
    }

    /// Brings what has arrived to `ready`, which is empty, after what is not submitted if there is none.
    #[inline(never)]
    fn refill(&mut self, slab: &mut Slab) -> Result<()> {
        self.take_arrived(slab);
        if self.ready.is_empty() && self.ring.unsubmitted() > 0 {
            self.submit(slab)?;
            self.take_arrived(slab);
        }
        Ok(())
    }

    /// Moves what has arrived to `ready`, which is empty.
    fn take_arrived(&mut self, slab: &Slab) {
        let ready = &mut self.ready;
        self.ring.take(|slot, result| ready.push(Raw { slot, result }));
        self.in_ring -= self.ready.len();
        count_bytes(slab, self.ready.after(0).iter());
    }
}

/// Whether the kernel refuses entries until completions are taken.
fn has_to_wait(error: &io::Error, in_ring: usize) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN)) && in_ring > 0
}

impl Sealed for UringDriver {}

impl Driver for UringDriver {
    fn push(&mut self, slab: &mut Slab, slot: u32) {
        let by_hand = slab.kind(slot).fallocate().is_some() && !self.ring.has_fallocate();
        if by_hand {
            let result = attempt(&self.file, slab, slot);
            return self.done_here(slot, result);
        }
        match self.ring.push(slot, &slab.request(slot)) {
            true => self.in_ring += 1,
            // The ring is as deep as the slab, so this does not happen.
            false => self.done_here(slot, -libc::EBUSY),
        }
    }

    fn submit(&mut self, _: &mut Slab) -> Result<()> {
        if self.ring.unsubmitted() > 0 {
            self.enter(0)?;
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self, slab: &mut Slab) -> Result<Option<Raw>> {
        if self.ready.is_empty() {
            self.refill(slab)?;
        }
        Ok(self.ready.pop())
    }

    fn wait(&mut self, _: &mut Slab, min: usize) -> Result<()> {
        if !self.ready.is_empty() {
            return Ok(());
        }
        self.enter(min.min(self.in_ring))
    }

    fn submit_and_wait(&mut self, _: &mut Slab, min: usize) -> Result<()> {
        // The kernel also counts what has arrived and was not taken.
        self.enter(min.saturating_sub(self.ready.len()).min(self.in_ring))
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
        self.ring.register_eventfd(event.as_fd())?;
        self.event = Some(event);
        Ok(())
    }
}
