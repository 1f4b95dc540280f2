//! Who may touch what at the same time: ranges of guest clusters that are
//! being changed, and reads in flight whose host clusters must not be reused.
//!
//! Neighbours: `write`, `discard` and `snapshot` take ranges; `read` takes
//! tickets; `flush` asks when freed clusters may be handed out again.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::super::error::{Error, ErrorKind, Result};
use super::super::sys::eventfd::EventFd;

/// Locks a mutex; a panic of another holder does not make the data unreachable.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ranges of guest clusters that are being changed: overlapping ones wait for each other.
///
/// A call holds its range until it returns. A disk holds one from an operation's start until its
/// completion is seen, which only the thread that drives the disk can do: who waits for such a
/// range must not be that thread.
#[derive(Debug, Default)]
pub struct RangeLocks {
    ranges: Mutex<Ranges>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Ranges {
    held: Vec<Held>,
    /// Threads that sleep until something is freed: without one, no wake-up is a system call.
    sleepers: usize,
    /// Disks that want to be told when a range is freed.
    callers: Vec<(Range, Arc<EventFd>)>,
}

/// First and last cluster.
pub type Range = (u64, u64);

/// A disk that holds ranges while its operations are in flight, and the thread that took one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number, unique in the process.
    pub disk: u64,
    /// Who started the operation.
    pub thread: ThreadId,
}

#[derive(Debug)]
struct Held {
    range: Range,
    holder: Option<Holder>,
}

/// Why a range could not be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// By an operation of the same disk.
    Own,
    /// By somebody else.
    Other,
}

/// A held range; dropping it lets the next one in.
#[derive(Debug)]
pub struct RangeGuard<'a> {
    owner: &'a RangeLocks,
    range: Range,
}

fn overlap(a: Range, b: Range) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

impl Ranges {
    fn holders(&self, range: Range) -> impl Iterator<Item = &Held> {
        self.held.iter().filter(move |held| overlap(held.range, range))
    }

    /// Refuses to wait for what only the waiting thread itself could end.
    fn check_others(&self, range: Range) -> Result<()> {
        let me = thread::current().id();
        match self.holders(range).any(|held| held.holder.is_some_and(|holder| holder.thread == me)) {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Busy,
                "an operation in flight, started by this thread, holds these clusters",
            )),
        }
    }
}

impl RangeLocks {
    /// Waits until no part of the clusters `first..=last` is held, then holds them. An error where
    /// that would be for ever, because this thread has to complete an operation in flight first.
    pub fn lock(&self, first: u64, last: u64) -> Result<RangeGuard<'_>> {
        let range = (first, last);
        let mut ranges = self.free(range)?;
        ranges.held.push(Held { range, holder: None });
        Ok(RangeGuard { owner: self, range })
    }

    /// Holds the whole disk.
    pub fn lock_all(&self) -> Result<RangeGuard<'_>> {
        self.lock(0, u64::MAX)
    }

    /// Waits until no part of `range` is held; errors as [`Self::lock`].
    pub fn wait_free(&self, range: Range) -> Result<()> {
        self.free(range).map(drop)
    }

    fn free(&self, range: Range) -> Result<MutexGuard<'_, Ranges>> {
        let mut ranges = lock(&self.ranges);
        while ranges.holders(range).next().is_some() {
            ranges.check_others(range)?;
            ranges.sleepers += 1;
            ranges = self.freed.wait(ranges).unwrap_or_else(PoisonError::into_inner);
            ranges.sleepers -= 1;
        }
        Ok(ranges)
    }

    /// Holds `range` for `holder` until [`Self::unlock`], if nobody holds a part of it. If somebody
    /// else does, `event` is signalled when that may have changed.
    pub fn try_lock(
        &self,
        range: Range,
        holder: Holder,
        event: Option<&Arc<EventFd>>,
    ) -> std::result::Result<(), Taken> {
        let mut ranges = lock(&self.ranges);
        if ranges.holders(range).next().is_none() {
            ranges.held.push(Held { range, holder: Some(holder) });
            if let Some(event) = event {
                ranges.callers.retain(|(other, who)| *other != range || !Arc::ptr_eq(who, event));
            }
            return Ok(());
        }
        let own = |held: &Held| held.holder.is_some_and(|other| other.disk == holder.disk);
        if ranges.holders(range).any(own) {
            return Err(Taken::Own);
        }
        if let Some(event) = event
            && !ranges.callers.iter().any(|(other, who)| *other == range && Arc::ptr_eq(who, event))
        {
            ranges.callers.push((range, Arc::clone(event)));
        }
        Err(Taken::Other)
    }

    /// Signals `event` no more.
    pub fn forget(&self, event: &Arc<EventFd>) {
        lock(&self.ranges).callers.retain(|(_, who)| !Arc::ptr_eq(who, event));
    }

    /// Lets go of what [`Self::try_lock`] gave.
    pub fn unlock(&self, range: Range) {
        let mut ranges = lock(&self.ranges);
        if let Some(at) = ranges.held.iter().position(|held| held.range == range) {
            ranges.held.swap_remove(at);
        }
        ranges.callers.retain(|(wanted, event)| {
            let wakes = overlap(*wanted, range);
            if wakes {
                event.signal();
            }
            !wakes
        });
        let sleepers = ranges.sleepers;
        drop(ranges);
        if sleepers > 0 {
            self.freed.notify_all();
        }
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        self.owner.unlock(self.range);
    }
}

/// Counts reads in flight by epoch. A read that began in an epoch may still use mappings of it;
/// clusters freed in an epoch are reusable once the epoch is over and its reads are done.
#[derive(Debug, Default)]
pub struct ReadGate {
    epoch: AtomicU64,
    active: [AtomicUsize; 2],
}

/// A read in flight.
#[derive(Debug)]
pub struct ReadTicket<'a> {
    gate: &'a ReadGate,
    side: usize,
}

impl ReadGate {
    /// Begins a read: hold the ticket from before the mapping is looked up until the data is there.
    pub fn enter(&self) -> ReadTicket<'_> {
        ReadTicket { gate: self, side: self.enter_side() }
    }

    /// The epoch that is now, for a read without a ticket: what it found is good if [`Self::is_still`]
    /// says so afterwards, because clusters are handed out again only in a later epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether `epoch` is not over.
    pub fn is_still(&self, epoch: u64) -> bool {
        // What was read comes before the look at the epoch.
        fence(Ordering::Acquire);
        self.epoch.load(Ordering::Relaxed) == epoch
    }

    /// [`Self::enter`] for who says itself when the read is over, by [`Self::leave_side`].
    pub fn enter_side(&self) -> usize {
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let side = (epoch & 1) as usize;
            self.active[side].fetch_add(1, Ordering::SeqCst);
            if self.epoch.load(Ordering::SeqCst) == epoch {
                return side;
            }
            self.leave_side(side);
        }
    }

    /// The side that [`Self::enter_side`] would return now. Who holds it already need not enter
    /// again: the next epoch but one, which has the same side, does not begin before that is over.
    pub fn side(&self) -> usize {
        (self.epoch.load(Ordering::SeqCst) & 1) as usize
    }

    /// Ends a read of [`Self::enter_side`].
    pub fn leave_side(&self, side: usize) {
        self.active[side].fetch_sub(1, Ordering::SeqCst);
    }

    /// Ends the current epoch and returns it. Call only while the epoch before it is drained, and
    /// from one thread at a time.
    pub fn advance(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::SeqCst)
    }

    /// Whether no read of an ended `epoch` is in flight any more.
    pub fn drained(&self, epoch: u64) -> bool {
        self.active[(epoch & 1) as usize].load(Ordering::SeqCst) == 0
    }
}

impl Drop for ReadTicket<'_> {
    fn drop(&mut self) {
        self.gate.leave_side(self.side);
    }
}

/// Where buffers start. The kernel copies from a page into memory that starts a few bytes past one
/// (where allocators put large blocks) at a fifth of the speed: each load seems to wait for a store
/// whose address agrees in the lower twelve bits.
const PAGE: usize = 4096;

/// Buffers that are kept between operations.
#[derive(Debug, Default)]
pub struct BufferPool {
    free: Mutex<Vec<Vec<u8>>>,
}

impl BufferPool {
    /// Runs `body` with a buffer of `len` bytes whose content is arbitrary.
    pub fn with<R>(&self, len: usize, body: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buf = lock(&self.free).pop().unwrap_or_default();
        if buf.len() < len + PAGE {
            buf.resize(len + PAGE, 0);
        }
        let start = buf.as_ptr().addr().wrapping_neg() % PAGE;
        let result = body(&mut buf[start..start + len]);
        let mut free = lock(&self.free);
        if free.len() < 8 {
            free.push(buf);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sys::eventfd::drain;
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn an_epoch_is_drained_when_its_reads_are_done() {
        let gate = ReadGate::default();
        let ticket = gate.enter();
        let epoch = gate.advance();
        assert!(!gate.drained(epoch));
        let later = gate.enter();
        drop(ticket);
        assert!(gate.drained(epoch));
        drop(later);
    }

    #[test]
    fn buffers_start_at_a_page() {
        let pool = BufferPool::default();
        for len in [1, 4096, 61_440, 512] {
            pool.with(len, |outer| {
                assert_eq!((outer.len(), outer.as_ptr().addr() % PAGE), (len, 0));
                pool.with(len, |inner| assert_eq!(inner.as_ptr().addr() % PAGE, 0));
            });
        }
    }

    #[test]
    fn overlapping_ranges_wait_and_others_do_not() {
        let locks = RangeLocks::default();
        let first = locks.lock(0, 4).expect("free");
        drop(locks.lock(5, 9).expect("free"));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(locks.lock(4, 5).expect("free at last")));
            assert!(!waiter.is_finished());
            drop(first);
        });
    }

    #[test]
    fn what_a_thread_has_in_flight_is_not_waited_for_by_it() {
        let locks = RangeLocks::default();
        let holder = |disk| Holder { disk, thread: thread::current().id() };
        assert_eq!(locks.try_lock((3, 5), holder(1), None), Ok(()));
        assert_eq!(locks.try_lock((5, 6), holder(1), None), Err(Taken::Own));
        assert_eq!(locks.try_lock((0, 3), holder(2), None), Err(Taken::Other));
        assert_eq!(locks.lock(5, 5).map(drop).map_err(|e| e.kind()), Err(ErrorKind::Busy));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| locks.lock_all().map(drop));
            assert!(!waiter.is_finished());
            locks.unlock((3, 5));
            assert!(waiter.join().expect("it ends").is_ok());
        });
        assert!(locks.wait_free((0, u64::MAX)).is_ok());
    }

    #[test]
    fn who_was_refused_is_told_when_it_can_try_again() {
        let locks = RangeLocks::default();
        let event = Arc::new(EventFd::new().expect("an eventfd"));
        let told = || drain(event.as_fd()).expect("an eventfd");
        let guard = locks.lock(3, 5).expect("free");
        let holder = Holder { disk: 1, thread: thread::current().id() };
        for _ in 0..2 {
            assert_eq!(locks.try_lock((4, 9), holder, Some(&event)), Err(Taken::Other));
        }
        drop(locks.lock(0, 1));
        assert_eq!(told(), None, "another range");
        drop(guard);
        assert_eq!(told(), Some(1));
        assert_eq!(locks.try_lock((4, 9), holder, Some(&event)), Ok(()));
        locks.unlock((4, 9));
        assert_eq!(told(), None, "it has what it wanted");
        let guard = locks.lock(3, 5).expect("free");
        assert_eq!(locks.try_lock((4, 9), holder, Some(&event)), Err(Taken::Other));
        locks.forget(&event);
        drop(guard);
        assert_eq!(told(), None, "it is not asked for any more");
    }
}
