//! The engine interface: operations in, completions out.
//!
//! An engine keeps up to [`Engine::depth`] operations, each known by a tag,
//! from its submission until its completion is taken. Operations in flight
//! are not ordered among each other: who needs an order waits in between. A
//! flush covers what had completed when it was submitted.
//!
//! Neighbours: `op` has the operations, `queue` the part that all engines
//! share, `engine_sync`, `engine_aio`, `engine_uring` and `engine_mem` the
//! ways to the file, `raw_disk` a disk over any of them.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::align::Alignment;
use super::error::{Error, ErrorKind, Result};
use super::op::{Completion, Op};
use super::sys::eventfd::EventFd;

/// An operation that was not accepted, with the reason. Nothing was done.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub error: Error,
    /// The operation, with its buffers.
    pub op: Op,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} refused", self.op.tag())
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Something that carries out operations on one file.
///
/// Dropping an engine waits for what the kernel still works on; where that
/// cannot be waited for, the memory concerned is leaked, never freed.
pub trait Engine: Send {
    /// Operations that fit, submitted and not yet taken.
    fn depth(&self) -> usize;

    /// Operations submitted and not yet taken.
    fn in_flight(&self) -> usize;

    /// What the file demands of offsets, lengths and buffers; an operation
    /// that does not satisfy it fails with EINVAL.
    fn alignment(&self) -> Alignment;

    /// Submits one operation.
    ///
    /// # Errors
    ///
    /// `Busy` where the engine is full or the tag in flight, `InvalidInput`
    /// for a range that no file has. What fails later is the completion's.
    fn submit(&mut self, op: Op) -> std::result::Result<(), Box<Refused>>;

    /// Submits all of `ops`, with one system call where the engine has it,
    /// and leaves `ops` empty; or refuses all and leaves `ops` as it was.
    ///
    /// # Errors
    ///
    /// As [`Engine::submit`], also for a tag twice in the batch and for more
    /// operations than there is room.
    fn submit_batch(&mut self, ops: &mut Vec<Op>) -> Result<()>;

    /// Submits a flush.
    ///
    /// # Errors
    ///
    /// As [`Engine::submit`].
    fn flush(&mut self, tag: u64) -> Result<()> {
        self.submit(Op::flush(tag)).map_err(|refused| refused.error)
    }

    /// Takes one completion, if there is one; does not wait.
    ///
    /// # Errors
    ///
    /// Where the engine itself fails; operations stay in flight.
    fn reap(&mut self) -> Result<Option<Completion>>;

    /// Moves up to `max` completions to the end of `out`; does not wait.
    /// Returns how many.
    ///
    /// # Errors
    ///
    /// As [`Engine::reap`].
    fn reap_many(&mut self, out: &mut Vec<Completion>, max: usize) -> Result<usize>;

    /// Waits for exactly `n` completions and moves them to the end of `out`.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where fewer are in flight; else as [`Engine::reap`], and
    /// what was taken before the failure is in `out`.
    fn wait(&mut self, n: usize, out: &mut Vec<Completion>) -> Result<()>;

    /// Submits all of `ops`, which may be none, and waits for exactly `n`
    /// completions, which it moves to the end of `out`: with one system call
    /// where the engine has it.
    ///
    /// Where `n` is all that is in flight then, neither what is executed nor
    /// the order in `out` depends on when operations complete: nothing is
    /// looked at before the last of them has ended. That is for who counts
    /// instructions. [`Engine::wait`] goes on with what depends on a
    /// completion (the write of a copy, say) while others are under way.
    ///
    /// # Errors
    ///
    /// As [`Engine::submit_batch`] and, where `n` is more than would be in
    /// flight, `InvalidInput`: nothing is submitted and `ops` is as it was.
    /// With `ops` empty, as [`Engine::wait`].
    fn submit_and_wait(&mut self, ops: &mut Vec<Op>, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        enough(n, self.in_flight() + ops.len())?;
        self.submit_batch(ops)?;
        self.wait(n, out)
    }

    /// An eventfd that becomes readable when completions arrive. It tells of
    /// arrivals, not of a state: read it, then take completions until none is
    /// left. There is none before the first call.
    ///
    /// # Errors
    ///
    /// Where no eventfd can be had.
    fn notifier(&mut self) -> Result<BorrowedFd<'_>>;

    /// Makes `event` the notifier, which other engines may have as well.
    ///
    /// # Errors
    ///
    /// `Busy` where the engine has another one already.
    fn share_notifier(&mut self, event: &Arc<EventFd>) -> Result<()>;
}

/// Refuses to wait for more completions than there are operations.
pub(crate) fn enough(n: usize, in_flight: usize) -> Result<()> {
    if n <= in_flight {
        return Ok(());
    }
    let message = format!("cannot wait for {n} completions of {in_flight} operations");
    Err(Error::new(ErrorKind::InvalidInput, message))
}

impl<E: Engine + ?Sized> Engine for Box<E> {
    fn depth(&self) -> usize {
        (**self).depth()
    }

    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }

    fn alignment(&self) -> Alignment {
        (**self).alignment()
    }

    fn submit(&mut self, op: Op) -> std::result::Result<(), Box<Refused>> {
        (**self).submit(op)
    }

    fn submit_batch(&mut self, ops: &mut Vec<Op>) -> Result<()> {
        (**self).submit_batch(ops)
    }

    fn reap(&mut self) -> Result<Option<Completion>> {
        (**self).reap()
    }

    fn reap_many(&mut self, out: &mut Vec<Completion>, max: usize) -> Result<usize> {
        (**self).reap_many(out, max)
    }

    fn wait(&mut self, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        (**self).wait(n, out)
    }

    fn submit_and_wait(&mut self, ops: &mut Vec<Op>, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        (**self).submit_and_wait(ops, n, out)
    }

    fn notifier(&mut self) -> Result<BorrowedFd<'_>> {
        (**self).notifier()
    }

    fn share_notifier(&mut self, event: &Arc<EventFd>) -> Result<()> {
        (**self).share_notifier(event)
    }
}
