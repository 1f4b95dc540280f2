//! What operations cost in system calls, and that it does not follow the
//! image's size: exact numbers, so that nobody makes them more unseen.
//!
//! Neighbours: `counts` pins the instructions of the same paths.

use std::path::Path;

use wallgrind::block::faults::{Faults, Target};
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{
    CacheSettings, Compression, CreateOptions, GuestOffset, Image, OpenOptions, Parts, Source, create,
};
use wallgrind::block::sys::counters::{self, Call, Counts};
use wallgrind::block::{MemStorage, Storage};

const GIB: u64 = 1 << 30;
const SIZES: [u64; 4] = [GIB, 64 * GIB, 1024 * GIB, 16_384 * GIB];
const CLUSTER: u64 = 65536;

/// What `body` does in system calls.
fn counted<T>(body: impl FnOnce() -> T) -> (T, Counts) {
    let before = counters::thread();
    let value = body();
    (value, counters::thread() - before)
}

/// The kinds that were used, with their numbers.
fn calls(counts: &Counts) -> Vec<(Call, u64)> {
    counts.calls().filter(|(_, number)| *number > 0).collect()
}

/// A disk of `size` bytes with data at both ends and in the middle.
fn sparse(path: &Path, size: u64) {
    Image::create(path, &CreateOptions::new(size)).expect("create");
    let image = Image::open(path, &OpenOptions::new().writable(true)).expect("open");
    for at in [0, size / 2, size - CLUSTER] {
        image.write(at, &[7; CLUSTER as usize]).expect("write");
    }
    image.close().expect("close");
}

#[test]
fn a_large_disk_opens_as_a_small_one_does() {
    let dir = tempfile::tempdir().expect("folder");
    for size in SIZES {
        let path = dir.path().join(size.to_string());
        sparse(&path, size);
        for writable in [false, true] {
            let (image, cost) = counted(|| Image::open(&path, &OpenOptions::new().writable(writable)));
            let image = image.expect("open");
            assert_eq!(
                calls(&cost),
                [(Call::Read, 1), (Call::Stat, 2), (Call::Setup, 4)],
                "{size} bytes, writable: {writable}"
            );
            assert_eq!((cost.bytes_read(), cost.bytes_written()), (4096, 0), "{size} bytes");
            assert_eq!(image.metadata_bytes(), 0, "{size} bytes: nothing is in memory yet");
        }
    }
}

fn over(file: &MemFile, options: &OpenOptions) -> (Image, Faults) {
    let storage = MemStorage::over(file.clone());
    let faults = storage.faults().clone();
    let parts = Parts { file: Box::new(storage), data: None, backing: None };
    (Image::from_parts(parts, options).expect("open"), faults)
}

/// The walk through the tables that finds all metadata costs what is in them, not their length.
#[test]
fn the_first_access_to_a_large_disk_costs_what_that_to_a_small_one_does() {
    for size in SIZES {
        let store = MemStorage::new();
        let file = store.file().clone();
        create(&store, None, &CreateOptions::new(size)).expect("create");
        let write = OpenOptions::new().writable(true);
        over(&file, &write).0.write(0, &[7; CLUSTER as usize]).expect("write");
        let (image, faults) = over(&file, &OpenOptions::new());
        let mut buf = [0; 4096];
        let mut cost = |at| {
            faults.reset();
            image.read(at, &mut buf).expect("read");
            faults.calls(Target::Read)
        };
        // A part of the L1 table, one of the refcount table, one of an L2 table, and the data.
        assert_eq!((cost(0), cost(4096)), (4, 1), "{size} bytes");
        let (image, faults) = over(&file, &write);
        faults.reset();
        image.write(0, &[8; 4096]).expect("overwrite");
        assert_eq!((faults.calls(Target::Read), faults.calls(Target::Write)), (3, 1), "{size} bytes");
    }
}

/// A file with 40,000 clusters in use, of which some are free in the middle.
#[test]
fn an_allocation_does_not_go_through_all_refcounts_and_forgets_no_free_cluster() {
    let store = MemStorage::new();
    let file = store.file().clone();
    let mut options = CreateOptions::new(GIB / 16);
    options.cluster_size = 512;
    create(&store, None, &options).expect("create");
    let write = OpenOptions::new().writable(true);
    let (image, _) = over(&file, &write);
    image.write(0, &vec![7; 40_000 * 512]).expect("write");
    image.discard(30_000 * 512, 500 * 512).expect("discard");
    image.close().expect("close");
    let length = file.content_len();
    // As on a device, whose length says nothing: what is behind the image is not the first choice.
    store.set_len(file.content_len() + (64 << 20)).expect("longer");
    let (image, faults) = over(&file, &write);
    // Each allocates a cluster, and some a table before.
    let (mut most, mut at) = (0, 0);
    for number in 0..100 {
        faults.reset();
        at = (60_000 + number) * 512;
        image.write(at, &[8; 512]).expect("write");
        most = faults.calls(Target::Read).max(most);
        let extent = image.extent(GuestOffset(at), 512).expect("extent");
        let near = matches!(extent.source, Source::Data(host) if host.0 < length + (1 << 20));
        assert!(near, "{extent:?} in a file of {length} bytes");
    }
    assert!(most <= 2 * 16 + 8, "{most} reads for one write");
    image.flush().expect("flush");
    let extent = image.extent(GuestOffset(at), 512).expect("extent");
    let Source::Data(host) = extent.source else { panic!("{extent:?}") };
    assert!(host.0 < length, "free clusters in the middle were not found: {host:?}");
    let report = image.check().expect("check");
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn memory_stays_inside_its_setting() {
    const TABLES: u64 = 1000;
    let settings = CacheSettings { slice_bytes: 4096, slices: 32 };
    let store = MemStorage::new();
    let file = store.file().clone();
    create(&store, None, &CreateOptions::new(16_384 * GIB)).expect("create");
    let (image, _) = over(&file, &OpenOptions::new().writable(true).cache(settings));
    // Slices, and one more until the flush that makes room; refcounts, L1 table, refcount table: 64 KiB
    // each, which is the least; and one entry for each table.
    let bound = |tables: u64| 33 * 4096 + 3 * 65536 + 4096 + tables * 40;
    let place = |number: u64| number * 37 % TABLES * 16 * GIB;
    for number in 0..TABLES {
        image.write(place(number), &[7; 512]).expect("write");
        assert!(image.metadata_bytes() <= bound(number + 2), "{} bytes", image.metadata_bytes());
    }
    image.flush().expect("flush");
    for number in 0..3 * TABLES {
        let mut buf = [0; 512];
        image.read(place(number), &mut buf).expect("read");
        assert_eq!(buf, [7; 512]);
        assert!(image.metadata_bytes() <= bound(TABLES + 1), "{} bytes", image.metadata_bytes());
    }
    assert!(image.metadata_bytes() > 32 * 4096, "nothing was kept");
}

/// An open image of 1 GiB in a file, for writing.
struct Scene {
    _dir: tempfile::TempDir,
    image: Image,
}

fn scene(change: impl FnOnce(&mut CreateOptions)) -> Scene {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("image");
    let mut options = CreateOptions::new(GIB);
    change(&mut options);
    Image::create(&path, &options).expect("create");
    let image = Image::open(&path, &OpenOptions::new().writable(true)).expect("open");
    Scene { _dir: dir, image }
}

impl Scene {
    /// The system calls of `count` operations and the bytes that they move.
    fn cost(&self, count: u64, body: impl Fn(&Image, u64)) -> (Vec<(Call, u64)>, u64, u64) {
        let ((), cost) = counted(|| (0..count).for_each(|number| body(&self.image, number)));
        (calls(&cost), cost.bytes_read(), cost.bytes_written())
    }
}

fn write(at: u64, len: u64) -> impl Fn(&Image, u64) {
    move |image, number| image.write(at + number * CLUSTER, &vec![5; len as usize]).expect("write")
}

fn read(at: u64, len: u64) -> impl Fn(&Image, u64) {
    move |image, number| image.read(at + number * CLUSTER, &mut vec![0; len as usize]).expect("read")
}

/// Reads before the first access and for each part of a table are beside the operations' own.
#[test]
fn operations_make_no_call_but_their_own() {
    let scene = scene(|_| {});
    // What an image does once: the walk through its tables, its first L2 table, and a slice of each.
    let once = scene.cost(1, write(0, CLUSTER));
    assert_eq!(once.0, [(Call::Read, 5), (Call::Write, 2), (Call::Stat, 2)]);
    let writes = |count, len| (vec![(Call::Write, count)], 0, count * len);
    let reads = |count, len| (vec![(Call::Read, count)], count * len, 0);
    assert_eq!(scene.cost(500, write(CLUSTER, CLUSTER)), writes(500, CLUSTER), "allocating");
    assert_eq!(scene.cost(500, write(CLUSTER, 4096)), writes(500, 4096), "in place");
    assert_eq!(scene.cost(500, read(0, 4096)), reads(500, 4096), "read");
    assert_eq!(scene.cost(400, read(0, 8 * CLUSTER)), reads(400, 8 * CLUSTER), "contiguous read");
    assert_eq!(scene.cost(400, write(0, 8 * CLUSTER)), writes(400, 8 * CLUSTER), "contiguous write");
    let cold = scene.cost(1, read(512 * CLUSTER, 4096));
    assert_eq!(cold.0, [(Call::Read, 1)], "a part of the L2 table; nothing is there");
    // Small writes to clusters behind the end of the file: what is around them reads as zeroes.
    assert_eq!(scene.cost(500, write(512 * CLUSTER, 4096)), writes(500, 4096), "small, allocating");
    assert_eq!(scene.cost(500, write(512 * CLUSTER + 4096, 4096)), writes(500, 4096), "beside it");
}

/// A stream of small writes brings each new cluster whole into the page cache, zeroes behind its first
/// data; writes that jump do not.
#[test]
fn a_stream_fills_its_clusters_ahead() {
    let scene = scene(|_| {});
    scene.cost(1, write(300 * CLUSTER, CLUSTER));
    let stream = |image: &Image, number: u64| image.write(number * 4096, &[5; 4096]).expect("write");
    let filled = 3 * (CLUSTER - 4096);
    assert_eq!(scene.cost(64, stream), (vec![(Call::Write, 64)], 0, 64 * 4096 + filled));
    let part = |image: &Image, number: u64| image.write((64 + number) * 4096, &[5; 100]).expect("write");
    assert_eq!(scene.cost(1, part), (vec![(Call::Write, 1)], 0, CLUSTER));
    let mut rest = vec![9; CLUSTER as usize];
    scene.image.read(4 * CLUSTER, &mut rest).expect("read");
    assert!(rest[..100] == [5; 100] && rest[100..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_flush_has_two_barriers_and_writes_what_changed() {
    let scene = scene(|_| {});
    let flush = |image: &Image, _| image.flush().expect("flush");
    scene.cost(512, write(0, CLUSTER));
    // Refcounts, a slice of the L2 table, a sector of the L1 table; 512 entries and their refcounts are one part each.
    let (calls, _, written) = scene.cost(1, flush);
    assert_eq!((calls, written), (vec![(Call::Write, 3), (Call::Sync, 2)], 4096 + 4096 + 16));
    assert_eq!(scene.cost(1, flush).0, [(Call::Sync, 1)], "nothing changed");
    scene.cost(100, write(0, 4096));
    assert_eq!(scene.cost(1, flush).0, [(Call::Sync, 1)], "no metadata changed");
    scene.cost(1, write(600 * CLUSTER, 512));
    let (calls, _, written) = scene.cost(1, flush);
    assert_eq!((calls, written), (vec![(Call::Write, 2), (Call::Sync, 2)], 4096 + 512));
    scene.cost(100, |image, number| assert!(image.discard(number * CLUSTER, CLUSTER).is_ok()));
    // Two parts of the L2 table are one write; one hole for all; then refcounts.
    let (calls, _, _) = scene.cost(1, flush);
    assert_eq!(calls, [(Call::Write, 2), (Call::Fallocate, 1), (Call::Sync, 2)]);
}

#[test]
fn a_compressed_cluster_is_one_read() {
    for compression in [Compression::Zlib, Compression::Zstd] {
        let scene = scene(|options| options.compression = compression);
        let text: Vec<u8> = b"all work and no play ".iter().copied().cycle().take(CLUSTER as usize).collect();
        let pack = |image: &Image, number: u64| {
            image.write_compressed(number * CLUSTER, &text).expect("compress");
        };
        scene.cost(100, pack);
        scene.image.flush().expect("flush");
        // Without the last ones, whose sector ends beyond the end of the file.
        assert_eq!(scene.cost(90, read(0, CLUSTER)).0, [(Call::Read, 90)]);
        assert_eq!(scene.cost(90, read(512, 4096)).0, [(Call::Read, 90)]);
    }
}
