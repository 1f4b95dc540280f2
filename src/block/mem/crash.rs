//! The images that a power cut may leave: what was written before the last
//! barrier is there; of what came after, any 512-byte sector may be.
//!
//! Neighbours: `file` keeps the journal that these are made from; `storage`
//! hands them out.

use std::collections::BTreeMap;

use super::file::{Change, Journal, MemFile, apply};
use super::sparse::Sparse;
use crate::block::lock::lock;

/// What a disk writes at once, in bytes: smaller pieces are never torn.
pub const SECTOR: u64 = 512;

/// Which of the unsynced changes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// None of them.
    Nothing,
    /// All of them.
    Everything,
    /// The first so many, in order.
    First(usize),
    /// The first so many, and of the next one its first so many sectors.
    TornAfter(usize, u64),
    /// All but this one.
    Without(usize),
    /// This one alone, as if the disk had reordered it to the front.
    Only(usize),
    /// For each sector on its own, as many of the changes to it as this seed
    /// says: dropped, reordered and torn at once.
    Sectors(u64),
}

impl Crash {
    /// Up to `limit` ways for `changes` unsynced changes: each of the simple
    /// ones first, then seeds.
    pub fn ways(changes: usize, limit: usize) -> Vec<Self> {
        let simple = [Self::Nothing, Self::Everything];
        let each = (0..changes)
            .flat_map(|n| [Self::First(n), Self::TornAfter(n, 1), Self::Without(n), Self::Only(n)]);
        let seeds = (0..).map(Self::Sectors);
        match changes {
            0 => vec![Self::Nothing],
            _ => simple.into_iter().chain(each).chain(seeds).take(limit).collect(),
        }
    }
}

impl MemFile {
    /// The image that `crash` leaves, all of it on stable storage; the
    /// content as it is where no journal is kept.
    pub fn after(&self, crash: Crash) -> Self {
        let state = lock(&self.state);
        let image = match &state.journal {
            Some(journal) => journal.image(crash),
            None => state.now.clone(),
        };
        Self::from_sparse(image)
    }
}

impl Journal {
    fn image(&self, crash: Crash) -> Sparse {
        let mut image = self.base.clone();
        let count = self.changes.len();
        match crash {
            Crash::Nothing => {}
            Crash::Everything => self.apply_if(&mut image, |_| true),
            Crash::First(n) => self.apply_if(&mut image, |index| index < n),
            Crash::Without(n) => self.apply_if(&mut image, |index| index != n),
            Crash::Only(n) => self.apply_if(&mut image, |index| index == n),
            Crash::TornAfter(n, sectors) => {
                self.apply_if(&mut image, |index| index < n);
                if let Some(change) = self.changes.get(n.min(count)) {
                    let kept = pieces(change).take(sectors as usize);
                    kept.for_each(|piece| apply(&mut image, &piece));
                }
            }
            Crash::Sectors(seed) => self.apply_sectors(&mut image, seed),
        }
        image
    }

    fn apply_if(&self, image: &mut Sparse, keep: impl Fn(usize) -> bool) {
        for (index, change) in self.changes.iter().enumerate() {
            if keep(index) {
                apply(image, change);
            }
        }
    }

    /// Each sector keeps a prefix of its own of the changes to it. Lengths
    /// are kept to a prefix of theirs.
    fn apply_sectors(&self, image: &mut Sparse, seed: u64) {
        let mut touches: BTreeMap<u64, u64> = BTreeMap::new();
        let each = || self.changes.iter().flat_map(pieces);
        for piece in each() {
            *touches.entry(key(&piece)).or_default() += 1;
        }
        let mut left: BTreeMap<u64, u64> =
            touches.into_iter().map(|(key, count)| (key, mix(seed, key) % (count + 1))).collect();
        for piece in each() {
            if let Some(rest) = left.get_mut(&key(&piece)).filter(|rest| **rest > 0) {
                *rest -= 1;
                apply(image, &piece);
            }
        }
    }
}

/// What a piece of a change is kept or lost with: its sector, or the length.
fn key(piece: &Change) -> u64 {
    match piece {
        Change::Write(offset, _) | Change::Zero(offset, _) => offset / SECTOR,
        Change::Grow(_) | Change::SetLen(_) => u64::MAX,
    }
}

/// A change cut into sectors.
fn pieces(change: &Change) -> Box<dyn Iterator<Item = Change> + '_> {
    match change {
        Change::Write(offset, data) => {
            Box::new(cuts(*offset, data.len() as u64).map(move |(at, from, len)| {
                Change::Write(at, data[from as usize..(from + len) as usize].to_vec())
            }))
        }
        Change::Zero(offset, len) => Box::new(cuts(*offset, *len).map(|(at, _, len)| Change::Zero(at, len))),
        other => Box::new(std::iter::once(other.clone())),
    }
}

/// `[offset, offset + len)` by sector: offset, distance from the start, length.
fn cuts(offset: u64, len: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done;
        let piece = (SECTOR - at % SECTOR).min(len - done);
        let cut = (at, done, piece);
        done += piece;
        (piece > 0).then_some(cut)
    })
}

/// A well-mixed number from two (SplitMix64's finishing steps).
fn mix(seed: u64, key: u64) -> u64 {
    let mut z =
        seed.wrapping_add(key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::mem::storage::MemStorage;
    use crate::block::storage::Storage;

    /// Synced 'a's, then three unsynced changes: 'b's, a hole, a longer file.
    fn scene() -> MemStorage {
        let store = MemStorage::from_bytes(&[b'a'; 2048]).journaled();
        store.write_at(&[b'a'; 2048], 0).expect("write");
        store.sync().expect("sync");
        store.write_at(&[b'b'; 1024], 512).expect("write");
        store.punch(0, 512).expect("punch");
        store.set_len(4096).expect("grow");
        store
    }

    /// The first byte of each sector of what `crash` leaves; dots for zeroes.
    fn sectors(store: &MemStorage, crash: Crash) -> String {
        let bytes = store.crash(crash).to_bytes();
        let name = |sector: &[u8]| match sector.first() {
            Some(0) | None => '.',
            Some(&byte) => char::from(byte),
        };
        bytes.chunks(SECTOR as usize).map(name).collect()
    }

    #[test]
    fn each_way_leaves_what_it_says() {
        let store = scene();
        let of = |crash| sectors(&store, crash);
        assert_eq!(of(Crash::Nothing), "aaaa");
        assert_eq!(of(Crash::Everything), ".bba....");
        assert_eq!(of(Crash::First(1)), "abba");
        assert_eq!(of(Crash::TornAfter(0, 1)), "abaa");
        assert_eq!(of(Crash::Without(0)), ".aaa....");
        assert_eq!(of(Crash::Only(1)), ".aaa");
    }

    #[test]
    fn seeds_reach_every_mix_of_sectors_and_repeat() {
        let store = scene();
        let all: std::collections::BTreeSet<String> =
            (0..400).map(|seed| sectors(&store, Crash::Sectors(seed))).collect();
        // Three sectors and the length, each there or not.
        assert_eq!(all.len(), 16);
        assert_eq!(sectors(&store, Crash::Sectors(7)), sectors(&store, Crash::Sectors(7)));
    }

    #[test]
    fn synced_data_survives_every_crash() {
        let store = scene();
        store.sync().expect("sync");
        store.write_at(b"zz", 1024).expect("write");
        for (way, image) in store.crashes(50) {
            let bytes = image.to_bytes();
            assert_eq!(bytes.len(), 4096, "{way:?}");
            assert!(bytes[..512].iter().all(|&byte| byte == 0), "{way:?}");
            assert!(bytes[512..1024].iter().all(|&byte| byte == b'b'), "{way:?}");
            assert!(matches!(&bytes[1024..1026], b"bb" | b"zz"), "{way:?}");
        }
    }

    #[test]
    fn nothing_unsynced_leaves_one_image() {
        let store = scene();
        store.sync().expect("sync");
        assert_eq!(store.crashes(50).count(), 1);
        assert_eq!(scene().crashes(8).count(), 8);
    }
}
