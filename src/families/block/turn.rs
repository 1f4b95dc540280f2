//! The region: what one iteration does to an image, and nothing else. What
//! comes of it is looked at afterwards.
//!
//! Neighbours: `run` makes a turn in set-up and takes it apart in the check.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use anyhow::{Result, anyhow};

use super::case::{Action, Step};
use super::recipe::Recipe;
use super::run::Open;
use super::subject::{Disk, Setting, Subject};
use crate::block::{AlignedBuf, Completion, Op};
use crate::scenario::Ops;

/// One iteration.
pub(super) struct Turn<'a> {
    pub open: Option<Open>,
    pub work: Work<'a>,
    pub result: Result<()>,
}

/// What it does.
pub(super) enum Work<'a> {
    /// Operations one after the other, with a buffer for each.
    Each(Arc<[Step]>, Vec<AlignedBuf>),
    /// Operations over a queue.
    Queue(Queue),
    /// Parts of the operations on threads.
    Threads(Vec<Worker>),
    /// Opening an image.
    Open(&'a dyn Subject, PathBuf, Setting),
}

/// Operations over a queue, and what was completed of them.
pub(super) struct Queue {
    /// Batches to submit and to take, one after the other.
    pub batches: Vec<Vec<Op>>,
    /// Whether each operation is submitted by itself.
    pub one_by_one: bool,
    /// What was completed.
    pub done: Vec<Completion>,
    /// How many there are.
    pub operations: usize,
}

/// A thread with its part of the operations, waiting to begin.
pub(super) struct Worker {
    begin: Sender<()>,
    thread: Option<JoinHandle<Part>>,
    part: Option<Part>,
}

/// What a thread gives back.
pub(super) struct Part {
    pub buffers: Vec<AlignedBuf>,
    pub result: Result<()>,
}

impl Turn<'_> {
    /// The region.
    pub fn go(&mut self, ops: &mut Ops) {
        self.result = match (&mut self.work, &mut self.open) {
            (Work::Each(steps, buffers), Some(open)) => one_by_one(&mut *open.disk, steps, buffers, ops),
            (Work::Queue(queue), Some(open)) => queue.run(&mut *open.disk, ops),
            (Work::Threads(workers), _) => run_threads(workers),
            (Work::Open(subject, path, setting), open) => subject.open(path, setting).map(|disk| {
                *open = Some(Open { disk, copy: None, generation: 0 });
            }),
            (_, None) => Err(anyhow!("the image is not open")),
        };
    }
}

/// Does `steps`, each with its buffer; where there are fewer, they come again.
pub(super) fn one_by_one(
    disk: &mut dyn Disk,
    steps: &[Step],
    buffers: &mut [AlignedBuf],
    ops: &mut Ops,
) -> Result<()> {
    if buffers.len() < steps.len() {
        return steps.iter().enumerate().try_for_each(|(index, step)| {
            let buffer = buffers.get_mut(index % buffers.len().max(1)).ok_or_else(|| anyhow!("no buffer"))?;
            ops.op(|| step.carry_out(disk, buffer))
        });
    }
    for (step, buffer) in steps.iter().zip(buffers) {
        ops.op(|| step.carry_out(disk, buffer))?;
    }
    Ok(())
}

impl Step {
    /// Does it.
    #[inline]
    pub(super) fn carry_out(&self, disk: &mut dyn Disk, buffer: &mut [u8]) -> Result<()> {
        match self.action {
            Action::Read => disk.read(self.offset, buffer),
            Action::Write => disk.write(self.offset, buffer),
            Action::Discard => disk.discard(self.offset, self.len),
            Action::WriteZeroes => disk.write_zeroes(self.offset, self.len),
            Action::Flush => disk.flush(),
            Action::CreateSnapshot => disk.create_snapshot(&Recipe::snapshot(self.offset as u32)),
            Action::DeleteSnapshot => disk.delete_snapshot(&Recipe::snapshot(self.offset as u32)),
            Action::Resize => disk.resize(self.offset),
        }
    }

    /// The same for a queue. Only what a queue takes is asked of one.
    pub(super) fn into_op(self, tag: u64, buffer: AlignedBuf) -> Result<Op> {
        Ok(match self.action {
            Action::Read => Op::read(tag, self.offset, buffer),
            Action::Write => Op::write(tag, self.offset, buffer),
            Action::Discard => Op::discard(tag, self.offset, self.len),
            Action::WriteZeroes => Op::write_zeroes(tag, self.offset, self.len),
            Action::Flush => Op::flush(tag),
            Action::CreateSnapshot | Action::DeleteSnapshot | Action::Resize => {
                return Err(anyhow!("{:?} does not go through a queue", self.action));
            }
        })
    }
}

impl Queue {
    /// Submits batch after batch, and takes all of it. Operations of a batch
    /// end together, with the last of them.
    pub fn run(&mut self, disk: &mut dyn Disk, ops: &mut Ops) -> Result<()> {
        for batch in &mut self.batches {
            let before = self.done.len();
            let wanted = before + batch.len();
            if self.one_by_one {
                for op in batch.drain(..) {
                    ops.start(op.tag() as usize);
                    disk.submit_one(op, &mut self.done)?;
                }
            } else {
                batch.iter().for_each(|op| ops.start(op.tag() as usize));
            }
            disk.submit_and_complete(batch, wanted, &mut self.done)?;
            self.done[before..].iter().for_each(|done| ops.done(done.tag() as usize));
        }
        // Where all was submitted before, taking it is what is left.
        disk.complete(self.operations, &mut self.done)
    }
}

impl Worker {
    /// Starts a thread that waits for its turn to do `steps`.
    pub fn start(
        mut disk: Box<dyn Disk + Send>,
        steps: Vec<Step>,
        mut buffers: Vec<AlignedBuf>,
    ) -> Result<Self> {
        let (begin, wait) = channel();
        let work = move || {
            // A turn that never comes is one that was given up.
            let result = match wait.recv() {
                Ok(()) => one_by_one(&mut *disk, &steps, &mut buffers, &mut Ops::default()),
                Err(_) => Err(anyhow!("given up before it began")),
            };
            Part { buffers, result }
        };
        let thread = Builder::new().name("guest".into()).spawn(work)?;
        Ok(Self { begin, thread: Some(thread), part: None })
    }

    fn join(&mut self) -> Result<()> {
        let thread = self.thread.take().ok_or_else(|| anyhow!("a thread was waited for twice"))?;
        self.part = Some(thread.join().map_err(|_| anyhow!("a thread panicked"))?);
        Ok(())
    }

    /// What has come of it.
    pub fn end(self) -> Result<Part> {
        self.part.ok_or_else(|| anyhow!("a thread was not waited for"))
    }
}

/// Lets all threads begin and waits until they have ended.
fn run_threads(workers: &mut [Worker]) -> Result<()> {
    for worker in workers.iter() {
        worker.begin.send(()).map_err(|_| anyhow!("a thread ended before its turn"))?;
    }
    workers.iter_mut().try_for_each(Worker::join)
}
