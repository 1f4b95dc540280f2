//! Opening: header, places of tables, snapshots, other files; everything bounded
//! before it is used, nothing written unless the image is opened for writing.
//! Tables are read when they are asked for, so that a large disk opens as a small one does.
//!
//! Neighbours: `header`, `extension`, `snapshot` parse; `backing` resolves
//! other files; `adopt` does what a writer has to do first.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use super::super::error::{Error, ErrorKind, Result};
use super::super::raw::FileStorage;
use super::super::storage::Storage;
use super::super::sys::file::FileOptions;
use super::backing::{Backing, Chain, Opener, looks_like_qcow2};
use super::cache::Maps;
use super::compress::Codecs;
use super::extension::{self, Extension};
use super::header::{self, Header, L1_MAX};
use super::image::{Image, State, corrupt};
use super::options::OpenOptions;
use super::paged::{Paged, Place};
use super::refcount::{HeaderState, Refcounts};
use super::snapshot::{self, Snapshot};
use super::survey::{Meta, Structures};
use super::sync::{BufferPool, RangeLocks, ReadGate};
use super::types::{CLUSTER_BITS, Geometry};

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

/// Bytes of the first read: the header, its extensions and the backing file's name, unless there is
/// more than usual.
const FIRST: u64 = 4096;

/// What the first cluster says.
struct First {
    header: Header,
    extensions: Vec<Extension>,
    backing_name: Vec<u8>,
}

/// What an image is made of, and where its tables are.
struct Layout {
    header: Header,
    geo: Geometry,
    extensions: Vec<Extension>,
    backing_name: Vec<u8>,
    file_len: u64,
    l1: Place,
    refcount_table: Place,
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
        let mut bytes = vec![0; file_len.min(FIRST) as usize];
        let got = file.read_at(&mut bytes, 0)?;
        bytes.truncate(got);
        let bits = header::u32_at(&bytes, 20)?;
        let rest = if CLUSTER_BITS.contains(&bits) { file_len.min(1 << bits) as usize } else { 0 };
        // What the header names seldom goes on after the first read, and errors are judged on all of it.
        let first = match First::parse(&bytes) {
            Err(_) if bytes.starts_with(&header::MAGIC) && rest > bytes.len() => {
                bytes.resize(rest, 0);
                let got = file.read_at(&mut bytes, 0)?;
                First::parse(&bytes[..got])
            }
            first => first,
        }?;
        first.header.check_features(&first.extensions)?;
        Self::find_tables(file, file_len, first, options)
    }

    fn find_tables(file: &dyn Storage, file_len: u64, first: First, options: &OpenOptions) -> Result<Self> {
        let First { header, extensions, backing_name } = first;
        let geo = header.geometry();
        check_l1(&header, &geo, file_len)?;
        let (snapshots, snapshot_bytes) = snapshot::read_table(file, &header, &geo, file_len)?;
        let place = |(offset, bytes): (u64, u64)| Place::new(offset, (bytes / 8) as usize, file_len);
        let table = check_refcount_table(&header, &geo, file_len).map(place);
        // A repair makes the table anew where it cannot be read.
        let readable = |place: Place| Paged::new(place, 0).walk(file, |_, _| {}).map(|()| place);
        let refcount_table = match options.repair {
            true => table.and_then(readable).unwrap_or_default(),
            false => table?,
        };
        let l1 = Place::new(header.l1_offset, header.l1_size as usize, file_len);
        Ok(Self {
            header,
            geo,
            extensions,
            backing_name,
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
        let shown = self.show_snapshot(options)?;
        let meta = self.structures(writable && !options.repair)?;
        let slice_bytes = options.cache.slice_bytes.clamp(512, self.geo.cluster_size());
        let slice_bytes = 1 << slice_bytes.ilog2();
        let cache_bytes = options.cache.bytes(self.geo.cluster_size());
        let backing_len = parts.backing.as_ref().map_or(0, Backing::len);
        let is_cached = parts.data.as_ref().unwrap_or(&parts.file).is_cached();
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
            stream_end: AtomicU64::new(u64::MAX),
            is_cached,
            file_len: AtomicU64::new(self.file_len),
            writable: AtomicBool::new(writable && shown.is_none()),
            is_intact: AtomicBool::new(false),
            is_crowded: AtomicBool::new(false),
            repair_only: options.repair,
            cache_bytes,
            maps: RwLock::new(Maps::new(Paged::new(self.l1, cache_bytes / 16), meta, options.cache.slices)),
            state: Mutex::new(State {
                header: HeaderState { header: self.header, stale: false },
                extensions: self.extensions,
                refs: Refcounts::new(self.geo, self.refcount_table, self.file_len, cache_bytes),
                snapshots: self.snapshots,
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
    fn show_snapshot(&mut self, options: &OpenOptions) -> Result<Option<u64>> {
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
        self.l1 = Place::new(found.l1_offset, found.l1_size as usize, self.file_len);
        Ok(Some(size))
    }

    /// Which clusters hold metadata, as far as the header says. With `strict`, structures that overlap
    /// are refused; without, the accesses that they concern fail later.
    fn structures(&self, strict: bool) -> Result<Structures> {
        let (geo, header) = (&self.geo, &self.header);
        let mut meta = Structures::new(self.refcount_table);
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
        match clash {
            Some(kind) if strict => Err(corrupt(format!("structures overlap: {kind:?} and another"))),
            _ => Ok(meta),
        }
    }
}

impl First {
    /// Reads what the first cluster says, of which `bytes` is the start.
    fn parse(bytes: &[u8]) -> Result<Self> {
        let header = Header::parse(bytes)?;
        let (end, bounded) = header.extension_area(header.geometry().cluster_size());
        if bounded && end > bytes.len() as u64 {
            return Err(ends_within());
        }
        let area = bytes.get(header.header_length as usize..(end as usize).min(bytes.len()));
        let extensions = extension::parse(area.unwrap_or(&[]), bounded)?;
        let start = header.backing_offset as usize;
        let backing_name = match header.backing_offset {
            0 => Vec::new(),
            _ => bytes.get(start..start + header.backing_size as usize).ok_or_else(ends_within)?.to_vec(),
        };
        Ok(Self { header, extensions, backing_name })
    }
}

fn ends_within() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "file ends within the header")
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
