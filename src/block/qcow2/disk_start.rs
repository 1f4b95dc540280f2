//! When requests over an engine start: reads and flushes at once, changes when
//! their clusters are free, oldest first; and what zeroes, discards and
//! flushes then do.
//!
//! Neighbours: `disk` has the requests and asks again when clusters may have
//! become free, `sync` knows who holds which, `disk_read` and `disk_write` go on.

use std::thread;

use super::super::engine::Engine;
use super::super::op::{Op, OpKind};
use super::disk::QcowDisk;
use super::disk_jobs::{Job, Sub, errno_of};
use super::sync::{Holder, Taken};

impl<E: Engine> QcowDisk<E> {
    /// Starts an admitted request, or lets it wait for its turn.
    pub(super) fn add(&mut self, op: Op) {
        let kind = op.kind;
        let number = self.jobs.insert(Job::new(op));
        match kind {
            OpKind::Read => self.start_read(number),
            OpKind::Flush => self.start_flush(number),
            OpKind::Write | OpKind::WriteZeroes | OpKind::Discard => self.waiting.push(number),
        }
    }

    /// Starts the waiting requests whose clusters are free, oldest first.
    pub(super) fn start_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let queue = std::mem::take(&mut self.waiting);
        for (index, &number) in queue.iter().enumerate() {
            match self.hold(number) {
                true => {
                    self.ahead.bytes = self.bytes_behind(number, &queue[index + 1..]);
                    self.start_change(number);
                }
                false => self.waiting.push(number),
            }
        }
        // Clusters that are not given back leak; nothing points at them.
        let returned = self.image.return_reserve(&mut self.ahead);
        let _ = self.judged(returned);
        if self.waiting.is_empty() {
            self.waiting = queue;
            self.waiting.clear();
        }
    }

    /// Whether the request now holds its clusters: nobody has them, and no older request waits for them.
    fn hold(&mut self, number: usize) -> bool {
        let Some(wanted) = self.jobs.get(number).and_then(|job| self.clusters(&job.op)) else {
            return true;
        };
        let older = |other: &usize| {
            let theirs = self.jobs.get(*other).and_then(|job| self.clusters(&job.op));
            theirs.is_some_and(|(first, last)| first <= wanted.1 && wanted.0 <= last)
        };
        if self.waiting.iter().any(older) {
            return false;
        }
        let holder = Holder { disk: self.number, thread: thread::current().id() };
        match self.image.ranges.try_lock(wanted, holder, self.event.as_ref()) {
            Ok(()) => {
                if let Some(job) = self.jobs.get_mut(number) {
                    job.held = Some(wanted);
                }
                true
            }
            Err(Taken::Own | Taken::Other) => false,
        }
    }

    pub(super) fn clusters(&self, op: &Op) -> Option<(u64, u64)> {
        (op.len > 0).then(|| self.image.clusters_of(op.offset, op.len))
    }

    /// Bytes that the requests after `number` write directly behind it, all of them whole clusters:
    /// their clusters are allocated together.
    fn bytes_behind(&self, number: usize, after: &[usize]) -> u64 {
        let (geo, Some(first)) = (self.image.geometry(), self.jobs.get(number)) else {
            return 0;
        };
        let mut end = first.op.offset + first.op.len;
        if first.op.kind != OpKind::Write || self.ahead.serves(geo.cluster_of(first.op.offset)) {
            return 0;
        }
        for op in after.iter().filter_map(|other| self.jobs.get(*other)).map(|job| &job.op) {
            if op.kind != OpKind::Write || op.offset != end || !geo.aligned(op.offset | op.len) {
                break;
            }
            end += op.len;
        }
        end - first.op.offset - first.op.len
    }

    /// Starts a request that holds its clusters.
    fn start_change(&mut self, number: usize) {
        let Some(job) = self.jobs.get(number) else {
            return;
        };
        let (kind, guest, len) = (job.op.kind, job.op.offset, job.op.len);
        if !self.image.is_writable() {
            return self.close_errno(number, libc::EROFS);
        }
        let ready = self.image.check_range(guest, len).and_then(|()| self.image.relieve());
        let result = match (ready, kind) {
            (Ok(()), OpKind::Write) => return self.start_write(number),
            (Ok(()), _) if len == 0 => Ok(()),
            (Ok(()), OpKind::WriteZeroes) => self.image.zero_held(guest, len, false),
            (Ok(()), _) => self.image.discard_held(guest, len),
            (failed, _) => failed,
        };
        self.close_with(number, result);
    }

    /// Makes durable what has completed.
    fn start_flush(&mut self, number: usize) {
        if self.image.is_writable() && !self.image.metadata_is_clean() {
            let result = self.image.flush().map_err(|error| errno_of(&error));
            return self.close_errno(number, result.err().unwrap_or(0));
        }
        let tag = self.subs.insert(Sub::Whole { job: number }) as u64;
        self.data.push(Op::flush(tag));
    }
}
