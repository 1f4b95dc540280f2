//! L2 tables: slices of them into memory, new and copied tables, and the one
//! way in which entries change (specification: "Cluster mapping").
//!
//! Neighbours: `map` asks for slices, `write` and `discard` change entries,
//! `flush` brings changes to the file. A new table is complete in the file
//! before the L1 entry in memory names it.

use std::sync::atomic::AtomicU64;

use super::super::error::{Error, ErrorKind, Result};
use super::alloc::{Run, zero_cluster};
use super::cache::Maps;
use super::entry::{self, Cluster, L2Entry};
use super::image::{Free, Image, State, corrupt};
use super::survey::Meta;
use super::types::HostOffset;

/// Reads of the file that lost a race before the slice is read under the exclusive lock.
const RACES: usize = 8;

impl Image {
    /// The L2 table that covers guest `cluster`, from the L1 table in memory.
    pub(super) fn l2_table(&self, maps: &Maps, cluster: u64) -> Result<Option<(HostOffset, bool)>> {
        let index = cluster / self.geo.l2_entries();
        let word = maps.l1.get(&*self.file, index as usize)?;
        let guest = cluster << self.geo.cluster_bits;
        let table = entry::decode_l1(word, &self.geo)
            .map_err(|fault| corrupt(format!("L1 entry {index}: {}", fault.text())).with_guest(guest))?;
        if let Some((host, _)) = table
            && self.structure_at(maps, self.geo.cluster_of(host.0))? != Some(Meta::L2)
        {
            let message = format!("L1 entry {index} points at something else than an L2 table");
            return Err(corrupt(message).with_guest(guest).with_host(host.0));
        }
        Ok(table)
    }

    /// Brings the slice `key` into memory, where it stays until it is the least recently used.
    pub(super) fn load_slice(&self, key: u64) -> Result<()> {
        for _ in 0..RACES {
            let (table, evictions) = {
                let maps = self.maps();
                if maps.slot(key).is_some() {
                    return Ok(());
                }
                (self.l2_table(&maps, key * self.per_slice())?, maps.evictions())
            };
            let words = self.read_slice(key, table)?;
            let mut maps = self.maps_mut();
            if maps.evictions() == evictions && self.l2_table(&maps, key * self.per_slice())? == table {
                maps.insert(key, words);
                self.note_size(&maps);
                return Ok(());
            }
        }
        let mut maps = self.maps_mut();
        let table = self.l2_table(&maps, key * self.per_slice())?;
        let words = self.read_slice(key, table)?;
        maps.insert(key, words);
        self.note_size(&maps);
        Ok(())
    }

    /// The words of a slice as they are stored.
    fn read_slice(&self, key: u64, table: Option<(HostOffset, bool)>) -> Result<Box<[AtomicU64]>> {
        let guest = (key * self.per_slice()) << self.geo.cluster_bits;
        let Some((host, _)) = table else {
            return Err(corrupt("L2 table vanished").with_guest(guest));
        };
        let offset = host.0 + key % (self.geo.cluster_size() / self.slice_bytes) * self.slice_bytes;
        let len = self.slice_bytes as usize;
        self.buffers.with(len, |buf| {
            if self.file.read_at(buf, offset)? < len {
                let error = Error::new(ErrorKind::UnexpectedEof, "L2 table past end of file");
                return Err(error.with_guest(guest).with_host(offset));
            }
            let (words, _) = buf.as_chunks::<8>();
            Ok(words.iter().map(|word| AtomicU64::new(u64::from_ne_bytes(*word))).collect())
        })
    }

    /// Makes sure that guest `cluster` has an L2 table of its own that may be written.
    pub(super) fn own_table(&self, state: &mut State, cluster: u64) -> Result<()> {
        self.intact()?;
        self.settle_stale_flags(state)?;
        let old = match self.l2_table(&self.maps(), cluster)? {
            Some((_, true)) => return Ok(()),
            Some((host, false)) => Some(host),
            None => None,
        };
        let run = self.allocate(state, 1)?;
        if let Err(error) = self.fill_table(old, run.host) {
            state.refs.give_back(&*self.file, run)?;
            return Err(error);
        }
        self.reaches(run.host.0 + self.geo.cluster_size());
        let index = (cluster / self.geo.l2_entries()) as usize;
        let mut maps = self.surveyed()?;
        let number = self.geo.cluster_of(run.host.0);
        if let Err(error) = maps.l1.set(&*self.file, index, entry::encode_l1(run.host, true)) {
            drop(maps);
            state.refs.give_back(&*self.file, run)?;
            return Err(error);
        }
        if maps.meta.insert(number, Meta::L2).is_some() {
            return Err(corrupt("a free cluster is in use as metadata").with_host(run.host.0));
        }
        if let Some(host) = old {
            let cluster = self.geo.cluster_of(host.0);
            maps.meta.remove(cluster);
            state.frees.push(Free { cluster, punch: false });
        }
        Ok(())
    }

    /// Writes a new table: zeroes, or a copy of a shared one. Shared tables are never dirty.
    fn fill_table(&self, old: Option<HostOffset>, new: HostOffset) -> Result<()> {
        let size = self.geo.cluster_size();
        let Some(old) = old else {
            return zero_cluster(&*self.file, new.0, size);
        };
        self.buffers.with(size as usize, |buf| {
            if self.file.read_at(buf, old.0)? < buf.len() {
                let error = Error::new(ErrorKind::UnexpectedEof, "L2 table past end of file");
                return Err(error.with_host(old.0));
            }
            self.file.write_at(buf, new.0)
        })
    }

    /// Changes the entries of the guest clusters `first..first + count`, which all lie in one table
    /// that may be written. `change` sees each cluster's number and meaning and returns the new
    /// entry, or `None` to leave it. The old references go to the list of frees.
    pub(super) fn change_entries(
        &self,
        state: &mut State,
        first: u64,
        count: u64,
        mut change: impl FnMut(u64, Cluster) -> Option<L2Entry>,
        punch: bool,
    ) -> Result<()> {
        let (per_slice, mut cluster) = (self.per_slice(), first);
        while cluster < first + count {
            let key = cluster / per_slice;
            let end = ((key + 1) * per_slice).min(first + count);
            let maps = self.maps();
            let Some(slot) = maps.slot(key) else {
                drop(maps);
                self.load_slice(key)?;
                continue;
            };
            while cluster < end {
                let index = (cluster % per_slice) as usize;
                let old = self.decode(slot.load(index, &self.geo), cluster)?;
                if let Some(new) = change(cluster, old) {
                    slot.store(index, new, &self.geo);
                    self.drop_reference(state, old, new, punch);
                }
                cluster += 1;
            }
        }
        Ok(())
    }

    /// Puts the clusters of `old` on the list of frees unless `new` still uses them.
    fn drop_reference(&self, state: &mut State, old: Cluster, new: L2Entry, punch: bool) {
        if self.geo.data_file {
            return;
        }
        match old {
            Cluster::Compressed(compressed) => {
                let clusters = compressed.clusters(&self.geo);
                state.frees.extend(clusters.map(|cluster| Free { cluster, punch: false }));
            }
            Cluster::Standard(standard) => {
                let kept = new.word & entry::COMPRESSED == 0
                    && standard.host.is_some_and(|h| h.0 == new.word & entry::OFFSET_MASK);
                if let (Some(host), false) = (standard.host, kept) {
                    let cluster = self.geo.cluster_of(host.0);
                    state.frees.push(Free { cluster, punch });
                }
            }
        }
    }

    /// What an entry says; a fault names the guest cluster.
    pub(super) fn decode(&self, entry: L2Entry, cluster: u64) -> Result<Cluster> {
        let mut decoded = entry::decode_l2(entry, &self.geo);
        if self.geo.data_file {
            decoded = decoded.and_then(|found| entry::check_place(found, cluster, &self.geo).map(|()| found));
        }
        decoded.map_err(|fault| {
            corrupt(format!("L2 entry: {}", fault.text())).with_guest(cluster << self.geo.cluster_bits)
        })
    }

    /// Free clusters for anything; refuses ones that are known to hold metadata.
    pub(super) fn allocate(&self, state: &mut State, max: u64) -> Result<Run> {
        let run = state
            .refs
            .allocate(&*self.file, &mut state.header, max, &|first, count| self.no_metadata_at(first, count));
        self.free_of_metadata(state, run)
    }

    /// [`Self::allocate`] of exactly `count` clusters in a row.
    pub(super) fn allocate_row(&self, state: &mut State, count: u64) -> Result<Run> {
        let run = state.refs.allocate_exact(&*self.file, &mut state.header, count, &|first, count| {
            self.no_metadata_at(first, count)
        });
        self.free_of_metadata(state, run)
    }

    /// Refuses clusters where metadata is known to be.
    fn no_metadata_at(&self, first: u64, count: u64) -> Result<()> {
        let maps = self.maps();
        for cluster in first..first + count {
            if self.structure_at(&maps, cluster)?.is_some() {
                let host = cluster << self.geo.cluster_bits;
                return Err(corrupt("a free cluster is in use as metadata").with_host(host));
            }
        }
        Ok(())
    }

    /// What was allocated, if nothing that is known is there.
    fn free_of_metadata(&self, state: &mut State, run: Result<Run>) -> Result<Run> {
        self.publish_blocks(state)?;
        let run = run?;
        self.no_metadata_at(self.geo.cluster_of(run.host.0), run.count)?;
        Ok(run)
    }

    /// Enters new refcount blocks, and a moved refcount table, among the metadata clusters.
    pub(super) fn publish_blocks(&self, state: &mut State) -> Result<()> {
        if state.refs.placed.is_empty() {
            return Ok(());
        }
        let header = &state.header.header;
        let first = self.geo.cluster_of(header.refcount_table_offset);
        let count = u64::from(header.refcount_table_clusters);
        let mut maps = self.surveyed()?;
        maps.meta.remove_ranges(Meta::RefcountTable);
        let mut taken = maps.meta.insert_range(first, count, Meta::RefcountTable);
        for block in state.refs.placed.drain(..) {
            taken = taken.or(maps.meta.insert(block, Meta::RefcountBlock));
        }
        self.reaches(state.refs.virgin << self.geo.cluster_bits);
        match taken {
            None => Ok(()),
            Some(kind) => Err(corrupt(format!("free clusters are in use as {kind:?}"))),
        }
    }
}
