//! The set of tags in flight: found, added and removed without an allocation
//! and in the same order every time (no random hash seed).
//!
//! Neighbours: `queue` refuses duplicates with it.

/// A set of at most `capacity` numbers, open addressing with linear probing.
#[derive(Debug)]
pub(crate) struct Tags {
    /// The numbers, each beside whether the place is taken.
    places: Box<[(u64, bool)]>,
    shift: u32,
}

impl Tags {
    /// For up to `capacity` tags; at most a quarter of the places is ever taken.
    pub fn new(capacity: usize) -> Self {
        let places = capacity.saturating_mul(4).next_power_of_two().max(4);
        Self {
            places: vec![(0, false); places].into_boxed_slice(),
            shift: u64::BITS - places.trailing_zeros(),
        }
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
        let (place, found) = self.find(tag);
        self.places[place] = (tag, true);
        !found
    }

    /// Removes `tag`, and closes the gap so that later searches need no tombstone.
    #[inline]
    pub fn remove(&mut self, tag: u64) {
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
                let tag = tag << 58 | tag;
                if add && model.len() < 16 {
                    prop_assert_eq!(tags.insert(tag), model.insert(tag));
                } else {
                    tags.remove(tag);
                    model.remove(&tag);
                }
                let taken = tags.places.iter().filter(|place| place.1).count();
                prop_assert_eq!(taken, model.len());
                for &tag in &model {
                    prop_assert!(tags.find(tag).1);
                }
            }
        }
    }
}
