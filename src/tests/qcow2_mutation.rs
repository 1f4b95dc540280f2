//! Hostile images: each field of the header, L1, L2, refcount table and
//! refcount blocks set to 0, 1, its maximum, unaligned, past the end of the
//! file, and to the place of each other structure. Opening and use end in
//! success or a typed error, in bounded time and memory, and what was written
//! by others stays where it is.
//!
//! Neighbours: `wallgrind::block::mem` holds the images.

use std::time::{Duration, Instant};

use wallgrind::block::qcow2::{CreateOptions, Image, OpenOptions, Parts};
use wallgrind::block::{MemStorage, Storage};

/// The longest that one mutation may take; an unmutated image takes milliseconds.
const LIMIT: Duration = Duration::from_secs(20);
const SIZE: u64 = 1 << 20;

/// A field: where it is and how many bytes it has.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    at: u64,
    len: usize,
}

struct Scene {
    bytes: Vec<u8>,
    fields: Vec<Field>,
    /// Places of structures, to point at each other.
    places: Vec<u64>,
}

fn word(bytes: &[u8], at: u64) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at as usize..][..8]);
    u64::from_be_bytes(word)
}

/// An image with data, compressed data, zeroes and a snapshot.
fn scene(change: impl FnOnce(&mut CreateOptions)) -> Scene {
    let mut options = CreateOptions::new(SIZE);
    options.cluster_size = 4096;
    change(&mut options);
    let store = MemStorage::new();
    let file = store.file().clone();
    let parts = Parts { file: Box::new(store), data: None, backing: None };
    let image = Image::create_from(parts, &options).expect("create");
    let size = options.cluster_size;
    image.write(0, &vec![7; 3 * size as usize]).expect("write");
    image.write_compressed(4 * size, &vec![8; size as usize]).expect("compress");
    image.create_snapshot("kept").expect("snapshot");
    image.write(size, &vec![9; size as usize]).expect("write");
    image.write_zeroes(6 * size, size, false).expect("zero");
    image.flush().expect("flush");
    drop(image);
    let bytes = MemStorage::over(file).to_bytes();
    describe(bytes, size)
}

fn describe(bytes: Vec<u8>, size: u64) -> Scene {
    let mut fields = Vec::new();
    let mut add = |name: String, at: u64, len: usize| fields.push(Field { name, at, len });
    for (at, len) in [
        (4, 4),
        (8, 8),
        (16, 4),
        (20, 4),
        (24, 8),
        (32, 4),
        (36, 4),
        (40, 8),
        (48, 8),
        (56, 4),
        (60, 4),
        (64, 8),
    ] {
        add(format!("header {at}"), at, len);
    }
    for (at, len) in [(72, 8), (80, 8), (88, 8), (96, 4), (100, 4), (104, 1), (112, 4), (116, 4)] {
        add(format!("header {at}"), at, len);
    }
    let l1 = word(&bytes, 40);
    let l2 = word(&bytes, l1) & 0x00ff_ffff_ffff_fe00;
    let table = word(&bytes, 48);
    let block = word(&bytes, table);
    let snapshots = word(&bytes, 64);
    for index in 0..2 {
        add(format!("L1 {index}"), l1 + 8 * index, 8);
    }
    for index in 0..8 {
        add(format!("L2 {index}"), l2 + 8 * index, 8);
    }
    for index in 0..2 {
        add(format!("refcount table {index}"), table + 8 * index, 8);
    }
    for index in [0, 1, 2, 3, 5, 8] {
        add(format!("refcount {index}"), block + 2 * index, 2);
    }
    for (at, len) in [(0, 8), (8, 4), (12, 2), (14, 2), (32, 4), (36, 4), (40, 8), (48, 8)] {
        add(format!("snapshot {at}"), snapshots + at, len);
    }
    let data = word(&bytes, l2) & 0x00ff_ffff_ffff_fe00;
    let places = vec![0, l1, l2, table, block, snapshots, data, size, bytes.len() as u64];
    Scene { bytes, fields, places }
}

/// Values that a field is set to.
fn values(scene: &Scene, field: &Field) -> Vec<u64> {
    let end = scene.bytes.len() as u64;
    let mut values = vec![0, 1, 2, 0x1ff, u64::MAX, u64::MAX >> 1, 1 << 62, 1 << 63, 1 << 31];
    values.extend([end + 4096, (1 << 55) - 4096, 1 << 40]);
    let old = match field.len {
        8 => word(&scene.bytes, field.at),
        _ => 0,
    };
    values.extend([old ^ (1 << 63), old + 1, old + 512, old ^ 1]);
    for place in &scene.places {
        values.extend([*place, place | 1 << 63, place | 1 << 62, place + 8]);
    }
    values.iter_mut().for_each(|value| *value &= u64::MAX >> (64 - 8 * field.len));
    values.sort_unstable();
    values.dedup();
    values
}

fn mutated(scene: &Scene, field: &Field, value: u64) -> MemStorage {
    let mut bytes = scene.bytes.clone();
    let end = (field.at as usize + field.len).min(bytes.len());
    let encoded = value.to_be_bytes();
    bytes[field.at as usize..end].copy_from_slice(&encoded[8 - (end - field.at as usize)..]);
    MemStorage::from_bytes(&bytes)
}

/// Uses an image in every way. Errors are fine; they end one use, not the others.
fn exercise(store: &MemStorage, options: &OpenOptions) -> u32 {
    let over = MemStorage::over(store.file().clone());
    let parts = Parts { file: Box::new(over), data: None, backing: None };
    let Ok(image) = Image::from_parts(parts, options) else {
        return 0;
    };
    let mut buf = vec![0; 40_000];
    let mut done = 0;
    let mut tally = |ok: bool| done += u32::from(ok);
    tally(image.read(0, &mut buf).is_ok());
    tally(image.read(16_384, &mut buf[..512]).is_ok());
    tally(image.write(100, &buf[..9000]).is_ok());
    tally(image.write_zeroes(4096, 8192, true).is_ok());
    tally(image.discard(0, 12_288).is_ok());
    tally(image.write_compressed(65_536, &buf[..image.cluster_size().min(40_000) as usize]).is_ok());
    tally(image.flush().is_ok());
    tally(image.write(SIZE / 2, &buf[..4096]).is_ok());
    tally(image.check().is_ok());
    tally(image.create_snapshot("more").is_ok());
    tally(image.apply_snapshot("kept").is_ok());
    tally(image.delete_snapshot("kept").is_ok());
    tally(image.resize(SIZE + 4096, false).is_ok());
    tally(image.flush().is_ok());
    done
}

fn mutate_all(change: fn(&mut CreateOptions)) {
    let scene = scene(change);
    let mut used = 0_u64;
    for field in &scene.fields {
        for value in values(&scene, field) {
            let store = mutated(&scene, field, value);
            let before = Instant::now();
            used += u64::from(exercise(&store, &OpenOptions::new()));
            used += u64::from(exercise(&store, &OpenOptions::new().writable(true)));
            let store = mutated(&scene, field, value);
            repair(&store, field, value);
            assert!(before.elapsed() < LIMIT, "{field:?} = {value:#x} took {:?}", before.elapsed());
        }
    }
    assert!(used > 500, "only {used} uses succeeded");
}

fn repair(store: &MemStorage, field: &Field, value: u64) {
    let over = MemStorage::over(store.file().clone());
    let parts = Parts { file: Box::new(over), data: None, backing: None };
    let Ok(image) = Image::from_parts(parts, &OpenOptions::new().for_repair(true)) else {
        return;
    };
    let length = store.len().expect("length");
    let Ok(report) = image.repair() else {
        return;
    };
    let longer = store.len().expect("length");
    assert!(longer < length + (64 << 20), "{field:?} = {value:#x}: repair took {longer} bytes");
    drop(image);
    if report.is_clean() {
        whole_again(store, field, value);
    }
}

/// What a repair calls clean can be used: every byte reads, and takes a write.
fn whole_again(store: &MemStorage, field: &Field, value: u64) {
    let over = MemStorage::over(store.file().clone());
    let parts = Parts { file: Box::new(over), data: None, backing: None };
    let image = Image::from_parts(parts, &OpenOptions::new().writable(true))
        .unwrap_or_else(|error| panic!("{field:?} = {value:#x}: opening after the repair: {error}"));
    let mut disk = vec![0; image.size().min(SIZE) as usize];
    let used = image.read(0, &mut disk).and_then(|()| image.write(0, &disk)).and_then(|()| image.flush());
    match used {
        Ok(()) => {}
        // The stream of a compressed cluster is no structure: nobody can repair it.
        Err(error) if error.to_string().starts_with("compressed cluster") => {}
        Err(error) => panic!("{field:?} = {value:#x}: use after the repair: {error}"),
    }
}

#[test]
fn fields_of_a_plain_image() {
    mutate_all(|_| {});
}

#[test]
fn fields_of_an_image_with_512_byte_clusters() {
    mutate_all(|options| options.cluster_size = 512);
}

#[test]
fn fields_of_an_image_with_subclusters() {
    mutate_all(|options| (options.cluster_size, options.extended_l2) = (16384, true));
}

#[test]
fn fields_of_a_version_2_image() {
    mutate_all(|options| options.version = 2);
}

/// Data that the guest wrote never lands on a structure, whatever an L2 entry says.
#[test]
fn entries_that_point_at_structures_are_never_written_through() {
    let scene = scene(|_| {});
    let entries: Vec<Field> = scene.fields.iter().filter(|f| f.name.starts_with("L2 0")).cloned().collect();
    for place in &scene.places[..6] {
        let store = mutated(&scene, &entries[0], place | 1 << 63);
        let over = MemStorage::over(store.file().clone());
        let parts = Parts { file: Box::new(over), data: None, backing: None };
        let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
        let before = store.to_bytes();
        let error = image.write(0, &[0xaa; 512]).expect_err("written through");
        assert_eq!(error.kind(), wallgrind::block::ErrorKind::Corrupt);
        assert!(!image.is_writable());
        drop(image);
        let mut after = store.to_bytes();
        assert_eq!(after[79] & 2, 2, "corrupt bit");
        after[79] &= !2;
        assert!(before == after, "something else changed");
    }
}
