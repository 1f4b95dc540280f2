//! Changing the disk's size: only the fields that must change do.
//!
//! Neighbours: `alloc` finds room for a longer L1 table; `discard` clears what
//! is cut off or newly shown.

use std::sync::atomic::Ordering;

use super::super::error::{Error, ErrorKind, Result};
use super::create::invalid;
use super::header::L1_MAX;
use super::image::{Free, Image, State};
use super::survey::Meta;
use super::sync::lock;

impl Image {
    /// Makes the disk `size` bytes long. New bytes read as zeroes, also where a backing file is
    /// longer. A shorter disk loses data, so that has to be asked for with `shrink`.
    pub fn resize(&self, size: u64, shrink: bool) -> Result<()> {
        let result = self.resize_checked(size, shrink);
        self.finish(result)
    }

    fn resize_checked(&self, size: u64, shrink: bool) -> Result<()> {
        self.check_writable()?;
        let old = self.size();
        if size > i64::MAX as u64 || self.geo.l1_entries(size) * 8 > L1_MAX {
            return Err(invalid("disk too large for this cluster size"));
        }
        if size < old && !shrink {
            return Err(invalid("a smaller disk loses data: ask for it"));
        }
        let state = lock(&self.state);
        if state.snapshots.iter().any(|snapshot| snapshot.disk_size.is_none()) {
            let message = "a snapshot does not know its disk's size";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        drop(state);
        if size < old { self.shrink(size, old) } else { self.grow(size, old) }
    }

    fn shrink(&self, size: u64, old: u64) -> Result<()> {
        let first = self.geo.round_up(size);
        if first < old {
            self.discard(first, old - first)?;
            self.drop_zeroes(first, old)?;
        }
        let _all = self.ranges.lock_all()?;
        let mut state = lock(&self.state);
        self.flush_state(&mut state)?;
        state.header.update(&*self.file, |header| header.size = size)?;
        self.size.store(size, Ordering::Release);
        match &self.data {
            Some(data) => data.set_len(size),
            None => Ok(()),
        }
    }

    /// Entries beyond the end say nothing: a later growth decides what is there.
    fn drop_zeroes(&self, first: u64, old: u64) -> Result<()> {
        let from = self.geo.cluster_of(first);
        let _range = self.ranges.lock(from, self.geo.clusters_for(old))?;
        self.unallocate(from, self.geo.clusters_for(old))
    }

    fn grow(&self, size: u64, old: u64) -> Result<()> {
        let all = self.ranges.lock_all()?;
        let mut state = lock(&self.state);
        self.flush_state(&mut state)?;
        if let Some(data) = &self.data {
            let there = data.len()?;
            if self.data_raw && there > old {
                // Its bytes are the disk's, whatever is mapped.
                data.write_zeroes(old, there.min(size) - old)?;
            }
            if there < size {
                data.set_len(size)?;
            }
        }
        let entries = self.geo.l1_entries(size);
        let mapped = u64::from(state.header.header.l1_size);
        if entries > mapped {
            self.longer_l1(&mut state, entries)?;
        }
        drop(state);
        // Shown in memory first, so that zeroes can be written; in the file last.
        self.size.store(size, Ordering::Release);
        let result = self.clear_new(old, size, mapped).and_then(|()| {
            let mut state = lock(&self.state);
            self.flush_state(&mut state)?;
            state.header.update(&*self.file, |header| header.size = size)
        });
        if result.is_err() {
            self.size.store(old, Ordering::Release);
        }
        drop(all);
        result
    }

    /// Zeroes the rest of the last cluster, what a longer backing file would show, and what an L1
    /// table of `mapped` entries maps beyond the disk's end, where nobody may have looked until now.
    fn clear_new(&self, old: u64, size: u64, mapped: u64) -> Result<()> {
        let edge = self.geo.round_up(old);
        self.zero_part(old, edge.min(size) - old)?;
        let (first, all) = (self.geo.cluster_of(edge), self.geo.clusters_for(size));
        let backed = self.geo.clusters_for(self.backing_len).clamp(first, all.max(first));
        self.zero_whole(first, backed)?;
        let known = mapped.saturating_mul(self.geo.l2_entries()).min(all);
        self.unallocate(backed, known.max(backed))
    }

    /// Moves the L1 table to a longer one.
    fn longer_l1(&self, state: &mut State, entries: u64) -> Result<()> {
        let file = &*self.file;
        let bytes = entries * 8;
        let clusters = self.geo.clusters_for(bytes);
        let run = self.allocate_row(state, clusters)?;
        let mut l1 = self.maps().l1.to_vec(file)?;
        l1.resize(entries as usize, 0);
        let mut out: Vec<u8> = l1.iter().flat_map(|word| word.to_be_bytes()).collect();
        out.resize((clusters * self.geo.cluster_size()) as usize, 0);
        let old = (state.header.header.l1_offset, state.header.header.l1_size);
        let moved = file.write_at(&out, run.host.0).and_then(|()| {
            // The refcounts of the new place have to be there before the header names it.
            self.flush_state(state)?;
            state.header.update(file, |header| {
                header.l1_offset = run.host.0;
                header.l1_size = entries as u32;
            })
        });
        if let Err(error) = moved {
            state.refs.give_back(file, run)?;
            return Err(error);
        }
        self.reaches(run.host.0 + out.len() as u64);
        let mut maps = self.maps_mut();
        maps.l1 = self.table_at(run.host.0, l1.len());
        maps.meta.remove_ranges(Meta::L1);
        let first = self.geo.cluster_of(run.host.0);
        maps.meta.insert_range(first, clusters, Meta::L1);
        let first = self.geo.cluster_of(old.0);
        let count = self.geo.clusters_for(u64::from(old.1) * 8);
        let freed = (first..first + count).map(|cluster| Free { cluster, punch: false });
        state.frees.extend(freed);
        Ok(())
    }
}
