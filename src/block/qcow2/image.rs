//! The image: one owner of all metadata, shared by every thread and every
//! engine that works on it.
//!
//! Neighbours: `open` makes it; `read`, `write`, `discard`, `flush`,
//! `snapshot`, `resize`, `check` are its operations, each in its own file.
//!
//! Locks, in the order in which they are taken: a range of guest clusters
//! (`ranges`), the state of the allocator (`state`), the mapping (`maps`).
//! Reads and writes in place take only a shared lock on the mapping.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::super::error::{Error, ErrorKind, Result};
use super::super::storage::Storage;
use super::backing::Backing;
use super::cache::Maps;
use super::compress::Codecs;
use super::extension::Extension;
use super::header::{self, Header};
use super::paged::{Paged, Place};
use super::refcount::{HeaderState, Refcounts};
use super::snapshot::Snapshot;
use super::sync::{BufferPool, RangeLocks, ReadGate, lock};
use super::types::{Compression, Geometry, HostOffset};

/// An open qcow2 image. Methods take `&self` and may be called from several threads at once, also
/// beside any number of [`super::QcowDisk`]s. One that would have to wait for an operation that the
/// same thread has in flight on such a disk fails with `Busy` instead.
pub struct Image {
    pub(super) geo: Geometry,
    pub(super) compression: Compression,
    pub(super) path: Option<PathBuf>,
    pub(super) file: Box<dyn Storage>,
    pub(super) data: Option<Box<dyn Storage>>,
    pub(super) data_raw: bool,
    pub(super) backing: Option<Backing>,
    pub(super) backing_len: u64,
    pub(super) slice_bytes: u64,
    /// Bytes of slices of L2 tables, which other memory is reckoned from.
    pub(super) cache_bytes: u64,
    pub(super) size: AtomicU64,
    /// Where the last write ended: one that goes on there is one of a stream.
    pub(super) stream_end: AtomicU64,
    /// See [`Storage::is_cached`], of the file with the guest's data.
    pub(super) is_cached: bool,
    pub(super) file_len: AtomicU64,
    pub(super) writable: AtomicBool,
    /// The refcount structures were found to be where they may be; see [`Self::intact`].
    pub(super) is_intact: AtomicBool,
    /// The cache has outgrown its setting; see [`Self::relieve`].
    pub(super) is_crowded: AtomicBool,
    /// Opened although structures may be damaged: nothing but a repair may change it.
    pub(super) repair_only: bool,
    pub(super) maps: RwLock<Maps>,
    pub(super) state: Mutex<State>,
    pub(super) ranges: RangeLocks,
    pub(super) gate: ReadGate,
    pub(super) buffers: BufferPool,
    pub(super) codecs: Codecs,
}

/// What changes only when the image's structures do; see `flush` for its way to the file.
pub struct State {
    pub(super) header: HeaderState,
    pub(super) extensions: Vec<Extension>,
    pub(super) refs: Refcounts,
    pub(super) snapshots: Vec<Snapshot>,
    /// References that are gone from the mapping in memory, not yet in the file.
    pub(super) frees: Vec<Free>,
    /// References that are gone from the file, but that a read of the epoch may still use.
    pub(super) waiting: Vec<Free>,
    pub(super) waiting_epoch: Option<u64>,
    /// COPIED flags in the file may contradict the refcounts, because an operation on snapshots did
    /// not get to its end. The L1 table in memory has none of them until they are right again.
    pub(super) flags_stale: bool,
    /// Where the next compressed cluster may start, inside a cluster that has room.
    pub(super) tail: Option<HostOffset>,
}

/// A reference to a host cluster that goes away with the next flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Free {
    /// Number of the host cluster.
    pub cluster: u64,
    /// Whether its space goes back to the host when this was the last reference.
    pub punch: bool,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("path", &self.path)
            .field("geometry", &self.geo)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

impl Image {
    /// Size of the virtual disk in bytes.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Bytes in a cluster.
    pub fn cluster_size(&self) -> u64 {
        self.geo.cluster_size()
    }

    /// The sizes that follow from the header.
    pub fn geometry(&self) -> Geometry {
        self.geo
    }

    /// A copy of the header as it is in force.
    pub fn header(&self) -> Header {
        lock(&self.state).header.header.clone()
    }

    /// The header extensions, unknown ones too.
    pub fn extensions(&self) -> Vec<Extension> {
        lock(&self.state).extensions.clone()
    }

    /// The smallest part of the disk (bytes) that [`Self::discard`] gives back.
    pub fn discard_granularity(&self) -> u64 {
        self.geo.cluster_size()
    }

    /// Whether writes are accepted: opened for it, and nothing was found to be corrupt.
    pub fn is_writable(&self) -> bool {
        self.writable.load(Ordering::Acquire)
    }

    /// Gives the image up: nothing more is written to it, not even what is dirty. For a file that
    /// is about to be deleted, which the flush on drop would bring to its device first.
    pub fn give_up(&self) {
        self.refuse_changes();
    }

    /// Bytes of metadata in memory: parts of tables, and what is known of where others lie. What
    /// bounds it is said at [`super::CacheSettings`].
    pub fn metadata_bytes(&self) -> u64 {
        lock(&self.state).refs.bytes() + self.maps().bytes()
    }

    /// The path that it was opened at.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What lies under the image, if it is an overlay.
    pub fn backing(&self) -> Option<&Backing> {
        self.backing.as_ref()
    }

    /// Where guest data lives.
    pub(super) fn target(&self) -> &dyn Storage {
        self.data.as_deref().unwrap_or(&*self.file)
    }

    pub(super) fn maps(&self) -> RwLockReadGuard<'_, Maps> {
        self.maps.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn maps_mut(&self) -> RwLockWriteGuard<'_, Maps> {
        self.maps.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entries in a cached slice of an L2 table.
    pub(super) fn per_slice(&self) -> u64 {
        self.slice_bytes / (8 * self.geo.entry_words() as u64)
    }

    /// The table of `len` words at `offset` of the image file.
    pub(super) fn table_at(&self, offset: u64, len: usize) -> Paged {
        Paged::new(Place::new(offset, len, self.file_len.load(Ordering::Acquire)), self.cache_bytes / 16)
    }

    /// Notes that the image file reaches at least to `end`.
    pub(super) fn reaches(&self, end: u64) {
        if self.file_len.load(Ordering::Relaxed) < end {
            self.file_len.fetch_max(end, Ordering::AcqRel);
        }
    }

    /// Notes that an engine has written the file with the guest's data up to `end`.
    pub(super) fn written_elsewhere(&self, end: u64) {
        self.target().written_elsewhere(end);
        self.note_written(end);
    }

    /// Accepts no more changes.
    pub(super) fn refuse_changes(&self) {
        self.writable.store(false, Ordering::Release);
    }

    /// Refuses ranges outside the disk.
    pub(super) fn check_range(&self, guest: u64, len: u64) -> Result<()> {
        match guest.checked_add(len) {
            Some(end) if end <= self.size() => Ok(()),
            _ => {
                Err(Error::new(ErrorKind::InvalidInput, "request beyond the end of the disk")
                    .with_guest(guest))
            }
        }
    }

    /// Refuses changes of an image that must not be changed.
    pub(super) fn check_writable(&self) -> Result<()> {
        if self.is_writable() && !self.repair_only {
            return self.intact();
        }
        if self.repair_only {
            let message = "image is open for repair only: open it again for writing";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Err(Error::new(ErrorKind::InvalidInput, "image is read-only or marked corrupt"))
    }

    /// Completes an operation: adds the path to its error, and when structures turned out to be
    /// corrupt, says so in the image and accepts no more changes.
    pub(super) fn finish<T>(&self, result: Result<T>) -> Result<T> {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if error.kind() == ErrorKind::Corrupt && self.writable.swap(false, Ordering::AcqRel) {
            let mut state = lock(&self.state);
            if state.header.header.version >= 3 {
                // The error that is reported is the one that led here.
                let _ = state.header.update(&*self.file, |header| {
                    header.incompatible |= header::CORRUPT;
                });
            }
        }
        Err(match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        })
    }
}

/// An error about structures that contradict themselves or the specification.
pub(super) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}
