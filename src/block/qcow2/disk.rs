//! A qcow2 disk over any engine: requests of a guest become operations on the
//! file that holds its data, and metadata stays with the [`Image`], which any
//! number of disks and the image's own methods share.
//!
//! - Mappings are looked up when an operation starts. What has to be read for
//!   that is read with the image's synchronous calls.
//! - Reads take no exclusive lock while their mapping is in memory. Writes,
//!   zeroes and discards hold their clusters from start to end; those that
//!   meet held clusters wait inside the disk, oldest first.
//! - Zeroes and discards change metadata alone, but for clusters that they
//!   cover in part, which are written at once. Discarded ranges read as zeroes.
//! - A flush is the engine's where no metadata is dirty, else the image's own
//!   [`Image::flush`], done before the submission returns.
//! - An operation in flight that this thread started makes the image's own
//!   methods fail with `Busy` where they would have to wait for it.
//!
//! Neighbours: `disk_start` decides what may start, `disk_read` and
//! `disk_write` do the work, `disk_jobs` keeps what is in flight, `disk_port`
//! is the way to an engine.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::align::Alignment;
use super::super::buf::BufPool;
use super::super::engine::{Engine, Refused, enough};
use super::super::error::{Error, ErrorKind, Result};
use super::super::op::{Completion, Op, OpKind};
use super::super::sys::eventfd::EventFd;
use super::super::tags::Tags;
use super::disk_jobs::{Job, Part, Slots, Sub};
use super::disk_port::Port;
use super::image::Image;
use super::plan::Ahead;

/// Bytes of buffers that a disk keeps for reuse, at most.
const KEPT: u64 = 8 << 20;

/// Numbers of disks, for the ranges that they hold.
static DISKS: AtomicU64 = AtomicU64::new(0);

/// A guest's disk in an image, over an engine; itself an engine over guest offsets.
///
/// A disk may go to another thread, but operations in flight stay known as the first thread's: let
/// them complete before. Else a call of the image itself by the new thread, on clusters that one of
/// them holds, waits for ever for a completion that only this thread could take, and fails with no `Busy`.
pub struct QcowDisk<E: Engine> {
    pub(super) image: Arc<Image>,
    /// The file with the guest's data.
    pub(super) data: Port<E>,
    /// The disk under an overlay.
    pub(super) below: Option<Port<Box<dyn Engine>>>,
    pub(super) number: u64,
    tags: Tags,
    pub(super) jobs: Slots<Job>,
    pub(super) parts: Slots<Part>,
    pub(super) subs: Slots<Sub>,
    /// Requests whose clusters are not free, oldest first.
    pub(super) waiting: Vec<usize>,
    /// Completions of the engines, to be looked at.
    arrived: Vec<Completion>,
    /// Completions for the caller.
    done: VecDeque<Completion>,
    /// Reads in flight on either side of the image's gate.
    sides: [usize; 2],
    pub(super) ahead: Ahead,
    pub(super) pool: BufPool,
    /// The engine's notifier, once somebody asked for it.
    pub(super) event: Option<Arc<EventFd>>,
}

impl<E: Engine> QcowDisk<E> {
    /// The disk in `image`, whose data `engine` reads and writes: it works on the image file, or on
    /// the external data file where the image has one. As deep as the engine.
    ///
    /// # Errors
    ///
    /// `Unsupported` where the engine's file demands an alignment larger than a cluster.
    pub fn new(engine: E, image: Arc<Image>) -> Result<Self> {
        let (depth, cluster) = (engine.depth(), image.cluster_size());
        if engine.alignment().offset() > cluster {
            let message = "the file takes blocks larger than a cluster, which others may be writing";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let keep = (KEPT / cluster).clamp(2, depth as u64 + 2) as usize;
        let align = engine.alignment().memory().max(4096);
        Ok(Self {
            image,
            data: Port::new(engine),
            below: None,
            number: DISKS.fetch_add(1, Ordering::Relaxed),
            tags: Tags::new(depth),
            jobs: Slots::with_capacity(depth),
            parts: Slots::with_capacity(depth),
            subs: Slots::with_capacity(depth),
            waiting: Vec::with_capacity(depth),
            arrived: Vec::with_capacity(depth),
            done: VecDeque::with_capacity(depth),
            sides: [0; 2],
            ahead: Ahead::default(),
            pool: BufPool::new(cluster as usize, align, keep),
            event: None,
        })
    }

    /// Reads what lies under an overlay through `engine` as well: a disk with the content of the
    /// image's [`Image::backing`], such as an engine on that raw file, or another `QcowDisk` over
    /// that image. Without one it is read with synchronous calls before a submission returns. While
    /// both engines have operations in flight, waiting for fewer than all may last for the slower.
    #[must_use]
    pub fn with_backing(mut self, engine: Box<dyn Engine>) -> Self {
        self.below = Some(Port::new(engine));
        self
    }

    /// The image.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.image.size()
    }

    pub(super) fn buffer_align(&self) -> usize {
        self.data.engine.file_alignment().memory().max(4096)
    }

    fn check(&self, op: &Op) -> Result<()> {
        op.check()?;
        self.image.check_range(op.offset, op.len)
    }

    /// Accepts all of `ops`, whose tags then count as in flight, or none.
    fn admit(&mut self, ops: &[Op]) -> Result<()> {
        ops.iter().try_for_each(|op| self.check(op))?;
        let free = self.depth() - self.in_flight();
        if ops.len() > free {
            let message = format!("no room for {} operations, the disk has {free} left", ops.len());
            return Err(Error::new(ErrorKind::Busy, message));
        }
        for (index, op) in ops.iter().enumerate() {
            if !self.tags.insert(op.tag) {
                ops[..index].iter().for_each(|admitted| self.tags.remove(admitted.tag));
                return Err(Error::new(ErrorKind::Busy, format!("tag {} is in flight already", op.tag)));
            }
        }
        Ok(())
    }

    /// Starts what can start of `ops` and of what waits, and tells who polls of what is done
    /// without the engine.
    fn launch(&mut self, ops: impl IntoIterator<Item = Op>) {
        let before = self.done.len();
        ops.into_iter().for_each(|op| self.add(op));
        self.start_waiting();
        self.send();
        if let Some(event) = self.event.as_ref().filter(|_| self.done.len() > before) {
            event.signal();
        }
    }

    /// Counts a read on a side of the image's gate; entering it costs once for all reads in flight.
    pub(super) fn enter_gate(&mut self) -> usize {
        let mut side = self.image.gate.side();
        if self.sides[side] == 0 {
            side = self.image.gate.enter_side();
        }
        self.sides[side] += 1;
        side
    }

    fn leave_gate(&mut self, side: usize) {
        self.sides[side] -= 1;
        if self.sides[side] == 0 {
            self.image.gate.leave_side(side);
        }
    }

    /// One of the things that a request waits for is over.
    pub(super) fn close(&mut self, number: usize) {
        let Some(job) = self.jobs.get_mut(number) else {
            return;
        };
        job.open -= 1;
        if job.open > 0 {
            return;
        }
        if let Some(job) = self.jobs.remove(number) {
            if let Some(side) = job.side {
                self.leave_gate(side);
            }
            if let Some(range) = job.held {
                self.image.ranges.unlock(range);
            }
            self.done.push_back(job.complete());
        }
    }

    /// [`Self::close`], with what it failed with, if not 0.
    pub(super) fn close_errno(&mut self, number: usize, errno: i32) {
        if let Some(job) = self.jobs.get_mut(number).filter(|_| errno != 0) {
            job.fail(errno);
        }
        self.close(number);
    }

    /// [`Self::close`], with what came of it.
    pub(super) fn close_with(&mut self, number: usize, result: Result<()>) {
        let errno = self.judged(result).err().unwrap_or(0);
        self.close_errno(number, errno);
    }

    /// Hands operations to the engines.
    fn send(&mut self) {
        self.data.send(&mut self.arrived);
        if let Some(below) = &mut self.below {
            below.send(&mut self.arrived);
        }
    }

    fn settle_one(&mut self, completion: Completion) {
        match self.subs.remove(completion.tag as usize) {
            Some(Sub::Whole { job: number }) => {
                let (kind, end) = (completion.kind, completion.offset + completion.bufs.total());
                let errno = completion.errno().unwrap_or(0);
                if kind == OpKind::Write && errno == 0 {
                    self.image.written_elsewhere(end);
                }
                if let Some(job) = self.jobs.get_mut(number) {
                    job.op.bufs = completion.bufs;
                }
                self.close_errno(number, errno);
            }
            Some(Sub::Fetch(fetch)) => self.fetched(fetch, completion),
            Some(Sub::Put { part, guest }) => self.written(part, guest, completion),
            None => {}
        }
    }

    /// Looks at what the engines completed.
    fn look(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.drain(..).for_each(|completion| self.settle_one(completion));
        self.arrived = arrived;
        self.start_waiting();
    }

    /// Looks at what the engines completed, and starts what that lets start.
    fn settle(&mut self) {
        loop {
            self.look();
            self.send();
            // Only what an engine refused is there already.
            if self.arrived.is_empty() {
                return;
            }
        }
    }

    /// Takes what the engines have completed, until nothing comes of it at once.
    fn progress(&mut self) -> Result<()> {
        self.settle();
        loop {
            let mut any = self.data.reap(&mut self.arrived)?;
            if let Some(below) = &mut self.below {
                any |= below.reap(&mut self.arrived)?;
            }
            if !any {
                return Ok(());
            }
            self.settle();
        }
    }

    /// Sleeps in the kernel until at least one request may go on; `wanted` are to be completed.
    fn sleep(&mut self, wanted: usize) -> Result<()> {
        let (data, below) = (self.data.in_flight(), self.below.as_ref().map_or(0, Port::in_flight));
        if data + below == 0 {
            return self.sleep_for_others();
        }
        // Each request that does not wait for clusters needs one operation of an engine or more.
        let least = wanted.saturating_sub(self.waiting.len()).max(1);
        let result = match &mut self.below {
            Some(port) if below > data => {
                port.engine.wait(least.saturating_sub(data).clamp(1, below), &mut self.arrived)
            }
            _ => self.data.engine.wait(least.saturating_sub(below).clamp(1, data), &mut self.arrived),
        };
        self.settle();
        result
    }

    /// Hands operations to the engines and waits until those are done that `wanted` requests need:
    /// where that is all requests, all operations. What they let start is for the next round.
    fn round(&mut self, wanted: usize) -> Result<()> {
        let all = wanted == self.jobs.len();
        let below = self.below.as_ref().map_or(0, Port::waited_for);
        if self.data.waited_for() + below == 0 {
            return self.sleep_for_others();
        }
        if below > 0 && !all {
            self.settle();
            return if self.done.is_empty() { self.sleep(wanted) } else { Ok(()) };
        }
        if let Some(port) = &mut self.below {
            port.send(&mut self.arrived);
        }
        let least = if all { usize::MAX } else { wanted.saturating_sub(self.waiting.len()).max(1) };
        let mut result = self.data.send_and_wait(least, &mut self.arrived);
        if let (Some(port), true) = (&mut self.below, result.is_ok()) {
            result = port.send_and_wait(usize::MAX, &mut self.arrived);
        }
        self.look();
        result
    }

    /// Only others hold what is waited for. They need nothing of this disk, which holds nothing.
    fn sleep_for_others(&mut self) -> Result<()> {
        let first = self.waiting.first().and_then(|number| self.jobs.get(*number));
        let Some(range) = first.and_then(|job| self.clusters(&job.op)) else {
            return Err(Error::new(ErrorKind::Busy, "nothing is in flight that could complete"));
        };
        self.image.ranges.wait_free(range)?;
        self.settle();
        Ok(())
    }

    /// Moves up to `max` completions to the end of `out`; returns how many.
    fn hand_out(&mut self, out: &mut Vec<Completion>, max: usize) -> usize {
        let count = self.done.len().min(max);
        (0..count).for_each(|_| out.extend(self.take_done()));
        count
    }

    fn take_done(&mut self) -> Option<Completion> {
        let completion = self.done.pop_front()?;
        self.tags.remove(completion.tag);
        Some(completion)
    }
}

impl<E: Engine> Engine for QcowDisk<E> {
    fn depth(&self) -> usize {
        self.data.engine.depth()
    }

    fn in_flight(&self) -> usize {
        self.jobs.len() + self.done.len()
    }

    /// None: the disk takes what the guest asks.
    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    fn submit(&mut self, op: Op) -> std::result::Result<(), Box<Refused>> {
        if let Err(error) = self.admit(std::slice::from_ref(&op)) {
            return Err(Box::new(Refused { error, op }));
        }
        self.launch([op]);
        Ok(())
    }

    fn submit_batch(&mut self, ops: &mut Vec<Op>) -> Result<()> {
        self.admit(ops)?;
        self.launch(ops.drain(..));
        Ok(())
    }

    fn reap(&mut self) -> Result<Option<Completion>> {
        if self.done.is_empty() {
            self.progress()?;
        }
        Ok(self.take_done())
    }

    fn reap_many(&mut self, out: &mut Vec<Completion>, max: usize) -> Result<usize> {
        if self.done.len() < max {
            self.progress()?;
        }
        Ok(self.hand_out(out, max))
    }

    fn wait(&mut self, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        enough(n, self.in_flight())?;
        let mut left = n;
        loop {
            left -= self.reap_many(out, left)?;
            if left == 0 {
                return Ok(());
            }
            if let Err(error) = self.sleep(left) {
                // What was done before the failure is the caller's all the same.
                self.hand_out(out, left);
                return Err(error);
            }
        }
    }

    fn submit_and_wait(&mut self, ops: &mut Vec<Op>, n: usize, out: &mut Vec<Completion>) -> Result<()> {
        enough(n, self.in_flight() + ops.len())?;
        self.admit(ops)?;
        ops.drain(..).for_each(|op| self.add(op));
        self.start_waiting();
        let mut left = n - self.hand_out(out, n);
        let mut result = Ok(());
        while left > 0 && result.is_ok() {
            result = self.round(left);
            left -= self.hand_out(out, left);
        }
        // Also after a failure: a drop sends no more what completions before it let start.
        if self.in_flight() > 0 {
            self.send();
            if let Some(event) = self.event.as_ref().filter(|_| !self.done.is_empty()) {
                event.signal();
            }
        }
        result
    }

    /// Signalled by the engines and, for what completes without them, by the disk. It also becomes
    /// readable when a request that waits for another user of the image can go on.
    fn notifier(&mut self) -> Result<BorrowedFd<'_>> {
        let event = match &self.event {
            Some(event) => Arc::clone(event),
            None => Arc::new(EventFd::new()?),
        };
        self.share_notifier(&event)?;
        Ok((**self.event.insert(event)).as_fd())
    }

    fn share_notifier(&mut self, event: &Arc<EventFd>) -> Result<()> {
        self.data.share_notifier(event)?;
        if let Some(below) = &mut self.below {
            below.share_notifier(event)?;
        }
        self.event = Some(Arc::clone(event));
        // What waits for others already asks to be told.
        self.launch([]);
        Ok(())
    }
}

impl<E: Engine> Drop for QcowDisk<E> {
    fn drop(&mut self) {
        // Requests are carried out, also those that wait for others.
        while self.jobs.len() > 0 && self.sleep(1).is_ok() {}
        if self.jobs.iter().any(|job| job.held.is_some()) {
            // The kernel may still write to these clusters: nothing may be allocated there any more.
            self.image.refuse_changes();
        }
        for job in self.jobs.iter() {
            if let Some(range) = job.held {
                self.image.ranges.unlock(range);
            }
        }
        if let Some(event) = &self.event {
            self.image.ranges.forget(event);
        }
        for side in [0, 1] {
            if self.sides[side] > 0 {
                self.image.gate.leave_side(side);
            }
        }
    }
}
