//! Requirements 16 to 25: table entries and compressed clusters.
//!
//! Neighbours: `image` makes and damages images.

use wallgrind::block::ErrorKind::{Corrupt, Exhausted};
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{Compression, GuestOffset, Image, OpenOptions, Source};
use wallgrind::block::{ErrorKind, Storage};

use super::image::*;

/// Text that compresses.
fn text(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| b"all work and no play"[at % 20] ^ seed).collect()
}

/// An image with guest data in its first two clusters, 4 KiB each.
fn with_data() -> MemFile {
    let file = made(|options| options.cluster_size = 4096);
    let image = writable(&file);
    image.write(0, &[1; 8192]).expect("write");
    drop(image);
    file
}

/// Opens an image for writing that is marked as corrupt, without the mark.
fn writable_again(file: &MemFile) -> Image {
    let bits = word(file, 72);
    patch_word(file, 72, bits & !2);
    writable(file)
}

/// Writing guest cluster 0 must be refused, with the corrupt bit set and nothing else changed.
fn never_written(file: &MemFile, what: &str) {
    let before = store(file).to_bytes();
    let image = match open_with(file, &OpenOptions::new().writable(true)) {
        Ok(image) => image,
        Err(error) => return assert_eq!(error.kind(), Corrupt, "{what}"),
    };
    let error = image.write(0, &[0xaa; 512]).expect_err(what);
    assert_eq!(error.kind(), Corrupt, "{what}");
    assert_eq!(kind(image.write(100_000, &[1])), ErrorKind::InvalidInput, "{what}: frozen");
    drop(image);
    let mut after = store(file).to_bytes();
    assert_eq!(after[79] & 2, 2, "{what}: corrupt bit");
    after[79] &= !2;
    assert!(before == after, "{what}: something else changed");
}

#[test]
fn req_16_offset_zero_is_never_a_target() {
    let file = with_data();
    patch_word(&file, l2_entry(&file, 0), COPIED);
    never_written(&file, "L2 entry, copied, offset 0");
    let file = with_data();
    patch_word(&file, word(&file, 40), COPIED);
    never_written(&file, "L1 entry, copied, offset 0");
    // A refcount of 0 for the header's cluster does not make it free.
    let file = with_data();
    let block = word(&file, word(&file, 48));
    patch(&file, block, &[0, 0]);
    let image = writable(&file);
    assert_eq!(kind(image.write(40_960, &[1; 512])), Corrupt);
    assert_eq!(&store(&file).to_bytes()[..4], b"QFI\xfb");
}

#[test]
fn req_17_entries_that_point_wrong() {
    let file = with_data();
    let (l1, table) = (word(&file, 40), word(&file, 48));
    let (block, l2) = (word(&file, table), word(&file, l1) & OFFSET);
    let end = store(&file).len().expect("length");
    for target in [512, end, end + 4096, 1 << 50, l1, table, block, l2] {
        let file = copy(&with_data());
        patch_word(&file, l2_entry(&file, 0), target | COPIED);
        never_written(&file, &format!("L2 entry at {target:#x}"));
    }
    for bits in [1 << 56, 2, 1 << 61] {
        let file = with_data();
        let at = l2_entry(&file, 0);
        patch_word(&file, at, word(&file, at) | bits);
        never_written(&file, &format!("L2 entry with reserved bits {bits:#x}"));
    }
    for target in [l1 + 512, end, l1, table, block, l2 | 1, l2 | 1 << 60] {
        let file = with_data();
        patch_word(&file, l1, target | COPIED);
        never_written(&file, &format!("L1 entry at {target:#x}"));
    }
    for target in [table + 512, end, l1, table, l2 | 1] {
        let file = with_data();
        patch_word(&file, table, target);
        never_written(&file, &format!("refcount table entry at {target:#x}"));
    }
    // Two L1 entries for one table.
    let file = made(|options| (options.cluster_size, options.size) = (4096, 8 << 20));
    writable(&file).write(0, &[1; 512]).expect("write");
    patch_word(&file, word(&file, 40) + 8, word(&file, word(&file, 40)));
    never_written(&file, "table used twice");
}

#[test]
fn req_18_data_never_lands_on_metadata() {
    // The L2 table of the second gigabyte is where the first one's data is said to be.
    let file = made(|options| (options.cluster_size, options.size) = (4096, 8 << 20));
    let image = writable(&file);
    image.write(0, &[1; 512]).expect("write");
    image.write(4 << 20, &[2; 512]).expect("write");
    drop(image);
    let other = word(&file, word(&file, 40) + 16) & OFFSET;
    patch_word(&file, l2_entry(&file, 0), other | COPIED);
    never_written(&file, "data on another L2 table");
}

/// The refcount of a cluster with data is 0, so it is handed out for an L2 table: what was known of it
/// before holds no more.
#[test]
fn req_18_data_that_became_metadata_is_not_touched_any_more() {
    let file = made(|options| (options.cluster_size, options.size) = (4096, 8 << 20));
    writable(&file).write(0, &[1; 8192]).expect("write");
    let data = word(&file, l2_entry(&file, 0)) & OFFSET;
    let block = word(&file, word(&file, 48));
    patch(&file, block + 2 * (data / 4096), &[0, 0]);
    let image = writable(&file);
    for at in [0, 512, 1024] {
        image.write(at, &[2; 512]).expect("in place");
        assert_eq!(read(&image, at, 512), [2; 512]);
    }
    image.write(4 << 20, &[3; 512]).expect("a table where the data is");
    image.flush().expect("flush");
    assert_eq!(word(&file, word(&file, 40) + 16) & OFFSET, data, "the table is elsewhere");
    assert_eq!(kind(image.read(0, &mut [0; 512])), Corrupt);
    assert_eq!(read(&image, 4096, 512), [1; 512]);
    assert!(!image.is_writable());
    let image = writable_again(&file);
    assert_eq!(kind(image.write(0, &[4; 512])), Corrupt);
}

#[test]
fn req_19_entries_keep_their_bits_and_copied_is_exact() {
    let file = with_data();
    let (first, second) = (word(&file, l2_entry(&file, 0)), word(&file, l2_entry(&file, 1)));
    assert_eq!((first & COPIED, second & COPIED), (COPIED, COPIED));
    let image = writable(&file);
    image.write(8192, &[3; 512]).expect("write");
    image.flush().expect("flush");
    assert_eq!(word(&file, l2_entry(&file, 0)), first);
    image.create_snapshot("s").expect("snapshot");
    assert_eq!(word(&file, word(&file, 40)) & COPIED, 0);
    assert_eq!(word(&file, l2_entry(&file, 0)), first & !COPIED);
    image.write(0, &[4; 512]).expect("write");
    image.flush().expect("flush");
    assert_eq!(word(&file, word(&file, 40)) & COPIED, COPIED);
    assert_eq!(word(&file, l2_entry(&file, 0)) & COPIED, COPIED);
    assert_eq!(word(&file, l2_entry(&file, 1)), second & !COPIED);
    image.delete_snapshot("s").expect("delete");
    assert_eq!(word(&file, l2_entry(&file, 1)), second);
    assert_clean(&image);
}

#[test]
fn req_20_unallocated_is_not_zero() {
    let (_, image) = overlay(&vec![9; SIZE as usize], |options| options.cluster_size = 4096);
    image.write_zeroes(4096, 4096, true).expect("zero");
    let sources: Vec<Source> =
        image.map(GuestOffset(0), 12_288).expect("map").iter().map(|extent| extent.source).collect();
    assert_eq!(sources, [Source::Unallocated, Source::Zero, Source::Unallocated]);
    assert_eq!(read(&image, 4095, 4098)[..2], [9, 0]);
    assert_eq!(read(&image, 8191, 2), [0, 9]);
}

#[test]
fn req_21_a_last_sector_beyond_the_end_of_the_file() {
    for compression in [Compression::Zlib, Compression::Zstd] {
        let file = made(|options| options.compression = compression);
        let data = text(65536, 1);
        writable(&file).write_compressed(0, &data).expect("compress");
        let len = store(&file).len().expect("length");
        assert_ne!(len % 512, 0, "the file ends within the last sector");
        assert!(read(&open(&file).expect("open"), 0, 65536) == data);
    }
}

#[test]
fn req_22_clusters_of_every_size_share_and_cross_host_clusters() {
    for (compression, bits) in [
        (Compression::Zlib, 9),
        (Compression::Zlib, 12),
        (Compression::Zstd, 12),
        (Compression::Zstd, 18),
        (Compression::Zstd, 21),
    ] {
        let size = 1_u64 << bits;
        let file = made(|options| {
            (options.cluster_size, options.compression, options.size) = (size, compression, 12 * size);
        });
        let image = writable(&file);
        let mut rng = fastrand::Rng::with_seed(1);
        let mut all = Vec::new();
        for cluster in 0..12 {
            // Half noise, so that several share a host cluster and some cross its end.
            let mut data = text(size as usize, cluster as u8);
            data[..size as usize / 2].iter_mut().for_each(|byte| *byte = rng.u8(..));
            image.write_compressed(cluster * size, &data).expect("compress");
            all.extend_from_slice(&data);
        }
        assert_clean(&image);
        drop(image);
        assert!(read(&open(&file).expect("open"), 0, all.len()) == all, "{compression:?} {size}");
        let hosts: Vec<u64> = (0..12).map(|n| word(&file, l2_entry(&file, n))).collect();
        let place = |entry: u64| (entry & ((1 << (62 - (bits - 8))) - 1)) >> bits;
        let shared = hosts.windows(2).any(|pair| place(pair[0]) == place(pair[1]));
        assert!(bits == 9 || shared, "{compression:?} {size}: none share");
    }
}

#[test]
fn req_23_damaged_compressed_clusters() {
    for compression in [Compression::Zlib, Compression::Zstd] {
        let file = made(|options| options.compression = compression);
        let image = writable(&file);
        image.write_compressed(0, &text(65536, 1)).expect("compress");
        image.write_compressed(65536, &text(65536, 2)).expect("compress");
        drop(image);
        let at = l2_entry(&file, 0);
        let entry = word(&file, at);
        let host = entry & ((1 << 54) - 1);
        let cases: [&dyn Fn(&MemFile); 5] = [
            &|file| patch_word(file, at, entry | 0xff << 54),
            &|file| patch_word(file, at, (entry & !((1 << 54) - 1)) | 131_072),
            &|file| patch(file, host, &[0xff; 64]),
            &|file| patch_word(file, at, entry | 1 << 53),
            &|file| patch(file, host + 20, &[0x55; 60]),
        ];
        for (case, damage) in cases.iter().enumerate() {
            let file = copy(&file);
            damage(&file);
            let image = writable(&file);
            let mut buf = vec![0; 65536];
            match image.read(0, &mut buf) {
                // A longer descriptor alone is legal: the stream ends before.
                Ok(()) => assert!(case == 0 || buf != text(65536, 1), "case {case}"),
                Err(error) => {
                    assert_eq!(error.kind(), Corrupt, "case {case}");
                    assert_eq!(image.header().incompatible & 2, 2, "case {case}: corrupt bit");
                }
            }
        }
    }
}

#[test]
fn req_24_each_host_cluster_is_lowered_once() {
    let file = made(|options| options.cluster_size = 4096);
    let image = writable(&file);
    let mut rng = fastrand::Rng::with_seed(2);
    for cluster in 0..8 {
        let mut data = text(4096, cluster as u8);
        data[..2500].iter_mut().for_each(|byte| *byte = rng.u8(..));
        image.write_compressed(cluster * 4096, &data).expect("compress");
    }
    assert_clean(&image);
    image.write(4096, &[1; 4096]).expect("overwrite");
    image.write(8192 + 7, &[1; 9]).expect("partial overwrite");
    assert_eq!(image.discard(12_288, 4096).expect("discard"), 4096);
    image.write_zeroes(16_384, 4096, false).expect("zero");
    image.flush().expect("flush");
    assert_clean(&image);
    image.discard(0, SIZE).expect("discard");
    image.flush().expect("flush");
    assert_clean(&image);
    assert_eq!(image.check().expect("check").allocated_clusters, 0);
    // A width of one bit has no room for sharing.
    let narrow = made(|options| (options.cluster_size, options.refcount_bits) = (4096, 1));
    let image = writable(&narrow);
    for cluster in 0..4 {
        image.write_compressed(cluster * 4096, &text(4096, 3)).expect("compress");
    }
    assert_clean(&image);
    assert_eq!(kind(image.create_snapshot("s")), Exhausted);
    assert_clean(&image);
}

#[test]
fn req_25_short_reads_of_the_decoders_input() {
    use wallgrind::block::faults::{Fault, Target};
    use wallgrind::block::qcow2::Parts;
    let file = made(|_| {});
    let mut data = text(65536, 1);
    let mut rng = fastrand::Rng::with_seed(3);
    data[..30_000].iter_mut().for_each(|byte| *byte = rng.u8(..));
    writable(&file).write_compressed(0, &data).expect("compress");
    let store = store(&file);
    let faults = store.faults().clone();
    let parts = Parts { file: Box::new(store), data: None, backing: None };
    let image = Image::from_parts(parts, &OpenOptions::new()).expect("open");
    faults.from(Target::Read, 0, Fault::Short(100));
    assert!(read(&image, 0, 65536) == data);
}
