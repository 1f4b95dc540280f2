//! A persistent bitmap, which we cannot make ourselves.
//!
//! Neighbours: `bases` has an image with one; the requirement tests make more.

use wallgrind::block::mem::file::MemFile;
use wallgrind::block::{MemStorage, Storage};

fn word(file: &MemFile, at: u64) -> u64 {
    let mut bytes = [0; 8];
    MemStorage::over(file.clone()).read_at(&mut bytes, at).expect("read");
    u64::from_be_bytes(bytes)
}

fn put(file: &MemFile, at: u64, bytes: &[u8]) {
    MemStorage::over(file.clone()).write_at(bytes, at).expect("write");
}

/// Where the parts of a bitmap are, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Its header extension.
    pub extension: u64,
    /// The directory of bitmaps.
    pub directory: u64,
    /// The bitmap's table.
    pub table: u64,
    /// Its one cluster of bits.
    pub data: u64,
}

/// Gives an image with refcounts of 16 bits a consistent persistent bitmap with one cluster of
/// bits. The extension goes to `extension`; where that is 0, it takes the place of all others.
pub fn add(file: &MemFile, extension: u64) -> Places {
    let store = MemStorage::over(file.clone());
    let cluster = 1_u64 << word(file, 16) as u32;
    let end = file.content_len().next_multiple_of(cluster);
    let (directory, table, data) = (end, end + cluster, end + 2 * cluster);
    store.set_len(end + 3 * cluster).expect("grow");
    put(file, data, &[0x55; 64]);
    put(file, table, &data.to_be_bytes());
    let mut entry = Vec::new();
    entry.extend_from_slice(&table.to_be_bytes());
    entry.extend_from_slice(&1_u32.to_be_bytes());
    // Flags: automatically enabled. Type: dirty tracking. Granularity: 64 KiB.
    entry.extend_from_slice(&2_u32.to_be_bytes());
    entry.extend_from_slice(&[1, 16, 0, 4]);
    entry.extend_from_slice(&0_u32.to_be_bytes());
    entry.extend_from_slice(b"name\0\0\0\0");
    put(file, directory, &entry);
    // Refcounts of 16 bits, in the first block.
    let block = word(file, word(file, 48));
    for at in [directory, table, data] {
        put(file, block + 2 * (at / cluster), &1_u16.to_be_bytes());
    }
    let start = if extension == 0 { word(file, 100) >> 32 } else { extension };
    let mut extension = Vec::new();
    extension.extend_from_slice(&0x2385_2875_u32.to_be_bytes());
    extension.extend_from_slice(&24_u32.to_be_bytes());
    extension.extend_from_slice(&1_u32.to_be_bytes());
    extension.extend_from_slice(&0_u32.to_be_bytes());
    extension.extend_from_slice(&(entry.len() as u64).to_be_bytes());
    extension.extend_from_slice(&directory.to_be_bytes());
    put(file, start, &extension);
    put(file, 88, &1_u64.to_be_bytes());
    Places { extension: start, directory, table, data }
}
