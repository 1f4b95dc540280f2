//! From guest ranges to extents: plain data that any engine can act on.
//!
//! Neighbours: `table` brings slices into memory; `read` and `write` follow
//! the extents. Contiguous clusters come out as one extent.

use super::super::error::{Error, ErrorKind, Result};
use super::cache::{Maps, Slot};
use super::entry::{Cluster, Compressed, Standard};
use super::image::{Image, corrupt};
use super::types::{GuestOffset, HostOffset};

/// Where the bytes of an extent come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From this offset on in the image file, or in the data file if there is one.
    Data(HostOffset),
    /// All zeroes.
    Zero,
    /// From the backing file, or zeroes where there is none or it has ended.
    Unallocated,
    /// Inside this compressed cluster.
    Compressed(Compressed),
}

/// A range of the disk with one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it starts.
    pub guest: GuestOffset,
    /// Bytes.
    pub len: u64,
    /// Where its bytes come from.
    pub source: Source,
}

impl Extent {
    /// Appends `next`, which follows on the disk, if one request can serve both.
    fn join(&mut self, next: &Self) -> bool {
        let joins = match (self.source, next.source) {
            (Source::Data(a), Source::Data(b)) => a.0 + self.len == b.0,
            (Source::Zero, Source::Zero) | (Source::Unallocated, Source::Unallocated) => true,
            _ => false,
        };
        if joins {
            self.len += next.len;
        }
        joins
    }
}

impl Image {
    /// The longest extent that starts at `guest`, at most `len` bytes; `len` is above 0.
    ///
    /// What it says holds until the range is written or discarded. An engine that reads the data
    /// itself holds a [`Self::read_ticket`] from before this call until the data is there.
    pub fn extent(&self, guest: GuestOffset, len: u64) -> Result<Extent> {
        let checked = self.check_range(guest.0, len);
        self.finish(checked.and_then(|()| self.extent_unchecked(guest.0, len)))
    }

    /// Holds freed host clusters back from reuse for as long as the ticket lives.
    pub fn read_ticket(&self) -> super::sync::ReadTicket<'_> {
        self.gate.enter()
    }

    /// All extents of the disk between `guest` and `guest + len`.
    pub fn map(&self, guest: GuestOffset, len: u64) -> Result<Vec<Extent>> {
        let all = || {
            self.check_range(guest.0, len)?;
            let (mut found, mut extents) = (Vec::new(), self.extents(guest.0, len));
            while let Some(extent) = extents.next()? {
                found.push(extent);
            }
            Ok(found)
        };
        self.finish(all())
    }

    /// The extents of a range one after the other, each as long as it can be.
    pub(super) fn extents(&self, guest: u64, len: u64) -> Extents<'_> {
        Extents { image: self, at: guest, end: guest.saturating_add(len), ahead: None }
    }

    pub(super) fn extent_unchecked(&self, guest: u64, len: u64) -> Result<Extent> {
        loop {
            if let Some(extent) = self.find(&self.maps(), guest, len)? {
                return Ok(extent);
            }
            self.relieve()?;
            self.load_slice(self.geo.cluster_of(guest) / self.per_slice())?;
        }
    }

    /// The extent at `guest`, `None` if its slice is not in memory.
    fn find(&self, maps: &Maps, guest: u64, len: u64) -> Result<Option<Extent>> {
        let cluster = self.geo.cluster_of(guest);
        let key = cluster / self.per_slice();
        let Some(slot) = maps.slot(key) else {
            return self.find_without_table(maps, guest, len);
        };
        if let Some((host, len)) = self.plain_run(maps, slot, guest, len, 0) {
            let source = Source::Data(host);
            return Ok(Some(Extent { guest: GuestOffset(guest), len, source }));
        }
        let mut extent = self.piece(maps, slot, guest, len)?;
        while extent.len < len {
            let next = guest + extent.len;
            if self.geo.cluster_of(next) / self.per_slice() != key
                || !extent.join(&self.piece(maps, slot, next, len - extent.len)?)
            {
                break;
            }
        }
        Ok(Some(extent))
    }

    /// The data at `guest` and how far it goes on in the file as it does on the disk, if all of its
    /// entries have been looked at before ([`Self::check_data`]), say nothing but where the data is, and
    /// have the `flags`: the shortest way for what is done most. `None` says nothing.
    pub(super) fn plain_run(
        &self,
        maps: &Maps,
        slot: &Slot,
        guest: u64,
        len: u64,
        flags: u64,
    ) -> Option<(HostOffset, u64)> {
        if self.geo.extended_l2 || self.geo.data_file {
            return None;
        }
        let (size, within, time) = (self.geo.cluster_size(), self.geo.within(guest), maps.meta.time());
        let first = (self.geo.cluster_of(guest) % self.per_slice()) as usize;
        let host = slot.plain(first, flags).filter(|_| slot.is_seen(first, time))?;
        let (mut index, mut end) = (first + 1, size);
        while end < within + len && slot.plain(index, flags) == Some(host + end) {
            if !slot.is_seen(index, time) {
                return None;
            }
            (index, end) = (index + 1, end + size);
        }
        Some((HostOffset(host + within), len.min(end - within)))
    }

    fn find_without_table(&self, maps: &Maps, guest: u64, len: u64) -> Result<Option<Extent>> {
        if self.l2_table(maps, self.geo.cluster_of(guest))?.is_some() {
            return Ok(None);
        }
        let left = self.geo.l1_coverage() - guest % self.geo.l1_coverage();
        let source = Source::Unallocated;
        Ok(Some(Extent { guest: GuestOffset(guest), len: len.min(left), source }))
    }

    /// The extent inside one cluster.
    fn piece(&self, maps: &Maps, slot: &Slot, guest: u64, len: u64) -> Result<Extent> {
        let cluster = self.geo.cluster_of(guest);
        let index = (cluster % self.per_slice()) as usize;
        let entry = slot.load(index, &self.geo);
        let within = self.geo.within(guest);
        let len = len.min(self.geo.cluster_size() - within);
        let (len, source) = match self.decode(entry, cluster)? {
            Cluster::Compressed(compressed) => {
                self.check_compressed(maps, compressed, guest)?;
                (len, Source::Compressed(compressed))
            }
            Cluster::Standard(standard) => {
                let (len, kind) = self.part(standard, within, len);
                match (kind, standard.host) {
                    (Part::Data, Some(host)) => {
                        self.check_data(maps, (slot, index), host, guest)?;
                        (len, Source::Data(HostOffset(host.0 + within)))
                    }
                    (Part::Zero, _) => (len, Source::Zero),
                    _ => (len, Source::Unallocated),
                }
            }
        };
        Ok(Extent { guest: GuestOffset(guest), len, source })
    }

    /// The kind of the subcluster at `within` and how far it goes on, at most `len` bytes.
    pub(super) fn part(&self, cluster: Standard, within: u64, len: u64) -> (u64, Part) {
        if cluster.alloc == u32::MAX {
            return (len, Part::Data);
        }
        let unit = self.geo.mask_unit();
        let kind_at = |index: u64| match (cluster.alloc >> index & 1, cluster.zero >> index & 1) {
            (1, _) => Part::Data,
            (_, 1) => Part::Zero,
            _ => Part::Unallocated,
        };
        let (first, end) = (within / unit, within + len);
        let kind = kind_at(first);
        let mut index = first + 1;
        while index * unit < end && kind_at(index) == kind {
            index += 1;
        }
        ((index * unit).min(end) - within, kind)
    }

    /// Refuses data that would be on metadata or past the end of the file.
    pub(super) fn check_data(
        &self,
        maps: &Maps,
        (slot, index): (&Slot, usize),
        host: HostOffset,
        guest: u64,
    ) -> Result<()> {
        if self.geo.data_file || slot.is_seen(index, maps.meta.time()) {
            return Ok(());
        }
        if let Some(kind) = self.structure_at(maps, self.geo.cluster_of(host.0))? {
            return Err(corrupt(format!("guest data at the place of {kind:?}"))
                .with_guest(guest)
                .with_host(host.0));
        }
        self.check_end(host, guest)?;
        slot.see(index, maps.meta.time());
        Ok(())
    }

    fn check_end(&self, host: HostOffset, guest: u64) -> Result<()> {
        if host.0 < self.file_len.load(std::sync::atomic::Ordering::Acquire) {
            return Ok(());
        }
        Err(corrupt("guest data past end of file").with_guest(guest).with_host(host.0))
    }

    fn check_compressed(&self, maps: &Maps, compressed: Compressed, guest: u64) -> Result<()> {
        self.check_end(compressed.host, guest)?;
        for cluster in compressed.clusters(&self.geo) {
            if let Some(kind) = self.structure_at(maps, cluster)? {
                return Err(corrupt(format!("compressed data at the place of {kind:?}"))
                    .with_guest(guest)
                    .with_host(compressed.host.0));
            }
        }
        Ok(())
    }

    /// Refuses to go on when the backing file turns out to be unreadable; its own corruption is
    /// not this image's.
    pub(super) fn backing_error(error: &Error) -> Error {
        Error::new(ErrorKind::Io, format!("backing file: {error}"))
    }
}

/// See [`Image::extents`].
pub(super) struct Extents<'a> {
    image: &'a Image,
    /// Where the next look at the mapping begins.
    at: u64,
    end: u64,
    /// Looked up already.
    ahead: Option<Extent>,
}

impl Extents<'_> {
    fn look(&mut self) -> Result<Option<Extent>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let extent = self.image.extent_unchecked(self.at, self.end - self.at)?;
        self.at += extent.len;
        Ok(Some(extent))
    }

    /// The next extent, `None` at the end of the range.
    pub(super) fn next(&mut self) -> Result<Option<Extent>> {
        let first = match self.ahead.take() {
            Some(extent) => Some(extent),
            None => self.look()?,
        };
        let Some(mut extent) = first else {
            return Ok(None);
        };
        while let Some(next) = self.look()? {
            if !extent.join(&next) {
                self.ahead = Some(next);
                break;
            }
        }
        Ok(Some(extent))
    }
}

/// What a subcluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// In the host cluster.
    Data,
    /// Zeroes.
    Zero,
    /// In the backing file.
    Unallocated,
}
