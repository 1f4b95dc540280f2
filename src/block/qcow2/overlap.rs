//! Structures that lie on each other: header, L1 tables, snapshot table and
//! refcount table, each of which has clusters of its own.
//!
//! Neighbours: `check` reports what is found here; opening for writing refuses
//! the same (`open`); refcount blocks and L2 tables show in the counts.

use super::image::{Image, State};

/// What overlaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overlaps {
    /// Pairs of structures.
    pub(super) pairs: u64,
    /// One of them is the refcount table, which can be made anew.
    pub(super) refcount_table: bool,
}

impl Image {
    /// Looks for structures that overlap. `snapshot_bytes` is the length of the snapshot table.
    pub(super) fn overlaps(&self, state: &State, snapshot_bytes: u64) -> Overlaps {
        let header = &state.header.header;
        // As long as it was found to be, not as the header says: that may be anything.
        let table = (header.refcount_table_offset, state.refs.table.len() as u64 * 8);
        let mut ranges = vec![
            (0, 1, false),
            self.clusters(header.l1_offset, u64::from(header.l1_size) * 8),
            self.clusters(header.snapshots_offset, snapshot_bytes),
        ];
        let snapshots = state.snapshots.iter();
        ranges.extend(snapshots.map(|s| self.clusters(s.l1_offset, u64::from(s.l1_size) * 8)));
        let (first, end, _) = self.clusters(table.0, table.1);
        ranges.push((first, end, true));
        ranges.retain(|(first, end, _)| first < end);
        ranges.sort_unstable();
        let mut found = Overlaps::default();
        // The longest so far: it may reach over several that follow.
        let mut reach = (0, false);
        for (first, end, is_table) in ranges {
            if first < reach.0 {
                found.pairs += 1;
                found.refcount_table |= is_table || reach.1;
            }
            if end > reach.0 {
                reach = (end, is_table);
            }
        }
        found
    }

    fn clusters(&self, offset: u64, bytes: u64) -> (u64, u64, bool) {
        let first = self.geo.cluster_of(offset);
        (first, first + self.geo.clusters_for(bytes), false)
    }
}
