//! How many system calls the block layer made, and how many bytes they moved.
//!
//! A count of instructions sees no kernel work, so a report wants these beside
//! it. Each thread writes counters of its own with plain loads and stores (no
//! locked instruction); a process total adds them up.
//!
//! Neighbours: every module of [`super`] counts; the block layer re-exports
//! [`Counts`] for who reports them.

use std::cell::OnceCell;
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::block::lock::lock;

/// A kind of system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `pread64`, `preadv`.
    Read,
    /// `pwrite64`, `pwritev`.
    Write,
    /// `fallocate`.
    Fallocate,
    /// `fdatasync`.
    Sync,
    /// `ftruncate`.
    Truncate,
    /// `lseek`, `fstat`, `statx`: questions about a file.
    Stat,
    /// `io_submit`.
    AioSubmit,
    /// `io_getevents`.
    AioWait,
    /// `io_uring_enter`.
    RingEnter,
    /// `write` to an eventfd.
    Notify,
    /// Opening, setting up and tearing down.
    Setup,
}

impl Call {
    /// Every kind, in the order of [`Counts::calls`].
    pub const ALL: [Self; 11] = [
        Self::Read,
        Self::Write,
        Self::Fallocate,
        Self::Sync,
        Self::Truncate,
        Self::Stat,
        Self::AioSubmit,
        Self::AioWait,
        Self::RingEnter,
        Self::Notify,
        Self::Setup,
    ];

    /// The name to print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "pread",
            Self::Write => "pwrite",
            Self::Fallocate => "fallocate",
            Self::Sync => "fdatasync",
            Self::Truncate => "ftruncate",
            Self::Stat => "stat",
            Self::AioSubmit => "io_submit",
            Self::AioWait => "io_getevents",
            Self::RingEnter => "io_uring_enter",
            Self::Notify => "eventfd_write",
            Self::Setup => "setup",
        }
    }
}

/// A reading of the counters; subtract an earlier one to get a region's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    calls: [u64; Call::ALL.len()],
    read: u64,
    written: u64,
}

impl Counts {
    /// System calls of one kind.
    pub fn of(&self, call: Call) -> u64 {
        self.calls[call as usize]
    }

    /// System calls by kind, in the order of [`Call::ALL`].
    pub fn calls(&self) -> impl Iterator<Item = (Call, u64)> + '_ {
        Call::ALL.into_iter().map(|call| (call, self.of(call)))
    }

    /// All system calls.
    pub fn total(&self) -> u64 {
        self.calls.iter().sum()
    }

    /// Bytes that reads delivered, also through rings.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Bytes that writes took, also through rings.
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.calls.iter_mut().zip(other.calls) {
            *mine += theirs;
        }
        self.read += other.read;
        self.written += other.written;
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(mut self, earlier: Self) -> Self {
        for (mine, theirs) in self.calls.iter_mut().zip(earlier.calls) {
            *mine = mine.wrapping_sub(theirs);
        }
        self.read = self.read.wrapping_sub(earlier.read);
        self.written = self.written.wrapping_sub(earlier.written);
        self
    }
}

/// The counters of one thread: written by it alone, read by any.
#[derive(Default)]
struct Block {
    calls: [AtomicU64; Call::ALL.len()],
    read: AtomicU64,
    written: AtomicU64,
}

impl Block {
    fn reading(&self) -> Counts {
        let mut counts = Counts {
            read: self.read.load(Relaxed),
            written: self.written.load(Relaxed),
            ..Counts::default()
        };
        for (to, from) in counts.calls.iter_mut().zip(&self.calls) {
            *to = from.load(Relaxed);
        }
        counts
    }
}

/// Threads that live, and the sum of those that ended.
struct Registry {
    live: Vec<Arc<Block>>,
    ended: Counts,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    live: Vec::new(),
    ended: Counts { calls: [0; Call::ALL.len()], read: 0, written: 0 },
});

/// A thread's entry in the registry; leaves it when the thread ends.
struct Mine(Arc<Block>);

impl Mine {
    fn enlist() -> Self {
        let block = Arc::new(Block::default());
        lock(&REGISTRY).live.push(Arc::clone(&block));
        Self(block)
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        let mut registry = lock(&REGISTRY);
        registry.live.retain(|block| !Arc::ptr_eq(block, &self.0));
        registry.ended.add(&self.0.reading());
    }
}

thread_local! {
    static MINE: OnceCell<Mine> = const { OnceCell::new() };
}

/// Runs `f` on this thread's counters; nothing is counted while they are torn down.
#[inline]
fn with_mine(f: impl FnOnce(&Block)) {
    let _ = MINE.try_with(|mine| f(&mine.get_or_init(Mine::enlist).0));
}

/// One more, by a plain load and store: the owner is the only writer.
#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Counts one system call.
#[inline]
pub(crate) fn count(call: Call) {
    with_mine(|mine| bump(&mine.calls[call as usize], 1));
}

/// Counts a system call that read `bytes`, at once.
#[inline]
pub(crate) fn count_read_call(bytes: u64) {
    with_mine(|mine| {
        bump(&mine.calls[Call::Read as usize], 1);
        bump(&mine.read, bytes);
    });
}

/// Counts a system call that wrote `bytes`, at once.
#[inline]
pub(crate) fn count_write_call(bytes: u64) {
    with_mine(|mine| {
        bump(&mine.calls[Call::Write as usize], 1);
        bump(&mine.written, bytes);
    });
}

/// Counts bytes that a read delivered.
#[inline]
pub(crate) fn count_read(bytes: u64) {
    with_mine(|mine| bump(&mine.read, bytes));
}

/// Counts bytes that a write took.
#[inline]
pub(crate) fn count_written(bytes: u64) {
    with_mine(|mine| bump(&mine.written, bytes));
}

/// What this thread has counted so far.
pub fn thread() -> Counts {
    let mut counts = Counts::default();
    with_mine(|mine| counts = mine.reading());
    counts
}

/// What all threads have counted so far; threads that are counting meanwhile
/// may be a call behind.
pub fn process() -> Counts {
    let registry = lock(&REGISTRY);
    let mut sum = registry.ended;
    for block in &registry.live {
        sum.add(&block.reading());
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_its_own_and_leaves_them_to_the_process() {
        let before = process();
        let own = std::thread::spawn(|| {
            count(Call::Truncate);
            count_read(7);
            count_written(9);
            thread()
        })
        .join()
        .expect("the thread counts");
        assert_eq!((own.total(), own.of(Call::Truncate)), (1, 1));
        let region = process() - before;
        assert!(region.of(Call::Truncate) >= 1);
        assert!(region.bytes_read() >= 7 && region.bytes_written() >= 9);
    }

    #[test]
    fn kinds_are_in_the_order_of_their_numbers() {
        for (index, call) in Call::ALL.into_iter().enumerate() {
            assert_eq!(call as usize, index);
            assert!(!call.name().is_empty());
        }
    }
}
