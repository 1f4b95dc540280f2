//! The images of `fixtures/qcow2`, which qemu's tools wrote: they are what
//! `fixtures/README.md` says, and each reads as it should, takes writes and
//! stays clean. No tool is needed.
//!
//! Neighbours: `fixtures/qcow2/make.sh` made them; `qcow2_oracle` asks qemu itself.

#[path = "fixture_table.rs"]
mod fixture_table;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use wallgrind::block::qcow2::{Compression, Extent, GuestOffset, Image, OpenOptions, Source};

const M: usize = 1 << 20;

/// Bytes that one call of `qemu-io` wrote: where, how many, which.
type Write = (usize, usize, u8);

/// What most of them hold.
const COMMON: &[Write] = &[
    (0, 65536, 0x11),
    (102_400, 3072, 0x22),
    (300_001, 777, 0x33),
    (32768, 8192, 0),
    (1_048_064, 512, 0x55),
];

const COMPRESSED: &[Write] = &[(524_288, 65536, 0x66), (589_824, 65536, 0x77), (655_360, 65536, 0x88)];

/// A disk with these writes, in order.
fn disk(size: usize, writes: &[&[Write]]) -> Vec<u8> {
    let mut disk = vec![0; size];
    put(&mut disk, writes);
    disk
}

fn put(disk: &mut [u8], writes: &[&[Write]]) {
    for &(at, len, byte) in writes.iter().copied().flatten() {
        disk[at..at + len].fill(byte);
    }
}

/// The files of an image, unpacked into a folder that goes away.
fn unpacked(image: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("scratch folder");
    let family = if image == "chain" { &["chain", "middle", "base"][..] } else { &[image] };
    for name in fixture_table::on_disk("qcow2") {
        if family.iter().all(|wanted| name.split('.').next() != Some(wanted)) {
            continue;
        }
        let packed = fs::read(fixture_table::folder("qcow2").join(&name)).expect("a fixture");
        let bytes = zstd::stream::decode_all(&packed[..]).expect("a zstd frame");
        fs::write(dir.path().join(name.trim_end_matches(".zst")), bytes).expect("write");
    }
    dir
}

/// An image opened for reading, and the folder that it is in.
fn opened(name: &str) -> (TempDir, Image) {
    let dir = unpacked(name);
    let image = Image::open(path(&dir, name), &allowed()).expect(name);
    (dir, image)
}

fn allowed() -> OpenOptions {
    OpenOptions::new().allow_backing(true).allow_data_file(true)
}

fn path(dir: &TempDir, name: &str) -> PathBuf {
    dir.path().join(format!("{name}.qcow2"))
}

fn content(image: &Image) -> Vec<u8> {
    let mut disk = vec![0xcd; image.size() as usize];
    image.read(0, &mut disk).expect("read");
    disk
}

fn assert_same(name: &str, read: &[u8], known: &[u8]) {
    assert_eq!(read.len(), known.len(), "{name}");
    if read != known {
        let differs = read.iter().zip(known).position(|(a, b)| a != b);
        panic!("{name}: the first difference is at {differs:?}");
    }
}

/// Reads `name` as it is, then writes to it, and reads again.
fn holds(name: &str, known: Vec<u8>) {
    let (dir, image) = opened(name);
    assert_same(name, &content(&image), &known);
    let report = image.check().expect("check");
    assert!(report.is_clean(), "{name}: {report:?}");
    drop(image);
    takes_writes(&dir, name, known);
}

fn takes_writes(dir: &TempDir, name: &str, mut known: Vec<u8>) {
    let image = Image::open(path(dir, name), &allowed().writable(true)).expect(name);
    let writes: &[Write] = &[(1000, 70_000, 0xb1), (300_000, 512, 0xb2), (600_000, 9000, 0xb3)];
    for &(at, len, byte) in writes {
        image.write(at as u64, &vec![byte; len]).expect("write");
    }
    image.write_zeroes(98_304, 8192, true).expect("zero");
    put(&mut known, &[writes, &[(98_304, 8192, 0)]]);
    drop(image);
    let image = Image::open(path(dir, name), &allowed()).expect(name);
    assert_same(name, &content(&image), &known);
    let report = image.check().expect("check");
    assert!(report.is_clean(), "{name}: {report:?}");
}

#[test]
fn the_table_of_checksums_holds() {
    let digest = |name: String| {
        let bytes = fs::read(fixture_table::folder("qcow2").join(&name)).expect("a fixture");
        (name, fixture_table::digest(&bytes))
    };
    let found: BTreeMap<String, String> = fixture_table::on_disk("qcow2").into_iter().map(digest).collect();
    assert_eq!(found.len(), 20);
    assert_eq!(found, fixture_table::table("qcow2"));
}

#[test]
fn both_versions() {
    holds("v2", disk(M, &[COMMON]));
    holds("v3", disk(M, &[COMMON]));
    let version = |name| opened(name).1.header().version;
    assert_eq!((version("v2"), version("v3")), (2, 3));
}

#[test]
fn the_smallest_and_the_largest_clusters() {
    holds("clusters_512", disk(M, &[COMMON]));
    holds("clusters_2m", disk(M, &[COMMON]));
    let size = |name| opened(name).1.cluster_size();
    assert_eq!((size("clusters_512"), size("clusters_2m")), (512, 2 << 20));
}

#[test]
fn the_narrowest_and_the_widest_refcounts() {
    holds("refcount_1", disk(M, &[COMMON]));
    holds("refcount_64", disk(M, &[COMMON]));
    let most = |name| opened(name).1.geometry().refcount_max();
    assert_eq!((most("refcount_1"), most("refcount_64")), (1, u64::MAX));
}

#[test]
fn both_methods_of_compression() {
    for (name, method) in [("zlib", Compression::Zlib), ("zstd", Compression::Zstd)] {
        holds(name, disk(M, &[COMMON, COMPRESSED]));
        let (_dir, image) = opened(name);
        assert_eq!(image.header().compression().expect("a known method"), method);
        assert_eq!(image.check().expect("check").compressed_clusters, 3, "{name}");
    }
}

#[test]
fn subclusters() {
    holds("subclusters", disk(M, &[COMMON]));
    let (_dir, image) = opened("subclusters");
    assert!(image.geometry().extended_l2);
    // 102,400 is in the second cluster, where only three subclusters are there.
    let extents = image.map(GuestOffset(65536), 65536).expect("map");
    let data = |extent: &&Extent| matches!(extent.source, Source::Data(_));
    assert_eq!(extents.iter().filter(data).map(|extent| extent.len).sum::<u64>(), 4096);
}

#[test]
fn zero_clusters_with_and_without_a_host_cluster() {
    let zeroed: &[Write] = &[(0, 8192, 0), (16384, 8192, 0)];
    holds("zeroes", disk(M, &[COMMON, zeroed]));
    let (_dir, image) = opened("zeroes");
    for at in [0, 16384, 204_800] {
        let extent = image.extent(GuestOffset(at), 8192).expect("extent");
        assert_eq!((extent.len, extent.source), (8192, Source::Zero), "{at}");
    }
}

#[test]
fn snapshots() {
    let first = disk(M, &[COMMON]);
    let second = disk(M, &[COMMON, &[(4096, 20480, 0x99)]]);
    holds("snapshot", disk(M, &[COMMON, &[(4096, 20480, 0x99), (8192, 4096, 0xaa), (12288, 4096, 0)]]));
    let dir = unpacked("snapshot");
    for round in 0..2 {
        for (name, known) in [("first", &first), ("second", &second)] {
            let image = Image::open(path(&dir, "snapshot"), &allowed().snapshot(name)).expect(name);
            assert_same(name, &content(&image), known);
        }
        if round == 0 {
            let image = Image::open(path(&dir, "snapshot"), &allowed().writable(true)).expect("open");
            image.write(0, &[0xee; M]).expect("write");
        }
    }
    let image = Image::open(path(&dir, "snapshot"), &allowed().writable(true)).expect("open");
    image.apply_snapshot("first").expect("apply");
    assert_same("applied", &content(&image), &first);
    image.delete_snapshot("second").expect("delete");
    assert!(image.check().expect("check").is_clean());
}

/// Kept as long as nobody writes; dropped with its clusters when somebody may.
#[test]
fn a_persistent_bitmap() {
    const BITMAPS: u32 = 0x2385_2875;
    let (dir, image) = opened("bitmap");
    let has = |image: &Image| image.extensions().iter().any(|e| e.kind == BITMAPS);
    assert!(has(&image) && image.header().autoclear & 1 != 0);
    assert!(image.check().expect("check").is_clean());
    drop(image);
    let image = Image::open(path(&dir, "bitmap"), &allowed().writable(true)).expect("open");
    assert!(!has(&image) && image.header().autoclear & 1 == 0);
    assert!(image.check().expect("check").is_clean(), "the bitmap's clusters leaked");
    drop(image);
    holds("bitmap", disk(M, &[COMMON]));
}

#[test]
fn a_chain_of_an_image_over_an_image_over_a_raw_file() {
    let mut known = vec![0; M];
    put(&mut known, &[&[(0, 400_001, b'r'), (65536, 4096, 0x44)], COMMON]);
    holds("chain", known);
}

#[test]
fn external_data_files() {
    holds("data_file", disk(M, &[COMMON]));
    holds("data_file_raw", disk(M, &[COMMON]));
    let dir = unpacked("data_file_raw");
    let raw = fs::read(dir.path().join("data_file_raw.raw")).expect("the data file");
    assert_same("as a raw image", &raw, &disk(M, &[COMMON]));
}

/// Refcounts are missing in it; opening for writing makes them anew.
#[test]
fn an_image_whose_writer_was_killed() {
    let known = disk(M, &[&[(0, 65536, 0x11), (131_072, 65536, 0x22)]]);
    let (dir, image) = opened("dirty");
    assert_eq!(image.header().incompatible & 1, 1, "the dirty bit");
    assert!(image.check().expect("check").corruptions > 0);
    assert_same("dirty", &content(&image), &known);
    drop(image);
    takes_writes(&dir, "dirty", known);
    let image = Image::open(path(&dir, "dirty"), &allowed()).expect("open");
    assert_eq!((image.header().incompatible & 1, image.header().compatible), (0, 1));
}
