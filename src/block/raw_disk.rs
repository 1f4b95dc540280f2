//! A raw disk over any engine: requests of a guest, at any alignment, within
//! the disk's capacity.
//!
//! Where the file demands more than the guest keeps to (direct I/O), requests
//! go through aligned buffers, and partial blocks are read, changed and
//! written while no other write to them is in flight. The guest sees none of
//! that, nor a length rounded up.
//!
//! Neighbours: `engine` is below and is what it offers; `disk_jobs` keeps the
//! requests that are not passed on as they are.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::align::Alignment;
use super::disk_jobs::{Job, Jobs, Next};
use super::engine::{Engine, Refused, enough};
use super::error::{Error, ErrorKind, Result};
use super::io::{FileIo, retry};
use super::op::{Completion, Op, OpKind};
use super::sys::eventfd::EventFd;

/// A disk of fixed capacity over an engine.
pub struct RawDisk<E: Engine> {
    engine: E,
    /// To cut what a bounced write made too long.
    file: Option<Arc<dyn FileIo>>,
    capacity: u64,
    align: Alignment,
    jobs: Jobs,
    /// Operations to pass on together.
    batch: Vec<Op>,
    /// Completions of the engine, to be looked at.
    arrived: Vec<Completion>,
    /// Completions for the caller.
    done: VecDeque<Completion>,
}

impl<E: Engine> RawDisk<E> {
    /// A disk with the content and the length of `file`, which is the file
    /// that `engine` works on.
    ///
    /// # Errors
    ///
    /// With errno, where the length cannot be had.
    pub fn new(engine: E, file: Arc<dyn FileIo>) -> Result<Self> {
        let capacity = retry(|| file.size())
            .map_err(|error| Error::io("cannot find the capacity of the disk", error))?;
        Ok(Self::with(engine, Some(file), capacity))
    }

    /// All of a file that may grow, at any alignment: writes at its end may
    /// round its length up to the file's blocks.
    pub(crate) fn growing(engine: E) -> Self {
        Self::with(engine, None, i64::MAX as u64)
    }

    fn with(engine: E, file: Option<Arc<dyn FileIo>>, capacity: u64) -> Self {
        let (align, depth) = (engine.alignment(), engine.depth());
        Self {
            engine,
            file,
            capacity,
            align,
            jobs: Jobs::new(align, if align.is_none() { 0 } else { depth }),
            batch: Vec::with_capacity(depth),
            arrived: Vec::with_capacity(depth),
            done: VecDeque::with_capacity(depth),
        }
    }

    /// What the file demands, which the disk hides.
    pub(crate) fn file_alignment(&self) -> Alignment {
        self.align
    }

    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether operations go to the engine as they are.
    fn passes(&self) -> bool {
        self.align.is_none()
    }

    fn check(&self, op: &Op) -> Result<()> {
        op.check()?;
        if op.offset + op.len <= self.capacity {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidInput,
            format!("{} bytes end past the disk's {}", op.len, self.capacity),
        )
        .with_guest(op.offset))
    }

    fn admit(&self, ops: &[Op]) -> Result<()> {
        ops.iter().try_for_each(|op| self.check(op))?;
        if self.passes() {
            return Ok(());
        }
        let free = self.depth() - self.in_flight();
        if ops.len() > free {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("no room for {} operations, the disk has {free} left", ops.len()),
            ));
        }
        for (index, op) in ops.iter().enumerate() {
            let twice = ops[..index].iter().any(|other| other.tag == op.tag);
            if twice || self.jobs.has_tag(op.tag) {
                return Err(Error::new(ErrorKind::Busy, format!("tag {} is in flight already", op.tag)));
            }
        }
        Ok(())
    }

    /// Starts every job that can start, with one submission.
    fn start_jobs(&mut self) {
        self.gather();
        if let Err(error) = self.engine.submit_batch(&mut self.batch) {
            self.give_up_batch(&error);
        }
    }

    /// Puts what can start into the batch.
    fn gather(&mut self) {
        while let Some((number, next)) = self.jobs.start_next() {
            self.go_on(number, next);
        }
    }

    /// Tags are our own and there is room, so a batch is not refused.
    #[cold]
    fn give_up_batch(&mut self, error: &Error) {
        let errno = error.errno().unwrap_or(libc::EIO);
        for op in std::mem::take(&mut self.batch) {
            let number = op.tag as usize;
            self.finish(number, (-errno).into(), Some(op));
        }
    }

    /// Starts what can start, and waits for as much of it as `left` requests need at least.
    fn round(&mut self, left: usize) -> Result<()> {
        self.gather();
        // What failed before it started is done as well.
        let wanted = left.saturating_sub(self.done.len()).min(self.engine.in_flight() + self.batch.len());
        match self.engine.submit_and_wait(&mut self.batch, wanted, &mut self.arrived) {
            Err(error) if !self.batch.is_empty() => self.give_up_batch(&error),
            result => {
                self.look();
                return result;
            }
        }
        Ok(())
    }

    fn go_on(&mut self, number: usize, next: Next) {
        match next {
            Next::Submit(op) => self.batch.push(op),
            Next::Done(result) => self.finish(number, result, None),
        }
    }

    /// Ends a job; `passed` is the operation that the engine gave back.
    fn finish(&mut self, number: usize, result: i64, passed: Option<Op>) {
        if let Some(job) = self.jobs.end(number) {
            let result = match self.keep_length(&job, result) {
                Ok(()) => result,
                Err(errno) => (-errno).into(),
            };
            self.done.push_back(job.complete(result, passed.map(Op::into_buffers)));
        }
    }

    /// Gives the file its length back, where writing its last, partial block
    /// made it longer.
    fn keep_length(&self, job: &Job, result: i64) -> std::result::Result<(), i32> {
        let overhangs = job.kind() == OpKind::Write && job.span().end > self.capacity;
        let Some(file) = self.file.as_ref().filter(|_| overhangs && result >= 0) else {
            return Ok(());
        };
        retry(|| file.truncate(self.capacity)).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// Looks at what the engine completed.
    fn look(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        for completion in arrived.drain(..) {
            let number = completion.tag as usize;
            let next = self.jobs.advance(number, completion);
            self.go_on(number, next);
        }
        self.arrived = arrived;
    }

    /// Looks at what the engine completed, and starts what that lets start.
    fn settle(&mut self) {
        self.look();
        self.start_jobs();
    }

    /// Moves up to `max` completions to the end of `out`; returns how many.
    fn hand_out(&mut self, out: &mut Vec<Completion>, max: usize) -> usize {
        let count = self.done.len().min(max);
        out.extend(self.done.drain(..count));
        count
    }

    /// Takes what the engine has completed, until nothing comes of it at once.
    fn progress(&mut self) -> Result<()> {
        loop {
            let taken = self.engine.reap_many(&mut self.arrived, usize::MAX)?;
            if taken == 0 {
                return Ok(());
            }
            self.settle();
        }
    }
}

impl<E: Engine> Engine for RawDisk<E> {
    fn depth(&self) -> usize {
        self.engine.depth()
    }

    fn in_flight(&self) -> usize {
        match self.passes() {
            true => self.engine.in_flight(),
            false => self.jobs.len() + self.done.len(),
        }
    }

    /// None: the disk takes what the guest asks.
    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    fn submit(&mut self, op: Op) -> std::result::Result<(), Box<Refused>> {
        if let Err(error) = self.admit(std::slice::from_ref(&op)) {
            return Err(Box::new(Refused { error, op }));
        }
        if self.passes() {
            return self.engine.submit(op);
        }
        self.jobs.add(op);
        self.start_jobs();
        Ok(())
    }

    fn submit_batch(&mut self, ops: &mut Vec<Op>) -> Result<()> {
        self.admit(ops)?;
        if self.passes() {
            return self.engine.submit_batch(ops);
        }
        for op in ops.drain(..) {
            self.jobs.add(op);
        }
        self.start_jobs();
        Ok(())
    }

    fn reap(&mut self) -> Result<Option<Completion>> {
        if self.passes() {
            return self.engine.reap();
        }
        if self.done.is_empty() {
            self.progress()?;
        }
        Ok(self.done.pop_front())
    }

    fn reap_many(&mut self, out: &mut Vec<Completion>, max: usize) -> Result<usize> {
        if self.passes() {
            return self.engine.reap_many(out, max);
        }
        self.progress()?;
        Ok(self.hand_out(out, max))
    }

    fn wait(&mut self, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        if self.passes() {
            return self.engine.wait(n, out);
        }
        enough(n, self.in_flight())?;
        let mut left = n;
        loop {
            left -= self.reap_many(out, left)?;
            if left == 0 {
                return Ok(());
            }
            self.engine.wait(1, &mut self.arrived)?;
            self.settle();
        }
    }

    fn submit_and_wait(&mut self, ops: &mut Vec<Op>, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        enough(n, self.in_flight() + ops.len())?;
        self.admit(ops)?;
        if self.passes() {
            return self.engine.submit_and_wait(ops, n, out);
        }
        for op in ops.drain(..) {
            self.jobs.add(op);
        }
        let mut left = n - self.hand_out(out, n);
        let mut result = Ok(());
        while left > 0 && result.is_ok() {
            result = self.round(left);
            left -= self.hand_out(out, left);
        }
        // Also after a failure: nothing else would send what completions before it let start.
        if self.jobs.len() > 0 {
            self.start_jobs();
        }
        result
    }

    fn notifier(&mut self) -> Result<BorrowedFd<'_>> {
        self.engine.notifier()
    }

    fn share_notifier(&mut self, event: &Arc<EventFd>) -> Result<()> {
        self.engine.share_notifier(event)
    }
}

impl<E: Engine> Drop for RawDisk<E> {
    fn drop(&mut self) {
        // Writes that read first are carried out; where the engine fails, it
        // keeps the buffers itself.
        while self.jobs.len() > 0 {
            if self.engine.wait(1, &mut self.arrived).is_err() {
                break;
            }
            self.settle();
        }
    }
}
