//! Requirements 36 to 40: buffers, concurrent requests, short transfers, direct I/O.
//!
//! Neighbours: `image` makes images. Requests in flight belong to the engines;
//! here are the parts that the metadata's owner has in them.

use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use wallgrind::block::qcow2::{CreateOptions, GuestOffset, Image, OpenOptions, Parts, Source};
use wallgrind::block::{FileOptions, FileStorage, MemStorage, Result, Storage};

use super::image::*;

fn host(image: &Image, guest: u64) -> u64 {
    match image.extent(GuestOffset(guest), 1).expect("map").source {
        Source::Data(host) => host.0,
        other => panic!("{other:?}"),
    }
}

/// What an engine reads on its own must not be reused while it reads: the buffer is the engine's
/// affair, the host cluster is ours.
#[test]
fn req_36_host_clusters_outlive_reads_in_flight() {
    let file = made(|options| options.cluster_size = 4096);
    let image = writable(&file);
    image.write(0, &[1; 4096]).expect("write");
    let ticket = image.read_ticket();
    let place = host(&image, 0);
    image.discard(0, 4096).expect("discard");
    image.flush().expect("flush");
    image.write(4096, &[2; 4096]).expect("write");
    image.flush().expect("flush");
    let mut seen = [0; 4096];
    store(&file).read_at(&mut seen, place).expect("read");
    assert_eq!(seen, [1; 4096], "reused or punched under a read");
    drop(ticket);
    image.flush().expect("flush");
    image.write(8192, &[3; 4096]).expect("write");
    assert_eq!(host(&image, 8192), place);
    assert_clean(&image);
}

/// Storage whose next write, or next read, waits until the test lets it go on.
struct Held {
    inner: MemStorage,
    hold: Arc<AtomicBool>,
    hold_read: Arc<AtomicBool>,
    started: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Held {
    fn wait(&self, hold: &AtomicBool) {
        if hold.swap(false, Ordering::SeqCst) {
            self.started.send(()).expect("the test listens");
            self.go_on.lock().expect("not poisoned").recv().expect("the test answers");
        }
    }
}

impl Storage for Held {
    fn readv_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        self.wait(&self.hold_read);
        self.inner.readv_at(bufs, offset)
    }

    fn writev_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.wait(&self.hold);
        self.inner.writev_at(bufs, offset)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.punch(offset, len)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.write_zeroes(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.allocate(offset, len)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }
}

/// While one write that allocates is held in the middle: one to an allocated cluster and a read go
/// through, and one to the same cluster waits, so that neither loses its bytes.
#[test]
fn req_37_requests_to_one_cluster_are_in_order() {
    let file = made(|options| options.cluster_size = 4096);
    writable(&file).write(0, &[1; 4096]).expect("write");
    let (started, starts) = channel();
    let (release, go_on) = channel();
    let hold = Arc::new(AtomicBool::new(false));
    let (inner, go_on) = (store(&file), Mutex::new(go_on));
    let held = Held { inner, hold: Arc::clone(&hold), hold_read: Arc::default(), started, go_on };
    let parts = Parts { file: Box::new(held), data: None, backing: None };
    let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
    hold.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let image = &image;
        scope.spawn(|| image.write(8192, &[2; 512]).expect("first"));
        starts.recv().expect("started");
        let second = scope.spawn(|| image.write(8192 + 512, &[3; 512]).expect("second"));
        image.write(0, &[4; 512]).expect("elsewhere");
        assert_eq!(read(image, 0, 513)[511..], [4, 1]);
        // Time for the second to go wrong, if it does not wait.
        (0..10_000).take_while(|_| !second.is_finished()).for_each(|_| std::thread::yield_now());
        release.send(()).expect("release");
    });
    assert_eq!(read(&image, 8192, 1025)[510..], [vec![2; 2], vec![3; 512], vec![0]].concat());
    assert_clean(&image);
}

/// A read is held before it takes its bytes; its cluster is freed and handed out to another one, and
/// to a third after one more flush.
#[test]
fn req_37_a_read_sees_no_cluster_that_was_handed_out_again() {
    let file = made(|options| options.cluster_size = 4096);
    writable(&file).write(0, &[1; 4096]).expect("write");
    let (started, starts) = channel();
    let (release, go_on) = channel();
    let hold_read = Arc::new(AtomicBool::new(false));
    let (inner, go_on) = (store(&file), Mutex::new(go_on));
    let held = Held { inner, hold: Arc::default(), hold_read: Arc::clone(&hold_read), started, go_on };
    let parts = Parts { file: Box::new(held), data: None, backing: None };
    let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
    assert_eq!(read(&image, 0, 1), [1]);
    hold_read.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let image = &image;
        let reader = scope.spawn(|| read(image, 0, 4096));
        starts.recv().expect("started");
        assert_eq!(image.discard(0, 4096).expect("discard"), 4096);
        for (at, byte) in [(8192, 7), (16_384, 8)] {
            image.flush().expect("flush");
            image.write(at, &[byte; 4096]).expect("write");
        }
        release.send(()).expect("release");
        let seen = reader.join().expect("read");
        assert!(seen == [1; 4096] || seen == [0; 4096], "{} was written elsewhere", seen[0]);
    });
    assert_clean(&image);
}

#[test]
fn req_37_many_threads_allocate_the_same_clusters() {
    let file = made(|options| (options.cluster_size, options.size) = (4096, 1 << 20));
    let image = writable(&file);
    // Each of sixteen threads owns some bytes of every cluster.
    std::thread::scope(|scope| {
        for thread in 0..16_u64 {
            let image = &image;
            scope.spawn(move || {
                for cluster in 0..64 {
                    let at = cluster * 4096 + thread * 256;
                    image.write(at, &[thread as u8 + 1; 256]).expect("write");
                }
            });
        }
    });
    for cluster in 0..64 {
        let bytes = read(&image, cluster * 4096, 4096);
        let right = bytes.iter().enumerate().all(|(at, byte)| *byte as usize == at / 256 + 1);
        assert!(right, "{cluster}");
    }
    assert_clean(&image);
}

#[test]
fn req_38_discard_flush_and_reuse_never_erase_live_data() {
    let file = made(|options| (options.cluster_size, options.size) = (4096, 1 << 20));
    let image = writable(&file);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (image, stop) = (&image, &stop);
        for thread in 0..4_u64 {
            scope.spawn(move || {
                let base = thread * (256 << 10);
                for round in 0..60_u8 {
                    image.write(base, &[round + 1; 16_384]).expect("write");
                    assert!(read(image, base, 16_384).iter().all(|byte| *byte == round + 1));
                    image.discard(base + 4096, 8192).expect("discard");
                    let bytes = read(image, base, 16_384);
                    assert!(bytes[..4096].iter().chain(&bytes[12_288..]).all(|byte| *byte == round + 1));
                    assert!(bytes[4096..12_288].iter().all(|byte| *byte == 0));
                }
            });
        }
        let flusher = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                image.flush().expect("flush");
            }
        });
        // The scope would wait for the flusher: stop it when the others are through.
        scope.spawn(move || {
            for round in 0..100_u8 {
                image.write(900 << 10, &[round; 4096]).expect("write");
            }
            stop.store(true, Ordering::Relaxed);
        });
        flusher.join().expect("flusher");
    });
    image.flush().expect("flush");
    assert_clean(&image);
}

#[test]
fn req_39_only_what_is_past_the_end_reads_as_zeroes() {
    let file = made(|options| options.cluster_size = 4096);
    let image = writable(&file);
    image.write(0, &[5; 1000]).expect("write");
    image.flush().expect("flush");
    let place = host(&image, 0);
    assert_eq!(store(&file).len().expect("length"), place + 1000, "the file ends within the cluster");
    let bytes = read(&image, 0, 4096);
    assert!(bytes[..1000].iter().all(|byte| *byte == 5) && bytes[1000..].iter().all(|byte| *byte == 0));
    image.write(2000, &[6; 10]).expect("write");
    let bytes = read(&image, 0, 4096);
    assert_eq!((bytes[999], bytes[1000], bytes[1999], bytes[2000]), (5, 0, 0, 6));
    // A cluster that is reused does not show what it held before.
    image.write(4096, &[7; 4096]).expect("write");
    image.discard(4096, 4096).expect("discard");
    image.flush().expect("flush");
    image.write(8192 + 100, &[8; 10]).expect("write");
    let bytes = read(&image, 8192, 4096);
    assert!(bytes[..100].iter().chain(&bytes[110..]).all(|byte| *byte == 0));
}

#[test]
fn req_40_direct_io_with_small_requests() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("folder");
    let path = dir.path().join("direct.qcow2");
    Image::create(&path, &CreateOptions::new(SIZE)).expect("create");
    let how = FileOptions { write: true, direct: true, ..FileOptions::default() };
    let storage: Box<dyn Storage> = match FileStorage::open(&path, how) {
        Ok(storage) => Box::new(storage),
        // Without O_DIRECT here, the same alignment in memory.
        Err(_) => {
            let alignment = wallgrind::block::align::Alignment::new(4096, 4096).expect("powers");
            Box::new(MemStorage::load(&path).expect("load").with_alignment(alignment))
        }
    };
    let parts = Parts { file: storage, data: None, backing: None };
    let image = Image::from_parts(parts, &OpenOptions::new().writable(true)).expect("open");
    image.write(512, &[1; 512]).expect("write");
    image.write(70_000, &[2; 3]).expect("write");
    assert_eq!(read(&image, 511, 2), [0, 1]);
    assert_eq!(read(&image, 1023, 2), [1, 0]);
    assert_eq!(read(&image, 69_999, 5), [0, 2, 2, 2, 0]);
    image.flush().expect("flush");
    assert_clean(&image);
}
