//! What the fuzzer and readers of the code found, each as the shortest way there.
//!
//! Neighbours: `fuzz` plays what found it; `image` makes the images.

use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{CacheSettings, CreateOptions, Image, OpenOptions, Parts, create};
use wallgrind::block::{ErrorKind, Storage};

use super::image::{
    OFFSET, SIZE, assert_clean, made, over, overlay, patch, patch_word, read, store, word, writable,
};

/// Where a header says how long the disk is.
const SIZE_FIELD: u64 = 24;
/// Where it has its incompatible bits; the first says that the refcounts may be wrong.
const INCOMPATIBLE: u64 = 72;

/// A disk that ends inside a cluster, with data there, over a backing file of the same length.
#[test]
fn growth_within_the_last_cluster_keeps_what_is_in_it() {
    let odd = SIZE - 40_000;
    let backing = vec![7; odd as usize];
    for extended in [false, true] {
        let (_, image) = overlay(&backing, |o| (o.size, o.extended_l2) = (odd, extended));
        image.write(odd - 9000, &[9; 9000]).expect("write");
        image.resize(odd + 5000, false).expect("grow");
        assert!(read(&image, odd - 9000, 9000) == [9; 9000], "lost by growing");
        assert!(read(&image, odd - 12_000, 3000) == [7; 3000]);
        assert!(read(&image, odd, 5000) == [0; 5000]);
        assert_clean(&image);
    }
}

/// A disk whose end lies before data that its tables map: growing showed the data again.
#[test]
fn growth_shows_nothing_of_what_lay_beyond_the_end() {
    let (cut, all) = (20_000, SIZE as usize);
    for (version, extended) in [(2, false), (3, false), (3, true)] {
        for backing in [vec![], vec![7; 100_000]] {
            let options = |o: &mut CreateOptions| (o.version, o.extended_l2) = (version, extended);
            let (file, image) = overlay(&backing, options);
            image.write(0, &vec![9; all]).expect("write");
            drop(image);
            patch_word(&file, SIZE_FIELD, cut as u64);
            let image = over(&file, &backing);
            image.resize(SIZE, false).expect("grow");
            assert!(read(&image, 0, cut) == vec![9; cut], "version {version}: lost");
            assert!(read(&image, cut as u64, all - cut) == vec![0; all - cut], "version {version}: shown");
            assert_clean(&image);
        }
    }
}

/// The same where the data file is the disk, byte for byte, and longer.
#[test]
fn growth_shows_nothing_of_a_longer_data_file() {
    let (file, data) = (MemFile::new(), MemFile::new());
    let mut options = CreateOptions::new(50_000);
    (options.data_file, options.data_file_raw) = (Some("data".to_owned()), true);
    create(&store(&file), Some(&store(&data)), &options).expect("create");
    store(&data).write_at(&[9; 100_000], 0).expect("write");
    let parts = Parts { file: Box::new(store(&file)), data: Some(Box::new(store(&data))), backing: None };
    let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
    image.resize(200_000, false).expect("grow");
    assert!(read(&image, 50_000, 150_000) == vec![0; 150_000]);
    let mut raw = vec![1; 150_000];
    store(&data).read_at(&mut raw, 50_000).expect("read");
    assert!(raw == vec![0; 150_000], "the data file by itself");
    assert_clean(&image);
}

/// An image with two snapshots, and the content of its disk.
fn with_snapshots() -> (MemFile, Vec<u8>) {
    let file = made(|o| (o.size, o.cluster_size) = (64 * 1024, 512));
    let image = writable(&file);
    image.write(0, &[1; 30_000]).expect("write");
    image.create_snapshot("a").expect("snapshot");
    image.write(5000, &[2; 9000]).expect("write");
    image.create_snapshot("b").expect("snapshot");
    image.write(9000, &[3; 2000]).expect("write");
    image.flush().expect("flush");
    let content = read(&image, 0, 64 * 1024);
    (file, content)
}

/// Runs `body` with each of its reads failing once; the image stays what it was.
fn with_each_read_failing(body: fn(&Image) -> wallgrind::block::Result<()>) {
    let (file, content) = with_snapshots();
    let mut failures = 0;
    for call in 0.. {
        let file = super::image::copy(&file);
        let over = store(&file);
        let faults = over.faults().clone();
        let parts = Parts { file: Box::new(over), data: None, backing: None };
        let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
        faults.reset();
        faults.at(Target::Read, call, Fault::Errno(libc::EIO));
        match body(&image) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Io, "read {call}: {error}");
                failures += 1;
            }
        }
        let ended = faults.calls(Target::Read) <= call;
        faults.reset();
        let report = image.check().expect("check");
        assert_eq!((report.corruptions, report.check_errors), (0, 0), "read {call}: {report:?}");
        image.write(0, &[4; 20_000]).expect("write");
        assert!(read(&image, 20_000, 40_000) == content[20_000..60_000], "read {call}");
        drop(image);
        let shown = open_at(&file, "a");
        assert!(read(&shown, 0, 30_000) == [1; 30_000], "read {call}: snapshot");
        if ended {
            break;
        }
    }
    assert!(failures > 3, "only {failures} failures");
}

fn open_at(file: &MemFile, snapshot: &str) -> Image {
    super::image::open_with(file, &OpenOptions::new().snapshot(snapshot)).expect("open at the snapshot")
}

/// Refcounts were lowered to a count that left out the table that could not be read.
#[test]
fn a_repair_that_cannot_read_a_table_changes_nothing() {
    with_each_read_failing(|image| image.repair().map(|_| ()));
}

/// Flags of a table that could not be read stayed as they were, and nobody was told.
#[test]
fn flags_that_cannot_be_made_right_are_not_relied_upon() {
    with_each_read_failing(|image| image.create_snapshot("c").map(|_| ()));
    with_each_read_failing(|image| image.delete_snapshot("b"));
}

/// A file whose clusters, as after a crash with refcounts that are written late, lie in a range that
/// has no refcount block; and the content of its disk.
fn without_last_block(dirty: u64) -> (MemFile, Vec<u8>) {
    let file = made(|o| (o.size, o.cluster_size) = (SIZE, 512));
    let content: Vec<u8> = (0..SIZE / 2).map(|at| (at / 512) as u8 | 1).collect();
    writable(&file).write(0, &content).expect("write");
    let table = word(&file, 48);
    let last = (0..64).rev().map(|at| table + 8 * at).find(|&at| word(&file, at) != 0);
    patch_word(&file, last.expect("blocks"), 0);
    patch_word(&file, INCOMPATIBLE, dirty);
    (file, content)
}

/// New refcounts were taken for leaks, and the clusters of the old ones were never usable again.
#[test]
fn refcounts_that_are_made_anew_count_themselves_and_let_go_of_the_old_ones() {
    let (file, content) = without_last_block(1);
    let image = writable(&file);
    assert_clean(&image);
    // More than what the old table and its blocks leave free.
    let half = SIZE / 2;
    image.write(half, &vec![9; half as usize]).expect("write");
    assert!(read(&image, 0, content.len()) == content, "lost");
    assert_clean(&image);
    drop(image);
    assert!(read(&writable(&file), half, half as usize) == vec![9; half as usize]);

    let (file, content) = without_last_block(0);
    let image =
        super::image::open_with(&file, &OpenOptions::new().for_repair(true)).expect("open for repair");
    let report = image.repair().expect("repair");
    assert!(report.is_clean(), "{report:?}");
    drop(image);
    assert!(read(&writable(&file), 0, content.len()) == content);
}

/// A file that ends within its L1 table, whose missing end was never looked for again after a flush.
#[test]
fn a_table_that_the_file_cut_short_keeps_what_is_written_there() {
    // 19 pieces of an L1 table, of which memory holds 16.
    let size = 300 << 20;
    let file = made(|o| (o.size, o.cluster_size) = (size, 512));
    store(&file).set_len(file.content_len() - 256).expect("cut");
    let cache = CacheSettings { slice_bytes: 512, slices: 2 };
    let options = OpenOptions::new().writable(true).cache(cache);
    let image = super::image::open_with(&file, &options).expect("open");
    let places = || (1..=19).map(|part| size / 19 * part - 512);
    for at in places() {
        image.write(at / 512 * 512, &[7; 512]).expect("write");
    }
    image.write(size - 512, &[7; 512]).expect("write");
    image.flush().expect("flush");
    for _ in 0..2 {
        for at in places().chain([size - 512]) {
            assert_eq!(read(&image, at / 512 * 512, 512), [7; 512], "at {at}");
        }
    }
    assert_clean(&image);
}

/// A table whose refcount is 0: a longer L1 table was written over it.
#[test]
fn a_longer_l1_table_is_not_put_where_metadata_is() {
    let file = made(|o| (o.size, o.cluster_size) = (SIZE, 512));
    writable(&file).write(0, &[7; 4096]).expect("write");
    let l2 = word(&file, word(&file, 40)) & OFFSET;
    let block = word(&file, word(&file, 48));
    patch(&file, block + 2 * (l2 / 512), &[0, 0]);
    let before = store(&file).to_bytes();
    let refused = writable(&file).resize(2 * SIZE, false).expect_err("nothing else is known to be free");
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    let (from, after) = (l2 as usize, store(&file).to_bytes());
    assert!(before[from..from + 512] == after[from..from + 512], "the L2 table is overwritten");
}

/// A table where the first free cluster seems to be, because its range has no refcount block: a new
/// block was written over it before anybody looked.
#[test]
fn a_new_refcount_block_is_not_put_where_metadata_is() {
    let file = made(|o| (o.size, o.cluster_size, o.refcount_bits) = (SIZE, 512, 64));
    writable(&file).write(0, &vec![7; SIZE as usize / 2]).expect("write");
    let (l1, table) = (word(&file, 40), word(&file, 48));
    // A block of 512 bytes has the refcounts of 64 clusters.
    let (range, from) = (4, (word(&file, l1) & OFFSET) as usize);
    let l2 = range * 64 * 512;
    let content = store(&file).to_bytes()[from..from + 512].to_vec();
    patch(&file, l2, &content);
    patch_word(&file, l1, l2 | 1 << 63);
    patch_word(&file, table + 8 * range, 0);
    let image = writable(&file);
    let refused = image.write(SIZE - 100_000, &[1; 100_000]).expect_err("metadata is in the way");
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    drop(image);
    let after = store(&file).to_bytes();
    assert!(after[l2 as usize..][..512] == content, "the L2 table is overwritten");
}

/// The same for a longer refcount table, which goes behind all that the old one covers.
#[test]
fn a_longer_refcount_table_is_not_put_where_metadata_is() {
    let size = 4 << 20;
    let file = made(|o| (o.size, o.cluster_size, o.refcount_bits) = (size, 512, 64));
    writable(&file).write(0, &[7; 4096]).expect("write");
    let l1 = word(&file, 40);
    let from = (word(&file, l1) & OFFSET) as usize;
    // 64 entries of a table of one cluster, 64 clusters each.
    let l2 = 64 * 64 * 512;
    assert_eq!(word(&file, 56) >> 32, 1, "clusters of the refcount table");
    let content = store(&file).to_bytes()[from..from + 512].to_vec();
    patch(&file, l2, &content);
    patch_word(&file, l1, l2 | 1 << 63);
    let image = writable(&file);
    let refused = image.write(64 * 512, &vec![1; size as usize / 2]).expect_err("metadata is in the way");
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    drop(image);
    let after = store(&file).to_bytes();
    assert!(after[l2 as usize..][..512] == content, "the L2 table is overwritten");
}

/// A data file has no refcounts: a cluster that is elsewhere in it than on the disk is another one's
/// place, and writing to it changed that one.
#[test]
fn a_cluster_elsewhere_in_the_data_file_is_refused() {
    for raw in [false, true] {
        let (file, data) = (MemFile::new(), MemFile::new());
        let mut options = CreateOptions::new(SIZE);
        (options.data_file, options.data_file_raw) = (Some("data".to_owned()), raw);
        create(&store(&file), Some(&store(&data)), &options).expect("create");
        let open = || {
            let parts =
                Parts { file: Box::new(store(&file)), data: Some(Box::new(store(&data))), backing: None };
            Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open")
        };
        open().write(0, &[7; 3 * 65_536]).expect("write");
        let l2 = word(&file, word(&file, 40)) & OFFSET;
        patch_word(&file, l2 + 8, 1 << 63);
        let image = open();
        let report = image.check().expect("check");
        assert_eq!(report.corruptions, 1, "{report:?}");
        assert_eq!(image.write(65_536, &[9; 512]).expect_err("refused").kind(), ErrorKind::Corrupt);
        let mut buf = [0; 512];
        assert_eq!(image.read(65_536, &mut buf).expect_err("refused").kind(), ErrorKind::Corrupt);
        image.read(0, &mut buf).expect("read");
        assert_eq!(buf, [7; 512], "the first cluster was written to");
    }
}
