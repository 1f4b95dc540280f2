//! Requirements 1 to 15: opening, and files beside the image.
//!
//! Neighbours: `image` makes and damages images.

use wallgrind::block::ErrorKind::{Corrupt, InvalidInput, UnexpectedEof, Unsupported};
use wallgrind::block::qcow2::{Backing, Compression, CreateOptions, Image, OpenOptions, Parts};
use wallgrind::block::{ErrorKind, MemStorage, Storage};

use super::image::*;

/// Opening after a patch must fail with `expected` and change nothing.
fn refused(at: u64, bytes: &[u8], expected: ErrorKind) {
    let file = made(|_| {});
    patch(&file, at, bytes);
    let before = store(&file).to_bytes();
    let writable = OpenOptions::new().writable(true);
    assert_eq!(kind(open(&file)), expected, "byte {at}: {bytes:?}");
    assert_eq!(kind(open_with(&file, &writable)), expected, "byte {at}: {bytes:?}");
    assert!(store(&file).to_bytes() == before);
}

#[test]
fn req_01_sizes_outside_their_bounds() {
    for bits in [0_u32, 8, 22, 63, 64, u32::MAX] {
        refused(20, &bits.to_be_bytes(), Corrupt);
    }
    for version in [0_u32, 1, 4, u32::MAX] {
        refused(4, &version.to_be_bytes(), Unsupported);
    }
    for order in [7_u32, 64, u32::MAX] {
        refused(96, &order.to_be_bytes(), Corrupt);
    }
}

#[test]
fn req_02_tables_that_are_not_there() {
    refused(56, &0_u32.to_be_bytes(), Corrupt);
    for offset in [0_u64, 7, 65537, 1 << 40, u64::MAX, !0xffff_u64] {
        refused(48, &offset.to_be_bytes(), Corrupt);
        refused(40, &offset.to_be_bytes(), Corrupt);
    }
    refused(36, &0_u32.to_be_bytes(), Corrupt);
    refused(36, &u32::MAX.to_be_bytes(), Corrupt);
    refused(36, &((32_u32 << 20) / 8 + 1).to_be_bytes(), Corrupt);
    for size in [1_u64 << 63, u64::MAX, (1 << 29) + 1] {
        refused(24, &size.to_be_bytes(), Corrupt);
    }
}

#[test]
fn req_03_header_length_and_extensions() {
    for length in [0_u32, 71, 103, 105, 65544, u32::MAX] {
        refused(100, &length.to_be_bytes(), Corrupt);
    }
    // The first extension of a new image is at 112.
    refused(116, &65536_u32.to_be_bytes(), Corrupt);
    refused(116, &u32::MAX.to_be_bytes(), Corrupt);
    let file = made(|options| options.cluster_size = 512);
    let mut area = Vec::new();
    for kind in 1..=50_u32 {
        area.extend_from_slice(&kind.to_be_bytes());
        area.extend_from_slice(&0_u32.to_be_bytes());
    }
    patch(&file, 112, &area);
    assert_eq!(kind(open(&file)), Corrupt, "no end mark");
}

#[test]
fn req_04_version_2_has_no_version_3_fields() {
    let file = made(|options| options.version = 2);
    // A backing file name where version 3 has its feature bits.
    patch(&file, 80, &[0xff; 32]);
    patch_word(&file, 8, 80);
    patch(&file, 16, &32_u32.to_be_bytes());
    let parts = Parts {
        file: Box::new(store(&file)),
        data: None,
        backing: Some(Backing::raw(Box::new(MemStorage::from_bytes(&[9; 512]))).expect("raw")),
    };
    let image = Image::from_parts(parts, &OpenOptions::new()).expect("open");
    assert_eq!(image.header().incompatible, 0);
    assert_eq!(read(&image, 0, 512), [9; 512]);
}

#[test]
fn req_05_a_file_that_was_cut() {
    let file = made(|options| options.cluster_size = 4096);
    writable(&file).write(0, &[5; 8192]).expect("write");
    let whole = store(&file).to_bytes();
    for len in [0, 3, 50, 72, 104, 111] {
        let cut = MemStorage::from_bytes(&whole[..len]);
        assert!(matches!(kind(open(cut.file())), UnexpectedEof | Corrupt | InvalidInput), "{len}");
    }
    let l2 = (l2_entry(&file, 0)) as usize;
    let data = (word(&file, l2 as u64) & OFFSET) as usize;
    for len in [512, l2, l2 + 100, data, data + 4096] {
        let cut = MemStorage::from_bytes(&whole[..len]);
        let Ok(image) = open(cut.file()) else {
            continue;
        };
        let mut buf = [0; 8192];
        assert!(matches!(kind(image.read(0, &mut buf)), UnexpectedEof | Corrupt), "{len}");
    }
}

#[test]
fn req_06_unknown_and_contradicting_features() {
    let file = made(|_| {});
    patch_word(&file, 72, 1 << 40);
    let error = open(&file).expect_err("opened");
    assert_eq!(error.kind(), Unsupported);
    assert!(error.to_string().contains("40"), "{error}");
    refused(104, &[1], Corrupt);
    refused(72, &(1_u64 << 3).to_be_bytes(), Corrupt);
    let file = made(|options| options.compression = Compression::Zstd);
    patch(&file, 104, &[2]);
    assert_eq!(kind(open(&file)), Unsupported);
    for method in [1_u32, 2, 3] {
        refused(32, &method.to_be_bytes(), Unsupported);
    }
}

#[test]
fn req_07_corrupt_is_read_only_and_dirty_is_repaired() {
    let file = made(|_| {});
    writable(&file).write(0, &[1; 512]).expect("write");
    patch_word(&file, 72, 2);
    assert_eq!(read(&open(&file).expect("read-only"), 0, 512), [1; 512]);
    assert_eq!(kind(open_with(&file, &OpenOptions::new().writable(true))), Corrupt);
    let file = made(|options| options.cluster_size = 4096);
    let image = writable(&file);
    image.write_compressed(0, &[2; 4096]).expect("compressed");
    image.write(4096, &[3; 4096]).expect("write");
    image.create_snapshot("s").expect("snapshot");
    drop(image);
    // All counts are lost.
    let block = word(&file, word(&file, 48));
    patch(&file, block, &[0; 4096]);
    patch_word(&file, 72, 1);
    let image = writable(&file);
    assert_eq!(image.header().incompatible, 0);
    assert_clean(&image);
    image.write(0, &[4; 8192]).expect("write");
    assert_clean(&image);
    drop(image);
    let at = open_with(&file, &OpenOptions::new().snapshot("s")).expect("snapshot");
    assert_eq!(read(&at, 0, 4097)[4095..], [2, 3]);
}

#[test]
fn req_08_feature_bits_and_extensions_survive() {
    let file = made(|options| {
        options.lazy_refcounts = true;
        options.compression = Compression::Zstd;
    });
    let length = word(&file, 112) as u32;
    let next = 120 + u64::from(length).next_multiple_of(8);
    // Unknown, then bitmaps with nothing in them.
    patch(&file, next, &[0x12, 0x34, 0x56, 0x78, 0, 0, 0, 5, b'k', b'e', b'e', b'p', b'!', 0, 0, 0]);
    patch(&file, next + 16, &[0x23, 0x85, 0x28, 0x75, 0, 0, 0, 24]);
    patch_word(&file, 88, 1 | 1 << 50);
    patch_word(&file, 80, 1 | 1 << 30);
    assert_eq!(open(&file).expect("open").header().autoclear, 1 | 1 << 50);
    let image = writable(&file);
    image.write(0, &[1; 512]).expect("write");
    image.create_snapshot("s").expect("snapshot");
    drop(image);
    let image = open(&file).expect("open");
    let header = image.header();
    assert_eq!((header.autoclear, header.compatible), (0, 1 | 1 << 30));
    assert_eq!(header.compression().expect("type"), Compression::Zstd);
    let kept: Vec<_> = image.extensions().into_iter().filter(|e| e.kind == 0x1234_5678).collect();
    assert_eq!(kept[0].data, b"keep!");
    assert!(image.extensions().iter().all(|e| e.kind != 0x2385_2875));
    assert_clean(&image);
}

#[test]
fn req_09_a_refcount_table_larger_than_the_disk_suggests() {
    let file = made(|options| options.size = 512);
    // Ten clusters of table at the end of the file, counted.
    let image = store(&file);
    let end = image.len().expect("length").next_multiple_of(65536);
    let table = store(&file).to_bytes()[65536..131072].to_vec();
    patch(&file, end, &table);
    image.set_len(end + 10 * 65536).expect("longer");
    patch_word(&file, 48, end);
    patch(&file, 56, &10_u32.to_be_bytes());
    let image = open_with(&file, &OpenOptions::new().for_repair(true)).expect("open");
    image.repair().expect("repair");
    drop(image);
    assert_clean(&open(&file).expect("open"));
    writable(&file).write(0, &[1; 512]).expect("write");
}

#[test]
fn req_10_snapshot_tables_that_are_not() {
    for (count, offset) in [(u32::MAX, 131072_u64), (1, 7), (1, 1 << 50), (65536, 131072), (65537, 131072)] {
        let file = made(|_| {});
        patch(&file, 60, &count.to_be_bytes());
        patch_word(&file, 64, offset);
        assert_eq!(kind(open(&file)), Corrupt, "{count} at {offset}");
    }
    let file = made(|_| {});
    writable(&file).create_snapshot("s").expect("snapshot");
    let table = word(&file, 64);
    patch(&file, table + 36, &u32::MAX.to_be_bytes());
    assert_eq!(kind(open(&file)), Corrupt);
    patch(&file, table + 36, &16_u32.to_be_bytes());
    patch(&file, table + 12, &[0xff; 4]);
    assert_eq!(kind(open(&file)), Corrupt);
}

#[test]
fn req_11_no_field_sizes_an_allocation() {
    // With fields at their maximum a file of a few hundred KiB opens or is refused at once; an
    // allocation of what they say would be gigabytes.
    for (at, bytes) in [
        (36, &u32::MAX.to_be_bytes()[..]),
        (56, &u32::MAX.to_be_bytes()),
        (60, &u32::MAX.to_be_bytes()),
        (16, &u32::MAX.to_be_bytes()),
        (116, &u32::MAX.to_be_bytes()),
    ] {
        let file = made(|_| {});
        patch(&file, at, bytes);
        let _ = open(&file);
    }
    let file = made(|_| {});
    patch(&file, 56, &u32::MAX.to_be_bytes());
    store(&file).set_len(1 << 50).expect("sparse");
    assert_eq!(kind(open(&file)), Corrupt, "a sparse file makes the length no excuse");
}

#[test]
fn req_12_other_files_only_when_allowed() {
    let dir = tempfile::tempdir().expect("folder");
    let inner = dir.path().join("inner");
    std::fs::create_dir(&inner).expect("folder");
    std::fs::write(inner.join("b.raw"), [6; 4096]).expect("write");
    let image = inner.join("o.qcow2");
    let mut options = CreateOptions::new(4096);
    options.backing = Some(("b.raw".to_owned(), "raw".to_owned()));
    Image::create(&image, &options).expect("create");
    assert_eq!(kind(Image::open(&image, &OpenOptions::new())), Unsupported);
    let allowed = OpenOptions::new().allow_backing(true);
    assert_eq!(read(&Image::open(&image, &allowed).expect("open"), 0, 4096), [6; 4096]);
    let socket = std::os::unix::net::UnixListener::bind(inner.join("socket")).expect("socket");
    for (name, at) in
        [("/dev/zero", "z.qcow2"), ("socket", "s.qcow2"), ("nbd:localhost", "n.qcow2"), ("none", "m.qcow2")]
    {
        options.backing = Some((name.to_owned(), "raw".to_owned()));
        let path = inner.join(at);
        Image::create(&path, &options).expect("create");
        let expected = if name == "none" { ErrorKind::Io } else { Unsupported };
        assert_eq!(kind(Image::open(&path, &allowed)), expected, "{name}");
    }
    drop(socket);
}

#[test]
fn req_13_loops_and_depth() {
    let dir = tempfile::tempdir().expect("folder");
    let make = |name: &str, backing: &str| {
        let mut options = CreateOptions::new(4096);
        options.backing = Some((backing.to_owned(), "qcow2".to_owned()));
        Image::create(dir.path().join(name), &options).expect("create");
    };
    make("self", "self");
    make("a", "b");
    make("b", "a");
    let allowed = OpenOptions::new().allow_backing(true);
    for name in ["self", "a"] {
        assert_eq!(kind(Image::open(dir.path().join(name), &allowed)), Corrupt);
    }
    Image::create(dir.path().join("0"), &CreateOptions::new(4096)).expect("create");
    (1..10).for_each(|n: u32| make(&n.to_string(), &(n - 1).to_string()));
    assert!(Image::open(dir.path().join("9"), &allowed).is_ok());
    let shallow = allowed.max_depth(8);
    assert_eq!(kind(Image::open(dir.path().join("9"), &shallow)), Unsupported);
    assert!(Image::open(dir.path().join("8"), &shallow).is_ok());
}

#[test]
fn req_14_backing_files_of_other_sizes() {
    let (_, image) = overlay(&[3; 70_001], |_| {});
    assert!(read(&image, 65536, 8000)[..4465].iter().all(|b| *b == 3));
    assert!(read(&image, 70_001, 8000).iter().all(|b| *b == 0));
    image.write(69_000, &[4; 512]).expect("write");
    let cluster = read(&image, 65536, 65536);
    assert_eq!(cluster[4464..4467], [3, 0, 0]);
    let (_, image) = overlay(&vec![3; 2 << 20], |_| {});
    assert_eq!(image.size(), SIZE);
    assert_eq!(read(&image, SIZE - 512, 512), [3; 512]);
}

#[test]
fn req_15_offset_zero_of_a_data_file() {
    let mut options = CreateOptions::new(SIZE);
    options.data_file = Some("data".to_owned());
    let (file, data) = (MemStorage::new(), MemStorage::new());
    let (meta, raw) = (file.file().clone(), data.file().clone());
    let parts = Parts { file: Box::new(file), data: Some(Box::new(data)), backing: None };
    let image = Image::create_from(parts, &options).expect("create");
    let before = store(&meta).len().expect("length");
    image.write(0, &[7; 512]).expect("write");
    image.write(SIZE - 512, &[8; 512]).expect("write");
    assert_eq!(read(&image, 0, 512), [7; 512]);
    image.flush().expect("flush");
    assert_eq!(word(&meta, l2_entry(&meta, 0)), COPIED);
    assert!(store(&meta).len().expect("length") <= before + 65536, "only an L2 table");
    assert_eq!(store(&raw).to_bytes()[..512], [7; 512]);
    assert_clean(&image);
    assert_eq!(kind(image.write_compressed(0, &[1; 65536])), Unsupported);
    assert_eq!(kind(image.create_snapshot("s")), Unsupported);
}
