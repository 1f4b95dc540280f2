//! The part that all engines share: which operations are in flight, tags,
//! short transfers, reads past the end. A [`Driver`] is the part that differs:
//! it gets attempts to a file and says how they ended.
//!
//! Neighbours: `engine` says what callers can rely on, `sys::slab` keeps the
//! buffers, `engine_*` are the drivers.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::align::Alignment;
use super::engine::{Engine, Refused, enough};
use super::error::{Error, ErrorKind, Result};
use super::op::{Completion, Op, OpKind};
use super::sys::eventfd::EventFd;
use super::sys::slab::{Slab, Step};
use super::tags::Tags;

/// The deepest queue: slots and ring entries are numbered with room to spare.
pub const MAX_DEPTH: u32 = 1 << 15;

/// Refuses depths that no queue has.
pub(crate) fn check_depth(depth: u32) -> Result<()> {
    if (1..=MAX_DEPTH).contains(&depth) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, format!("a queue depth of {depth} is not in 1 to {MAX_DEPTH}")))
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    pub(crate) slot: u32,
    /// Bytes, or a negated errno.
    pub(crate) result: i32,
}

pub(crate) mod sealed {
    //! Drivers are trusted with buffers that the kernel uses, so they are all
    //! in this crate.

    /// A driver of this crate.
    pub trait Sealed {}
}

/// A way of getting attempts to a file.
///
/// A slot that was pushed is reported by `next` exactly once, and not before
/// the kernel is done with its buffers.
pub trait Driver: sealed::Sealed + Send {
    /// Whether attempts end in the order in which they were pushed.
    const IN_ORDER: bool = false;

    /// Takes the next attempt of a slot; it may run at once, or at `submit`.
    fn push(&mut self, slab: &mut Slab, slot: u32);

    /// Hands what was pushed to the kernel.
    ///
    /// # Errors
    ///
    /// Where that cannot be done now; it is tried again by `next` and `wait`.
    fn submit(&mut self, slab: &mut Slab) -> Result<()>;

    /// An attempt that has ended; does not wait.
    ///
    /// # Errors
    ///
    /// Where the kernel's queue cannot be read.
    fn next(&mut self, slab: &mut Slab) -> Result<Option<Raw>>;

    /// Waits until `min` attempts have ended that `next` did not report yet;
    /// fewer than `min` may be returned for, but at least one. At least `min` are pushed.
    ///
    /// # Errors
    ///
    /// Where that cannot be waited for.
    fn wait(&mut self, slab: &mut Slab, min: usize) -> Result<()>;

    /// [`Driver::submit`], then [`Driver::wait`], with one system call where there is one for both.
    /// What this executes does not depend on what has ended meanwhile: where attempts end by
    /// themselves, it always asks the kernel.
    ///
    /// # Errors
    ///
    /// As both.
    fn submit_and_wait(&mut self, slab: &mut Slab, min: usize) -> Result<()> {
        self.submit(slab)?;
        self.wait(slab, min)
    }

    /// Zeroes a range where `fallocate` has no mode for it: 0 or a negated errno.
    fn zero_by_other_means(&mut self, kind: OpKind, offset: u64, len: u64) -> i32;

    /// What the file demands.
    fn alignment(&self) -> Alignment;

    /// The most slots that will be pushed and not reported.
    fn depth(&self) -> u32;

    /// Signals `event` from now on. Once for a driver.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses it.
    fn notify(&mut self, event: Arc<EventFd>) -> Result<()>;

    /// Waits until every slot is reported, for `Drop`.
    ///
    /// # Errors
    ///
    /// Where that cannot be waited for: the memory is then leaked.
    fn drain(&mut self, slab: &mut Slab) -> Result<()> {
        drain(self, slab)
    }
}

/// [`Driver::drain`] by taking and waiting.
pub(crate) fn drain(driver: &mut (impl Driver + ?Sized), slab: &mut Slab) -> Result<()> {
    loop {
        while let Some(raw) = driver.next(slab)? {
            slab.hand_back(raw.slot);
        }
        if slab.with_driver() == 0 {
            return Ok(());
        }
        driver.wait(slab, 1)?;
    }
}

/// An engine over a driver.
pub struct Queue<D: Driver> {
    driver: D,
    slab: Slab,
    tags: Tags,
    align: Alignment,
    /// Attempts were pushed that are not submitted.
    pushed: bool,
    /// A failed submission that no caller was told of.
    failed: Option<Error>,
    event: Option<Arc<EventFd>>,
}

impl<D: Driver> Queue<D> {
    /// An engine over `driver`, as deep as it.
    pub fn new(driver: D) -> Self {
        let depth = driver.depth();
        Self {
            slab: Slab::new(depth),
            tags: Tags::new(depth as usize),
            align: driver.alignment(),
            pushed: false,
            failed: None,
            event: None,
            driver,
        }
    }

    /// The driver, for what only it can do.
    pub fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver, to change what only it has. Not for callers: swapping it
    /// would part operations from who knows them.
    pub(crate) fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Whether `op` can be accepted now; its tag then counts as in flight.
    fn admit(&mut self, op: &Op) -> Result<()> {
        op.check()?;
        if self.tags.insert(op.tag) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Busy, format!("tag {} is in flight already", op.tag)))
    }

    fn full(&self, wanted: usize) -> Result<()> {
        let free = self.slab.depth() - self.slab.in_flight();
        if wanted <= free {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("no room for {wanted} operations, the queue has {free} left"),
        ))
    }

    /// Gives an admitted operation to the driver. There is room.
    fn start(&mut self, op: Op) {
        if let Some(slot) = self.slab.reserve() {
            self.slab.fill(slot, op);
            self.push(slot);
        }
    }

    fn push(&mut self, slot: u32) {
        self.slab.hand_over(slot);
        self.driver.push(&mut self.slab, slot);
        self.pushed = true;
    }

    /// Gives all of `ops` to the driver, or none.
    fn accept(&mut self, ops: &mut Vec<Op>) -> Result<()> {
        self.full(ops.len())?;
        for index in 0..ops.len() {
            if let Err(error) = self.admit(&ops[index]) {
                for admitted in &ops[..index] {
                    self.tags.remove(admitted.tag);
                }
                return Err(error);
            }
        }
        for op in ops.drain(..) {
            self.start(op);
        }
        Ok(())
    }

    /// Submits, waits until `left` operations are done, and keeps them as such: they are taken when
    /// the last of them has ended. `left` says how many are missing after an error.
    fn end_all(&mut self, left: &mut usize) -> Result<()> {
        while *left > 0 {
            self.pushed = false;
            self.driver.submit_and_wait(&mut self.slab, *left)?;
            while *left > 0
                && let Some((slot, result)) = self.next_done()?
            {
                self.slab.end(slot, result);
                *left -= 1;
            }
        }
        Ok(())
    }

    /// Submits; a failure is told to who next asks for completions, since the
    /// operations are accepted and stay in flight.
    fn submit_pushed(&mut self) {
        self.pushed = false;
        if let Err(error) = self.driver.submit(&mut self.slab) {
            self.failed = Some(error);
        }
    }

    /// The next operation that is really done: its slot and its result. The
    /// completion is built where it goes, being large enough for each copy to show.
    #[inline]
    fn next_done(&mut self) -> Result<Option<(u32, i64)>> {
        loop {
            match self.driver.next(&mut self.slab)? {
                Some(raw) => {
                    if let Some(result) = self.settle(raw) {
                        return Ok(Some((raw.slot, result)));
                    }
                }
                None if self.pushed => {
                    self.pushed = false;
                    self.driver.submit(&mut self.slab)?;
                }
                None => return Ok(None),
            }
        }
    }

    /// The operation's result, unless it needs another attempt.
    #[inline]
    fn settle(&mut self, raw: Raw) -> Option<i64> {
        self.slab.hand_back(raw.slot);
        match self.slab.advance(raw.slot, raw.result, self.align) {
            Step::Finished(result) => Some(result),
            Step::Again => {
                self.push(raw.slot);
                None
            }
            Step::Fallback => Some(self.fall_back(raw.slot)),
        }
    }

    /// Takes the operation of an ended attempt to `out`; `false` where it needs another one.
    #[inline]
    fn take(&mut self, raw: Raw, out: &mut Vec<Completion>) -> bool {
        if let Some(tag) = self.slab.take_whole(raw.slot, raw.result, out) {
            self.tags.remove(tag);
            return true;
        }
        self.take_other(raw, out)
    }

    /// [`Self::take`] for what did not end as most do.
    #[cold]
    fn take_other(&mut self, raw: Raw, out: &mut Vec<Completion>) -> bool {
        let settled = self.settle(raw);
        if let Some(result) = settled {
            out.push(self.finish(raw.slot, result));
        }
        settled.is_some()
    }

    #[inline]
    fn finish(&mut self, slot: u32, result: i64) -> Completion {
        self.tags.remove(self.slab.tag(slot));
        self.slab.take(slot, result)
    }

    #[cold]
    fn fall_back(&mut self, slot: u32) -> i64 {
        let (offset, len) = self.slab.range(slot);
        let kind = self.slab.kind(slot);
        match self.driver.zero_by_other_means(kind, offset, len) {
            0 => len as i64,
            errno => errno.into(),
        }
    }

    /// What a submission failed with, once.
    #[inline]
    fn told(&mut self) -> Result<()> {
        match self.failed.is_some() {
            true => self.failed.take().map_or(Ok(()), Err),
            false => Ok(()),
        }
    }
}

impl<D: Driver> Engine for Queue<D> {
    fn depth(&self) -> usize {
        self.slab.depth()
    }

    fn in_flight(&self) -> usize {
        self.slab.in_flight()
    }

    fn alignment(&self) -> Alignment {
        self.align
    }

    fn submit(&mut self, op: Op) -> std::result::Result<(), Box<Refused>> {
        if let Err(error) = self.full(1).and_then(|()| self.admit(&op)) {
            return Err(Box::new(Refused { error, op }));
        }
        self.start(op);
        self.submit_pushed();
        Ok(())
    }

    fn submit_batch(&mut self, ops: &mut Vec<Op>) -> Result<()> {
        self.accept(ops)?;
        self.submit_pushed();
        Ok(())
    }

    fn reap(&mut self) -> Result<Option<Completion>> {
        self.told()?;
        let done = self.next_done()?;
        Ok(done.map(|(slot, result)| self.finish(slot, result)))
    }

    fn reap_many(&mut self, out: &mut Vec<Completion>, max: usize) -> Result<usize> {
        self.told()?;
        let mut count = 0;
        while count < max {
            match self.driver.next(&mut self.slab)? {
                Some(raw) => count += usize::from(self.take(raw, out)),
                None if self.pushed => {
                    self.pushed = false;
                    self.driver.submit(&mut self.slab)?;
                }
                None => break,
            }
        }
        Ok(count)
    }

    fn wait(&mut self, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        enough(n, self.in_flight())?;
        let mut left = n;
        while left > 0 {
            left -= self.reap_many(out, left)?;
            if left > 0 {
                self.driver.wait(&mut self.slab, left)?;
            }
        }
        Ok(())
    }

    fn submit_and_wait(&mut self, ops: &mut Vec<Op>, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        enough(n, self.in_flight() + ops.len())?;
        self.accept(ops)?;
        // What could not be submitted before is submitted now, or fails again.
        self.failed = None;
        if n == 0 || D::IN_ORDER {
            self.submit_pushed();
            return self.wait(n, out);
        }
        let mut left = n;
        let result = self.end_all(&mut left);
        let Self { slab, tags, .. } = self;
        slab.take_ended(n - left, |done| {
            tags.remove(done.tag);
            out.push(done);
        });
        result
    }

    fn notifier(&mut self) -> Result<BorrowedFd<'_>> {
        let event = match &self.event {
            Some(event) => Arc::clone(event),
            None => Arc::new(EventFd::new()?),
        };
        self.share_notifier(&event)?;
        Ok((**self.event.insert(event)).as_fd())
    }

    fn share_notifier(&mut self, event: &Arc<EventFd>) -> Result<()> {
        match &self.event {
            Some(own) if Arc::ptr_eq(own, event) => return Ok(()),
            Some(_) => return Err(Error::new(ErrorKind::Busy, "the engine has a notifier already")),
            None => {}
        }
        self.driver.notify(Arc::clone(event))?;
        self.event = Some(Arc::clone(event));
        Ok(())
    }
}

impl<D: Driver> Drop for Queue<D> {
    fn drop(&mut self) {
        // Where the driver cannot wait, the slab parks what it still has.
        let _ = self.driver.drain(&mut self.slab);
    }
}
