//! Which host clusters hold metadata: guest data is never written to them, nor
//! read from them. Header, L1 tables, snapshot table and refcount table are
//! known from the header; L2 tables and refcount blocks from one walk through
//! the two tables that name them, when the first entry is followed. Opening
//! does not pay for it, and holes in the tables cost nothing.
//!
//! Neighbours: `open` enters what the header says, `table` and `alloc` what
//! comes and goes, `map` and `plan` ask before data is touched.

use std::sync::OnceLock;
use std::sync::RwLockWriteGuard;
use std::sync::atomic::Ordering;

use super::super::error::Result;
use super::super::storage::Storage;
use super::cache::{Maps, NumberMap};
use super::entry;
use super::image::{Image, corrupt};
use super::paged::{Paged, Place};
use super::types::Geometry;

/// What a metadata cluster is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meta {
    /// The header.
    Header,
    /// The active L1 table.
    L1,
    /// An L2 table of the active L1 table.
    L2,
    /// The refcount table.
    RefcountTable,
    /// A refcount block.
    RefcountBlock,
    /// The snapshot table.
    SnapshotTable,
    /// The L1 table of a snapshot.
    SnapshotL1,
}

/// Host clusters that hold metadata.
#[derive(Debug, Default)]
pub struct Structures {
    ranges: Vec<(u64, u64, Meta)>,
    refcount_table: Place,
    tables: OnceLock<Tables>,
    /// Rises with each cluster that becomes metadata.
    time: u64,
}

/// What the walk through the tables found.
#[derive(Debug, Default)]
struct Tables {
    kinds: NumberMap<Meta>,
    /// Why nothing may be written.
    fault: Option<String>,
}

impl Structures {
    /// Nothing, until ranges are entered, and what the tables say.
    pub fn new(refcount_table: Place) -> Self {
        Self { refcount_table, time: 1, ..Self::default() }
    }

    /// Enters `count` clusters; returns what one of them was already.
    pub fn insert_range(&mut self, first: u64, count: u64, kind: Meta) -> Option<Meta> {
        if count == 0 {
            return None;
        }
        self.time += 1;
        let end = first.saturating_add(count);
        let taken = self.ranges.iter().find(|(a, b, _)| *a < end && first < *b).map(|r| r.2);
        if taken.is_none() {
            self.ranges.push((first, end, kind));
        }
        taken
    }

    /// Forgets all ranges of a kind.
    pub fn remove_ranges(&mut self, kind: Meta) {
        self.ranges.retain(|range| range.2 != kind);
    }

    /// Enters an L2 table or a refcount block; returns what its cluster was already. For who has it
    /// from [`Image::surveyed`].
    pub fn insert(&mut self, cluster: u64, kind: Meta) -> Option<Meta> {
        self.time += 1;
        let taken = self.in_range(cluster);
        match self.tables.get_mut().filter(|_| taken.is_none()) {
            Some(tables) => tables.insert(cluster, kind),
            None => taken,
        }
    }

    /// What rises with each cluster that becomes metadata: what was found to be data before may not be.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Forgets an L2 table or a refcount block.
    pub fn remove(&mut self, cluster: u64) {
        if let Some(tables) = self.tables.get_mut() {
            tables.kinds.remove(&cluster);
        }
    }

    /// Forgets all refcount blocks.
    pub fn remove_blocks(&mut self) {
        if let Some(tables) = self.tables.get_mut() {
            tables.kinds.retain(|_, kind| *kind != Meta::RefcountBlock);
        }
    }

    fn in_range(&self, cluster: u64) -> Option<Meta> {
        let found = self.ranges.iter().find(|(a, b, _)| (*a..*b).contains(&cluster));
        found.map(|(_, _, kind)| *kind)
    }

    /// Bytes of memory for L2 tables and refcount blocks, about.
    pub fn bytes(&self) -> u64 {
        self.tables.get().map_or(0, |tables| tables.kinds.capacity() as u64 * 20)
    }

    /// Walks through both tables.
    fn walk(&self, file: &dyn Storage, l1: &Paged, geo: &Geometry, file_len: u64) -> Result<Tables> {
        let mut tables = Tables::default();
        Paged::new(self.refcount_table, 0).walk(file, |first, words| {
            for (at, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
                match entry::decode_refcount_table(*word, geo) {
                    Ok(Some(host)) if host.0 < file_len => {
                        let cluster = geo.cluster_of(host.0);
                        let taken = self.in_range(cluster);
                        if let Some(kind) = taken.or_else(|| tables.insert(cluster, Meta::RefcountBlock)) {
                            tables.complain(|| format!("structures overlap: {kind:?} and another"));
                        }
                    }
                    _ => tables.complain(|| format!("refcount table entry {} is invalid", first + at)),
                }
            }
        })?;
        let mut twice = Vec::new();
        l1.walk(file, |first, words| {
            l1.keep_from(first, words);
            for word in words.iter().filter(|word| **word != 0) {
                if let Ok(Some((host, _))) = entry::decode_l1(*word, geo)
                    && host.0 < file_len
                    && self.in_range(geo.cluster_of(host.0)).is_none()
                    && tables.insert(geo.cluster_of(host.0), Meta::L2) == Some(Meta::L2)
                {
                    twice.push(geo.cluster_of(host.0));
                }
            }
        })?;
        // A table that two entries name is nobody's: every access to it fails.
        for cluster in twice {
            tables.kinds.remove(&cluster);
        }
        Ok(tables)
    }
}

impl Tables {
    /// Enters one cluster; returns what it was already.
    fn insert(&mut self, cluster: u64, kind: Meta) -> Option<Meta> {
        match self.kinds.get(&cluster) {
            None => self.kinds.insert(cluster, kind),
            taken => taken.copied(),
        }
    }

    fn complain(&mut self, text: impl FnOnce() -> String) {
        if self.fault.is_none() {
            self.fault = Some(text());
        }
    }
}

impl Image {
    /// What `cluster` holds, if it is metadata.
    pub(super) fn structure_at(&self, maps: &Maps, cluster: u64) -> Result<Option<Meta>> {
        match maps.meta.in_range(cluster) {
            None => Ok(self.tables(maps)?.kinds.get(&cluster).copied()),
            kind => Ok(kind),
        }
    }

    /// What the tables say; the first one to ask walks through them.
    fn tables<'m>(&self, maps: &'m Maps) -> Result<&'m Tables> {
        if let Some(tables) = maps.meta.tables.get() {
            return Ok(tables);
        }
        let file_len = self.file_len.load(Ordering::Acquire);
        let tables = maps.meta.walk(&*self.file, &maps.l1, &self.geo, file_len)?;
        Ok(maps.meta.tables.get_or_init(|| tables))
    }

    /// The mapping, to enter structures.
    pub(super) fn surveyed(&self) -> Result<RwLockWriteGuard<'_, Maps>> {
        let maps = self.maps_mut();
        self.tables(&maps)?;
        Ok(maps)
    }

    /// Whether a cluster holds metadata other than L2 tables, as far as is known.
    pub(super) fn is_structure(&self, cluster: u64) -> Result<bool> {
        Ok(self.structure_at(&self.maps(), cluster)?.is_some_and(|kind| kind != Meta::L2))
    }

    /// Refuses to change an image whose refcount structures lie on each other or outside of the file.
    pub(super) fn intact(&self) -> Result<()> {
        if self.is_intact.load(Ordering::Acquire) {
            return Ok(());
        }
        match &self.tables(&self.maps())?.fault {
            Some(fault) => Err(corrupt(fault.clone())),
            None => {
                self.is_intact.store(true, Ordering::Release);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_clusters_are_entered_once() {
        let mut meta = Structures::default();
        assert_eq!(meta.insert_range(0, 1, Meta::Header), None);
        let _ = meta.tables.set(Tables::default());
        assert_eq!(meta.insert(5, Meta::L2), None);
        assert_eq!(meta.insert(5, Meta::RefcountBlock), Some(Meta::L2));
        assert_eq!(meta.insert(0, Meta::L2), Some(Meta::Header));
        meta.remove(5);
        assert_eq!(meta.insert(5, Meta::RefcountBlock), None);
    }
}
