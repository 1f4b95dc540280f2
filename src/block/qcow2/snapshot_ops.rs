//! Internal snapshots: listing, creating, deleting, going back (specification: "Snapshots").
//!
//! Neighbours: `snapshot` has the table's layout, `counts` the references,
//! `repair` makes COPIED flags right. The header changes in one write, which
//! decides whether a snapshot is there. Around it the dirty bit is set
//! (version 3), so that a cut is repaired when the image is opened next, or
//! COPIED flags are cleared (version 2), so that a cut costs copies, no content.

use std::time::{SystemTime, UNIX_EPOCH};

use super::super::error::{Error, ErrorKind, Result};
use super::cache::Maps;
use super::counts::Counts;
use super::create::invalid;
use super::entry::{self, Cluster};
use super::header::{DIRTY, SNAPSHOTS_MAX};
use super::image::{Free, Image, State, corrupt};
use super::snapshot::{self, Snapshot};
use super::survey::Meta;
use super::sync::lock;
use super::types::HostOffset;

impl Image {
    /// The internal snapshots in the order of the table.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        lock(&self.state).snapshots.clone()
    }

    /// Keeps the disk as it is now under `name`; returns the new snapshot's id. Everything written
    /// before is durable afterwards.
    pub fn create_snapshot(&self, name: &str) -> Result<String> {
        let result = self.alter(|state| self.create_locked(state, name));
        self.finish(result)
    }

    /// Removes the snapshot with this id or name.
    pub fn delete_snapshot(&self, id_or_name: &str) -> Result<()> {
        let result = self.alter(|state| self.delete_locked(state, id_or_name));
        self.finish(result)
    }

    /// Makes the disk what it was in the snapshot with this id or name, which stays.
    pub fn apply_snapshot(&self, id_or_name: &str) -> Result<()> {
        let result = self.alter(|state| self.apply_locked(state, id_or_name));
        self.finish(result)
    }

    /// Runs `change` alone, between a flush and making flags right, with the dirty bit set.
    fn alter<T>(&self, change: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.check_writable()?;
        if self.geo.data_file {
            let message = "no internal snapshots with an external data file";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let _all = self.ranges.lock_all()?;
        let mut state = lock(&self.state);
        self.flush_state(&mut state)?;
        self.set_incompatible(&mut state, DIRTY, true)?;
        self.distrust_flags(&mut state);
        if state.header.header.version < 3 {
            // No dirty bit: what a cut leaves must not be written in place by whoever opens it next.
            self.clear_copied(&mut state)?;
        }
        let changed = change(&mut state);
        let settled = self.settle_flags(&mut state);
        let value = changed?;
        settled?;
        Ok(value)
    }

    /// Makes every write copy, until the flags are known to be right again.
    fn distrust_flags(&self, state: &mut State) {
        state.flags_stale = true;
        let mut maps = self.maps_mut();
        maps.forget(|_| true);
        maps.l1.hide(entry::COPIED);
    }

    /// After a change of references, or a failed one: what is free is freed, flags are made right.
    fn settle_flags(&self, state: &mut State) -> Result<()> {
        self.flush_state(state)?;
        self.fix_copied(state)?;
        state.flags_stale = false;
        self.flush_state(state)?;
        self.set_incompatible(state, DIRTY, false)
    }

    /// Makes flags right that an operation on snapshots left behind when it failed.
    pub(super) fn settle_stale_flags(&self, state: &mut State) -> Result<()> {
        if state.flags_stale { self.settle_flags(state) } else { Ok(()) }
    }

    fn find_snapshot(state: &State, id_or_name: &str) -> Result<usize> {
        snapshot::find(&state.snapshots, id_or_name).ok_or_else(|| invalid("no such snapshot"))
    }

    fn create_locked(&self, state: &mut State, name: &str) -> Result<String> {
        if state.snapshots.len() as u64 >= u64::from(SNAPSHOTS_MAX) || name.len() > 65535 {
            return Err(Error::new(ErrorKind::Exhausted, "too many snapshots, or too long a name"));
        }
        let highest = state.snapshots.iter().filter_map(|s| s.id.parse::<u64>().ok()).max();
        let id = highest.unwrap_or(0).saturating_add(1).to_string();
        let l1 = self.maps().l1.to_vec(&*self.file)?;
        let counts = self.tree(&l1)?;
        self.raise_all(state, &counts)?;
        let stored = self.store_l1(state, &l1);
        let run = match stored {
            Ok(run) => run,
            Err(error) => {
                self.lower_all(state, &counts)?;
                return Err(error);
            }
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let snapshot = Snapshot {
            id: id.clone(),
            name: name.to_owned(),
            l1_offset: run.map_or(0, |(host, _)| host.0),
            l1_size: l1.len() as u32,
            seconds: now.as_secs() as u32,
            nanoseconds: now.subsec_nanos(),
            guest_nanoseconds: 0,
            vm_state: 0,
            disk_size: Some(self.size()),
            extra: Vec::new(),
            stored: None,
        };
        let mut snapshots = state.snapshots.clone();
        snapshots.push(snapshot);
        if let Err(error) = self.publish(state, snapshots) {
            self.lower_all(state, &counts)?;
            self.give_back_clusters(state, run)?;
            return Err(error);
        }
        Ok(id)
    }

    fn delete_locked(&self, state: &mut State, id_or_name: &str) -> Result<()> {
        let at = Self::find_snapshot(state, id_or_name)?;
        let gone = state.snapshots[at].clone();
        let bytes = u64::from(gone.l1_size) * 8;
        let mut counts = self.tree(&self.read_table_words(gone.l1_offset, bytes)?)?;
        self.count_range(&mut counts, gone.l1_offset, bytes);
        let mut snapshots = state.snapshots.clone();
        snapshots.remove(at);
        self.publish(state, snapshots)?;
        self.free_all(state, &counts);
        Ok(())
    }

    fn apply_locked(&self, state: &mut State, id_or_name: &str) -> Result<()> {
        let wanted = state.snapshots[Self::find_snapshot(state, id_or_name)?].clone();
        let size = wanted.disk_size.unwrap_or(self.size());
        let mut l1 = self.read_table_words(wanted.l1_offset, u64::from(wanted.l1_size) * 8)?;
        l1.iter_mut().for_each(|word| *word &= !entry::COPIED);
        if (l1.len() as u64) < self.geo.l1_entries(size) {
            return Err(corrupt("L1 table of the snapshot smaller than its disk"));
        }
        let new = self.tree(&l1)?;
        let old_l1 = self.maps().l1.to_vec(&*self.file)?;
        let mut old = self.tree(&old_l1)?;
        let header = &state.header.header;
        self.count_range(&mut old, header.l1_offset, u64::from(header.l1_size) * 8);
        self.raise_all(state, &new)?;
        let switched = self.store_l1(state, &l1).and_then(|run| {
            self.flush_state(state)?;
            state.header.update(&*self.file, |header| {
                header.l1_offset = run.map_or(0, |(host, _)| host.0);
                header.l1_size = l1.len() as u32;
                header.size = size;
            })
        });
        if let Err(error) = switched {
            // The new table leaks, if it was made.
            self.lower_all(state, &new)?;
            return Err(error);
        }
        self.size.store(size, std::sync::atomic::Ordering::Release);
        self.free_all(state, &old);
        self.show(state, &old_l1, &l1)
    }

    /// Everything that the tables of `l1` refer to, the tables too.
    fn tree(&self, l1: &[u64]) -> Result<Counts> {
        let mut counts = Counts::default();
        for word in l1 {
            let decoded = entry::decode_l1(*word, &self.geo);
            let Some((table, _)) = decoded.map_err(|fault| corrupt(fault.text()))? else {
                continue;
            };
            let cluster = self.geo.cluster_of(table.0);
            if self.is_structure(cluster)? {
                return Err(corrupt("L1 entry points at other metadata").with_host(table.0));
            }
            counts.add(cluster, 1);
            let words = self.read_table_words(table.0, self.geo.cluster_size())?;
            for entry in self.entries(&words) {
                self.count_entry(entry::decode_l2(entry, &self.geo), &mut counts)?;
            }
        }
        Ok(counts)
    }

    fn count_entry(
        &self,
        decoded: std::result::Result<Cluster, entry::Fault>,
        counts: &mut Counts,
    ) -> Result<()> {
        match decoded.map_err(|fault| corrupt(format!("L2 entry: {}", fault.text())))? {
            Cluster::Compressed(compressed) => {
                compressed.clusters(&self.geo).for_each(|cluster| counts.add(cluster, 1));
            }
            Cluster::Standard(standard) => {
                if let Some(host) = standard.host {
                    counts.add(self.geo.cluster_of(host.0), 1);
                }
            }
        }
        Ok(())
    }

    /// Adds the counts to the refcounts; all or none.
    fn raise_all(&self, state: &mut State, counts: &Counts) -> Result<()> {
        let file = &*self.file;
        for (cluster, times) in counts.iter() {
            let stored = state.refs.get(file, cluster)?;
            if stored == 0 {
                return Err(
                    corrupt("cluster in use has refcount 0").with_host(cluster << self.geo.cluster_bits)
                );
            }
            if stored.saturating_add(times) > self.geo.refcount_max() {
                let message = "refcounts of this image are too narrow for another snapshot";
                return Err(Error::new(ErrorKind::Exhausted, message));
            }
        }
        let mut done = Vec::new();
        for (cluster, times) in counts.iter() {
            let raised = state.refs.get(file, cluster);
            let raised = raised.and_then(|stored| state.refs.set(file, cluster, stored + times));
            if let Err(error) = raised {
                for (cluster, times) in done {
                    let stored = state.refs.get(file, cluster)?;
                    state.refs.set(file, cluster, stored - times)?;
                }
                return Err(error);
            }
            done.push((cluster, times));
        }
        Ok(())
    }

    fn lower_all(&self, state: &mut State, counts: &Counts) -> Result<()> {
        let file = &*self.file;
        for (cluster, times) in counts.iter() {
            let stored = state.refs.get(file, cluster)?;
            state.refs.set(file, cluster, stored.saturating_sub(times))?;
        }
        Ok(())
    }

    /// Lets the next flush lower the refcounts.
    fn free_all(&self, state: &mut State, counts: &Counts) {
        for (cluster, times) in counts.iter() {
            let free = Free { cluster, punch: false };
            state.frees.extend(std::iter::repeat_n(free, times as usize));
        }
    }

    /// Writes an L1 table to new clusters, without COPIED flags.
    fn store_l1(&self, state: &mut State, l1: &[u64]) -> Result<Option<(HostOffset, u64)>> {
        let words = l1.iter().map(|word| word & !entry::COPIED);
        let bytes: Vec<u8> = words.flat_map(u64::to_be_bytes).collect();
        self.store(state, bytes)
    }

    /// Writes a structure to new clusters in a row.
    fn store(&self, state: &mut State, mut bytes: Vec<u8>) -> Result<Option<(HostOffset, u64)>> {
        let clusters = self.geo.clusters_for(bytes.len() as u64);
        if clusters == 0 {
            return Ok(None);
        }
        bytes.resize((clusters * self.geo.cluster_size()) as usize, 0);
        let file = &*self.file;
        let run = self.allocate_row(state, clusters)?;
        if let Err(error) = file.write_at(&bytes, run.host.0) {
            state.refs.give_back(file, run)?;
            return Err(error);
        }
        self.reaches(run.host.0 + bytes.len() as u64);
        Ok(Some((run.host, clusters)))
    }

    fn give_back_clusters(&self, state: &mut State, run: Option<(HostOffset, u64)>) -> Result<()> {
        let Some((host, count)) = run else {
            return Ok(());
        };
        let run = super::alloc::Run { host, count, virgin: false };
        state.refs.give_back(&*self.file, run)
    }

    /// Writes a new snapshot table and makes the header name it; the old one is freed.
    fn publish(&self, state: &mut State, snapshots: Vec<Snapshot>) -> Result<()> {
        let encode = |snapshots: &[Snapshot]| {
            let mut bytes = Vec::new();
            snapshots.iter().for_each(|snapshot| snapshot.encode(&mut bytes));
            bytes
        };
        let old_bytes = encode(&state.snapshots).len() as u64;
        let new = encode(&snapshots);
        let new_bytes = new.len() as u64;
        let run = self.store(state, new)?;
        let (old, count) = (state.header.header.snapshots_offset, snapshots.len() as u32);
        let published = self.flush_state(state).and_then(|()| {
            state.header.update(&*self.file, |header| {
                header.nb_snapshots = count;
                header.snapshots_offset = run.map_or(0, |(host, _)| host.0);
            })
        });
        if let Err(error) = published {
            self.give_back_clusters(state, run)?;
            return Err(error);
        }
        let mut freed = Counts::default();
        self.count_range(&mut freed, old, old_bytes);
        self.free_all(state, &freed);
        state.snapshots = snapshots;
        let mut maps = self.maps_mut();
        maps.meta.remove_ranges(Meta::SnapshotTable);
        maps.meta.remove_ranges(Meta::SnapshotL1);
        let mut range = |offset: u64, bytes: u64, kind: Meta| {
            let first = self.geo.cluster_of(offset);
            maps.meta.insert_range(first, self.geo.clusters_for(bytes), kind);
        };
        range(state.header.header.snapshots_offset, new_bytes, Meta::SnapshotTable);
        for snapshot in &state.snapshots {
            range(snapshot.l1_offset, u64::from(snapshot.l1_size) * 8, Meta::SnapshotL1);
        }
        Ok(())
    }

    /// Makes `new`, which the header names now, the active table in memory.
    fn show(&self, state: &State, old: &[u64], new: &[u64]) -> Result<()> {
        let mut maps = self.surveyed()?;
        let maps: &mut Maps = &mut maps;
        maps.forget(|_| true);
        for word in old {
            if let Ok(Some((host, _))) = entry::decode_l1(*word, &self.geo) {
                maps.meta.remove(self.geo.cluster_of(host.0));
            }
        }
        for word in new {
            if let Ok(Some((host, _))) = entry::decode_l1(*word, &self.geo) {
                maps.meta.insert(self.geo.cluster_of(host.0), Meta::L2);
            }
        }
        let header = &state.header.header;
        maps.l1 = self.table_at(header.l1_offset, new.len());
        maps.meta.remove_ranges(Meta::L1);
        let clusters = self.geo.clusters_for(u64::from(header.l1_size) * 8);
        maps.meta.insert_range(self.geo.cluster_of(header.l1_offset), clusters, Meta::L1);
        Ok(())
    }
}
