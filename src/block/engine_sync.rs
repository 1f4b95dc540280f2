//! The engine that has no queue in the kernel: each operation is one system
//! call, done before its submission returns.
//!
//! Neighbours: `queue` does all but the calls; `io` is what they are made on,
//! so that the same driver serves real files and files in memory.

use std::sync::Arc;

use super::align::Alignment;
use super::error::Result;
use super::io::{Fallocate, FileIo, raw_result, zero_otherwise};
use super::op::OpKind;
use super::queue::{Driver, Queue, Raw, check_depth, sealed::Sealed};
use super::ready::Ready;
use super::sys::eventfd::EventFd;
use super::sys::file::BlockFile;
use super::sys::slab::Slab;

/// An engine of `preadv`, `pwritev`, `fallocate` and `fdatasync`.
pub type SyncEngine = Queue<SyncDriver<Arc<BlockFile>>>;

impl SyncEngine {
    /// An engine for up to `depth` operations on `file`.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a depth that no queue has.
    pub fn open(file: Arc<BlockFile>, depth: u32) -> Result<Self> {
        Ok(Self::new(SyncDriver::new(file, depth)?))
    }
}

/// Does each attempt at once.
#[derive(Debug)]
pub struct SyncDriver<I> {
    io: I,
    depth: u32,
    ready: Ready,
    event: Option<Arc<EventFd>>,
}

impl<I: FileIo> SyncDriver<I> {
    /// A driver for up to `depth` operations on `io`.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a depth that no queue has.
    pub fn new(io: I, depth: u32) -> Result<Self> {
        check_depth(depth)?;
        Ok(Self { io, depth, ready: Ready::with_capacity(depth as usize), event: None })
    }

    /// What it does its calls on.
    pub fn io(&self) -> &I {
        &self.io
    }
}

/// Does the next attempt of a slot: bytes, or a negated errno.
pub(crate) fn attempt(io: &impl FileIo, slab: &mut Slab, slot: u32) -> i32 {
    let (offset, len) = slab.range(slot);
    raw_result(match slab.kind(slot) {
        OpKind::Read => {
            let (slices, offset) = slab.read_slices(slot);
            io.preadv(slices, offset)
        }
        OpKind::Write => {
            let (slices, offset) = slab.write_slices(slot);
            io.pwritev(slices, offset)
        }
        OpKind::WriteZeroes => io.fallocate(Fallocate::Zero, offset, len).map(|()| 0),
        OpKind::Discard => io.fallocate(Fallocate::Punch, offset, len).map(|()| 0),
        OpKind::Flush => io.fdatasync().map(|()| 0),
    })
}

impl<I> Sealed for SyncDriver<I> {}

impl<I: FileIo> Driver for SyncDriver<I> {
    const IN_ORDER: bool = true;

    fn push(&mut self, slab: &mut Slab, slot: u32) {
        let result = attempt(&self.io, slab, slot);
        self.ready.push(Raw { slot, result });
    }

    fn submit(&mut self, _: &mut Slab) -> Result<()> {
        if let (Some(event), false) = (&self.event, self.ready.is_empty()) {
            event.signal();
        }
        Ok(())
    }

    fn next(&mut self, _: &mut Slab) -> Result<Option<Raw>> {
        Ok(self.ready.pop())
    }

    fn wait(&mut self, _: &mut Slab, _: usize) -> Result<()> {
        Ok(())
    }

    fn zero_by_other_means(&mut self, kind: OpKind, offset: u64, len: u64) -> i32 {
        let how = kind.fallocate().unwrap_or(Fallocate::Zero);
        zero_otherwise(&self.io, how, offset, len)
    }

    fn alignment(&self) -> Alignment {
        self.io.alignment()
    }

    fn depth(&self) -> u32 {
        self.depth
    }

    fn notify(&mut self, event: Arc<EventFd>) -> Result<()> {
        self.event = Some(event);
        Ok(())
    }
}
