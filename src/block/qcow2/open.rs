//! Opening: header, tables, snapshots, other files; everything bounded before
//! it is used, nothing written unless the image is opened for writing.
//!
//! Neighbours: `header`, `extension`, `snapshot` parse; `backing` resolves
//! other files; `adopt` does what a writer has to do first.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use super::super::error::{Error, ErrorKind, Result};
use super::super::raw::FileStorage;
use super::super::storage::Storage;
use super::super::sys::file::FileOptions;
use super::backing::{Backing, Chain, Opener, looks_like_qcow2};
use super::cache::{Maps, Meta, MetaMap};
use super::compress::Codecs;
use super::entry;
use super::extension::{self, Extension};
use super::header::{self, Header, L1_MAX};
use super::image::{Image, State, corrupt};
use super::options::OpenOptions;
use super::refcount::{HeaderState, Refcounts};
use super::snapshot::{self, Snapshot};
use super::sync::{BufferPool, RangeLocks, ReadGate};
use super::types::Geometry;

/// Opens plain files and block devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileOpener;

impl Opener for FileOpener {
    fn open(&self, path: &Path, writable: bool) -> Result<Box<dyn Storage>> {
        let options = FileOptions { write: writable, ..FileOptions::default() };
        Ok(Box::new(FileStorage::open(path, options)?))
    }
}

/// The files of an image that the caller opened.
pub struct Parts {
    /// The image file.
    pub file: Box<dyn Storage>,
    /// The external data file, if the image has one.
    pub data: Option<Box<dyn Storage>>,
    /// What lies under it, if it is an overlay.
    pub backing: Option<Backing>,
}

/// What the first cluster and the tables of an image say.
struct Layout {
    header: Header,
    geo: Geometry,
    extensions: Vec<Extension>,
    backing_name: Vec<u8>,
    file_len: u64,
    l1: Vec<u64>,
    refcount_table: Vec<u64>,
    snapshots: Vec<Snapshot>,
    snapshot_bytes: u64,
}

impl Image {
    /// Opens the image at `path`, and the files that it names as far as `options` allow.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        Self::open_with(&FileOpener, path.as_ref(), options)
    }

    /// Opens the image at `path` through `opener`.
    pub fn open_with(opener: &dyn Opener, path: &Path, options: &OpenOptions) -> Result<Self> {
        let mut chain = Chain { opener, seen: Vec::new() };
        // The first file is the caller's choice: it may be a device.
        let first = options.clone().allow_devices(true);
        chain.enter(path, &first)?;
        let file = opener.open(path, options.writable || options.repair)?;
        Self::open_in_chain(&mut chain, path, file, options)
    }

    /// Opens an image from files that are open; its own names for them are not looked at.
    pub fn from_parts(parts: Parts, options: &OpenOptions) -> Result<Self> {
        let layout = Layout::read(&*parts.file, options)?;
        layout.assemble(parts, None, options)
    }

    fn open_in_chain(
        chain: &mut Chain<'_>,
        path: &Path,
        file: Box<dyn Storage>,
        options: &OpenOptions,
    ) -> Result<Self> {
        let open = || -> Result<Self> {
            let layout = Layout::read(&*file, options)?;
            let data = layout.open_data(chain, path, options)?;
            let backing = layout.open_backing(chain, path, options)?;
            layout.assemble(Parts { file, data, backing }, Some(path), options)
        };
        open().map_err(|error| error.with_path(path))
    }
}

impl Layout {
    fn read(file: &dyn Storage, options: &OpenOptions) -> Result<Self> {
        let file_len = file.len()?;
        let mut bytes = vec![0; file_len.min(512) as usize];
        let got = file.read_at(&mut bytes, 0)?;
        bytes.truncate(got);
        let bits = header::u32_at(&bytes, 20)?;
        if bytes.starts_with(&header::MAGIC) && (10..=21).contains(&bits) {
            bytes.resize(file_len.min(1 << bits) as usize, 0);
            let got = file.read_at(&mut bytes, 0)?;
            bytes.truncate(got);
        }
        let header = Header::parse(&bytes)?;
        let geo = header.geometry();
        let (end, bounded) = header.extension_area(geo.cluster_size());
        let area = bytes.get(header.header_length as usize..(end as usize).min(bytes.len()));
        let extensions = extension::parse(area.unwrap_or(&[]), bounded)?;
        header.check_features(&extensions)?;
        let start = header.backing_offset as usize;
        let backing_name = match header.backing_offset {
            0 => Vec::new(),
            _ => bytes
                .get(start..start + header.backing_size as usize)
                .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "file ends within the header"))?
                .to_vec(),
        };
        Self::read_tables(file, file_len, header, options).map(|layout| Self {
            extensions,
            backing_name,
            ..layout
        })
    }

    fn read_tables(file: &dyn Storage, file_len: u64, header: Header, options: &OpenOptions) -> Result<Self> {
        let geo = header.geometry();
        check_l1(&header, &geo, file_len)?;
        let (snapshots, snapshot_bytes) = snapshot::read_table(file, &header, &geo, file_len)?;
        let table = check_refcount_table(&header, &geo, file_len);
        let refcount_table = match table.and_then(|(offset, bytes)| read_words(file, offset, bytes, file_len))
        {
            Err(_) if options.repair => Vec::new(),
            result => result?,
        };
        let l1 = read_words(file, header.l1_offset, u64::from(header.l1_size) * 8, file_len)?;
        Ok(Self {
            header,
            geo,
            extensions: Vec::new(),
            backing_name: Vec::new(),
            file_len,
            l1,
            refcount_table,
            snapshots,
            snapshot_bytes,
        })
    }

    fn open_data(
        &self,
        chain: &mut Chain<'_>,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Option<Box<dyn Storage>>> {
        if !self.geo.data_file {
            return Ok(None);
        }
        if !options.data_file {
            let message = "image has an external data file, which the caller does not allow";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let Some(name) = extension::text(&self.extensions, extension::DATA_FILE)? else {
            return Err(corrupt("external data file without a name"));
        };
        let (_, file) = chain.open(path, &name, options.writable, options)?;
        Ok(Some(file))
    }

    fn open_backing(
        &self,
        chain: &mut Chain<'_>,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Option<Backing>> {
        if self.backing_name.is_empty() {
            return Ok(None);
        }
        if !options.backing {
            let message = "image has a backing file, which the caller does not allow";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let name = String::from_utf8(self.backing_name.clone())
            .map_err(|_| corrupt("backing file name is not UTF-8"))?;
        let (below, file) = chain.open(path, &name, false, options)?;
        let format = extension::text(&self.extensions, extension::BACKING_FORMAT)?;
        let mut below_options = OpenOptions { cache: options.cache, ..OpenOptions::default() };
        below_options.devices = options.devices;
        below_options.depth = options.depth;
        match format.as_deref() {
            Some("raw" | "file" | "host_device") => return Backing::raw(file).map(Some),
            // A guest can write a header into a raw image: what was guessed opens nothing more.
            None if !looks_like_qcow2(&*file)? => return Backing::raw(file).map(Some),
            None => {}
            Some("qcow2") => {
                below_options.backing = options.backing;
                below_options.data_file = options.data_file;
            }
            Some(other) => {
                let message = format!("backing file format {other:?}");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
        let image = Image::open_in_chain(chain, &below, file, &below_options)?;
        Ok(Some(Backing::Qcow2(Arc::new(image))))
    }

    fn assemble(mut self, parts: Parts, path: Option<&Path>, options: &OpenOptions) -> Result<Image> {
        let writable = options.writable || options.repair;
        if options.writable && !options.repair && self.header.incompatible & header::CORRUPT != 0 {
            return Err(corrupt("image is marked corrupt and cannot be written"));
        }
        self.check_parts(&parts)?;
        let shown = self.show_snapshot(&*parts.file, options)?;
        let meta = self.meta_map(writable && !options.repair)?;
        let slice_bytes = options.cache.slice_bytes.clamp(512, self.geo.cluster_size());
        let slice_bytes = 1 << slice_bytes.ilog2();
        let backing_len = parts.backing.as_ref().map_or(0, Backing::len);
        let image = Image {
            geo: self.geo,
            compression: self.header.compression()?,
            path: path.map(Path::to_path_buf),
            data_raw: self.geo.data_file && self.header.autoclear & header::AUTOCLEAR_RAW != 0,
            file: parts.file,
            data: parts.data,
            backing: parts.backing,
            backing_len,
            slice_bytes,
            size: AtomicU64::new(shown.unwrap_or(self.header.size)),
            file_len: AtomicU64::new(self.file_len),
            writable: AtomicBool::new(writable && shown.is_none()),
            repair_only: options.repair,
            maps: RwLock::new(Maps::new(self.l1, meta, options.cache.slices)),
            state: Mutex::new(State {
                header: HeaderState { header: self.header, stale: false },
                extensions: self.extensions,
                refs: Refcounts::new(self.geo, self.refcount_table, self.file_len),
                snapshots: self.snapshots,
                l1_dirty: BTreeSet::new(),
                frees: Vec::new(),
                waiting: Vec::new(),
                waiting_epoch: None,
                flags_stale: false,
                tail: None,
            }),
            ranges: RangeLocks::default(),
            gate: ReadGate::default(),
            buffers: BufferPool::default(),
            codecs: Codecs::default(),
        };
        if image.is_writable() && !options.repair {
            image.adopt()?;
        }
        Ok(image)
    }

    fn check_parts(&self, parts: &Parts) -> Result<()> {
        if self.geo.data_file != parts.data.is_some() {
            return Err(Error::new(ErrorKind::InvalidInput, "external data file not given, or not used"));
        }
        if self.backing_name.is_empty() && parts.backing.is_some() {
            return Err(Error::new(ErrorKind::InvalidInput, "image has no backing file"));
        }
        if !self.backing_name.is_empty() && parts.backing.is_none() {
            return Err(Error::new(ErrorKind::Unsupported, "backing file not given"));
        }
        Ok(())
    }

    /// Replaces the active L1 table by that of the snapshot asked for; returns its disk size.
    fn show_snapshot(&mut self, file: &dyn Storage, options: &OpenOptions) -> Result<Option<u64>> {
        let Some(wanted) = &options.snapshot else {
            return Ok(None);
        };
        let Some(found) = snapshot::find(&self.snapshots, wanted).map(|at| self.snapshots[at].clone()) else {
            let message = format!("no snapshot {wanted:?}");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        };
        let size = found.disk_size.unwrap_or(self.header.size);
        if u64::from(found.l1_size) < self.geo.l1_entries(size) {
            return Err(corrupt("L1 table of the snapshot smaller than its disk"));
        }
        self.l1 = read_words(file, found.l1_offset, u64::from(found.l1_size) * 8, self.file_len)?;
        Ok(Some(size))
    }

    /// Which clusters hold metadata. With `strict`, structures that overlap are refused; without,
    /// the accesses that they concern fail later.
    fn meta_map(&self, strict: bool) -> Result<MetaMap> {
        let (geo, header) = (&self.geo, &self.header);
        let mut meta = MetaMap::default();
        let mut clash = meta.insert_range(0, 1, Meta::Header);
        let mut range = |offset: u64, bytes: u64, kind: Meta| {
            let taken = meta.insert_range(geo.cluster_of(offset), geo.clusters_for(bytes), kind);
            clash = clash.or(taken);
        };
        range(header.l1_offset, u64::from(header.l1_size) * 8, Meta::L1);
        let table_bytes = u64::from(header.refcount_table_clusters) << geo.cluster_bits;
        range(header.refcount_table_offset, table_bytes, Meta::RefcountTable);
        range(header.snapshots_offset, self.snapshot_bytes, Meta::SnapshotTable);
        for snapshot in &self.snapshots {
            range(snapshot.l1_offset, u64::from(snapshot.l1_size) * 8, Meta::SnapshotL1);
        }
        for (index, word) in self.refcount_table.iter().enumerate() {
            match entry::decode_refcount_table(*word, geo) {
                Ok(None) => {}
                Ok(Some(host)) if host.0 < self.file_len => {
                    clash = clash.or(meta.insert(geo.cluster_of(host.0), Meta::RefcountBlock));
                }
                _ if strict => {
                    return Err(corrupt(format!("refcount table entry {index} is invalid")));
                }
                _ => {}
            }
        }
        if let (Some(kind), true) = (clash, strict) {
            return Err(corrupt(format!("structures overlap: {kind:?} and another")));
        }
        let mut twice = Vec::new();
        for word in &self.l1 {
            if let Ok(Some((host, _))) = entry::decode_l1(*word, geo)
                && host.0 < self.file_len
                && meta.insert(geo.cluster_of(host.0), Meta::L2) == Some(Meta::L2)
            {
                twice.push(geo.cluster_of(host.0));
            }
        }
        // A table that two entries name is nobody's: every access to it fails.
        twice.into_iter().for_each(|cluster| meta.remove(cluster));
        Ok(meta)
    }
}

fn check_l1(header: &Header, geo: &Geometry, file_len: u64) -> Result<()> {
    let bytes = u64::from(header.l1_size) * 8;
    if bytes > L1_MAX {
        return Err(corrupt(format!("L1 table of {bytes} bytes is too large")));
    }
    if header.size > i64::MAX as u64 || u64::from(header.l1_size) < geo.l1_entries(header.size) {
        return Err(corrupt(format!(
            "L1 table of {} entries is too small for a disk of {} bytes",
            header.l1_size, header.size
        )));
    }
    if header.l1_size == 0 {
        return Ok(());
    }
    check_place("L1 table", header.l1_offset, bytes, geo, file_len)
}

fn check_refcount_table(header: &Header, geo: &Geometry, file_len: u64) -> Result<(u64, u64)> {
    let clusters = u64::from(header.refcount_table_clusters);
    let offset = header.refcount_table_offset;
    if clusters == 0 {
        return Err(corrupt("refcount table without clusters"));
    }
    let bytes = clusters << geo.cluster_bits;
    if bytes > header::REFCOUNT_TABLE_READ_MAX {
        return Err(corrupt(format!("refcount table of {bytes} bytes is too large")));
    }
    check_place("refcount table", offset, bytes, geo, file_len)?;
    Ok((offset, bytes))
}

fn check_place(what: &str, offset: u64, bytes: u64, geo: &Geometry, file_len: u64) -> Result<()> {
    let end = offset.checked_add(bytes);
    let inside = end.is_some_and(|end| end <= geo.round_up(file_len)) && offset < file_len;
    if offset == 0 || !geo.aligned(offset) || !inside {
        return Err(corrupt(format!("{what} not in the file")).with_host(offset));
    }
    Ok(())
}

/// Reads big-endian words; the caller has checked that the file is that long. Memory is taken as
/// the file turns out to have the bytes.
fn read_words(file: &dyn Storage, offset: u64, bytes: u64, file_len: u64) -> Result<Vec<u64>> {
    const STEP: u64 = 1 << 20;
    let inside = bytes.min(file_len.saturating_sub(offset));
    let mut words = Vec::new();
    let mut buf = Vec::new();
    let mut done = 0;
    while done < inside {
        let step = STEP.min(inside - done);
        buf.resize(step as usize, 0);
        if (file.read_at(&mut buf, offset + done)? as u64) < step {
            return Err(
                Error::new(ErrorKind::UnexpectedEof, "file ends within a table").with_host(offset + done)
            );
        }
        words.extend(buf.chunks_exact(8).map(|word| {
            let mut array = [0; 8];
            array.copy_from_slice(word);
            u64::from_be_bytes(array)
        }));
        done += step;
    }
    words.resize((bytes / 8) as usize, 0);
    Ok(words)
}
