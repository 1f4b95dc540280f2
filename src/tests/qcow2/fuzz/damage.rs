//! Damage: fields of structures set to interesting values, bytes anywhere, files
//! cut off or grown.
//!
//! Neighbours: `bases` has what is damaged.

use wallgrind::block::mem::file::MemFile;
use wallgrind::block::{MemStorage, Storage};

use super::bases::Files;
use super::input::Input;

/// Bits of an entry that are an offset.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;

/// Most changes to one image.
const MOST: usize = 6;

fn word(file: &MemFile, at: u64) -> u64 {
    let mut bytes = [0; 8];
    let got = MemStorage::over(file.clone()).read_at(&mut bytes, at);
    if got.is_ok() { u64::from_be_bytes(bytes) } else { 0 }
}

fn put(file: &MemFile, at: u64, bytes: &[u8]) {
    // Past the longest file: no damage then.
    let _ = MemStorage::over(file.clone()).write_at(bytes, at);
}

/// Ranges of the file with structures: offset and bytes.
fn structures(file: &MemFile) -> Vec<(u64, u64)> {
    let bits = (word(file, 16) as u32).clamp(9, 21);
    let cluster = 1 << bits;
    let mut found = vec![(0, 120), (104, 400)];
    let header = |at: u64| word(file, at);
    let (l1, table, snapshots) = (header(40), header(48), header(64));
    found.extend([(l1, 64), (table, 64), (snapshots, 160)]);
    for at in 0..4 {
        found.push((word(file, l1 + 8 * at) & OFFSET, cluster));
    }
    for at in 0..2 {
        found.push((word(file, table + 8 * at), cluster.min(256)));
    }
    let snapshot_l1 = word(file, snapshots);
    found.push((snapshot_l1, 64));
    found.push((word(file, snapshot_l1) & OFFSET, cluster));
    found.retain(|(at, _)| *at < file.content_len());
    found
}

/// Changes the files as `input` says; returns whether anything was changed.
pub fn apply(input: &mut Input<'_>, files: &Files) -> bool {
    let count = usize::from(input.byte());
    // Half of all runs leave the image whole.
    let count = if count < 128 { 0 } else { count % MOST + 1 };
    for _ in 0..count {
        let target = match (input.byte() % 8, &files.backing, &files.data) {
            (0, Some((below, _)), _) => below,
            (1, _, Some(data)) => data,
            _ => &files.file,
        };
        change(input, target);
    }
    count > 0
}

fn change(input: &mut Input<'_>, file: &MemFile) {
    let places = structures(file);
    match input.byte() % 8 {
        0 => {
            let at = u64::from(input.half()) * u64::from(input.byte().max(1));
            let len = input.choice(24) + 1;
            put(file, at % file.content_len().max(1), input.bytes(len));
        }
        1 => {
            let len = file.content_len();
            let by = u64::from(input.half()) * 64;
            let len = if input.byte() & 1 == 0 { len.saturating_sub(by) } else { len + by };
            let _ = MemStorage::over(file.clone()).set_len(len);
        }
        2 => {
            let (from, to) = (place(input, &places), place(input, &places));
            put(file, to, &word(file, from).to_be_bytes());
        }
        3 => {
            let at = place(input, &places);
            let bit = 1_u64 << (input.byte() % 64);
            put(file, at, &(word(file, at) ^ bit).to_be_bytes());
        }
        4 => {
            let at = place(input, &places) + u64::from(input.byte() % 8);
            put(file, at, &[input.byte()]);
        }
        _ => {
            let at = place(input, &places);
            let value = value(input, file, &places, word(file, at));
            let bytes = value.to_be_bytes();
            match input.byte() % 4 {
                0 => put(file, at, &bytes[4..]),
                1 => put(file, at + 4, &bytes[4..]),
                _ => put(file, at, &bytes),
            }
        }
    }
}

/// The place of a word in some structure.
fn place(input: &mut Input<'_>, places: &[(u64, u64)]) -> u64 {
    match places.get(input.choice(places.len())) {
        Some((at, len)) => at + u64::from(input.half()) * 8 % (*len).max(8),
        None => u64::from(input.half()) * 8,
    }
}

fn value(input: &mut Input<'_>, file: &MemFile, places: &[(u64, u64)], old: u64) -> u64 {
    let flags = match input.byte() % 6 {
        0 => 1 << 63,
        1 => 1 << 62,
        2 => 1,
        _ => 0,
    };
    let base = match input.byte() % 8 {
        0 => input.word(),
        1 => u64::MAX >> (input.byte() % 64),
        2 => 1 << (input.byte() % 64),
        3 => old.wrapping_add(u64::from(input.byte())),
        4 => old.wrapping_add(512 * u64::from(input.half())),
        5 => file.content_len() + 512 * u64::from(input.byte() % 4),
        6 => places.get(input.choice(places.len())).map_or(0, |place| place.0),
        _ => u64::from(input.byte()) * 512,
    };
    base | flags
}
