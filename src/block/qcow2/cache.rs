//! The mapping in memory: pieces of the L1 table, slices of L2 tables, and which
//! host clusters hold metadata. Readers look up with a shared lock and load entries
//! as atomics; only inserting and evicting a slice takes the lock exclusively.
//!
//! Neighbours: `paged` and `survey` have the L1 table and the metadata clusters,
//! `table` loads slices and brings tables into being, `map` looks up, `flush`
//! writes dirty parts. Eviction is least recently used in the
//! order of insertions, so it is the same in every run.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use super::entry::{self, L2Entry};
use super::paged::Paged;
use super::survey::Structures;
use super::types::Geometry;

/// A hasher without random seeds: counts of instructions are the same in every run.
#[derive(Debug, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// A map keyed by cluster or slice numbers.
pub type NumberMap<T> = HashMap<u64, T, BuildHasherDefault<Mix>>;

/// A part of an L2 table in memory.
#[derive(Debug)]
pub struct Slot {
    key: u64,
    /// As in the file, big-endian: bringing a slice into memory is a copy, and few of its entries are looked at.
    words: Box<[AtomicU64]>,
    /// One bit for each 64th part of the slice that differs from the file.
    dirty: AtomicU64,
    stamp: AtomicU64,
    /// One bit for each entry that was found to point at nobody else's clusters, when metadata was
    /// where it was at the time `seen_at`.
    seen: Box<[AtomicU64]>,
    seen_at: AtomicU64,
}

impl Slot {
    #[inline]
    fn get(&self, index: usize) -> u64 {
        u64::from_be(self.words[index].load(Ordering::Acquire))
    }

    #[inline]
    fn put(&self, index: usize, word: u64) {
        self.words[index].store(word.to_be(), Ordering::Release);
    }

    /// Reads an entry. With two words, the pair is read until it is one that was stored together
    /// or is harmless: writers store the word before a growing bitmap and after a shrinking one.
    pub fn load(&self, index: usize, geo: &Geometry) -> L2Entry {
        if !geo.extended_l2 {
            return L2Entry { word: self.get(index), bitmap: 0 };
        }
        loop {
            let bitmap = self.get(2 * index + 1);
            let word = self.get(2 * index);
            if self.get(2 * index + 1) == bitmap {
                return L2Entry { word, bitmap };
            }
        }
    }

    /// Stores an entry and marks its part dirty.
    pub fn store(&self, index: usize, entry: L2Entry, geo: &Geometry) {
        let words = geo.entry_words();
        if words == 1 {
            self.put(index, entry.word);
        } else if entry.word == 0 {
            self.put(2 * index + 1, entry.bitmap);
            self.put(2 * index, entry.word);
        } else {
            self.put(2 * index, entry.word);
            self.put(2 * index + 1, entry.bitmap);
        }
        let part = index * words * 64 / self.words.len();
        self.dirty.fetch_or(1 << part, Ordering::AcqRel);
    }

    /// Whether [`Self::see`] was said of an entry at `time`. What is stored since then points at clusters
    /// that were allocated for it.
    pub fn is_seen(&self, index: usize, time: u64) -> bool {
        let here = self.seen_at.load(Ordering::Acquire) == time;
        here && self.seen[index / 64].load(Ordering::Relaxed) >> (index % 64) & 1 != 0
    }

    /// Where the data of an entry is, if it says nothing else and has the `flags`. For entries of one word.
    pub fn plain(&self, index: usize, flags: u64) -> Option<u64> {
        let word = u64::from_be(self.words.get(index)?.load(Ordering::Acquire));
        let host = word & entry::OFFSET_MASK;
        let says_more = word & !(entry::OFFSET_MASK | entry::COPIED) != 0;
        (!says_more && host != 0 && word & flags == flags).then_some(host)
    }

    /// Notes that an entry, as it is at `time`, points at nobody else's clusters.
    pub fn see(&self, index: usize, time: u64) {
        if self.seen_at.load(Ordering::Acquire) != time {
            // Who does the same at this time loses notes at the most.
            self.seen.iter().for_each(|bits| bits.store(0, Ordering::Relaxed));
            self.seen_at.store(time, Ordering::Release);
        }
        self.seen[index / 64].fetch_or(1 << (index % 64), Ordering::Relaxed);
    }

    /// Number of the slice: guest cluster / entries in a slice.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The range of words that differ from the file, `None` when clean.
    pub fn dirty_words(&self) -> Option<std::ops::Range<usize>> {
        let dirty = self.dirty.load(Ordering::Acquire);
        if dirty == 0 {
            return None;
        }
        let (parts, len) = (64, self.words.len());
        let first = dirty.trailing_zeros() as usize;
        let last = 63 - dirty.leading_zeros() as usize;
        // Whole sectors (64 words), so that a file with O_DIRECT need not read before it writes.
        let start = (first * len / parts) & !63;
        let end = ((last + 1) * len).div_ceil(parts).next_multiple_of(64).min(len);
        Some(start..end)
    }

    /// Says that the file has what is here.
    pub fn mark_clean(&self) {
        self.dirty.store(0, Ordering::Release);
    }

    /// Appends the words of `range` to `out` as they are stored.
    pub fn encode(&self, range: std::ops::Range<usize>, out: &mut Vec<u8>) {
        for word in &self.words[range] {
            out.extend_from_slice(&word.load(Ordering::Acquire).to_ne_bytes());
        }
    }
}

/// The active mapping.
#[derive(Debug)]
pub struct Maps {
    /// The active L1 table.
    pub l1: Paged,
    /// Which host clusters hold metadata.
    pub meta: Structures,
    index: NumberMap<u32>,
    slots: Vec<Slot>,
    by_age: BinaryHeap<Reverse<(u64, u32)>>,
    capacity: usize,
    clock: u64,
    evictions: u64,
}

impl Maps {
    /// An empty cache of `capacity` slices.
    pub fn new(l1: Paged, meta: Structures, capacity: usize) -> Self {
        Self {
            l1,
            meta,
            index: NumberMap::default(),
            slots: Vec::new(),
            by_age: BinaryHeap::new(),
            capacity: capacity.max(2),
            clock: 0,
            evictions: 0,
        }
    }

    /// The slice `key` if it is here; counts as a use of it.
    pub fn slot(&self, key: u64) -> Option<&Slot> {
        let slot = &self.slots[*self.index.get(&key)? as usize];
        if slot.stamp.load(Ordering::Relaxed) != self.clock {
            slot.stamp.store(self.clock, Ordering::Relaxed);
        }
        Some(slot)
    }

    /// All slices, in no particular but a repeatable order.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Changes whenever a slice leaves: what was read from the file before may be stale then.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Bytes of metadata in memory.
    pub fn bytes(&self) -> u64 {
        let slices: usize = self.slots.iter().map(|slot| slot.words.len() * 8).sum();
        slices as u64 + self.l1.bytes() + self.meta.bytes()
    }

    /// Whether dirty slices made the cache outgrow its setting; a flush lets it shrink.
    pub fn overgrown(&self) -> bool {
        self.slots.len() > self.capacity
    }

    /// Puts in a slice, its words as they are stored. The least recently used one leaves, if the cache is full and it is clean.
    pub fn insert(&mut self, key: u64, words: Box<[AtomicU64]>) {
        if self.index.contains_key(&key) {
            return;
        }
        self.l1.trim();
        self.clock += 1;
        let slot = Slot {
            key,
            dirty: AtomicU64::new(0),
            stamp: AtomicU64::new(self.clock),
            seen: (0..words.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            seen_at: AtomicU64::new(0),
            words,
        };
        let at = match self.victim() {
            Some(at) => {
                self.index.remove(&self.slots[at].key);
                self.evictions += 1;
                self.slots[at] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        self.index.insert(key, at as u32);
        self.by_age.push(Reverse((self.clock, at as u32)));
    }

    /// The least recently used slot, if the cache is full and that slot is clean.
    fn victim(&mut self) -> Option<usize> {
        if self.slots.len() < self.capacity {
            return None;
        }
        while let Some(Reverse((queued, at))) = self.by_age.pop() {
            let slot = &self.slots[at as usize];
            let stamp = slot.stamp.load(Ordering::Relaxed);
            if stamp != queued {
                self.by_age.push(Reverse((stamp, at)));
                continue;
            }
            if slot.dirty.load(Ordering::Acquire) != 0 {
                self.by_age.push(Reverse((queued, at)));
                return None;
            }
            return Some(at as usize);
        }
        None
    }

    /// Forgets the slices for which `gone` holds; they must be clean or meaningless.
    pub fn forget(&mut self, gone: impl Fn(&Slot) -> bool) {
        let capacity = self.capacity;
        let old = std::mem::take(&mut self.slots);
        self.evictions += 1;
        self.slots = old.into_iter().filter(|slot| !gone(slot)).collect();
        self.slots.sort_by_key(|slot| Reverse(slot.stamp.load(Ordering::Relaxed)));
        let dirty = |slot: &Slot| slot.dirty.load(Ordering::Acquire) != 0;
        let mut kept = 0;
        self.slots.retain(|slot| {
            kept += 1;
            kept <= capacity || dirty(slot)
        });
        self.index.clear();
        self.by_age.clear();
        for (at, slot) in self.slots.iter().enumerate() {
            self.index.insert(slot.key, at as u32);
            self.by_age.push(Reverse((slot.stamp.load(Ordering::Relaxed), at as u32)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Box<[AtomicU64]> {
        (0..512).map(AtomicU64::new).collect()
    }

    fn geo() -> Geometry {
        Geometry {
            cluster_bits: 16,
            refcount_order: 4,
            extended_l2: false,
            zero_flag: true,
            data_file: false,
        }
    }

    #[test]
    fn least_recently_used_leaves_first() {
        let mut maps = Maps::new(Paged::default(), Structures::default(), 2);
        maps.insert(1, words());
        maps.insert(2, words());
        assert!(maps.slot(1).is_some());
        maps.insert(3, words());
        maps.insert(4, words());
        assert!(maps.slot(2).is_none() && maps.slot(4).is_some());
        assert_eq!(maps.slots().len(), 2);
    }

    #[test]
    fn dirty_slices_stay_and_know_their_sectors() {
        let mut maps = Maps::new(Paged::default(), Structures::default(), 2);
        maps.insert(1, words());
        maps.insert(2, words());
        let entry = L2Entry { word: 7 << 16, bitmap: 0 };
        for slot in maps.slots() {
            assert_eq!(slot.dirty_words(), None);
            slot.store(100, entry, &geo());
            assert_eq!(slot.dirty_words(), Some(64..128));
        }
        maps.insert(3, words());
        assert!(maps.overgrown() && maps.slot(1).is_some());
        maps.slots().iter().for_each(Slot::mark_clean);
        maps.forget(|_| false);
        assert_eq!(maps.slots().len(), 2);
        assert!(maps.slot(3).is_some());
    }
}
