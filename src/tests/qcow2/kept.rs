//! What others wrote into an image: kept as it is, or given up in a way that
//! hurts nothing else, also when it is cut off.
//!
//! Neighbours: `fuzz/bitmap` makes bitmaps, `image` the images; the `req_*`
//! modules have the requirements by number.

use wallgrind::block::ErrorKind;
use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::mem::crash::Crash;
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{Backing, GuestOffset, Image, OpenOptions, Parts, Source};
use wallgrind::block::{MemStorage, Result};

use super::bitmap::{self, Places};
use super::image::*;

const BITMAPS: u32 = 0x2385_2875;
const UNKNOWN: u32 = 0x1234_5678;

/// An overlay with a bitmap whose extension and backing name lie beyond the first sector. With
/// `last`, the bitmap's extension is the last one.
fn with_bitmap(last: bool) -> (MemFile, Places) {
    let (file, image) = overlay(&[5; 70_000], |_| {});
    image.write(0, &[7; 70_000]).expect("write");
    image.create_snapshot("s").expect("snapshot");
    image.write(4096, &[8; 512]).expect("write");
    drop(image);
    // Behind the format's name (8 + 8 bytes) and the names of features (8 + 384).
    let start = 112 + 16 + 392;
    let unknown = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 5, b'k', b'e', b'e', b'p', b'!', 0, 0, 0];
    let at = if last { start + 16 } else { start };
    let places = bitmap::add(&file, at);
    patch(&file, if last { start } else { start + 32 }, &unknown);
    patch(&file, start + 48, &[0; 8]);
    patch(&file, start + 56, b"backing.raw");
    patch_word(&file, 8, start + 56);
    (file, places)
}

fn over_backing(file: MemStorage, options: &OpenOptions) -> Result<Image> {
    let backing = Backing::raw(Box::new(MemStorage::from_bytes(&[5; 70_000])))?;
    Image::from_parts(Parts { file: Box::new(file), data: None, backing: Some(backing) }, options)
}

fn has(image: &Image, kind: u32) -> bool {
    image.extensions().iter().any(|extension| extension.kind == kind)
}

fn refcount(file: &MemFile, at: u64) -> u64 {
    let block = word(file, word(file, 48));
    word(file, block + 2 * (at / 65536)) >> 48
}

#[test]
fn bitmaps_are_kept_by_readers_and_dropped_by_writers() {
    for last in [true, false] {
        let (file, places) = with_bitmap(last);
        let image = over_backing(store(&file), &OpenOptions::new()).expect("open");
        assert!(has(&image, BITMAPS) && has(&image, UNKNOWN));
        assert_clean(&image);
        drop(image);
        let image = over_backing(store(&file), &OpenOptions::new().writable(true)).expect("open");
        assert!(!has(&image, BITMAPS) && has(&image, UNKNOWN));
        assert_clean(&image);
        drop(image);
        for at in [places.directory, places.table, places.data] {
            assert_eq!(refcount(&file, at), 0, "a cluster of the bitmap leaked");
        }
        let image = over_backing(store(&file), &OpenOptions::new()).expect("open");
        assert!(!has(&image, BITMAPS) && has(&image, UNKNOWN) && image.header().autoclear == 0);
        assert_eq!(read(&image, 4096, 513)[511..], [8, 7]);
    }
}

#[test]
fn clusters_that_a_bitmap_shares_are_not_given_back() {
    let (file, places) = with_bitmap(true);
    let data = word(&file, l2_entry(&file, 0)) & OFFSET;
    patch_word(&file, places.table, data);
    let image = over_backing(store(&file), &OpenOptions::new().writable(true)).expect("open");
    assert!(refcount(&file, data) > 0);
    image.write(200_000, &[9; 70_000]).expect("write");
    assert!(read(&image, 0, 4096) == [7; 4096], "the guest's data was overwritten");
}

#[test]
fn bitmaps_that_cannot_be_followed_leak_and_nothing_else() {
    for (word_at, value) in [(0, 1 << 50), (0, 7), (1, u64::MAX), (2, u64::MAX)] {
        let (file, places) = with_bitmap(true);
        patch_word(&file, places.directory + 8 * word_at, value);
        let image = over_backing(store(&file), &OpenOptions::new()).expect("open");
        assert!(image.check().expect("check").corruptions > 0, "{word_at}: {value:#x}");
        drop(image);
        let image = over_backing(store(&file), &OpenOptions::new().writable(true)).expect("open");
        let report = image.check().expect("check");
        assert_eq!((report.corruptions, report.check_errors), (0, 0), "{report:?}");
        assert!(report.leaks > 0);
        assert!(read(&image, 0, 4096) == [7; 4096]);
    }
}

#[test]
fn a_cut_while_bitmaps_go_leaves_an_image_that_opens() {
    for last in [true, false] {
        let mut images = 0;
        for cut in 0.. {
            let (file, _) = with_bitmap(last);
            let over = store(&file).journaled();
            let faults = over.faults().clone();
            faults.from(Target::Any, cut, Fault::Errno(libc::EIO));
            let opened = over_backing(over, &OpenOptions::new().writable(true)).is_ok();
            for (way, left) in store(&file).crashes(12) {
                images += 1;
                let what = format!("cut at {cut}, {way:?}");
                let image = over_backing(left.crash(Crash::Everything), &OpenOptions::new());
                let image = image.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(has(&image, UNKNOWN), "{what}");
                assert_eq!(image.check().expect("check").corruptions, 0, "{what}");
                drop(image);
                let image = over_backing(left, &OpenOptions::new().writable(true)).expect("open");
                assert!(!has(&image, BITMAPS), "{what}");
                assert_eq!(read(&image, 65536, 70_000)[4464..], [0; 65_536][..], "{what}");
            }
            if opened {
                break;
            }
        }
        assert!(images > 20, "only {images} images");
    }
}

/// Older writers stored less extra data; names need not be UTF-8.
#[test]
fn snapshot_entries_of_others_are_kept_byte_for_byte() {
    let file = made(|o| o.cluster_size = 512);
    let image = writable(&file);
    image.write(0, &[1; 4096]).expect("write");
    image.create_snapshot("name").expect("snapshot");
    drop(image);
    let table = word(&file, 64);
    let mut entry = store(&file).to_bytes()[table as usize..][..40].to_vec();
    entry[36..40].fill(0);
    entry.extend_from_slice(b"1\xff\xfe\xfdx");
    patch(&file, table, &[0; 64]);
    patch(&file, table, &entry);
    let image = writable(&file);
    let id = image.create_snapshot("more").expect("snapshot");
    image.delete_snapshot(&id).expect("delete");
    assert_clean(&image);
    drop(image);
    let table = word(&file, 64) as usize;
    assert_eq!(store(&file).to_bytes()[table..][..entry.len()], entry);
}

#[test]
fn an_id_goes_before_a_name_everywhere() {
    let file = made(|_| {});
    let image = writable(&file);
    image.write(0, &[1; 512]).expect("write");
    image.create_snapshot("2").expect("snapshot");
    image.write(0, &[2; 512]).expect("write");
    image.create_snapshot("other").expect("snapshot");
    image.write(0, &[3; 512]).expect("write");
    image.flush().expect("flush");
    let shown = open_with(&file, &OpenOptions::new().snapshot("2")).expect("open");
    image.apply_snapshot("2").expect("apply");
    assert_eq!((read(&image, 0, 1), read(&shown, 0, 1)), (vec![2], vec![2]));
}

#[test]
fn closing_says_what_dropping_cannot() {
    let file = made(|_| {});
    let open_faulty = || {
        let over = store(&file);
        let faults = over.faults().clone();
        let parts = Parts { file: Box::new(over), data: None, backing: None };
        (Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open"), faults)
    };
    let (image, faults) = open_faulty();
    image.write(0, &[1; 512]).expect("write");
    faults.at(Target::Sync, faults.calls(Target::Sync), Fault::Errno(libc::EIO));
    assert_eq!(kind(image.close()), ErrorKind::Io);
    let (image, _) = open_faulty();
    image.write(0, &[2; 512]).expect("write");
    image.close().expect("close");
    assert_eq!(read(&open(&file).expect("open"), 0, 1), [2]);
}

/// Entries that each access refuses: afterwards the image is whole, and the rest is where it was.
#[test]
fn repair_gives_up_entries_that_nothing_can_be_made_of() {
    for version in [2, 3] {
        let file = made(|o| (o.version, o.cluster_size) = (version, 4096));
        let image = writable(&file);
        image.write(0, &[6; 40_960]).expect("write");
        image.create_snapshot("s").expect("snapshot");
        image.write(0, &[7; 40_960]).expect("write");
        drop(image);
        let l1 = word(&file, 40);
        let bad = [1 << 1, 4096 + 512, 1 << 50, COPIED, COPIED | l1, COPIED | word(&file, 48), 1 << 61];
        for (at, value) in bad.into_iter().enumerate() {
            patch_word(&file, l2_entry(&file, at as u64), value);
        }
        let image = open_with(&file, &OpenOptions::new().for_repair(true)).expect("open");
        assert_eq!(kind(image.write(36_864, &[1; 512])), ErrorKind::InvalidInput, "before the repair");
        let report = image.repair().expect("repair");
        assert_eq!((report.given_up, report.is_clean()), (bad.len() as u64, true), "{report:?}");
        drop(image);
        let image = writable(&file);
        assert!(read(&image, 0, 28_672) == [0; 28_672]);
        assert!(read(&image, 28_672, 12_288) == [7; 12_288]);
        image.write(0, &[8; 40_960]).expect("write");
        assert_clean(&image);
        drop(image);
        let shown = open_with(&file, &OpenOptions::new().snapshot("s")).expect("open");
        assert!(read(&shown, 0, 40_960) == [6; 40_960], "the snapshot");
        patch_word(&file, l1, 1 << 50);
        let image = open_with(&file, &OpenOptions::new().for_repair(true)).expect("open");
        assert_eq!(image.repair().expect("repair").given_up, 1);
        assert_clean(&image);
        drop(image);
        writable(&file).write(0, &[8; 40_960]).expect("write");
    }
}

/// Zeroes over whole subclusters are marks; they cost no data and keep what is beside them.
#[test]
fn whole_subclusters_are_zeroed_by_marks() {
    let (file, image) = overlay(&vec![5; SIZE as usize], |o| (o.cluster_size, o.extended_l2) = (65536, true));
    // Over the backing file alone, over data, over a shared cluster, and over a compressed one.
    image.write(65536, &[6; 65536]).expect("write");
    image.write(131_072, &[7; 65536]).expect("write");
    image.create_snapshot("s").expect("snapshot");
    image.write(65536, &[6; 65536]).expect("write");
    image.write_compressed(196_608, &[8; 65536]).expect("compress");
    image.flush().expect("flush");
    let before = (file.content_len(), image.check().expect("check").allocated_clusters);
    for (cluster, byte) in [(0_u64, 5_u8), (1, 6), (2, 7)] {
        let at = cluster * 65536 + 4096;
        image.write_zeroes(at, 8192, false).expect("zero");
        let extent = image.extent(GuestOffset(at), 65536).expect("extent");
        assert_eq!((extent.len.min(8192), extent.source), (8192, Source::Zero), "{byte}");
        let content = read(&image, cluster * 65536, 65536);
        assert!(content[..4096] == [byte; 4096] && content[4096..12_288] == [0; 8192], "{byte}");
        assert!(content[12_288..] == [byte; 53_248], "{byte}");
    }
    image.flush().expect("flush");
    assert_eq!((file.content_len(), image.check().expect("check").allocated_clusters), before);
    image.write_zeroes(196_608 + 1000, 8192, false).expect("zero");
    let content = read(&image, 196_608, 65536);
    assert!(content[..1000] == [8; 1000] && content[1000..9192] == [0; 8192] && content[9192] == 8);
    image.write_zeroes(SIZE - 5000, 5000, false).expect("zero");
    assert_eq!(read(&image, SIZE - 5001, 5001)[..2], [5, 0]);
    assert_clean(&image);
    drop(image);
    let shown = over_at(&file, "s");
    assert!(read(&shown, 131_072, 65536) == [7; 65536], "the snapshot");
}

fn over_at(file: &MemFile, snapshot: &str) -> Image {
    let backing = Backing::raw(Box::new(MemStorage::from_bytes(&[]))).expect("backing");
    let parts = Parts { file: Box::new(store(file)), data: None, backing: Some(backing) };
    Image::from_parts(parts, &OpenOptions::new().snapshot(snapshot)).expect("open at the snapshot")
}
