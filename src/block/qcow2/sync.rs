//! Who may touch what at the same time: ranges of guest clusters that are
//! being changed, and reads in flight whose host clusters must not be reused.
//!
//! Neighbours: `write`, `discard` and `snapshot` take ranges; `read` takes
//! tickets; `flush` asks when freed clusters may be handed out again.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks a mutex; a panic of another holder does not make the data unreachable.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ranges of guest clusters that are being changed: overlapping ones wait for each other.
#[derive(Debug, Default)]
pub struct RangeLocks {
    held: Mutex<Vec<(u64, u64)>>,
    freed: Condvar,
}

/// A held range; dropping it lets the next one in.
#[derive(Debug)]
pub struct RangeGuard<'a> {
    owner: &'a RangeLocks,
    range: (u64, u64),
}

impl RangeLocks {
    /// Waits until no part of the clusters `first..=last` is held, then holds them.
    pub fn lock(&self, first: u64, last: u64) -> RangeGuard<'_> {
        let mut held = lock(&self.held);
        while held.iter().any(|&(a, b)| first <= b && a <= last) {
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.push((first, last));
        RangeGuard { owner: self, range: (first, last) }
    }

    /// Holds the whole disk.
    pub fn lock_all(&self) -> RangeGuard<'_> {
        self.lock(0, u64::MAX)
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        let mut held = lock(&self.owner.held);
        if let Some(at) = held.iter().position(|range| *range == self.range) {
            held.swap_remove(at);
        }
        drop(held);
        self.owner.freed.notify_all();
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
    counter: &'a AtomicUsize,
}

impl ReadGate {
    /// Begins a read: hold the ticket from before the mapping is looked up until the data is there.
    pub fn enter(&self) -> ReadTicket<'_> {
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let counter = &self.active[(epoch & 1) as usize];
            counter.fetch_add(1, Ordering::SeqCst);
            if self.epoch.load(Ordering::SeqCst) == epoch {
                return ReadTicket { counter };
            }
            counter.fetch_sub(1, Ordering::SeqCst);
        }
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
        self.counter.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Buffers that are kept between operations.
#[derive(Debug, Default)]
pub struct BufferPool {
    free: Mutex<Vec<Vec<u8>>>,
}

impl BufferPool {
    /// Runs `body` with a buffer of `len` bytes whose content is arbitrary.
    pub fn with<R>(&self, len: usize, body: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buf = lock(&self.free).pop().unwrap_or_default();
        if buf.len() < len {
            buf.resize(len, 0);
        }
        let result = body(&mut buf[..len]);
        let mut free = lock(&self.free);
        if free.len() < 8 {
            free.push(buf);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn overlapping_ranges_wait_and_others_do_not() {
        let locks = RangeLocks::default();
        let first = locks.lock(0, 4);
        drop(locks.lock(5, 9));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(locks.lock(4, 5)));
            assert!(!waiter.is_finished());
            drop(first);
        });
    }
}
