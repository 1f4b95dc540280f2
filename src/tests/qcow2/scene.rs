//! A fixed workload over an image in memory, with what may be read after a
//! cut at any point of it.
//!
//! Neighbours: `qcow2_crash` cuts it off, `qcow2_faults` makes single calls fail.

use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{CacheSettings, CreateOptions, Image, OpenOptions, Parts};
use wallgrind::block::{MemStorage, Result, Storage};

/// The disk's size in bytes at the start.
pub const SIZE: usize = 96 * 1024;
const SECTOR: usize = 512;

/// What the disk may hold: each state since the last barrier that completed.
#[derive(Clone, Debug)]
pub struct Track {
    /// The first is durable, the last the newest.
    pub states: Vec<Vec<u8>>,
    /// Snapshots that must be there, with their content.
    pub snapshots: Vec<(String, Vec<u8>)>,
    /// Snapshots that may be there.
    pub unsure: Vec<(String, Vec<u8>)>,
}

impl Track {
    /// An empty disk.
    pub fn new() -> Self {
        Self { states: vec![vec![0; SIZE]], snapshots: Vec::new(), unsure: Vec::new() }
    }

    fn newest(&self) -> Vec<u8> {
        self.states.last().cloned().unwrap_or_default()
    }

    fn change(&mut self, at: usize, data: &[u8]) {
        let mut next = self.newest();
        next[at..at + data.len()].copy_from_slice(data);
        self.states.push(next);
    }

    fn durable(&mut self) {
        self.states = vec![self.newest()];
    }

    /// Why `disk` cannot be what is left, if so.
    pub fn judge(&self, disk: &[u8]) -> Option<String> {
        for (index, sector) in disk.chunks(SECTOR).enumerate() {
            let at = index * SECTOR;
            let known = self.states.iter().any(|state| match state.get(at..at + sector.len()) {
                Some(bytes) => bytes == sector,
                None => sector.iter().all(|byte| *byte == 0),
            });
            if !known {
                return Some(format!("sector at {at} is in none of {} states", self.states.len()));
            }
        }
        None
    }
}

/// Bytes that name their place and version, compressible.
pub fn pattern(at: usize, len: usize, version: u8) -> Vec<u8> {
    (at..at + len).map(|place| (place / 64) as u8 ^ version.wrapping_mul(37)).collect()
}

/// A new image over `file`, with a small cache so that slices leave it.
pub fn open(store: MemStorage) -> Result<Image> {
    let cache = CacheSettings { slice_bytes: 512, slices: 2 };
    let parts = Parts { file: Box::new(store), data: None, backing: None };
    Image::from_parts(parts, &OpenOptions::new().writable(true).cache(cache))
}

/// An empty image in memory, journaled.
pub fn fresh(change: impl FnOnce(&mut CreateOptions)) -> MemFile {
    let mut options = CreateOptions::new(SIZE as u64);
    options.cluster_size = 4096;
    change(&mut options);
    let store = MemStorage::new();
    wallgrind::block::qcow2::create(&store, None, &options).expect("create");
    store.sync().expect("sync");
    store.journaled().file().clone()
}

/// One step of the workload.
pub type Step = fn(&Image, &mut Track) -> Result<()>;

/// Every kind of change, in an order that shares, copies and frees clusters.
pub const STEPS: &[Step] = &[
    |i, t| write(i, t, 0, 20480, 1),
    |i, t| write(i, t, 40960, 1024, 2),
    flush,
    |i, t| write(i, t, 4608, 3072, 3),
    |i, t| compress(i, t, 49152, 4),
    |i, t| compress(i, t, 53248, 5),
    |i, t| snapshot(i, t, "a"),
    |i, t| write(i, t, 512, 8192, 6),
    |i, t| write(i, t, 49152, 512, 7),
    flush,
    |i, t| discard(i, t, 12288, 8192),
    |i, t| zero(i, t, 40960, 4096, false),
    flush,
    |i, t| write(i, t, 61440, 16384, 8),
    |i, t| zero(i, t, 61440, 4096, true),
    |i, t| snapshot(i, t, "b"),
    |i, t| write(i, t, 0, 4096, 9),
    |i, t| delete(i, t, "a"),
    |i, t| compress(i, t, 53248, 10),
    |i, t| discard(i, t, 0, SIZE),
    flush,
    |i, t| write(i, t, 8192, 30720, 11),
    grow,
    |i, t| write(i, t, SIZE, 4096, 12),
    flush,
    |i, t| delete(i, t, "b"),
    |i, t| write(i, t, 0, 1536, 13),
    flush,
];

fn write(image: &Image, track: &mut Track, at: usize, len: usize, version: u8) -> Result<()> {
    let data = pattern(at, len, version);
    track.change(at, &data);
    image.write(at as u64, &data)
}

fn compress(image: &Image, track: &mut Track, at: usize, version: u8) -> Result<()> {
    let size = image.cluster_size() as usize;
    let at = at / size * size;
    let data = pattern(at, size, version);
    track.change(at, &data);
    image.write_compressed(at as u64, &data)
}

fn discard(image: &Image, track: &mut Track, at: usize, len: usize) -> Result<()> {
    // Only whole clusters go.
    let size = image.cluster_size() as usize;
    let (from, to) = (at.next_multiple_of(size), (at + len) / size * size);
    if from < to {
        track.change(from, &vec![0; to - from]);
    }
    let done = image.discard(at as u64, len as u64)?;
    assert_eq!(done as usize, to.saturating_sub(from));
    Ok(())
}

fn zero(image: &Image, track: &mut Track, at: usize, len: usize, unmap: bool) -> Result<()> {
    track.change(at, &vec![0; len]);
    image.write_zeroes(at as u64, len as u64, unmap)
}

fn flush(image: &Image, track: &mut Track) -> Result<()> {
    image.flush()?;
    track.durable();
    Ok(())
}

fn snapshot(image: &Image, track: &mut Track, name: &str) -> Result<()> {
    let content = (name.to_owned(), track.newest());
    track.unsure.push(content.clone());
    image.create_snapshot(name)?;
    track.unsure.clear();
    track.snapshots.push(content);
    track.durable();
    Ok(())
}

fn delete(image: &Image, track: &mut Track, name: &str) -> Result<()> {
    if let Some(at) = track.snapshots.iter().position(|(known, _)| known == name) {
        let gone = track.snapshots.remove(at);
        track.unsure.push(gone);
        image.delete_snapshot(name)?;
        track.unsure.clear();
    }
    track.durable();
    Ok(())
}

fn grow(image: &Image, track: &mut Track) -> Result<()> {
    let mut next = track.newest();
    next.resize(SIZE + 40960, 0);
    track.states.push(next);
    image.resize(SIZE as u64 + 40960, false)?;
    track.durable();
    Ok(())
}
