//! Making a new image: header, refcount structures and L1 table in one go,
//! then preallocation through the open image.
//!
//! Neighbours: `header` and `extension` give the bytes; `alloc` makes the
//! structures grow later.

use std::path::Path;

use super::super::error::{Error, ErrorKind, Result};
use super::super::raw::FileStorage;
use super::super::storage::Storage;
use super::super::sys::file::FileOptions;
use super::extension::{self, Extension};
use super::header::{self, Header, L1_MAX, REFCOUNT_TABLE_MAX};
use super::image::Image;
use super::open::Parts;
use super::options::OpenOptions;
use super::types::{CLUSTER_BITS, Compression, Geometry};
use super::width;

/// What is allocated ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preallocation {
    /// Nothing.
    #[default]
    Off,
    /// All tables; data clusters are holes.
    Metadata,
    /// All tables, and space reserved for the data.
    Falloc,
    /// All tables, and zeroes written for the data.
    Full,
}

/// What a new image is like.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// Virtual disk size in bytes.
    pub size: u64,
    /// 2 or 3.
    pub version: u32,
    /// Bytes in a cluster: a power of two from 512 to 2 MiB.
    pub cluster_size: u64,
    /// Width of a refcount: 1, 2, 4, 8, 16, 32 or 64 bits.
    pub refcount_bits: u32,
    /// How compressed clusters are encoded.
    pub compression: Compression,
    /// 32 subclusters in a cluster.
    pub extended_l2: bool,
    /// Sets the compatible bit that allows others to write refcounts late.
    pub lazy_refcounts: bool,
    /// Name of the backing file, relative to the image's folder, and its format.
    pub backing: Option<(String, String)>,
    /// Name of the external data file, relative to the image's folder.
    pub data_file: Option<String>,
    /// Promises that the data file can be read as a raw image.
    pub data_file_raw: bool,
    /// What is allocated ahead.
    pub preallocation: Preallocation,
}

impl CreateOptions {
    /// A version 3 image of `size` bytes with clusters of 64 KiB and refcounts of 16 bits.
    pub fn new(size: u64) -> Self {
        Self {
            size,
            version: 3,
            cluster_size: 65536,
            refcount_bits: 16,
            compression: Compression::Zlib,
            extended_l2: false,
            lazy_refcounts: false,
            backing: None,
            data_file: None,
            data_file_raw: false,
            preallocation: Preallocation::Off,
        }
    }

    fn header(&self) -> Result<Header> {
        let bits = self.cluster_size.trailing_zeros();
        let order = self.refcount_bits.trailing_zeros();
        let valid = self.cluster_size.is_power_of_two()
            && CLUSTER_BITS.contains(&bits)
            && self.refcount_bits.is_power_of_two()
            && order <= 6;
        let new_features = self.compression == Compression::Zstd
            || self.extended_l2
            || self.lazy_refcounts
            || self.data_file.is_some()
            || order != 4;
        let fits = match self.version {
            2 => !new_features,
            3 => !self.extended_l2 || bits >= 14,
            _ => false,
        };
        let raw_fits = !self.data_file_raw || (self.data_file.is_some() && self.backing.is_none());
        if !valid || !fits || !raw_fits || self.size > i64::MAX as u64 {
            return Err(invalid("options contradict each other or the format"));
        }
        let zstd = self.compression == Compression::Zstd;
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        let additional =
            if self.version >= 3 { vec![u8::from(zstd), 0, 0, 0, 0, 0, 0, 0] } else { Vec::new() };
        Ok(Header {
            version: self.version,
            backing_offset: 0,
            backing_size: 0,
            cluster_bits: bits,
            size: self.size,
            crypt_method: 0,
            l1_size: 0,
            l1_offset: 0,
            refcount_table_offset: 0,
            refcount_table_clusters: 0,
            nb_snapshots: 0,
            snapshots_offset: 0,
            incompatible: bit(self.data_file.is_some(), header::DATA_FILE)
                | bit(zstd, header::COMPRESSION_TYPE)
                | bit(self.extended_l2, header::EXTENDED_L2),
            compatible: bit(self.lazy_refcounts, header::LAZY_REFCOUNTS),
            autoclear: bit(self.data_file_raw, header::AUTOCLEAR_RAW),
            refcount_order: order,
            header_length: if self.version >= 3 {
                header::V3_LENGTH as u32 + 8
            } else {
                header::V2_LENGTH as u32
            },
            additional,
        })
    }

    fn extensions(&self) -> Vec<Extension> {
        let mut extensions = Vec::new();
        if let Some((_, format)) = &self.backing {
            let data = format.clone().into_bytes();
            extensions.push(Extension { kind: extension::BACKING_FORMAT, data });
        }
        if let Some(name) = &self.data_file {
            let data = name.clone().into_bytes();
            extensions.push(Extension { kind: extension::DATA_FILE, data });
        }
        extensions
    }
}

/// Writes a new image into `file`, which is emptied. An external data file is set to the disk's
/// length. Preallocation needs the image open: see [`Image::create`].
pub fn create(file: &dyn Storage, data: Option<&dyn Storage>, options: &CreateOptions) -> Result<()> {
    if data.is_some() != options.data_file.is_some() {
        return Err(invalid("external data file not given, or not used"));
    }
    let mut header = options.header()?;
    let geo = header.geometry();
    let l1_entries = geo.l1_entries(options.size);
    if l1_entries * 8 > L1_MAX {
        return Err(invalid("disk too large for this cluster size"));
    }
    let l1_clusters = geo.clusters_for(l1_entries * 8);
    let (table_clusters, blocks) = plan_refcounts(&geo, 1 + l1_clusters)?;
    let size = geo.cluster_size();
    header.refcount_table_offset = size;
    header.refcount_table_clusters = table_clusters as u32;
    if l1_entries > 0 {
        header.l1_offset = (1 + table_clusters + blocks) * size;
    }
    header.l1_size = l1_entries as u32;
    let backing = options.backing.as_ref().map_or(&[][..], |(name, _)| name.as_bytes());
    let mut extensions = options.extensions();
    if options.version >= 3 {
        extensions.push(extension::feature_names());
    }
    let first = match header.encode_all(&extensions, backing) {
        Ok(first) => first,
        // Names of features are a courtesy; small clusters have no room for them.
        Err(_) => header.encode_all(&options.extensions(), backing)?,
    };
    let used = 1 + table_clusters + blocks + l1_clusters;
    file.set_len(0)?;
    file.set_len(used * size)?;
    write_refcounts(file, &geo, table_clusters, blocks, used)?;
    if let Some(data) = data {
        data.set_len(options.size)?;
    }
    file.sync()?;
    // Last, so that what a cut leaves behind is no image rather than a wrong one.
    file.write_at(&first, 0)?;
    file.sync()
}

/// Clusters of refcount table and blocks for `others` clusters and themselves.
pub(super) fn plan_refcounts(geo: &Geometry, others: u64) -> Result<(u64, u64)> {
    let (mut table, mut blocks) = (1, 1);
    loop {
        let total = others + table + blocks;
        let need_blocks = total.div_ceil(geo.refcounts_per_block());
        let need_table = geo.clusters_for(need_blocks * 8);
        if need_table * geo.cluster_size() > REFCOUNT_TABLE_MAX.max(geo.cluster_size()) {
            return Err(Error::new(ErrorKind::Exhausted, "refcount table would be too large"));
        }
        if (need_table, need_blocks) == (table, blocks) {
            return Ok((table, blocks));
        }
        (table, blocks) = (need_table.max(table), need_blocks.max(blocks));
    }
}

fn write_refcounts(
    file: &dyn Storage,
    geo: &Geometry,
    table_clusters: u64,
    blocks: u64,
    used: u64,
) -> Result<()> {
    let size = geo.cluster_size();
    let mut table = vec![0; (table_clusters * size) as usize];
    for at in 0..blocks {
        let host = (1 + table_clusters + at) * size;
        table[at as usize * 8..][..8].copy_from_slice(&host.to_be_bytes());
        let mut block = vec![0; size as usize];
        let first = at * geo.refcounts_per_block();
        let count = used.saturating_sub(first).min(geo.refcounts_per_block());
        for index in 0..count as usize {
            width::set(&mut block, geo.refcount_order, index, 1);
        }
        file.write_at(&block, host)?;
    }
    // What is left of the table is a hole, which costs who goes through it nothing.
    let used = (blocks as usize * 8).next_multiple_of(4096).min(table.len());
    file.write_at(&table[..used], size)
}

impl Image {
    /// Makes an image at `path`, which must not exist, and its data file beside it.
    pub fn create(path: impl AsRef<Path>, options: &CreateOptions) -> Result<()> {
        let path = path.as_ref();
        let new = |path: &Path| {
            if path.exists() {
                return Err(invalid("file exists").with_path(path));
            }
            let how = FileOptions { write: true, create: true, ..FileOptions::default() };
            FileStorage::open(path, how)
        };
        let file = new(path)?;
        let data = match &options.data_file {
            Some(name) => Some(new(&super::backing::resolve(path, name)?)?),
            None => None,
        };
        let data_ref = data.as_ref().map(|data| data as &dyn Storage);
        create(&file, data_ref, options).map_err(|error| error.with_path(path))?;
        if options.preallocation == Preallocation::Off {
            return Ok(());
        }
        drop((file, data));
        let open = OpenOptions::new().writable(true).allow_backing(true).allow_data_file(true);
        let image = Self::open(path, &open)?;
        image.preallocate(options.preallocation)?;
        image.flush()
    }

    /// Makes an image from storage that the caller opened, and opens it for writing.
    pub fn create_from(parts: Parts, options: &CreateOptions) -> Result<Self> {
        create(&*parts.file, parts.data.as_deref(), options)?;
        let image = Self::from_parts(parts, &OpenOptions::new().writable(true))?;
        image.preallocate(options.preallocation)?;
        Ok(image)
    }

    /// Allocates every cluster of a disk without backing file.
    fn preallocate(&self, how: Preallocation) -> Result<()> {
        if how == Preallocation::Off {
            return Ok(());
        }
        if self.backing.is_some() {
            return Err(invalid("preallocation over a backing file"));
        }
        let mut cluster = 0;
        let end = self.geo.clusters_for(self.size());
        while cluster < end {
            cluster += self.preallocate_run(cluster, end - cluster, how)?;
        }
        Ok(())
    }
}

pub(super) fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
