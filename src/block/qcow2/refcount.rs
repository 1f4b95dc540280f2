//! Reference counts in memory: the refcount table and slices of its blocks,
//! with the dirty parts that a flush has to write (specification: "Host
//! cluster management").
//!
//! Neighbours: `alloc` finds free clusters and makes the structures grow,
//! `width` has the bit layout, `flush` orders the writes. Counts go up before
//! anything points at a cluster and down after nothing does, so that dirty
//! slices may reach the file at any time.

use std::collections::{BTreeMap, BTreeSet};

use super::super::error::{Error, ErrorKind, Result};
use super::super::storage::Storage;
use super::entry;
use super::header::Header;
use super::paged::{Paged, Place};
use super::types::Geometry;
use super::width;

/// The header in memory, and whether the file may hold another one after a failed write.
#[derive(Debug)]
pub struct HeaderState {
    /// What the file's header should say.
    pub header: Header,
    /// A write of the header failed: it has to be repeated before anything relies on it.
    pub stale: bool,
}

impl HeaderState {
    /// Replaces the header by `change` of it, in one write between two barriers. When that fails
    /// the old one stays in force and is written again before the next change.
    pub fn update(&mut self, file: &dyn Storage, change: impl FnOnce(&mut Header)) -> Result<()> {
        self.settle(file)?;
        file.sync()?;
        let old = self.header.clone();
        change(&mut self.header);
        let written = file.write_at(&self.header.encode(), 0).and_then(|()| file.sync());
        if written.is_err() {
            self.header = old;
            self.stale = true;
        }
        written
    }

    /// Writes the header again if its last write failed.
    pub fn settle(&mut self, file: &dyn Storage) -> Result<()> {
        if self.stale {
            file.write_at(&self.header.encode(), 0)?;
            file.sync()?;
            self.stale = false;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Slice {
    bytes: Box<[u8]>,
    stamp: u64,
}

/// Refcount table and cached slices of refcount blocks.
#[derive(Debug)]
pub struct Refcounts {
    /// Sizes.
    pub geo: Geometry,
    /// The refcount table.
    pub table: Paged,
    /// No cluster below is free, as far as refcounts have been looked through.
    pub cursor: u64,
    /// Clusters from here on were never part of the file: they read as zeroes.
    pub virgin: u64,
    /// Clusters that became refcount blocks since the caller last took this list.
    pub placed: Vec<u64>,
    /// The last range that has a block, once somebody asked.
    pub(super) last_block: Option<u64>,
    slices: BTreeMap<u64, Slice>,
    dirty: BTreeSet<u64>,
    /// Bytes that the memory for slices and for the table are reckoned from.
    cache_bytes: u64,
    clock: u64,
}

impl Refcounts {
    /// Counts of a file that is `file_len` bytes long, with the table at `place`; `cache_bytes` as
    /// [`super::CacheSettings`] says.
    pub fn new(geo: Geometry, place: Place, file_len: u64, cache_bytes: u64) -> Self {
        let table = Paged::new(place, cache_bytes / 16);
        Self {
            geo,
            table,
            cursor: 0,
            virgin: geo.clusters_for(file_len),
            placed: Vec::new(),
            last_block: None,
            slices: BTreeMap::new(),
            dirty: BTreeSet::new(),
            cache_bytes,
            clock: 0,
        }
    }

    fn slice_bytes(&self) -> u64 {
        self.geo.cluster_size().min(4096)
    }

    /// Refcounts in a slice.
    pub fn per_slice(&self) -> u64 {
        (self.slice_bytes() * 8) >> self.geo.refcount_order
    }

    /// The refcount block of `cluster` (byte offset), if there is one.
    pub fn block(&self, file: &dyn Storage, cluster: u64) -> Result<Option<u64>> {
        let index = cluster / self.geo.refcounts_per_block();
        let word = self.table.get(file, index as usize)?;
        match entry::decode_refcount_table(word, &self.geo) {
            Ok(block) => Ok(block.map(|host| host.0)),
            Err(fault) => {
                Err(Error::new(ErrorKind::Corrupt, format!("refcount table entry {index}: {}", fault.text())))
            }
        }
    }

    /// Where slice `key` is in the file.
    fn slice_offset(&self, file: &dyn Storage, key: u64) -> Result<Option<u64>> {
        let per_block = self.geo.cluster_size() / self.slice_bytes();
        let block = self.block(file, key * self.per_slice())?;
        Ok(block.map(|host| host + (key % per_block) * self.slice_bytes()))
    }

    /// The slice `key` in memory; `None` where there is no block.
    fn slice(&mut self, file: &dyn Storage, key: u64) -> Result<Option<&mut Slice>> {
        self.clock += 1;
        if !self.slices.contains_key(&key) {
            let Some(offset) = self.slice_offset(file, key)? else {
                return Ok(None);
            };
            self.table.trim();
            self.shrink(file)?;
            let mut bytes = vec![0; self.slice_bytes() as usize].into_boxed_slice();
            if file.read_at(&mut bytes, offset)? == 0 {
                let error = Error::new(ErrorKind::UnexpectedEof, "refcount block past end of file");
                return Err(error.with_host(offset));
            }
            self.slices.insert(key, Slice { bytes, stamp: 0 });
        }
        let clock = self.clock;
        let mut slice = self.slices.get_mut(&key);
        if let Some(slice) = &mut slice {
            slice.stamp = clock;
        }
        Ok(slice)
    }

    /// Makes room for one more slice. A dirty one may be written at any time.
    fn shrink(&mut self, file: &dyn Storage) -> Result<()> {
        if (self.slices.len() as u64) < (self.cache_bytes / 4 / self.slice_bytes()).max(16) {
            return Ok(());
        }
        let oldest = self.slices.iter().min_by_key(|(_, slice)| slice.stamp);
        let Some(key) = oldest.map(|(key, _)| *key) else {
            return Ok(());
        };
        if self.dirty.contains(&key) {
            self.write_slice(file, key)?;
        }
        self.dirty.remove(&key);
        self.slices.remove(&key);
        Ok(())
    }

    /// The refcount of `cluster`; 0 where there is no block.
    pub fn get(&mut self, file: &dyn Storage, cluster: u64) -> Result<u64> {
        let (key, index) = (cluster / self.per_slice(), (cluster % self.per_slice()) as usize);
        let order = self.geo.refcount_order;
        let slice = self.slice(file, key)?;
        Ok(slice.map_or(0, |slice| width::get(&slice.bytes, order, index)))
    }

    /// Runs `body` for each cluster of slice `key` whose refcount is above 0.
    pub fn counts_of(&mut self, file: &dyn Storage, key: u64, body: &mut impl FnMut(u64, u64)) -> Result<()> {
        let (per, order) = (self.per_slice(), self.geo.refcount_order);
        let Some(slice) = self.slice(file, key)? else {
            return Ok(());
        };
        for index in 0..per {
            match width::get(&slice.bytes, order, index as usize) {
                0 => {}
                count => body(key * per + index, count),
            }
        }
        Ok(())
    }

    /// Sets the refcount of `cluster`, whose block exists.
    pub fn set(&mut self, file: &dyn Storage, cluster: u64, value: u64) -> Result<()> {
        if value > self.geo.refcount_max() {
            let message = format!("refcount {value} does not fit the image's refcount width");
            return Err(Error::new(ErrorKind::Exhausted, message).with_host(cluster << self.geo.cluster_bits));
        }
        let (key, index) = (cluster / self.per_slice(), (cluster % self.per_slice()) as usize);
        let order = self.geo.refcount_order;
        let Some(slice) = self.slice(file, key)? else {
            return Err(Error::new(ErrorKind::Corrupt, "cluster in use without a refcount block")
                .with_host(cluster << self.geo.cluster_bits));
        };
        width::set(&mut slice.bytes, order, index, value);
        self.dirty.insert(key);
        if value == 0 {
            self.cursor = self.cursor.min(cluster);
        }
        Ok(())
    }

    /// One reference more.
    pub fn raise(&mut self, file: &dyn Storage, cluster: u64) -> Result<()> {
        match self.get(file, cluster)? {
            0 => Err(self.unreferenced(cluster)),
            count => self.set(file, cluster, count.saturating_add(1)),
        }
    }

    /// One reference less; returns what is left.
    pub fn lower(&mut self, file: &dyn Storage, cluster: u64) -> Result<u64> {
        match self.get(file, cluster)?.checked_sub(1) {
            Some(left) => self.set(file, cluster, left).map(|()| left),
            None => Err(self.unreferenced(cluster)),
        }
    }

    fn unreferenced(&self, cluster: u64) -> Error {
        Error::new(ErrorKind::Corrupt, "cluster in use has refcount 0")
            .with_host(cluster << self.geo.cluster_bits)
    }

    /// The first cluster from `from` on whose refcount is 0.
    pub fn next_free(&mut self, file: &dyn Storage, from: u64) -> Result<u64> {
        let mut cluster = from;
        loop {
            let next = self.next_free_in(file, cluster)?;
            if next / self.per_slice() == cluster / self.per_slice() {
                return Ok(next);
            }
            cluster = next;
        }
    }

    /// The first cluster from `from` on in its slice whose refcount is 0, else the start of the next slice.
    pub fn next_free_in(&mut self, file: &dyn Storage, from: u64) -> Result<u64> {
        let (per, order) = (self.per_slice(), self.geo.refcount_order);
        let (key, index) = (from / per, from % per);
        let Some(slice) = self.slice(file, key)? else {
            return Ok(from);
        };
        let found = width::first_zero(&slice.bytes, order, index as usize, per as usize);
        Ok(found.map_or((key + 1) * per, |index| key * per + index as u64))
    }

    /// Makes `host` the block of the range `index` of the table.
    pub fn point_table(&mut self, file: &dyn Storage, index: u64, host: u64) -> Result<()> {
        self.last_block = self.last_block.map(|last| last.max(index));
        self.table.set(file, index as usize, host)
    }

    /// Forgets the slices of the table's range `index`.
    pub fn forget_range(&mut self, index: u64) {
        let per_block = self.geo.cluster_size() / self.slice_bytes();
        for key in index * per_block..(index + 1) * per_block {
            self.slices.remove(&key);
            self.dirty.remove(&key);
        }
    }

    /// Makes the table at `place` the one in force.
    pub fn replace_table(&mut self, place: Place) {
        self.table = Paged::new(place, self.cache_bytes / 16);
        self.last_block = None;
    }

    /// The same settings for structures that were made anew.
    pub fn renewed(&self, place: Place, file_len: u64) -> Self {
        Self::new(self.geo, place, file_len, self.cache_bytes)
    }

    /// Bytes of metadata in memory.
    pub fn bytes(&self) -> u64 {
        self.slices.len() as u64 * self.slice_bytes() + self.table.bytes()
    }

    /// Whether refcounts differ from the file.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Writes the dirty slices; neighbours in one request. They count as dirty until
    /// [`Self::mark_clean`], which belongs after the barrier.
    pub fn write_dirty(&mut self, file: &dyn Storage) -> Result<()> {
        let mut run: Vec<u8> = Vec::new();
        let mut start = 0;
        for key in &self.dirty {
            let (Some(slice), Some(offset)) = (self.slices.get(key), self.slice_offset(file, *key)?) else {
                continue;
            };
            if !run.is_empty() && start + run.len() as u64 != offset {
                file.write_at(&run, start)?;
                run.clear();
            }
            if run.is_empty() {
                start = offset;
            }
            run.extend_from_slice(&slice.bytes);
        }
        if run.is_empty() {
            return Ok(());
        }
        file.write_at(&run, start)
    }

    fn write_slice(&self, file: &dyn Storage, key: u64) -> Result<()> {
        match (self.slices.get(&key), self.slice_offset(file, key)?) {
            (Some(slice), Some(offset)) => file.write_at(&slice.bytes, offset),
            _ => Ok(()),
        }
    }

    /// Says that the dirty slices are in the file.
    pub fn mark_clean(&mut self) {
        self.dirty.clear();
    }
}
