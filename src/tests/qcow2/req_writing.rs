//! Requirements 26 to 35: writing, discarding, growing, snapshots, order.
//!
//! Neighbours: `image` makes images; `qcow2_crash` tries the order at every call.

use wallgrind::block::ErrorKind::{Exhausted, InvalidInput};
use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::qcow2::{GuestOffset, Image, OpenOptions, Parts, Source};
use wallgrind::block::{MemStorage, Storage};

use super::image::*;

fn host(image: &Image, guest: u64) -> Option<u64> {
    match image.extent(GuestOffset(guest), 1).expect("map").source {
        Source::Data(host) => Some(host.0),
        _ => None,
    }
}

#[test]
fn req_26_a_failure_between_leaves_every_reference_once() {
    for call in 0..12 {
        let file = made(|options| options.cluster_size = 4096);
        let image = writable(&file);
        image.write(0, &[1; 4096]).expect("write");
        image.create_snapshot("s").expect("snapshot");
        drop(image);
        let over = store(&file);
        let faults = over.faults().clone();
        let parts = Parts { file: Box::new(over), data: None, backing: None };
        let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
        faults.reset();
        faults.at(Target::Any, call, Fault::Errno(libc::EIO));
        // The second write needs a copy of the table and of the cluster.
        let _ = image.write(100, &[2; 100]);
        let _ = image.flush();
        faults.reset();
        image.write(100, &[2; 100]).expect("again");
        image.flush().expect("flush");
        let report = image.check().expect("check");
        assert_eq!(report.corruptions, 0, "call {call}: {report:?}");
        assert_eq!(read(&image, 99, 3), [1, 2, 2]);
    }
}

#[test]
fn req_27_allocated_zero_clusters() {
    let file = made(|options| options.cluster_size = 4096);
    let image = writable(&file);
    image.write(0, &[7; 4096]).expect("write");
    let place = host(&image, 0).expect("data");
    image.write_zeroes(0, 4096, false).expect("zero");
    assert_eq!(read(&image, 0, 4096), [0; 4096]);
    image.write(1000, &[8; 10]).expect("write");
    assert_eq!(host(&image, 0), Some(place), "its cluster is used again");
    let bytes = read(&image, 0, 4096);
    assert_eq!((bytes[999], bytes[1000], bytes[1010]), (0, 8, 0));
    assert_clean(&image);
    let (_, image) = overlay(&vec![9; SIZE as usize], |_| {});
    image.write_zeroes(0, 65536, true).expect("zero");
    image.write(512, &[1; 512]).expect("write");
    let bytes = read(&image, 0, 65536);
    assert!(bytes[..512].iter().chain(&bytes[1024..]).all(|byte| *byte == 0));
    assert_clean(&image);
}

#[test]
fn req_28_discard_in_an_overlay() {
    let backing = vec![9; SIZE as usize];
    let (_, image) = overlay(&backing, |_| {});
    assert_eq!(image.discard_granularity(), 65536);
    image.write(0, &[1; 65536]).expect("write");
    assert_eq!(image.discard(0, 131_072).expect("discard"), 131_072);
    assert_eq!(read(&image, 0, 131_072), vec![0; 131_072]);
    assert_eq!(image.discard(196_608 + 512, 65536).expect("discard"), 0, "no whole cluster");
    assert_eq!(read(&image, 196_608, 131_072), vec![9; 131_072]);
    let (_, image) = overlay(&backing, |options| options.version = 2);
    image.write(0, &[1; 65536]).expect("write");
    assert_eq!(image.discard(0, 65536).expect("discard"), 0);
    assert_eq!(read(&image, 0, 65536), vec![1; 65536], "version 2 cannot say zero");
}

#[test]
fn req_29_freed_clusters_wait_for_punch_and_flush() {
    let file = made(|options| options.cluster_size = 4096);
    let over = store(&file);
    let faults = over.faults().clone();
    let parts = Parts { file: Box::new(over), data: None, backing: None };
    let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
    image.write(0, &[1; 4096]).expect("write");
    let place = host(&image, 0).expect("data");
    image.flush().expect("flush");
    image.discard(0, 4096).expect("discard");
    image.write(8192, &[2; 4096]).expect("write");
    assert_ne!(host(&image, 8192), Some(place), "handed out before the flush");
    faults.reset();
    faults.from(Target::Fallocate, 0, Fault::Errno(libc::EIO));
    image.flush().expect_err("the punch failed");
    image.write(16_384, &[3; 4096]).expect("write");
    assert_ne!(host(&image, 16_384), Some(place), "handed out before the punch");
    faults.reset();
    image.flush().expect("flush");
    let mut hole = [1; 4096];
    store(&file).read_at(&mut hole, place).expect("read");
    assert_eq!(hole, [0; 4096]);
    image.write(24_576, &[4; 4096]).expect("write");
    assert_eq!(host(&image, 24_576), Some(place), "free at last");
    assert_clean(&image);
}

#[test]
fn req_30_a_thousand_flushes_do_not_grow_the_file() {
    let file = made(|options| options.cluster_size = 4096);
    let image = writable(&file);
    image.write(0, &[1; 16_384]).expect("write");
    let mut len = 0;
    for round in 0..1000_u32 {
        image.write(0, &[round as u8; 4096]).expect("write");
        image.discard(4096, 8192).expect("discard");
        image.write(4096, &[round as u8; 8192]).expect("write");
        if round % 100 == 0 {
            image.create_snapshot("s").expect("snapshot");
            image.write(0, &[round as u8; 8192]).expect("write");
            image.delete_snapshot("s").expect("delete");
        }
        image.flush().expect("flush");
        if round == 200 {
            len = store(&file).len().expect("length");
        }
    }
    assert!(store(&file).len().expect("length") <= len);
    assert_clean(&image);
}

#[test]
fn req_31_refcount_structures_grow_at_each_width() {
    for bits in [1, 2, 4, 8, 16, 32, 64] {
        let size = 8 << 20;
        let file =
            made(|options| (options.cluster_size, options.refcount_bits, options.size) = (512, bits, size));
        let image = writable(&file);
        let before = image.header().refcount_table_clusters;
        let data = vec![bits as u8; 1 << 20];
        for at in 0..8 {
            image.write(at << 20, &data).expect("write");
        }
        assert_clean(&image);
        assert!(bits < 16 || image.header().refcount_table_clusters > before, "{bits}: table grew");
        let mut taken = 0;
        while bits <= 4 && taken < 20 {
            match image.create_snapshot("s") {
                Ok(_) => taken += 1,
                Err(error) => {
                    assert_eq!(error.kind(), Exhausted);
                    break;
                }
            }
        }
        assert!(bits > 4 || taken == (1 << bits) - 2, "{bits} bits hold {taken} snapshots");
        drop(image);
        let image = open(&file).expect("open");
        assert_clean(&image);
        assert!(read(&image, 7 << 20, 1 << 20) == data);
    }
}

#[test]
fn req_32_snapshots_stay_what_they_were() {
    let file = made(|options| (options.cluster_size, options.size) = (4096, 4 << 20));
    let image = writable(&file);
    image.write(0, &[1; 20_000]).expect("write");
    image.write_compressed(40_960, &[2; 4096]).expect("compress");
    image.create_snapshot("s").expect("snapshot");
    let before = read(&image, 0, 65536);
    image.write(100, &[9; 10_000]).expect("write");
    image.discard(12_288, 8192).expect("discard");
    image.write_zeroes(40_960, 4096, true).expect("zero");
    image.write(3 << 20, &[8; 4096]).expect("write");
    image.flush().expect("flush");
    assert_clean(&image);
    drop(image);
    let at = open_with(&file, &OpenOptions::new().snapshot("s")).expect("snapshot");
    assert!(read(&at, 0, 65536) == before);
    let image = writable(&file);
    image.apply_snapshot("s").expect("apply");
    assert!(read(&image, 0, 65536) == before);
    assert_eq!(read(&image, 3 << 20, 1), [0]);
    assert_clean(&image);
    image.delete_snapshot("s").expect("delete");
    assert!(read(&image, 0, 65536) == before);
    assert_clean(&image);
}

#[test]
fn req_33_small_clusters() {
    for size in [512, 1024] {
        let file = made(|options| options.cluster_size = size);
        let image = writable(&file);
        let data: Vec<u8> = (0..100_000_u32).map(|at| (at / 7) as u8).collect();
        image.write(12_345, &data).expect("write");
        assert!(read(&image, 12_345, data.len()) == data);
        assert_eq!((read(&image, 12_344, 1), read(&image, 112_345, 1)), (vec![0], vec![0]));
        drop(image);
        let image = open(&file).expect("open");
        assert!(read(&image, 12_345, data.len()) == data);
        assert_clean(&image);
    }
}

#[test]
fn req_34_resize_changes_what_it_must() {
    let (file, image) = overlay(&vec![9; 4 << 20], |_| {});
    image.write(0, &[1; 512]).expect("write");
    image.flush().expect("flush");
    let before = image.header();
    image.resize(3 << 20, false).expect("grow");
    let mut after = image.header();
    assert_eq!(after.size, 3 << 20);
    after.size = before.size;
    assert_eq!(before, after);
    assert_eq!(read(&image, SIZE - 512, 512), [9; 512]);
    assert!(read(&image, SIZE, 2 << 20).iter().all(|byte| *byte == 0));
    assert_eq!(kind(image.resize(4096, false)), InvalidInput);
    image.resize(4096 + 17, true).expect("shrink");
    image.resize(1 << 30, false).expect("grow");
    assert_eq!(read(&image, 4096, 18)[16..], [9, 0]);
    assert_clean(&image);
    drop(image);
    let image = over(&file, &vec![9; 4 << 20]);
    assert_eq!(image.size(), 1 << 30);
    assert!(read(&image, 4096 + 17, 1 << 20).iter().all(|byte| *byte == 0));
    assert_clean(&image);
}

#[test]
fn req_35_a_cut_before_the_flush_leaves_leaks_at_the_most() {
    let journaled = MemStorage::over(made(|options| options.cluster_size = 4096)).journaled();
    let file = journaled.file().clone();
    let image = writable(&file);
    image.write(0, &[1; 8192]).expect("write");
    image.flush().expect("flush");
    image.write(4096, &[2; 40_960]).expect("write");
    image.discard(0, 4096).expect("discard");
    for (way, left) in MemStorage::over(file.clone()).crashes(40) {
        let image = open(left.file()).expect("open");
        assert_eq!(image.check().expect("check").corruptions, 0, "{way:?}");
        assert_eq!(read(&image, 0, 1), [1], "{way:?}");
    }
    let syncs = |image: &Image, faults: &wallgrind::block::faults::Faults| {
        faults.reset();
        image.flush().expect("flush");
        faults.calls(Target::Sync)
    };
    let over = store(&made(|_| {}));
    let faults = over.faults().clone();
    let parts = Parts { file: Box::new(over), data: None, backing: None };
    let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
    image.write(0, &vec![3; 1 << 20]).expect("write");
    assert_eq!(syncs(&image, &faults), 2, "two barriers");
    image.write(0, &[4; 512]).expect("write");
    assert_eq!(syncs(&image, &faults), 1, "data alone needs one");
}
