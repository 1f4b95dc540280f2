//! What many records have in common is in memory once: the identity of a run
//! is half of what its records are.
//!
//! Neighbours: `record` has it, `dir` makes those that are equal one.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A map of texts that records share for as long as none of them changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared(Arc<BTreeMap<String, String>>);

impl Shared {
    /// Takes over the map of `other` if it is equal, else becomes the one that the next is compared with.
    pub(super) fn join(&mut self, other: &mut Self) {
        if self == other {
            *self = other.clone();
        } else {
            *other = self.clone();
        }
    }
}

impl From<BTreeMap<String, String>> for Shared {
    fn from(map: BTreeMap<String, String>) -> Self {
        Self(Arc::new(map))
    }
}

impl Deref for Shared {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Changes one's own: what others share stays as it is.
impl DerefMut for Shared {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_maps_become_one_and_a_change_is_ones_own() {
        let map = |value: &str| Shared::from(BTreeMap::from([("key".to_string(), value.to_string())]));
        let (mut last, mut all) = (Shared::default(), [map("a"), map("a"), map("b"), map("a")]);
        all.iter_mut().for_each(|one| one.join(&mut last));
        let same = |i: usize, k: usize| Arc::ptr_eq(&all[i].0, &all[k].0);
        assert_eq!((same(0, 1), same(0, 2), same(0, 3)), (true, false, false));
        assert_eq!(all, [map("a"), map("a"), map("b"), map("a")]);
        all[0].insert("key".into(), "c".into());
        assert_eq!((&all[0]["key"], &all[1]["key"]), (&"c".to_string(), &"a".to_string()));
    }
}
