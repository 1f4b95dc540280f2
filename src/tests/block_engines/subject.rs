//! The subjects of the contracts: each engine on each kind of file, with and
//! without a layer of faults.
//!
//! Neighbours: every module of contracts opens its engine here; `guest` puts
//! a qcow2 image under those that are disks.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::guest;
use tempfile::TempDir;
use wallgrind::block::align::Alignment;
use wallgrind::block::engine_aio::AioDriver;
use wallgrind::block::engine_sync::SyncDriver;
use wallgrind::block::engine_uring::UringDriver;
use wallgrind::block::faults::Faults;
use wallgrind::block::faulty_driver::{FaultyDriver, Gate};
use wallgrind::block::io::FileIo;
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::Image;
use wallgrind::block::queue::{Driver, Queue};
use wallgrind::block::{
    AlignedBuf, BlockFile, Completion, Engine, Error, ErrorKind, FileOptions, FileStorage, MemStorage, Op,
    Storage,
};

/// What contracts count offsets in: satisfies any file's alignment.
pub const UNIT: u64 = 4096;

/// Why a contract cannot be tried on this machine.
#[derive(Debug)]
pub struct Skip(pub String);

/// A way to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Sync,
    Aio,
    Uring,
    Mem,
}

/// The kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the folder for temporary files.
    Disk,
    /// The same past the page cache.
    Direct,
    /// On a tmpfs.
    Shm,
    /// In memory.
    Memory,
    /// In memory, demanding alignment.
    MemoryAligned,
}

/// An engine on a kind of file.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub way: Way,
    pub place: Place,
    /// Whether faults can be put under it.
    pub faulty: bool,
    /// Whether it is a disk in a qcow2 image in that file, over the engine.
    pub qcow2: bool,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faulty = if self.faulty { "_faulty" } else { "" };
        let qcow2 = if self.qcow2 { "_qcow2" } else { "" };
        write!(f, "{:?}_{:?}{qcow2}{faulty}", self.way, self.place)
    }
}

/// An engine ready to use, and a second way to its file.
pub struct Rig {
    pub engine: Box<dyn Engine>,
    pub faults: Faults,
    pub gate: Gate,
    /// What the file demands of attempts.
    pub align: Alignment,
    /// The same file, buffered.
    pub view: Arc<dyn Storage>,
    /// The same file as the engine has it.
    pub file: Arc<dyn FileIo>,
    /// The image, where the engine is a disk in one.
    pub image: Option<Arc<Image>>,
    /// Kept last, so that the file is there while the engine is dropped.
    _folder: Option<TempDir>,
}

/// What the tests ask the system for is there, or the test has failed.
pub fn must<T, E: fmt::Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error:?}"),
    }
}

/// A missing thing skips, anything else fails.
pub fn or_skip<T>(result: Result<T, Error>) -> Result<T, Skip> {
    match result {
        Ok(value) => Ok(value),
        Err(error) if error.kind() == ErrorKind::Missing => Err(Skip(error.to_string())),
        Err(error) => panic!("{error:?}"),
    }
}

/// A folder on a kind of file system.
pub fn folder(place: Place) -> Result<TempDir, Skip> {
    let shm = Path::new("/dev/shm");
    match place {
        Place::Shm if !shm.is_dir() => Err(Skip("no tmpfs at /dev/shm".to_owned())),
        Place::Shm => Ok(must(tempfile::tempdir_in(shm))),
        _ => Ok(must(tempfile::tempdir())),
    }
}

impl Subject {
    pub fn all(faulty: bool) -> Vec<Self> {
        let mut all = Vec::new();
        for qcow2 in [false, true] {
            for way in [Way::Sync, Way::Aio, Way::Uring] {
                for place in [Place::Disk, Place::Direct, Place::Shm] {
                    all.push(Self { way, place, faulty, qcow2 });
                }
            }
            for place in [Place::Memory, Place::MemoryAligned] {
                all.push(Self { way: Way::Mem, place, faulty, qcow2 });
            }
        }
        all
    }

    /// Whether its engine works on the guest's bytes themselves.
    pub fn is_plain(&self) -> bool {
        !self.qcow2
    }

    /// Whether the kernel moves its bytes.
    pub fn is_real(&self) -> bool {
        self.way != Way::Mem
    }

    pub fn is_plain_aio(&self) -> bool {
        self.way == Way::Aio && self.is_plain()
    }

    /// Whether it demands alignment.
    pub fn is_plain_direct(&self) -> bool {
        self.is_direct() && self.is_plain()
    }

    /// Whether its file demands alignment.
    pub fn is_direct(&self) -> bool {
        matches!(self.place, Place::Direct | Place::MemoryAligned)
    }

    /// An engine of `depth` over a file with `content`.
    pub fn rig(&self, depth: u32, content: &[u8]) -> Result<Rig, Skip> {
        self.rig_with(depth, content, true)
    }

    /// As [`Subject::rig`]; the engine's file is open for writing or not.
    pub fn rig_with(&self, depth: u32, content: &[u8], write: bool) -> Result<Rig, Skip> {
        let rig = match (self.way, self.qcow2) {
            (Way::Mem, false) => self.mem_rig(depth, content),
            (Way::Mem, true) => self.mem_rig(depth, &guest::image_of(content)),
            (_, false) => self.file_rig(depth, content, write)?,
            (_, true) => self.file_rig(depth, &guest::image_of(content), write)?,
        };
        Ok(if self.qcow2 { guest::disk(rig, content.len() as u64) } else { rig })
    }

    fn file_rig(&self, depth: u32, content: &[u8], write: bool) -> Result<Rig, Skip> {
        let folder = folder(self.place)?;
        let path = folder.path().join("image");
        must(fs::write(&path, content));
        let options = FileOptions { write, direct: self.place == Place::Direct, ..FileOptions::default() };
        let file = Arc::new(or_skip(BlockFile::open(&path, options))?);
        let (faults, gate) = (Faults::new(), Gate::new());
        Ok(Rig {
            engine: self.engine(&file, depth, &faults, &gate)?,
            align: file.alignment(),
            faults,
            gate,
            view: Arc::new(must(view(&path))),
            file,
            image: None,
            _folder: Some(folder),
        })
    }

    fn engine(
        &self,
        file: &Arc<BlockFile>,
        depth: u32,
        faults: &Faults,
        gate: &Gate,
    ) -> Result<Box<dyn Engine>, Skip> {
        let file = Arc::clone(file);
        Ok(match self.way {
            Way::Sync | Way::Mem => self.wrap(must(SyncDriver::new(file, depth)), faults, gate),
            Way::Aio => self.wrap(or_skip(AioDriver::new(file, depth))?, faults, gate),
            Way::Uring => self.wrap(or_skip(UringDriver::new(file, depth))?, faults, gate),
        })
    }

    fn mem_rig(&self, depth: u32, content: &[u8]) -> Rig {
        let store = MemStorage::from_bytes(content);
        let file = match self.place {
            Place::MemoryAligned => {
                store.file().with_alignment(must(Alignment::new(512, UNIT as u32).ok_or("powers of two")))
            }
            _ => store.file().clone(),
        };
        let (faults, gate) = (Faults::new(), Gate::new());
        let driver = must(SyncDriver::<MemFile>::new(file.clone(), depth));
        Rig {
            engine: self.wrap(driver, &faults, &gate),
            align: file.alignment(),
            faults,
            gate,
            view: Arc::new(store),
            file: Arc::new(file),
            image: None,
            _folder: None,
        }
    }

    fn wrap<D: Driver + 'static>(&self, driver: D, faults: &Faults, gate: &Gate) -> Box<dyn Engine> {
        match self.faulty {
            false => Box::new(Queue::new(driver)),
            true => Box::new(Queue::new(FaultyDriver::new(driver, faults.clone(), gate.clone()))),
        }
    }
}

/// The file at `path`, buffered, for writing.
pub fn view(path: &PathBuf) -> Result<FileStorage, Error> {
    let options = FileOptions { write: true, ..FileOptions::default() };
    FileStorage::open(path, options)
}

/// A buffer of `units` units that holds `byte`.
pub fn full(units: u64, byte: u8) -> AlignedBuf {
    let mut buf = must(AlignedBuf::new((units * UNIT) as usize, UNIT as usize));
    buf.fill(byte);
    buf
}

/// `units` units of bytes that differ from place to place and from seed to seed.
pub fn pattern(units: u64, seed: u64) -> AlignedBuf {
    let mut buf = full(units, 0);
    let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for chunk in buf.chunks_exact_mut(64) {
        word = word.rotate_left(7).wrapping_mul(0x2545_f491_4f6c_dd1d);
        chunk[..8].copy_from_slice(&word.to_le_bytes());
        chunk.copy_within(..8, 8);
        chunk.copy_within(..16, 16);
        chunk.copy_within(..32, 32);
    }
    buf
}

impl Rig {
    /// Submits `op`, which must be accepted.
    pub fn submit(&mut self, op: Op) {
        must(self.engine.submit(op));
    }

    /// Waits for exactly `n` completions.
    pub fn wait(&mut self, n: usize) -> Vec<Completion> {
        let mut out = Vec::new();
        must(self.engine.wait(n, &mut out));
        assert_eq!(out.len(), n);
        out
    }

    /// Carries out one operation.
    pub fn run(&mut self, op: Op) -> Completion {
        self.submit(op);
        must(self.wait(1).pop().ok_or("one completion"))
    }

    /// The file's bytes from `offset`, up to `len` of them.
    pub fn peek(&self, offset: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0xee; len as usize];
        let read = must(self.view.read_at(&mut bytes, offset));
        bytes.truncate(read);
        bytes
    }
}
