//! How a write can be done, as plain data: in place, or into clusters that are
//! reserved or new, with what has to be written around the data. What comes
//! after the data is written, and when it could not be, is here as well.
//!
//! Neighbours: `write` follows the steps with synchronous calls, `disk_write`
//! with operations of an engine; `map` checks targets, `alloc` finds clusters,
//! `table` changes entries.

use std::sync::atomic::Ordering;

use super::super::error::Result;
use super::super::io::ZEROES;
use super::alloc::Run;
use super::cache::{Maps, Slot};
use super::entry::{self, Cluster, Standard};
use super::image::Image;
use super::map::Part;
use super::sync::lock;
use super::types::HostOffset;

/// How the next part of a write is done.
#[derive(Debug)]
pub enum Step {
    /// Into data that only the active disk refers to: nothing else changes.
    InPlace {
        /// Where.
        host: HostOffset,
        /// Bytes, at most those that were asked for.
        len: u64,
    },
    /// Into clusters that nothing points at yet, or whose entry has to change.
    Placed(Placement),
}

impl Step {
    /// Bytes of the guest's data that it takes.
    pub fn len(&self) -> u64 {
        match self {
            Self::InPlace { len, .. } => *len,
            Self::Placed(placement) => placement.len,
        }
    }
}

/// What the mapping says about the next part.
enum Plan {
    InPlace {
        host: HostOffset,
        len: u64,
    },
    /// Into a host cluster that is reserved, but does not hold (all of) the data.
    Reuse {
        host: HostOffset,
        old: Cluster,
    },
    /// Into new clusters, at most `count`; `first` and `last` are what the outer ones were.
    Fresh {
        first: Cluster,
        last: Cluster,
        count: u64,
        /// The table is there and may be written.
        owned: bool,
    },
}

/// A write of `len` bytes at `guest` into the clusters of `run`.
#[derive(Debug)]
pub struct Placement {
    pub(super) guest: u64,
    pub(super) len: u64,
    run: Run,
    first: Cluster,
    last: Cluster,
    /// The clusters are given back when nothing comes of the write.
    fresh: bool,
    /// More data comes for the rest of the last cluster, as far as one can tell.
    stream: bool,
}

/// What has to be written for a placement, around its data.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Where it starts in the file.
    pub at: u64,
    /// What comes before the data: bytes of the disk from `guest` on.
    pub head: Padding,
    /// What comes after it.
    pub tail: Padding,
    /// Bounds of what counts as written, from the first cluster's start.
    start: u64,
    end: u64,
}

/// Bytes between a cluster's (or subcluster's) edge and the data.
#[derive(Clone, Copy, Debug)]
pub struct Padding {
    /// Where they are on the disk.
    pub guest: u64,
    /// How many have to be written.
    pub len: u64,
    /// They are what the disk has there now, else zeroes.
    pub copy: bool,
}

/// Clusters that were allocated together for writes that follow each other.
#[derive(Debug)]
pub struct Reserve {
    /// The guest cluster that the run's first cluster is for.
    cluster: u64,
    run: Run,
}

/// What a request may take ahead for those that follow it on the disk.
#[derive(Debug, Default)]
pub struct Ahead {
    /// Bytes that other writes will bring directly behind this one.
    pub bytes: u64,
    /// Clusters from the request before.
    pub reserve: Option<Reserve>,
}

impl Ahead {
    /// Whether the reserve is for guest `cluster`.
    pub fn serves(&self, cluster: u64) -> bool {
        self.reserve.as_ref().is_some_and(|reserve| reserve.cluster == cluster)
    }
}

impl Image {
    /// Says how the start of a write of `len` bytes at `guest` is done, and allocates what it needs.
    /// The caller holds the range, and ends a placement by [`Self::link`] or [`Self::abandon`].
    pub(super) fn step(&self, guest: u64, len: u64, ahead: &mut Ahead) -> Result<Step> {
        self.intact()?;
        let stream = self.streams(guest, len);
        let within = self.geo.within(guest);
        let placement = match self.plan(guest, len, ahead.bytes)? {
            Plan::InPlace { host, len } => return Ok(Step::InPlace { host, len }),
            Plan::Reuse { host, old } => {
                let len = len.min(self.geo.cluster_size() - within);
                let run = Run { host, count: 1, virgin: false };
                Placement { guest, len, run, first: old, last: old, fresh: false, stream: false }
            }
            Plan::Fresh { first, last, count, owned } => {
                let run = self.take_run(guest, len, count, owned, ahead)?;
                let room = run.count * self.geo.cluster_size() - within;
                let (len, fresh) = (room.min(len), !self.geo.data_file);
                Placement { guest, len, run, first, last, fresh, stream }
            }
        };
        Ok(Step::Placed(placement))
    }

    /// Notes that a write of `len` bytes begins at `guest`; whether it goes on where the last one ended.
    /// A guess is enough, so that threads need not agree on it.
    fn streams(&self, guest: u64, len: u64) -> bool {
        let stream = self.stream_end.load(Ordering::Relaxed) == guest;
        self.stream_end.store(guest + len, Ordering::Relaxed);
        stream && self.is_cached
    }

    /// Clusters for a write: from the reserve where that fits, else new ones, and the reserve
    /// gets what is left of them.
    fn take_run(&self, guest: u64, len: u64, count: u64, owned: bool, ahead: &mut Ahead) -> Result<Run> {
        let cluster = self.geo.cluster_of(guest);
        let reserve = ahead.reserve.take();
        let mut run = match reserve {
            Some(reserve) if owned && reserve.cluster == cluster => reserve.run,
            other => {
                ahead.reserve = other;
                self.return_reserve(ahead)?;
                self.allocate_data(cluster, count)?
            }
        };
        let own = self.touched(guest, len).min(count);
        if run.count > own && !self.geo.data_file {
            let host = HostOffset(run.host.0 + own * self.geo.cluster_size());
            let rest = Run { host, count: run.count - own, ..run };
            ahead.reserve = Some(Reserve { cluster: cluster + own, run: rest });
        }
        run.count = run.count.min(own);
        Ok(run)
    }

    /// Gives back what was taken ahead and not used.
    pub(super) fn return_reserve(&self, ahead: &mut Ahead) -> Result<()> {
        match ahead.reserve.take() {
            None => Ok(()),
            Some(reserve) => lock(&self.state).refs.give_back(&*self.file, reserve.run),
        }
    }

    /// The data of a placement could not be written: new clusters are given back.
    pub(super) fn abandon(&self, placement: &Placement) -> Result<()> {
        match placement.fresh {
            true => lock(&self.state).refs.give_back(&*self.file, placement.run),
            false => Ok(()),
        }
    }

    fn plan(&self, guest: u64, len: u64, ahead: u64) -> Result<Plan> {
        let cluster = self.geo.cluster_of(guest);
        loop {
            {
                let maps = self.maps();
                if let Some(slot) = maps.slot(cluster / self.per_slice()) {
                    return self.plan_in(&maps, slot, guest, (len, ahead));
                }
                if self.l2_table(&maps, cluster)?.is_none() {
                    let left = self.per_slice() - cluster % self.per_slice();
                    let count = self.touched(guest, len + ahead).min(left);
                    let none = Cluster::UNALLOCATED;
                    return Ok(Plan::Fresh { first: none, last: none, count, owned: false });
                }
            }
            self.load_slice(cluster / self.per_slice())?;
        }
    }

    /// Clusters that `len` bytes at `guest` touch.
    fn touched(&self, guest: u64, len: u64) -> u64 {
        self.geo.cluster_of(guest + len - 1) - self.geo.cluster_of(guest) + 1
    }

    fn plan_in(&self, maps: &Maps, slot: &Slot, guest: u64, (len, ahead): (u64, u64)) -> Result<Plan> {
        let cluster = self.geo.cluster_of(guest);
        let own = self.is_own_table(maps, cluster)?;
        if own && let Some((host, len)) = self.plain_run(maps, slot, guest, len, entry::COPIED) {
            return Ok(Plan::InPlace { host, len });
        }
        let first = self.entry_at(slot, cluster, own)?;
        if let Some((host, part)) = self.in_place(first, guest, len) {
            self.check_data(maps, (slot, (cluster % self.per_slice()) as usize), host, guest)?;
            let len = self.extend_in_place(maps, slot, guest, len, (host, part))?;
            return Ok(Plan::InPlace { host: HostOffset(host.0 + self.geo.within(guest)), len });
        }
        if let Cluster::Standard(Standard { host: Some(host), copied: true, .. }) = first {
            self.check_free_of_metadata(maps, host, guest)?;
            return Ok(Plan::Reuse { host, old: first });
        }
        let left = self.per_slice() - cluster % self.per_slice();
        let touched = self.touched(guest, len).min(left);
        let wanted = self.touched(guest, len + ahead).min(left);
        let (mut count, mut last) = (1, first);
        while count < wanted {
            let next = self.entry_at(slot, cluster + count, own)?;
            if matches!(next, Cluster::Standard(Standard { host: Some(_), copied: true, .. })) {
                break;
            }
            if count < touched {
                last = next;
            }
            count += 1;
        }
        Ok(Plan::Fresh { first, last, count, owned: own })
    }

    /// Whether the table that `cluster` is in is ours alone: in one that is shared with a snapshot
    /// nothing may be written in place, whatever its entries say.
    fn is_own_table(&self, maps: &Maps, cluster: u64) -> Result<bool> {
        let table = maps.l1.get(&*self.file, (cluster / self.geo.l2_entries()) as usize)?;
        Ok(table & entry::COPIED != 0)
    }

    /// What the entry of `cluster` says, for a table that is or is not our `own`.
    fn entry_at(&self, slot: &Slot, cluster: u64, own: bool) -> Result<Cluster> {
        let index = (cluster % self.per_slice()) as usize;
        let mut found = self.decode(slot.load(index, &self.geo), cluster)?;
        if let Cluster::Standard(standard) = &mut found {
            standard.copied &= own;
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
            // In place from the start, so the table is our own.
            match self.in_place(self.entry_at(slot, cluster, true)?, next, len - done) {
                Some((host, part)) if host.0 == start + done => {
                    self.check_data(maps, (slot, (cluster % self.per_slice()) as usize), host, next)?;
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

    /// What has to be written for `placement`.
    pub(super) fn frame(&self, placement: &Placement) -> Frame {
        let size = self.geo.cluster_size();
        let from = self.geo.within(placement.guest);
        let to = from + placement.len;
        let base = placement.guest - from;
        let last_base = (placement.run.count_used(to, size) - 1) * size;
        let start = self.pad_start(placement, from);
        let end = last_base + self.pad_end(placement, to - last_base);
        let head = self.padding(placement, placement.first, base + start, from - start);
        let mut tail = self.padding(placement, placement.last, base + to, end - to);
        // The writes to come then go into pages that are there, which takes half the time.
        if placement.stream && end - to < ZEROES.len() as u64 {
            tail.len = end - to;
        }
        Frame { at: placement.run.host.0 + from - head.len, head, tail, start, end }
    }

    /// Where the part of the first cluster that has to be written starts.
    fn pad_start(&self, placement: &Placement, from: u64) -> u64 {
        let unit = self.geo.allocation_unit();
        match placement.first {
            Cluster::Standard(old) if placement.reuses(old) => {
                let here = old.alloc & self.geo.mask(from, from + 1) != 0;
                if here { from } else { from - from % unit }
            }
            Cluster::Standard(old) if old.alloc == 0 => from - from % unit,
            _ => 0,
        }
    }

    /// Where the part of the last cluster that has to be written ends.
    fn pad_end(&self, placement: &Placement, to: u64) -> u64 {
        let unit = self.geo.allocation_unit();
        match placement.last {
            Cluster::Standard(old) if placement.reuses(old) => {
                let here = old.alloc & self.geo.mask(to - 1, to) != 0;
                if here { to } else { to.next_multiple_of(unit) }
            }
            Cluster::Standard(old) if old.alloc == 0 => to.next_multiple_of(unit),
            _ => self.geo.cluster_size(),
        }
    }

    /// The padding of `len` bytes at `guest`, where the cluster was `old`: none where new clusters
    /// read as it should.
    fn padding(&self, placement: &Placement, old: Cluster, guest: u64, len: u64) -> Padding {
        let zero = match old {
            Cluster::Standard(old) if old.zero == u32::MAX => true,
            Cluster::Standard(old) => old.alloc == 0 && !self.backed(guest),
            Cluster::Compressed(_) => false,
        };
        let len = if zero && placement.run.virgin { 0 } else { len };
        Padding { guest, len, copy: !zero }
    }

    /// Whether unallocated bytes at `guest` come from a backing file.
    pub(super) fn backed(&self, guest: u64) -> bool {
        guest < self.backing_len
    }

    /// Notes that the file with the guest's data was written up to `end`.
    pub(super) fn note_written(&self, end: u64) {
        if !self.geo.data_file {
            self.reaches(end);
        }
    }

    /// Points the entries at a placement whose frame and data are written.
    pub(super) fn link(&self, placement: &Placement, frame: &Frame) -> Result<()> {
        let size = self.geo.cluster_size();
        let first = self.geo.cluster_of(placement.guest);
        let count = placement.run.count_used(frame.end, size);
        let change = |cluster: u64, old: Cluster| {
            let at = cluster - first;
            let from = frame.start.saturating_sub(at * size);
            let to = (frame.end - at * size).min(size);
            let host = HostOffset(placement.run.host.0 + at * size);
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
        if self.geo.data_file {
            return Ok(());
        }
        match self.structure_at(maps, self.geo.cluster_of(host.0))? {
            None => Ok(()),
            Some(kind) => Err(super::image::corrupt(format!("guest data at the place of {kind:?}"))
                .with_guest(guest)
                .with_host(host.0)),
        }
    }
}

impl Padding {
    /// Bytes of a buffer that it needs: zeroes of a small cluster are there already.
    pub(super) fn copied(&self) -> u64 {
        if !self.copy && self.len <= ZEROES.len() as u64 { 0 } else { self.len }
    }
}

impl Placement {
    /// Whether the data goes into the cluster that `old` has already.
    fn reuses(&self, old: Standard) -> bool {
        old.copied && old.host == Some(self.run.host)
    }
}

impl Frame {
    /// Where in the file the frame ends, around `len` bytes of data.
    pub fn file_end(&self, len: u64) -> u64 {
        self.at + self.head.len + len + self.tail.len
    }
}

impl Run {
    /// Clusters of the run that `end` bytes from its start reach into.
    fn count_used(&self, end: u64, size: u64) -> u64 {
        end.div_ceil(size).min(self.count)
    }
}
