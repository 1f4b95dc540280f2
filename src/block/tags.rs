//! The set of tags in flight: found, added and removed without an allocation
//! and in the same order every time (no random hash seed). Small tags, which
//! most callers use, are a bit each.
//!
//! Neighbours: `queue` refuses duplicates with it.

/// Tags below so many times the capacity are small.
const SMALL: usize = 4;

/// A set of at most `capacity` numbers. Those that are not small are in a table with open addressing
/// and linear probing.
#[derive(Debug)]
pub(crate) struct Tags {
    small: Box<[u64]>,
    /// The numbers, each beside whether the place is taken.
    places: Box<[(u64, bool)]>,
    shift: u32,
}

impl Tags {
    /// For up to `capacity` tags; at most a quarter of the places is ever taken.
    pub fn new(capacity: usize) -> Self {
        let places = capacity.saturating_mul(4).next_power_of_two().max(4);
        Self {
            small: vec![0; capacity.saturating_mul(SMALL).div_ceil(u64::BITS as usize)].into_boxed_slice(),
            places: vec![(0, false); places].into_boxed_slice(),
            shift: u64::BITS - places.trailing_zeros(),
        }
    }

    /// The word with the bit of a small tag, and the bit.
    #[inline]
    fn small(&mut self, tag: u64) -> Option<(&mut u64, u64)> {
        let word = usize::try_from(tag / u64::from(u64::BITS)).ok()?;
        self.small.get_mut(word).map(|word| (word, 1 << (tag % u64::from(u64::BITS))))
    }

    /// Where a search for `tag` starts: Fibonacci hashing, which spreads tags
    /// in a row. Left as neighbours they would form one long run, and each
    /// removal would look through the rest of it.
    #[inline]
    fn home(&self, tag: u64) -> usize {
        (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    /// The place of `tag`, or the free one where it belongs.
    #[inline]
    fn find(&self, tag: u64) -> (usize, bool) {
        let mut place = self.home(tag);
        loop {
            match self.places[place] {
                (_, false) => return (place, false),
                (found, true) if found == tag => return (place, true),
                _ => place = self.next(place),
            }
        }
    }

    /// Adds `tag`; `false` where it is there already. The caller keeps to the capacity.
    #[inline]
    pub fn insert(&mut self, tag: u64) -> bool {
        if let Some((word, bit)) = self.small(tag) {
            let is_new = *word & bit == 0;
            *word |= bit;
            return is_new;
        }
        let (place, found) = self.find(tag);
        self.places[place] = (tag, true);
        !found
    }

    /// Removes `tag`, and closes the gap so that later searches need no tombstone.
    #[inline]
    pub fn remove(&mut self, tag: u64) {
        match self.small(tag) {
            Some((word, bit)) => *word &= !bit,
            None => self.remove_large(tag),
        }
    }

    fn remove_large(&mut self, tag: u64) {
        let (mut gap, found) = self.find(tag);
        if !found {
            return;
        }
        let mut place = self.next(gap);
        while let (moved, true) = self.places[place] {
            let mask = self.places.len() - 1;
            let from_home = place.wrapping_sub(self.home(moved)) & mask;
            let from_gap = place.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.places[gap] = (moved, true);
                gap = place;
            }
            place = self.next(place);
        }
        self.places[gap] = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((any::<bool>(), 0u64..40), 1..300)) {
            let (mut tags, mut model) = (Tags::new(16), BTreeSet::new());
            for (add, tag) in steps {
                // Multiples that collide: the top bits of the product decide.
                // The others are small, up to the last bit of the words, and just beyond.
                let tag = if tag % 2 == 0 { tag << 58 | tag } else { tag * 2 };
                if add && model.len() < 16 {
                    prop_assert_eq!(tags.insert(tag), model.insert(tag));
                } else {
                    tags.remove(tag);
                    model.remove(&tag);
                }
                let small: u32 = tags.small.iter().map(|word| word.count_ones()).sum();
                let taken = tags.places.iter().filter(|place| place.1).count() + small as usize;
                prop_assert_eq!(taken, model.len());
                for &tag in &model {
                    prop_assert!(!tags.insert(tag), "it is there");
                }
            }
        }
    }
}
