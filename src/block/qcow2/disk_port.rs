//! A way to a file: an engine, and the operations that it has no room for yet.
//!
//! Neighbours: `disk` has one to the guest's data, and one to what lies under
//! an overlay where it is given one.

use std::sync::Arc;

use super::super::engine::Engine;
use super::super::error::Result;
use super::super::op::{Completion, Op};
use super::super::raw_disk::RawDisk;
use super::super::sys::eventfd::EventFd;
use super::disk_jobs::errno_of;

/// See the module.
pub struct Port<E: Engine> {
    /// Takes requests at any alignment.
    pub engine: RawDisk<E>,
    outbox: Vec<Op>,
    batch: Vec<Op>,
}

impl<E: Engine> Port<E> {
    /// A way to the file of `engine`.
    pub fn new(engine: E) -> Self {
        let depth = engine.depth();
        Self { engine: RawDisk::growing(engine), outbox: Vec::with_capacity(depth), batch: Vec::new() }
    }

    /// Adds an operation for the next [`Self::send`].
    pub fn push(&mut self, op: Op) {
        self.outbox.push(op);
    }

    /// Operations that the engine has, or is to get.
    pub fn waited_for(&self) -> usize {
        self.engine.in_flight() + self.outbox.len()
    }

    /// Operations that the engine has.
    pub fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }

    /// Hands operations to the engine, as many as it has room for, with one submission. What it
    /// refuses comes back in `failed`.
    pub fn send(&mut self, failed: &mut Vec<Completion>) {
        let room = self.engine.depth() - self.engine.in_flight();
        if self.outbox.is_empty() || room == 0 {
            return;
        }
        let sent = if self.outbox.len() <= room {
            self.engine.submit_batch(&mut self.outbox)
        } else {
            self.batch.extend(self.outbox.drain(..room));
            self.engine.submit_batch(&mut self.batch)
        };
        if sent.is_err() {
            self.send_one_by_one(failed);
        }
    }

    /// [`Self::send`], and waits for `least` operations, or for all where fewer are in flight then.
    /// Nothing is waited for where the engine refuses something.
    pub fn send_and_wait(&mut self, least: usize, out: &mut Vec<Completion>) -> Result<()> {
        let in_flight = self.engine.in_flight();
        let room = self.engine.depth() - in_flight;
        let ops = if self.outbox.len() <= room {
            &mut self.outbox
        } else {
            self.batch.extend(self.outbox.drain(..room));
            &mut self.batch
        };
        let wanted = least.min(in_flight + ops.len());
        match self.engine.submit_and_wait(ops, wanted, out) {
            Err(_) if !ops.is_empty() => {
                self.send_one_by_one(out);
                Ok(())
            }
            result => result,
        }
    }

    /// After a batch was refused: what is wrong with one operation is not the others' fault.
    #[cold]
    fn send_one_by_one(&mut self, failed: &mut Vec<Completion>) {
        let refused = if self.batch.is_empty() { &mut self.outbox } else { &mut self.batch };
        for op in refused.drain(..) {
            if let Err(refused) = self.engine.submit(op) {
                let result = (-errno_of(&refused.error)).into();
                let Op { kind, tag, offset, bufs, .. } = refused.op;
                failed.push(Completion { kind, tag, offset, result, bufs });
            }
        }
    }

    /// Takes what the engine has completed; says whether there was anything.
    pub fn reap(&mut self, out: &mut Vec<Completion>) -> Result<bool> {
        Ok(self.engine.reap_many(out, usize::MAX)? > 0)
    }

    /// Makes `event` the engine's notifier.
    pub fn share_notifier(&mut self, event: &Arc<EventFd>) -> Result<()> {
        self.engine.share_notifier(event)
    }
}
