//! Discard and write zeroes: entries change first, clusters are freed with
//! the next flush (specification: "Cluster mapping", bit 0 of the standard
//! cluster descriptor).
//!
//! Neighbours: `table` changes entries, `flush` frees and punches, `write`
//! zeroes what is smaller than a cluster.

use std::cell::Cell;

use super::super::error::Result;
use super::super::io::ZEROES;
use super::entry::{self, Cluster, L2Entry, Standard};
use super::image::{Image, State};
use super::map::Source;
use super::sync::lock;

impl Image {
    /// Gives back the clusters that lie in the range as a whole; returns how many bytes those are.
    ///
    /// They read as zeroes afterwards, also over a backing file. Version 2 has no way to say that,
    /// so nothing over a backing file is discarded there. The space is free with the next
    /// [`Self::flush`]. See [`Self::discard_granularity`].
    pub fn discard(&self, guest: u64, len: u64) -> Result<u64> {
        let result = self.discard_checked(guest, len);
        self.finish(result)
    }

    /// Makes the range read as zeroes. With `unmap` its clusters are given back, without they stay
    /// reserved where they are.
    pub fn write_zeroes(&self, guest: u64, len: u64, unmap: bool) -> Result<()> {
        let result = self.write_zeroes_checked(guest, len, unmap);
        self.finish(result)
    }

    /// The clusters `first..end` that lie in the range as a whole; the disk's end completes its last.
    fn whole_clusters(&self, guest: u64, len: u64) -> (u64, u64) {
        let size = self.geo.cluster_size();
        let to = guest + len;
        let end = if to == self.size() { to.div_ceil(size) } else { to / size };
        (guest.div_ceil(size), end)
    }

    fn discard_checked(&self, guest: u64, len: u64) -> Result<u64> {
        self.check_writable()?;
        self.check_range(guest, len)?;
        self.relieve()?;
        let (first, end) = self.whole_clusters(guest, len);
        if first >= end {
            return Ok(0);
        }
        let _range = self.ranges.lock(first, end - 1)?;
        let bytes = self.discard_clusters(first, end)?;
        Ok(bytes.min(self.size() - (first << self.geo.cluster_bits)))
    }

    /// Discards whole clusters while the caller holds them; returns how many bytes those are.
    fn discard_clusters(&self, first: u64, end: u64) -> Result<u64> {
        let mut bytes = 0;
        self.for_each_table(first, end, |image, from, count| {
            if !image.geo.zero_flag && image.backed(from << image.geo.cluster_bits) {
                return Ok(());
            }
            image.punch_data_file(from, count)?;
            let mut state = lock(&image.state);
            image.change_existing(&mut state, from, count, true, |cluster, old| {
                image.discarded(cluster, old)
            })?;
            bytes += count * image.geo.cluster_size();
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Makes the range read as zeroes and gives back the clusters that lie in it as a whole, while
    /// the caller holds all that it touches.
    pub(super) fn discard_held(&self, guest: u64, len: u64) -> Result<()> {
        let (first, end) = self.whole_clusters(guest, len);
        if first >= end {
            return self.zero_part(guest, len);
        }
        self.discard_clusters(first, end)?;
        if !self.geo.zero_flag {
            return self.zero_part(guest, len);
        }
        self.zero_edges(guest, len, (first, end))
    }

    /// Zeroes what of a range lies outside of its whole clusters `first..end`.
    fn zero_edges(&self, guest: u64, len: u64, (first, end): (u64, u64)) -> Result<()> {
        let (from, to) = (first << self.geo.cluster_bits, end << self.geo.cluster_bits);
        self.zero_part(guest, from - guest)?;
        self.zero_part(to.min(guest + len), (guest + len).saturating_sub(to))
    }

    /// Runs `body` over parts that lie in one L2 table each.
    fn for_each_table(
        &self,
        first: u64,
        end: u64,
        mut body: impl FnMut(&Self, u64, u64) -> Result<()>,
    ) -> Result<()> {
        let entries = self.geo.l2_entries();
        let mut from = first;
        while from < end {
            let count = (entries - from % entries).min(end - from);
            body(self, from, count)?;
            from += count;
        }
        Ok(())
    }

    fn punch_data_file(&self, first: u64, count: u64) -> Result<()> {
        let bits = self.geo.cluster_bits;
        let end = ((first + count) << bits).min(self.size());
        match &self.data {
            Some(data) => data.punch(first << bits, end - (first << bits)),
            None => Ok(()),
        }
    }

    /// The entry of a discarded cluster, `None` if it stays as it is.
    fn discarded(&self, cluster: u64, old: Cluster) -> Option<L2Entry> {
        let backed = self.backed(cluster << self.geo.cluster_bits);
        let new = Standard { zero: if backed { u32::MAX } else { 0 }, ..Standard::default() };
        match old {
            Cluster::Standard(old) if old == new => None,
            Cluster::Standard(old) if !backed && old.host.is_none() => None,
            _ => Some(entry::encode_l2(new, &self.geo)),
        }
    }

    /// Changes entries in one table, but makes no table of its own unless one of them changes.
    fn change_existing(
        &self,
        state: &mut State,
        first: u64,
        count: u64,
        punch: bool,
        change: impl Fn(u64, Cluster) -> Option<L2Entry>,
    ) -> Result<()> {
        if self.l2_table(&self.maps(), first)?.is_none() {
            if change(first, Cluster::UNALLOCATED).is_none()
                && change(first + count - 1, Cluster::UNALLOCATED).is_none()
            {
                return Ok(());
            }
        } else {
            let mut any = false;
            let look = |cluster: u64, old: Cluster| {
                any |= change(cluster, old).is_some();
                None
            };
            self.change_entries(state, first, count, look, false)?;
            if !any {
                return Ok(());
            }
        }
        self.own_table(state, first)?;
        self.change_entries(state, first, count, change, punch)
    }

    fn write_zeroes_checked(&self, guest: u64, len: u64, unmap: bool) -> Result<()> {
        self.check_writable()?;
        self.check_range(guest, len)?;
        if len == 0 {
            return Ok(());
        }
        self.relieve()?;
        let (first, last) = self.clusters_of(guest, len);
        let _range = self.ranges.lock(first, last)?;
        self.zero_held(guest, len, unmap)
    }

    /// Makes the range read as zeroes while the caller holds all that it touches.
    pub(super) fn zero_held(&self, guest: u64, len: u64, unmap: bool) -> Result<()> {
        let (first, end) = self.whole_clusters(guest, len);
        if first >= end {
            return self.zero_part(guest, len);
        }
        self.for_each_table(first, end, |image, first, count| image.zero_clusters(first, count, unmap))?;
        self.zero_edges(guest, len, (first, end))
    }

    /// Zeroes whole clusters while the caller holds them.
    pub(super) fn zero_whole(&self, first: u64, end: u64) -> Result<()> {
        self.for_each_table(first, end, |image, first, count| image.zero_clusters(first, count, false))
    }

    /// Makes whole clusters unallocated while the caller holds them.
    pub(super) fn unallocate(&self, first: u64, end: u64) -> Result<()> {
        self.for_each_table(first, end, |image, first, count| {
            let mut state = lock(&image.state);
            image.change_existing(&mut state, first, count, true, |_, old| {
                (old != Cluster::UNALLOCATED).then(L2Entry::default)
            })
        })
    }

    /// Zeroes whole clusters of one table.
    fn zero_clusters(&self, first: u64, count: u64, unmap: bool) -> Result<()> {
        let bits = self.geo.cluster_bits;
        if !self.geo.zero_flag {
            return self.zero_clusters_v2(first, count, unmap);
        }
        if self.data_raw {
            // The data file must read like the disk by itself.
            self.zero_data_file(first << bits, count << bits)?;
        }
        let mut state = lock(&self.state);
        self.change_existing(&mut state, first, count, unmap, |cluster, old| self.zeroed(cluster, old, unmap))
    }

    fn zero_data_file(&self, guest: u64, len: u64) -> Result<()> {
        let len = len.min(self.size() - guest);
        match &self.data {
            Some(data) => data.write_zeroes(guest, len),
            None => Ok(()),
        }
    }

    /// The entry of a zeroed cluster, `None` if it stays as it is.
    fn zeroed(&self, cluster: u64, old: Cluster, unmap: bool) -> Option<L2Entry> {
        let mut new = Standard { zero: u32::MAX, ..Standard::default() };
        if let Cluster::Standard(old) = old {
            let reads_zero =
                old.alloc == 0 && (old.zero == u32::MAX || !self.backed(cluster << self.geo.cluster_bits));
            if reads_zero && (!unmap || old.host.is_none()) {
                return None;
            }
            if !unmap && old.copied {
                (new.host, new.copied) = (old.host, true);
            }
        }
        Some(entry::encode_l2(new, &self.geo))
    }

    /// Version 2 has no zero flag: clusters go away where nothing shows through, else are written.
    fn zero_clusters_v2(&self, first: u64, count: u64, unmap: bool) -> Result<()> {
        let bits = self.geo.cluster_bits;
        if unmap && !self.backed(first << bits) {
            let mut state = lock(&self.state);
            return self.change_existing(&mut state, first, count, true, |cluster, old| {
                self.discarded(cluster, old)
            });
        }
        let end = ((first + count) << bits).min(self.size());
        self.zero_part(first << bits, end - (first << bits))
    }

    /// Makes a part of a cluster read as zeroes: whole subclusters are marked, the rest is written.
    pub(super) fn zero_part(&self, guest: u64, len: u64) -> Result<()> {
        if !self.geo.extended_l2 || self.data_raw {
            return self.zero_bytes(guest, len);
        }
        let unit = self.geo.allocation_unit();
        let (mut at, end) = (guest, guest + len);
        while at < end {
            let next = self.geo.round_up(at + 1).min(end);
            let first = at.next_multiple_of(unit);
            // The disk's end completes its last subcluster.
            let last = if next == self.size() { next } else { next / unit * unit };
            if first < last && self.mark_zero(first, last)? {
                self.zero_bytes(at, first - at)?;
                self.zero_bytes(last, next - last)?;
            } else {
                self.zero_bytes(at, next - at)?;
            }
            at = next;
        }
        Ok(())
    }

    /// Marks the subclusters of `from..to`, which lie in one cluster, as zeroes; `false` if that
    /// cluster is compressed.
    fn mark_zero(&self, from: u64, to: u64) -> Result<bool> {
        let within = self.geo.within(from);
        let mask = self.geo.mask(within, within + to - from);
        let backed = self.backed(from);
        let compressed = Cell::new(false);
        let change = |_, old: Cluster| {
            let Cluster::Standard(old) = old else {
                compressed.set(true);
                return None;
            };
            let reads_zero = old.alloc & mask == 0 && (old.zero & mask == mask || !backed);
            let new = Standard { alloc: old.alloc & !mask, zero: old.zero | mask, ..old };
            (!reads_zero).then(|| entry::encode_l2(new, &self.geo))
        };
        let mut state = lock(&self.state);
        self.change_existing(&mut state, self.geo.cluster_of(from), 1, false, change)?;
        Ok(!compressed.get())
    }

    /// Writes zeroes to what does not read as zeroes already.
    fn zero_bytes(&self, guest: u64, len: u64) -> Result<()> {
        let (mut at, end) = (guest, guest + len);
        while at < end {
            let extent = self.extent_unchecked(at, (end - at).min(ZEROES.len() as u64))?;
            let zero = match extent.source {
                Source::Zero => true,
                Source::Unallocated => !self.backed(at),
                _ => false,
            };
            if !zero {
                self.write_locked(at, &ZEROES[..extent.len as usize])?;
            }
            at += extent.len;
        }
        Ok(())
    }
}
