//! The way of metadata to the file: refcounts, barrier, mapping, barrier;
//! then what is referenced no more is freed.
//!
//! Neighbours: `refcount` and `cache` know what is dirty; `write` and
//! `discard` made it so. Two barriers, a third only when the refcount table
//! changed. A cut between any two steps leaves leaks at the most.

use std::sync::atomic::Ordering;

use super::super::error::Result;
use super::cache::{Maps, Slot};
use super::image::{Free, Image, State};
use super::sync::lock;

impl Image {
    /// Makes everything written so far durable: data and what points at it.
    pub fn flush(&self) -> Result<()> {
        if !self.is_writable() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        let result = self.flush_state(&mut state).and_then(|()| self.settle_stale_flags(&mut state));
        drop(state);
        self.finish(result)
    }

    /// Whether a flush has nothing to do but to make data durable.
    pub(super) fn metadata_is_clean(&self) -> bool {
        let state = lock(&self.state);
        let freeing = !state.frees.is_empty() || !state.waiting.is_empty();
        let counts = state.refs.is_dirty() || state.refs.table.is_dirty();
        let mapping = || self.maps().slots().iter().any(|slot| slot.dirty_words().is_some());
        let dirty = counts || state.header.stale || state.flags_stale || self.maps().l1.is_dirty();
        !(dirty || freeing || mapping())
    }

    /// Flushes and closes. Dropping an image flushes too, but cannot say whether that worked.
    pub fn close(self) -> Result<()> {
        let flushed = self.flush();
        // What could not be written now is not tried again by the drop.
        self.writable.store(false, Ordering::Release);
        flushed
    }

    /// [`Self::flush`] for who holds the state. While it runs nothing is allocated or linked.
    pub(super) fn flush_state(&self, state: &mut State) -> Result<()> {
        let file = &*self.file;
        state.header.settle(file)?;
        state.refs.write_dirty(file)?;
        if let Some(data) = &self.data {
            data.sync()?;
        }
        if state.refs.table.is_dirty() {
            // The table must not name a block whose content is not there yet.
            file.sync()?;
            state.refs.table.write_dirty(file)?;
        }
        file.sync()?;
        state.refs.mark_clean();
        state.refs.table.mark_clean();
        if self.write_mapping()? {
            file.sync()?;
            let mut maps = self.maps_mut();
            maps.slots().iter().for_each(Slot::mark_clean);
            maps.l1.mark_clean();
        }
        self.release(state)
    }

    /// Writes dirty parts of L2 and L1 tables; says whether there were any.
    fn write_mapping(&self) -> Result<bool> {
        let maps = self.maps();
        let mut parts = self.dirty_parts(&maps)?;
        if parts.is_empty() && !maps.l1.is_dirty() {
            return Ok(false);
        }
        parts.sort_unstable_by_key(|part| part.0);
        let mut bytes = Vec::new();
        let mut start = 0;
        for (offset, slot, range) in parts {
            if !bytes.is_empty() && start + bytes.len() as u64 != offset {
                self.file.write_at(&bytes, start)?;
                bytes.clear();
            }
            if bytes.is_empty() {
                start = offset;
            }
            slot.encode(range, &mut bytes);
        }
        if !bytes.is_empty() {
            self.file.write_at(&bytes, start)?;
        }
        maps.l1.write_dirty(&*self.file)?;
        Ok(true)
    }

    /// Where each dirty part of a slice belongs.
    #[allow(clippy::type_complexity, reason = "local to this file; a name would say no more")]
    fn dirty_parts<'m>(&self, maps: &'m Maps) -> Result<Vec<(u64, &'m Slot, std::ops::Range<usize>)>> {
        let slices = self.geo.cluster_size() / self.slice_bytes;
        let mut parts = Vec::new();
        for slot in maps.slots() {
            let Some(range) = slot.dirty_words() else {
                continue;
            };
            if let Some((table, _)) = self.l2_table(maps, slot.key() * self.per_slice())? {
                let slice = table.0 + slot.key() % slices * self.slice_bytes;
                parts.push((slice + range.start as u64 * 8, slot, range));
            }
        }
        Ok(parts)
    }

    /// Frees what the file does not refer to any more, once no read that began before can use it.
    fn release(&self, state: &mut State) -> Result<()> {
        if let Some(epoch) = state.waiting_epoch {
            if !self.gate.drained(epoch) {
                return Ok(());
            }
            self.free_waiting(state)?;
        }
        if state.frees.is_empty() {
            return Ok(());
        }
        state.waiting = std::mem::take(&mut state.frees);
        let epoch = self.gate.advance();
        state.waiting_epoch = Some(epoch);
        if self.gate.drained(epoch) {
            self.free_waiting(state)?;
        }
        Ok(())
    }

    /// Punches, then lowers refcounts: a cluster can be handed out only after both. The counts go
    /// to the file without a barrier; when they are lost, clusters leak.
    fn free_waiting(&self, state: &mut State) -> Result<()> {
        state.waiting.sort_unstable();
        self.punch_waiting(state)?;
        while let Some(free) = state.waiting.last().copied() {
            let left = state.refs.lower(&*self.file, free.cluster)?;
            state.waiting.pop();
            let tail = state.tail.map(|tail| self.geo.cluster_of(tail.0));
            if left == 0 && tail == Some(free.cluster) {
                state.tail = None;
            }
        }
        state.waiting_epoch = None;
        state.refs.write_dirty(&*self.file)?;
        state.refs.mark_clean();
        Ok(())
    }

    /// Gives back the space of clusters that lose their last reference; neighbours in one request.
    fn punch_waiting(&self, state: &mut State) -> Result<()> {
        let (mut first, mut count) = (0, 0);
        for index in 0..state.waiting.len() {
            let Free { cluster, punch } = state.waiting[index];
            if !punch || state.refs.get(&*self.file, cluster)? != 1 {
                continue;
            }
            if count > 0 && first + count == cluster {
                count += 1;
                continue;
            }
            self.punch_clusters(first, count)?;
            (first, count) = (cluster, 1);
        }
        self.punch_clusters(first, count)
    }

    fn punch_clusters(&self, first: u64, count: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let bits = self.geo.cluster_bits;
        self.file.punch(first << bits, count << bits)
    }

    /// Flushes when dirty slices made the cache outgrow its setting. The caller holds no lock.
    pub(super) fn relieve(&self) -> Result<()> {
        if !self.is_crowded.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = lock(&self.state);
        self.flush_state(&mut state)?;
        let mut maps = self.maps_mut();
        maps.forget(|_| false);
        self.note_size(&maps);
        Ok(())
    }

    /// Says whether the cache has outgrown its setting, after a change of it.
    pub(super) fn note_size(&self, maps: &Maps) {
        self.is_crowded.store(maps.overgrown(), Ordering::Release);
    }
}

impl Drop for Image {
    /// Brings what is left to the file; whoever needs to know whether that worked calls
    /// [`Image::close`], or [`Image::flush`] before.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
