//! Repair: refcounts made equal to the references, in place or as a whole
//! new structure, and COPIED flags made right.
//!
//! Neighbours: `check` counts; `salvage` gives up what cannot be repaired;
//! `adopt` repairs images with the dirty bit; `snapshot_ops` uses the parts.
//! Counts go up before flags change and down after, so that a cut leaves leaks.

use super::super::error::{ErrorKind, Result};
use super::check::{References, Report};
use super::create::{invalid, plan_refcounts};
use super::entry::{self, Cluster, L2Entry};
use super::header;
use super::image::{Image, State};
use super::paged::Place;
use super::sync::lock;
use super::types::HostOffset;
use super::width;

impl Image {
    /// Gives up entries that nothing can be made of, makes refcounts and COPIED flags fit the
    /// references, and clears the dirty and corrupt bits if nothing is left to complain about.
    /// Persistent bitmaps go, as with any write. Returns what a check finds afterwards.
    pub fn repair(&self) -> Result<Report> {
        let all = self.ranges.lock_all()?;
        let mut state = lock(&self.state);
        let result = self.repair_all(&mut state);
        drop(state);
        drop(all);
        let given_up = self.finish(result)?;
        let report = Report { given_up, ..self.check()? };
        if report.corruptions == 0 {
            let mut state = lock(&self.state);
            self.set_incompatible(&mut state, header::DIRTY | header::CORRUPT, false)?;
        }
        Ok(report)
    }

    fn repair_all(&self, state: &mut State) -> Result<u64> {
        if !self.is_writable() {
            return Err(invalid("image is read-only or marked corrupt: open it for repair"));
        }
        self.flush_state(state)?;
        self.clear_autoclear(state)?;
        let given_up = self.give_up_invalid(state)?;
        self.repair_state(state)?;
        Ok(given_up)
    }

    pub(super) fn repair_state(&self, state: &mut State) -> Result<()> {
        let found = self.references(state, &mut Report::default())?.complete()?;
        let rebuilt = found.refcounts_broken || !self.raise_to(state, &found)?;
        if rebuilt {
            self.rebuild(state)?;
        }
        self.fix_copied(state)?;
        // What was found knows nothing of new refcounts, which need no more lowering.
        if !rebuilt {
            self.lower_to(state, &found)?;
            self.fix_copied(state)?;
        }
        Ok(())
    }

    /// Sets or clears incompatible bits (version 3).
    pub(super) fn set_incompatible(&self, state: &mut State, bits: u64, on: bool) -> Result<()> {
        let header = &state.header.header;
        let set = header.incompatible & bits;
        if header.version < 3 || set == if on { bits } else { 0 } {
            return Ok(());
        }
        state.header.update(&*self.file, |header| {
            header.incompatible = if on { header.incompatible | bits } else { header.incompatible & !bits };
        })
    }

    /// Raises every count that is below the references; says whether all of them have a place.
    fn raise_to(&self, state: &mut State, found: &References) -> Result<bool> {
        let file = &*self.file;
        for (cluster, expected) in found.counts.iter() {
            if state.refs.get(file, cluster)? >= expected {
                continue;
            }
            if state.refs.block(file, cluster)?.is_none() {
                return Ok(false);
            }
            state.refs.set(file, cluster, expected)?;
        }
        state.refs.write_dirty(file)?;
        file.sync()?;
        state.refs.mark_clean();
        Ok(true)
    }

    fn lower_to(&self, state: &mut State, found: &References) -> Result<()> {
        let mut leaked = Vec::new();
        self.for_each_refcount(state, |cluster, stored| {
            if stored > found.counts.get(cluster) {
                leaked.push(cluster);
            }
        })?;
        let file = &*self.file;
        for cluster in leaked {
            state.refs.set(file, cluster, found.counts.get(cluster))?;
        }
        state.refs.write_dirty(file)?;
        file.sync()?;
        state.refs.mark_clean();
        Ok(())
    }

    /// Writes refcount structures from the references alone, behind everything else.
    fn rebuild(&self, state: &mut State) -> Result<()> {
        let file = &*self.file;
        let mut counts = {
            let table = std::mem::take(&mut state.refs.table);
            let found = self.references(state, &mut Report::default());
            state.refs.table = table;
            found?.complete()?.counts
        };
        let size = self.geo.cluster_size();
        let start = counts.end().max(self.geo.clusters_for(file.len()?));
        let (table_clusters, blocks) = plan_refcounts(&self.geo, start)?;
        for cluster in start..start + table_clusters + blocks {
            counts.add(cluster, 1);
        }
        let mut table = vec![0_u64; (table_clusters * size / 8) as usize];
        let mut block = vec![0; size as usize];
        for at in 0..blocks {
            block.fill(0);
            let first = at * self.geo.refcounts_per_block();
            for index in 0..self.geo.refcounts_per_block() {
                let count = counts.get(first + index).min(self.geo.refcount_max());
                width::set(&mut block, self.geo.refcount_order, index as usize, count);
            }
            let host = (start + table_clusters + at) * size;
            file.write_at(&block, host)?;
            table[at as usize] = host;
        }
        let bytes: Vec<u8> = table.iter().flat_map(|word| word.to_be_bytes()).collect();
        file.write_at(&bytes, start * size)?;
        state.header.update(file, |header| {
            header.refcount_table_offset = start * size;
            header.refcount_table_clusters = table_clusters as u32;
        })?;
        let len = (start + table_clusters + blocks) * size;
        self.reaches(len);
        let place = Place::new(start * size, table.len(), len);
        state.refs = state.refs.renewed(place, len);
        let first = start + table_clusters;
        state.refs.placed.extend(first..first + blocks);
        // The old ones are free now, and may become anything.
        self.surveyed()?.meta.remove_blocks();
        self.publish_blocks(state)
    }

    /// Rewrites COPIED flags of the active tables from the refcounts; forgets cached slices, which
    /// must be clean.
    pub(super) fn fix_copied(&self, state: &mut State) -> Result<()> {
        self.rewrite_copied(state, Flags::FromRefcounts)
    }

    /// Clears the COPIED flags of the active tables: every write copies then, whatever happens to
    /// the refcounts.
    pub(super) fn clear_copied(&self, state: &mut State) -> Result<()> {
        self.rewrite_copied(state, Flags::Cleared)
    }

    fn rewrite_copied(&self, state: &mut State, flags: Flags) -> Result<()> {
        let file = &*self.file;
        self.maps_mut().forget(|_| true);
        let header = &state.header.header;
        let (offset, bytes) = (header.l1_offset, u64::from(header.l1_size) * 8);
        let mut l1 = self.read_table_words(offset, bytes)?;
        for word in &mut l1 {
            let Ok(Some((host, _))) = entry::decode_l1(*word, &self.geo) else {
                continue;
            };
            let cluster = self.geo.cluster_of(host.0);
            if self.is_structure(cluster)? {
                continue;
            }
            let copied = flags == Flags::FromRefcounts && state.refs.get(file, cluster)? == 1;
            *word = entry::encode_l1(host, copied);
            self.rewrite_copied_in(state, host, flags)?;
        }
        let out: Vec<u8> = l1.iter().flat_map(|word| word.to_be_bytes()).collect();
        file.write_at(&out, offset)?;
        file.sync()?;
        self.maps_mut().l1 = self.table_at(offset, l1.len());
        Ok(())
    }

    fn rewrite_copied_in(&self, state: &mut State, table: HostOffset, flags: Flags) -> Result<()> {
        let words = match self.read_table_words(table.0, self.geo.cluster_size()) {
            // Nothing is there, so nothing can be wrong with it.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            result => result?,
        };
        let mut changed = false;
        let mut out = Vec::with_capacity(words.len() * 8);
        for entry in self.entries(&words) {
            let mut entry = entry;
            let wrong = match flags {
                Flags::FromRefcounts => !self.copied_is_right(state, entry)?,
                Flags::Cleared => entry.word & entry::COPIED != 0,
            };
            if wrong {
                entry = self.flip_copied(entry);
                changed = true;
            }
            self.encode_entry(entry, &mut out);
        }
        if changed {
            self.file.write_at(&out, table.0)?;
        }
        Ok(())
    }

    /// Appends an entry as it is stored.
    pub(super) fn encode_entry(&self, entry: L2Entry, out: &mut Vec<u8>) {
        out.extend_from_slice(&entry.word.to_be_bytes());
        if self.geo.extended_l2 {
            out.extend_from_slice(&entry.bitmap.to_be_bytes());
        }
    }

    fn flip_copied(&self, entry: L2Entry) -> L2Entry {
        match entry::decode_l2(entry, &self.geo) {
            Ok(Cluster::Standard(_)) => L2Entry { word: entry.word ^ entry::COPIED, ..entry },
            _ => entry,
        }
    }
}

/// What COPIED flags are set to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flags {
    FromRefcounts,
    Cleared,
}
