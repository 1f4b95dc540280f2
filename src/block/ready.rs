//! Attempts that have ended and were not reported: first in, first out, in one
//! piece of memory.
//!
//! Neighbours: each driver keeps one; `aio_context` fills it from the ring.

use super::queue::Raw;

/// A queue of ended attempts. Taking one is a comparison and a load: a driver
/// gets many at a time and reports them one by one.
#[derive(Debug)]
pub(crate) struct Ready {
    raws: Vec<Raw>,
    /// Those at the start that were taken.
    taken: usize,
}

impl Ready {
    /// Room for `count` without an allocation.
    pub fn with_capacity(count: usize) -> Self {
        // Twice as many, so that what is left is moved once for as many as there may be.
        Self { raws: Vec::with_capacity(2 * count), taken: 0 }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.raws.len() - self.taken
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.raws.len() == self.taken
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, raw: Raw) {
        if self.raws.len() == self.raws.capacity() {
            self.make_room();
        }
        self.raws.push(raw);
    }

    #[cold]
    fn make_room(&mut self) {
        self.raws.drain(..self.taken);
        self.taken = 0;
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<Raw> {
        let raw = self.raws.get(self.taken).copied();
        match raw {
            Some(_) => self.taken += 1,
            None => {
                self.raws.clear();
                self.taken = 0;
            }
        }
        raw
    }

    /// Those after the first `count`.
    pub fn after(&self, count: usize) -> &[Raw] {
        self.raws.get(self.taken + count..).unwrap_or_default()
    }
}

impl Extend<Raw> for Ready {
    fn extend<I: IntoIterator<Item = Raw>>(&mut self, raws: I) {
        raws.into_iter().for_each(|raw| self.push(raw));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec(any::<bool>(), 1..400)) {
            let (mut ready, mut model) = (Ready::with_capacity(3), VecDeque::new());
            for (slot, add) in steps.into_iter().enumerate() {
                let raw = Raw { slot: slot as u32, result: 0 };
                if add {
                    ready.push(raw);
                    model.push_back(raw);
                } else {
                    prop_assert_eq!(ready.pop(), model.pop_front());
                }
                prop_assert_eq!((ready.len(), ready.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(ready.after(1).first(), model.get(1));
            }
        }
    }

    #[test]
    fn its_memory_does_not_grow_where_it_never_empties() {
        let mut ready = Ready::with_capacity(8);
        let room = ready.raws.capacity();
        (0..8).for_each(|slot| ready.push(Raw { slot, result: 0 }));
        for slot in 8..10_000 {
            assert_eq!(ready.pop().map(|raw| raw.slot), Some(slot - 8));
            ready.push(Raw { slot, result: 0 });
        }
        assert_eq!(ready.raws.capacity(), room);
    }
}
