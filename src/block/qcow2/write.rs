//! Writing: in place where the cluster is ours alone, else allocate first,
//! write data with what must be copied around it, and point at it last.
//!
//! Neighbours: `map` checks targets, `alloc` finds clusters, `table` changes
//! entries. Clusters that nothing points at are given back when a step fails.

use std::io::IoSlice;

use super::super::error::Result;
use super::alloc::Run;
use super::cache::{Maps, Slot};
use super::entry::{self, Cluster, Standard};
use super::image::Image;
use super::map::Part;
use super::sync::lock;
use super::types::HostOffset;

/// How the next part of a write can be done.
enum Plan {
    /// Into data that only the active disk refers to.
    InPlace { host: HostOffset, len: u64 },
    /// Into a host cluster that is reserved, but does not hold (all of) the data.
    Reuse { host: HostOffset, old: Cluster },
    /// Into new clusters, at most `count`; `first` and `last` are what the outer ones were.
    Fresh { first: Cluster, last: Cluster, count: u64 },
}

/// A write into clusters that nothing points at yet, or whose entry has to change.
struct Placed<'a> {
    guest: u64,
    data: &'a [u8],
    run: Run,
    first: Cluster,
    last: Cluster,
}

/// What stands between a cluster's (or subcluster's) edge and the data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pad {
    None,
    Zero,
    Copy,
}

impl Image {
    /// Writes `data` to the disk from `guest` on. Durable after the next [`Self::flush`].
    pub fn write(&self, guest: u64, data: &[u8]) -> Result<()> {
        let result = self.write_checked(guest, data);
        match result {
            Ok(()) => Ok(()),
            failed => self.finish(failed),
        }
    }

    fn write_checked(&self, guest: u64, data: &[u8]) -> Result<()> {
        self.check_writable()?;
        self.check_range(guest, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        self.relieve()?;
        let last = guest + data.len() as u64 - 1;
        let _range = self.ranges.lock(self.geo.cluster_of(guest), self.geo.cluster_of(last));
        self.write_locked(guest, data)
    }

    /// Writes while the caller holds the range.
    pub(super) fn write_locked(&self, guest: u64, data: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            done += self.write_step(guest + done as u64, &data[done..])? as usize;
        }
        Ok(())
    }

    /// Writes a part from the start of `data`; returns its length.
    fn write_step(&self, guest: u64, data: &[u8]) -> Result<u64> {
        let within = self.geo.within(guest);
        match self.plan(guest, data.len() as u64)? {
            Plan::InPlace { host, len } => {
                let written = self.target().write_at(&data[..len as usize], host.0);
                written.map_err(|e| e.with_guest(guest).with_host(host.0))?;
                self.note_written(host.0 + len);
                Ok(len)
            }
            Plan::Reuse { host, old } => {
                let len = (data.len() as u64).min(self.geo.cluster_size() - within);
                let run = Run { host, count: 1, virgin: false };
                let data = &data[..len as usize];
                self.place(&Placed { guest, data, run, first: old, last: old })?;
                Ok(len)
            }
            Plan::Fresh { first, last, count } => {
                let run = self.allocate_data(self.geo.cluster_of(guest), count)?;
                let room = run.count * self.geo.cluster_size() - within;
                let len = room.min(data.len() as u64);
                let data = &data[..len as usize];
                self.place_fresh(&Placed { guest, data, run, first, last })?;
                Ok(len)
            }
        }
    }

    fn note_written(&self, end: u64) {
        if !self.geo.data_file {
            self.reaches(end);
        }
    }

    fn plan(&self, guest: u64, len: u64) -> Result<Plan> {
        let cluster = self.geo.cluster_of(guest);
        loop {
            {
                let maps = self.maps();
                if let Some(slot) = maps.slot(cluster / self.per_slice()) {
                    return self.plan_in(&maps, slot, guest, len);
                }
                if self.l2_table(&maps, cluster)?.is_none() {
                    let left = self.per_slice() - cluster % self.per_slice();
                    let count = self.touched(guest, len).min(left);
                    let none = Cluster::UNALLOCATED;
                    return Ok(Plan::Fresh { first: none, last: none, count });
                }
            }
            self.load_slice(cluster / self.per_slice())?;
        }
    }

    /// Clusters that `len` bytes at `guest` touch.
    fn touched(&self, guest: u64, len: u64) -> u64 {
        self.geo.cluster_of(guest + len - 1) - self.geo.cluster_of(guest) + 1
    }

    fn plan_in(&self, maps: &Maps, slot: &Slot, guest: u64, len: u64) -> Result<Plan> {
        let cluster = self.geo.cluster_of(guest);
        let first = self.entry_at(maps, slot, cluster)?;
        if let Some((host, part)) = self.in_place(first, guest, len) {
            self.check_data(maps, host, guest)?;
            let len = self.extend_in_place(maps, slot, guest, len, (host, part))?;
            return Ok(Plan::InPlace { host: HostOffset(host.0 + self.geo.within(guest)), len });
        }
        if let Cluster::Standard(Standard { host: Some(host), copied: true, .. }) = first {
            self.check_free_of_metadata(maps, host, guest)?;
            return Ok(Plan::Reuse { host, old: first });
        }
        let left = self.per_slice() - cluster % self.per_slice();
        let wanted = self.touched(guest, len).min(left);
        let (mut count, mut last) = (1, first);
        while count < wanted {
            let next = self.entry_at(maps, slot, cluster + count)?;
            if matches!(next, Cluster::Standard(Standard { host: Some(_), copied: true, .. })) {
                break;
            }
            last = next;
            count += 1;
        }
        Ok(Plan::Fresh { first, last, count })
    }

    /// What the entry of `cluster` says. In a table that is shared with a snapshot nothing may be
    /// written in place, whatever its entries say.
    fn entry_at(&self, maps: &Maps, slot: &Slot, cluster: u64) -> Result<Cluster> {
        let index = (cluster % self.per_slice()) as usize;
        let mut found = self.decode(slot.load(index, &self.geo), cluster)?;
        let table = maps.l1.get((cluster / self.geo.l2_entries()) as usize);
        if let Cluster::Standard(standard) = &mut found {
            standard.copied &= table.is_some_and(|word| word & entry::COPIED != 0);
        }
        Ok(found)
    }

    /// The host cluster and the bytes that can be written there at once, if `guest` is in data that
    /// is ours alone.
    fn in_place(&self, cluster: Cluster, guest: u64, len: u64) -> Option<(HostOffset, u64)> {
        let Cluster::Standard(standard) = cluster else {
            return None;
        };
        let host = standard.host.filter(|_| standard.copied)?;
        let within = self.geo.within(guest);
        let len = len.min(self.geo.cluster_size() - within);
        match self.part(standard, within, len) {
            (len, Part::Data) => Some((host, len)),
            _ => None,
        }
    }

    /// How far the clusters after the first go on in the file as they do on the disk.
    fn extend_in_place(
        &self,
        maps: &Maps,
        slot: &Slot,
        guest: u64,
        len: u64,
        (host, mut done): (HostOffset, u64),
    ) -> Result<u64> {
        let start = host.0 + self.geo.within(guest);
        while done < len && self.geo.aligned(guest + done) {
            let next = guest + done;
            let cluster = self.geo.cluster_of(next);
            if cluster.is_multiple_of(self.per_slice()) {
                break;
            }
            match self.in_place(self.entry_at(maps, slot, cluster)?, next, len - done) {
                Some((host, part)) if host.0 == start + done => {
                    self.check_data(maps, host, next)?;
                    done += part;
                }
                _ => break,
            }
        }
        Ok(done)
    }

    /// New clusters for guest `cluster` and its successors, in a table that may be written.
    pub(super) fn allocate_data(&self, cluster: u64, count: u64) -> Result<Run> {
        let mut state = lock(&self.state);
        self.own_table(&mut state, cluster)?;
        if self.geo.data_file {
            let host = HostOffset(cluster << self.geo.cluster_bits);
            return Ok(Run { host, count, virgin: false });
        }
        self.allocate(&mut state, count)
    }

    /// [`Self::place`] into new clusters, which are given back if it fails.
    fn place_fresh(&self, placed: &Placed<'_>) -> Result<()> {
        let result = self.place(placed);
        if result.is_err() && !self.geo.data_file {
            let mut state = lock(&self.state);
            state.refs.give_back(&*self.file, placed.run)?;
        }
        result
    }

    /// Writes the data with its surroundings, then points the entries at it.
    fn place(&self, placed: &Placed<'_>) -> Result<()> {
        let size = self.geo.cluster_size();
        let from = self.geo.within(placed.guest);
        let to = from + placed.data.len() as u64;
        let base = placed.guest - from;
        let last_base = (placed.run.count_used(to, size) - 1) * size;
        let start = self.pad_start(placed, from);
        let end = last_base + self.pad_end(placed, to - last_base);
        let head = self.pad(placed, placed.first, base + start, from - start);
        let tail = self.pad(placed, placed.last, base + to, end - to);
        let host = placed.run.host.0;
        let written = self.write_padded(placed, (start, head), (end, tail));
        written.map_err(|e| e.with_guest(placed.guest).with_host(host))?;
        self.link(placed, start, end)
    }

    /// Where the part of the first cluster that has to be written starts.
    fn pad_start(&self, placed: &Placed<'_>, from: u64) -> u64 {
        let unit = self.geo.allocation_unit();
        match placed.first {
            Cluster::Standard(old) if placed.reuses(old) => {
                let here = old.alloc & self.geo.mask(from, from + 1) != 0;
                if here { from } else { from - from % unit }
            }
            Cluster::Standard(old) if old.alloc == 0 => from - from % unit,
            _ => 0,
        }
    }

    /// Where the part of the last cluster that has to be written ends.
    fn pad_end(&self, placed: &Placed<'_>, to: u64) -> u64 {
        let unit = self.geo.allocation_unit();
        match placed.last {
            Cluster::Standard(old) if placed.reuses(old) => {
                let here = old.alloc & self.geo.mask(to - 1, to) != 0;
                if here { to } else { to.next_multiple_of(unit) }
            }
            Cluster::Standard(old) if old.alloc == 0 => to.next_multiple_of(unit),
            _ => self.geo.cluster_size(),
        }
    }

    fn pad(&self, placed: &Placed<'_>, old: Cluster, guest: u64, len: u64) -> Pad {
        if len == 0 {
            return Pad::None;
        }
        let zero = match old {
            Cluster::Standard(old) if old.zero == u32::MAX => true,
            Cluster::Standard(old) => old.alloc == 0 && !self.backed(guest),
            Cluster::Compressed(_) => false,
        };
        match (zero, placed.run.virgin) {
            (true, true) => Pad::None,
            (true, false) => Pad::Zero,
            (false, _) => Pad::Copy,
        }
    }

    /// Whether unallocated bytes at `guest` come from a backing file.
    pub(super) fn backed(&self, guest: u64) -> bool {
        guest < self.backing_len
    }

    fn write_padded(
        &self,
        placed: &Placed<'_>,
        (start, head): (u64, Pad),
        (end, tail): (u64, Pad),
    ) -> Result<()> {
        let from = self.geo.within(placed.guest);
        let to = from + placed.data.len() as u64;
        let base = placed.guest - from;
        let head_len = if head == Pad::None { 0 } else { from - start };
        let tail_len = if tail == Pad::None { 0 } else { end - to };
        let at = placed.run.host.0 + from - head_len;
        if head_len + tail_len == 0 {
            self.target().write_at(placed.data, at)?;
        } else {
            self.buffers.with((head_len + tail_len) as usize, |buf| {
                let (before, after) = buf.split_at_mut(head_len as usize);
                self.fill_pad(head, base + start, before)?;
                self.fill_pad(tail, base + to, after)?;
                let bufs = [IoSlice::new(before), IoSlice::new(placed.data), IoSlice::new(after)];
                self.target().writev_at(&bufs, at)
            })?;
        }
        self.note_written(placed.run.host.0 + to + tail_len);
        Ok(())
    }

    fn fill_pad(&self, pad: Pad, guest: u64, buf: &mut [u8]) -> Result<()> {
        match pad {
            Pad::Copy => self.read_unchecked(guest, buf),
            _ => {
                buf.fill(0);
                Ok(())
            }
        }
    }

    /// Points the entries at the run. `start` and `end` bound what was written, from the first
    /// cluster's start.
    fn link(&self, placed: &Placed<'_>, start: u64, end: u64) -> Result<()> {
        let size = self.geo.cluster_size();
        let first = self.geo.cluster_of(placed.guest);
        let count = placed.run.count_used(end, size);
        let change = |cluster: u64, old: Cluster| {
            let at = cluster - first;
            let from = start.saturating_sub(at * size);
            let to = (end - at * size).min(size);
            let host = HostOffset(placed.run.host.0 + at * size);
            Some(entry::encode_l2(self.linked(host, old, from, to), &self.geo))
        };
        let mut state = lock(&self.state);
        self.change_entries(&mut state, first, count, change, false)
    }

    /// The cluster after `from..to` of it was written to `host`.
    fn linked(&self, host: HostOffset, old: Cluster, from: u64, to: u64) -> Standard {
        let mut new = Standard { host: Some(host), copied: true, alloc: u32::MAX, zero: 0 };
        if let (true, Cluster::Standard(old)) = (self.geo.extended_l2, old) {
            let written = self.geo.mask(from, to);
            let kept = if old.host == Some(host) { old.alloc } else { 0 };
            new.alloc = written | kept;
            new.zero = old.zero & !new.alloc;
        }
        new
    }

    pub(super) fn check_free_of_metadata(&self, maps: &Maps, host: HostOffset, guest: u64) -> Result<()> {
        match maps.meta.get(self.geo.cluster_of(host.0)).filter(|_| !self.geo.data_file) {
            None => Ok(()),
            Some(kind) => Err(super::image::corrupt(format!("guest data at the place of {kind:?}"))
                .with_guest(guest)
                .with_host(host.0)),
        }
    }
}

impl Placed<'_> {
    /// Whether the data goes into the cluster that `old` has already.
    fn reuses(&self, old: Standard) -> bool {
        old.copied && old.host == Some(self.run.host)
    }
}

impl Run {
    /// Clusters of the run that `end` bytes from its start reach into.
    fn count_used(&self, end: u64, size: u64) -> u64 {
        end.div_ceil(size).min(self.count)
    }
}
