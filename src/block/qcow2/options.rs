//! What a caller may choose when opening an image. Everything that reaches
//! beyond the image itself is off unless asked for.
//!
//! Neighbours: `open` and `backing` read it.

/// How much of the L2 tables stays in memory.
///
/// Other tables follow from it: slices of refcount blocks take a quarter of it at most, pieces of the
/// L1 table and of the refcount table a sixteenth each (64 KiB or more each). L2 tables and refcount blocks
/// that an image has are known by their clusters, about 20 bytes each (40 bytes for 512 MiB of data at
/// the usual cluster size). See [`super::Image::metadata_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Bytes in a slice: a power of two from 512; more than a cluster means whole tables.
    pub slice_bytes: u64,
    /// Slices that are kept; at least 2.
    pub slices: usize,
}

impl CacheSettings {
    /// Bytes of slices, for clusters of `cluster_size` bytes.
    pub(super) fn bytes(&self, cluster_size: u64) -> u64 {
        (self.slices as u64).saturating_mul(self.slice_bytes.min(cluster_size))
    }

    /// `count` whole L2 tables, however large a cluster is.
    pub fn whole_tables(count: usize) -> Self {
        Self { slice_bytes: u64::MAX, slices: count }
    }
}

impl Default for CacheSettings {
    /// 4 MiB in slices of 4 KiB: 32 GiB of disk at the usual cluster size. A cold lookup then reads
    /// 4 KiB, not a whole table.
    fn default() -> Self {
        Self { slice_bytes: 4096, slices: 1024 }
    }
}

/// Choices for opening an image; the default is read-only, alone, with 1,024 slices of cache.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(super) writable: bool,
    pub(super) backing: bool,
    pub(super) data_file: bool,
    pub(super) devices: bool,
    pub(super) repair: bool,
    pub(super) depth: usize,
    pub(super) cache: CacheSettings,
    pub(super) snapshot: Option<String>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            writable: false,
            backing: false,
            data_file: false,
            devices: false,
            repair: false,
            depth: 16,
            cache: CacheSettings::default(),
            snapshot: None,
        }
    }
}

impl OpenOptions {
    /// Read-only, no other files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens for reading and writing; an image with the dirty bit is repaired by that.
    #[must_use]
    pub fn writable(mut self, yes: bool) -> Self {
        self.writable = yes;
        self
    }

    /// Lets the image name a backing file, which is opened read-only.
    #[must_use]
    pub fn allow_backing(mut self, yes: bool) -> Self {
        self.backing = yes;
        self
    }

    /// Lets the image name an external data file. A relative name is looked up in the image's
    /// folder, as that of a backing file is; qemu looks in its working directory, so that an image
    /// means the same file to both if qemu runs in that folder or the name is absolute.
    #[must_use]
    pub fn allow_data_file(mut self, yes: bool) -> Self {
        self.data_file = yes;
        self
    }

    /// Lets these files be block devices.
    #[must_use]
    pub fn allow_devices(mut self, yes: bool) -> Self {
        self.devices = yes;
        self
    }

    /// Opens although structures are damaged, so that [`super::Image::repair`] can run, and for
    /// nothing else: a guest's writes are refused until the image is opened again.
    #[must_use]
    pub fn for_repair(mut self, yes: bool) -> Self {
        self.repair = yes;
        self
    }

    /// Files that a backing chain may have below the image; 16 unless set, at most 64.
    #[must_use]
    pub fn max_depth(mut self, files: usize) -> Self {
        self.depth = files.min(64);
        self
    }

    /// How much of the L2 tables stays in memory.
    #[must_use]
    pub fn cache(mut self, settings: CacheSettings) -> Self {
        self.cache = settings;
        self
    }

    /// Shows the disk as the internal snapshot with this id or name has it; read-only.
    #[must_use]
    pub fn snapshot(mut self, id_or_name: impl Into<String>) -> Self {
        self.snapshot = Some(id_or_name.into());
        self
    }
}
