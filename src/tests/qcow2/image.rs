//! Small images in memory for the requirement tests, and ways to damage them.
//!
//! Neighbours: the `req_*` modules.

use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{Backing, CreateOptions, Image, OpenOptions, Parts, create};
use wallgrind::block::{Error, ErrorKind, MemStorage, Result, Storage};

/// The size of [`made`] disks in bytes.
pub const SIZE: u64 = 1 << 20;
/// Bits of an entry that are an offset.
pub const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
/// An entry's COPIED flag.
pub const COPIED: u64 = 1 << 63;

/// An empty image of [`SIZE`] bytes.
pub fn made(change: impl FnOnce(&mut CreateOptions)) -> MemFile {
    let mut options = CreateOptions::new(SIZE);
    change(&mut options);
    let store = MemStorage::new();
    create(&store, None, &options).expect("create");
    store.file().clone()
}

/// Storage over a file in memory.
pub fn store(file: &MemFile) -> MemStorage {
    MemStorage::over(file.clone())
}

/// Opens it.
pub fn open_with(file: &MemFile, options: &OpenOptions) -> Result<Image> {
    Image::from_parts(Parts { file: Box::new(store(file)), data: None, backing: None }, options)
}

/// Opens it read-only.
pub fn open(file: &MemFile) -> Result<Image> {
    open_with(file, &OpenOptions::new())
}

/// Opens it for writing.
pub fn writable(file: &MemFile) -> Image {
    open_with(file, &OpenOptions::new().writable(true)).expect("open for writing")
}

/// An overlay over raw bytes, open for writing.
pub fn overlay(bytes: &[u8], change: impl FnOnce(&mut CreateOptions)) -> (MemFile, Image) {
    let file = made(|options| {
        options.backing = Some(("backing.raw".to_owned(), "raw".to_owned()));
        change(options);
    });
    let image = over(&file, bytes);
    (file, image)
}

/// Opens an overlay again.
pub fn over(file: &MemFile, bytes: &[u8]) -> Image {
    let backing = Backing::raw(Box::new(MemStorage::from_bytes(bytes))).expect("backing");
    let parts = Parts { file: Box::new(store(file)), data: None, backing: Some(backing) };
    Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open overlay")
}

/// Overwrites bytes of the file.
pub fn patch(file: &MemFile, at: u64, bytes: &[u8]) {
    store(file).write_at(bytes, at).expect("patch");
}

/// Overwrites a big-endian word.
pub fn patch_word(file: &MemFile, at: u64, word: u64) {
    patch(file, at, &word.to_be_bytes());
}

/// Reads a big-endian word.
pub fn word(file: &MemFile, at: u64) -> u64 {
    let mut bytes = [0; 8];
    store(file).read_at(&mut bytes, at).expect("read");
    u64::from_be_bytes(bytes)
}

/// Reads bytes of the disk.
pub fn read(image: &Image, at: u64, len: usize) -> Vec<u8> {
    let mut buf = vec![0xcd; len];
    image.read(at, &mut buf).expect("read");
    buf
}

/// Where the L2 entry of guest cluster `index` is, in the first table.
pub fn l2_entry(file: &MemFile, index: u64) -> u64 {
    (word(file, word(file, 40)) & OFFSET) + 8 * index
}

/// Fails unless a check finds nothing.
pub fn assert_clean(image: &Image) {
    let report = image.check().expect("check");
    assert!(report.is_clean(), "{report:?}");
}

/// The kind of an error, which must be one.
pub fn kind<T: std::fmt::Debug>(result: std::result::Result<T, Error>) -> ErrorKind {
    result.expect_err("succeeded").kind()
}

/// A copy of the file that is not shared.
pub fn copy(file: &MemFile) -> MemFile {
    MemStorage::from_bytes(&store(file).to_bytes()).file().clone()
}
