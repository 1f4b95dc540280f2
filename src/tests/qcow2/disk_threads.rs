//! One image and several users of it at the same time: threads with a disk
//! each, over the same engine or different ones, the image's own calls between
//! them, and two disks in one thread.
//!
//! Neighbours: `qcow2_disk` lists the trials.

use std::os::fd::AsFd;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use wallgrind::block::faults::{Fault, Faults, Target};
use wallgrind::block::faulty_driver::{Gate, Release};
use wallgrind::block::mem::crash::Crash;
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{Backing, CreateOptions, Image, OpenOptions, Parts, QcowDisk};
use wallgrind::block::sys::eventfd;
use wallgrind::block::{
    AioEngine, AlignedBuf, BlockFile, Engine, ErrorKind, FileOptions, FileStorage, MemEngine, MemStorage, Op,
    Storage, SyncEngine, UringEngine,
};

const SIZE: u64 = 2 << 20;
const SECTOR: u64 = 512;
const THREADS: u64 = 4;
const DEPTH: u32 = 8;

/// All trials.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, ways) in [
        ("sync", ["sync"; 4]),
        ("aio", ["aio"; 4]),
        ("uring", ["uring"; 4]),
        ("mem", ["mem"; 4]),
        ("mixed", ["sync", "aio", "uring", "sync"]),
    ] {
        let name = format!("threads_share_an_image::{name}");
        trials.push(Trial::test(name, move || threads_share_an_image(ways)));
    }
    trials.push(Trial::test("two_disks_of_one_thread_do_not_block_it", two_disks_of_one_thread));
    trials.push(Trial::test("who_waits_for_another_disk_is_told", who_waits_for_another_disk_is_told));
    trials.push(Trial::test("reads_in_flight_keep_their_clusters", reads_in_flight_keep_their_clusters));
    trials.push(Trial::test("a_failed_wait_leaves_nothing_unsent", a_failed_wait_leaves_nothing_unsent));
    trials.push(Trial::test("corruption_stops_changes", corruption_stops_changes));
    trials.push(Trial::test("overlays_read_through_two_engines", overlays_read_through_two_engines));
    trials.push(Trial::test("blocks_larger_than_clusters_are_refused", blocks_larger_than_clusters));
    trials
}

/// An image and the way to engines on its file.
struct Shared {
    image: Arc<Image>,
    real: Option<(Arc<BlockFile>, tempfile::TempDir)>,
    memory: MemFile,
}

fn shared(memory: bool) -> Result<Shared, Failed> {
    let mut options = CreateOptions::new(SIZE);
    options.cluster_size = 4096;
    let store = MemStorage::new();
    let file = store.file().clone();
    if memory {
        let parts = Parts { file: Box::new(store), data: None, backing: None };
        return Ok(Shared {
            image: Arc::new(Image::create_from(parts, &options)?),
            real: None,
            memory: file,
        });
    }
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("image.qcow2");
    let write = FileOptions { write: true, create: true, ..FileOptions::default() };
    let storage = Box::new(FileStorage::open(&path, write)?);
    let image = Image::create_from(Parts { file: storage, data: None, backing: None }, &options)?;
    let real = Arc::new(BlockFile::open(&path, write)?);
    Ok(Shared { image: Arc::new(image), real: Some((real, dir)), memory: file })
}

impl Shared {
    fn disk(&self, way: &str) -> Result<QcowDisk<Box<dyn Engine>>, Failed> {
        let engine: Box<dyn Engine> = match (&self.real, way) {
            (Some((file, _)), "aio") => Box::new(AioEngine::open(Arc::clone(file), DEPTH)?),
            (Some((file, _)), "uring") => Box::new(UringEngine::open(Arc::clone(file), DEPTH)?),
            (Some((file, _)), _) => Box::new(SyncEngine::open(Arc::clone(file), DEPTH)?),
            (None, _) => Box::new(self.memory(&Gate::new())?),
        };
        Ok(QcowDisk::new(engine, Arc::clone(&self.image))?)
    }

    fn memory(&self, gate: &Gate) -> Result<MemEngine, Failed> {
        Ok(MemEngine::open(self.memory.clone(), DEPTH, Faults::new(), gate.clone())?)
    }
}

fn sector(byte: u8) -> AlignedBuf {
    let mut buf = AlignedBuf::new(SECTOR as usize, 8).expect("memory");
    buf.fill(byte);
    buf
}

/// Thread `thread`'s bytes in `round`.
fn mark(thread: u64, round: u64) -> u8 {
    (1 + thread * 60 + round % 59) as u8
}

/// Each thread owns every fourth sector, so all meet in every cluster; the image's own calls, snapshots
/// and flushes come between. Nobody's bytes are lost, and the image is sound.
fn threads_share_an_image(ways: [&'static str; 4]) -> Result<(), Failed> {
    let shared = shared(ways[0] == "mem")?;
    let rounds = 12;
    std::thread::scope(|scope| -> Result<(), Failed> {
        let mut all = Vec::new();
        for (thread, way) in (0..THREADS).zip(ways) {
            let shared = &shared;
            all.push(scope.spawn(move || work(shared, thread, way, rounds)));
        }
        for round in 0..6 {
            let name = format!("s{round}");
            shared.image.create_snapshot(&name)?;
            shared.image.flush()?;
            shared.image.delete_snapshot(&name)?;
        }
        for thread in all {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    let mut disk = vec![0; SIZE as usize];
    shared.image.read(0, &mut disk)?;
    for (index, bytes) in disk.chunks(SECTOR as usize).enumerate().take(256) {
        let expected = mark(index as u64 % THREADS, rounds - 1);
        if bytes.iter().any(|byte| *byte != expected) {
            return Err(format!("sector {index} holds {}, not {expected}", bytes[0]).into());
        }
    }
    let report = shared.image.check()?;
    if !report.is_clean() {
        return Err(format!("{report:?}").into());
    }
    Ok(())
}

/// What one thread does: writes all its sectors, reads them back, and discards far away.
fn work(shared: &Shared, thread: u64, way: &str, rounds: u64) -> Result<(), Failed> {
    let mut disk = shared.disk(way)?;
    let mine: Vec<u64> = (0..256).filter(|index| index % THREADS == thread).collect();
    let mut out = Vec::new();
    for round in 0..rounds {
        for part in mine.chunks(DEPTH as usize - 2) {
            let write = |index: &u64| Op::write(*index, index * SECTOR, sector(mark(thread, round)));
            let mut ops: Vec<Op> = part.iter().map(write).collect();
            ops.push(Op::flush(1000));
            ops.push(Op::discard(1001, (1 << 20) + thread * 8192, 6000));
            let count = ops.len();
            disk.submit_batch(&mut ops)?;
            disk.wait(count, &mut out)?;
            let mut ops: Vec<Op> =
                part.iter().map(|index| Op::read(*index, index * SECTOR, sector(0))).collect();
            let reads = ops.len();
            disk.submit_batch(&mut ops)?;
            disk.wait(reads, &mut out)?;
            for done in out.drain(..) {
                done.result()?;
                let bytes = done.buffers().as_slice();
                let right = bytes.iter().all(|buf| buf.iter().all(|byte| *byte == mark(thread, round)));
                if !right {
                    return Err(format!("thread {thread} reads what it did not write").into());
                }
            }
        }
        shared.image.write((1 << 20) + (1 << 19) + thread * SECTOR, &[thread as u8; 512])?;
    }
    Ok(())
}

/// The second disk's write would wait for the first's, which only this thread can complete.
fn two_disks_of_one_thread() -> Result<(), Failed> {
    let shared = shared(true)?;
    let gate = Gate::new();
    gate.close();
    let mut first = QcowDisk::new(shared.memory(&gate)?, Arc::clone(&shared.image))?;
    let mut second = shared.disk("mem")?;
    first.submit(Op::write(1, 0, sector(1)))?;
    second.submit(Op::write(1, SECTOR, sector(2)))?;
    second.submit(Op::write(2, 1 << 20, sector(3)))?;
    let mut out = Vec::new();
    let error = second.wait(2, &mut out).expect_err("it would be for ever");
    assert_eq!((error.kind(), out.len(), out[0].tag()), (ErrorKind::Busy, 1, 2));
    gate.open();
    first.wait(1, &mut out)?;
    second.wait(1, &mut out)?;
    let mut disk = vec![0; 1024];
    shared.image.read(0, &mut disk)?;
    assert_eq!((disk[0], disk[511], disk[512], disk[1023]), (1, 1, 2, 2));
    Ok(())
}

/// A disk that waits for another thread's: it sleeps, or its notifier tells it, and both go on.
fn who_waits_for_another_disk_is_told() -> Result<(), Failed> {
    for polls in [false, true] {
        let shared = shared(true)?;
        let gate = Gate::new();
        gate.close();
        let mut first = QcowDisk::new(shared.memory(&gate)?, Arc::clone(&shared.image))?;
        first.submit(Op::write(1, 0, sector(1)))?;
        std::thread::scope(|scope| -> Result<(), Failed> {
            let (ready, started) = std::sync::mpsc::channel();
            let shared = &shared;
            let waiter = scope.spawn(move || -> Result<(), Failed> {
                let mut second = shared.disk("mem")?;
                let mut out = Vec::new();
                if polls {
                    let event = second.notifier()?.try_clone_to_owned()?;
                    second.submit(Op::write(1, SECTOR, sector(2)))?;
                    ready.send(())?;
                    while out.is_empty() {
                        eventfd::wait_readable(event.as_fd())?;
                        eventfd::drain(event.as_fd())?;
                        second.reap_many(&mut out, usize::MAX)?;
                    }
                } else {
                    second.submit(Op::write(1, SECTOR, sector(2)))?;
                    ready.send(())?;
                    second.wait(1, &mut out)?;
                }
                out[0].result()?;
                Ok(())
            });
            started.recv()?;
            assert!(!waiter.is_finished());
            gate.open();
            first.wait(1, &mut Vec::new())?;
            waiter.join().map_err(|_| "the waiter panicked")?
        })?;
        let report = shared.image.check()?;
        assert!(report.is_clean(), "{report:?}");
    }
    Ok(())
}

/// What a copied write reads comes back, then waiting fails: the write goes to the engine all the same.
fn a_failed_wait_leaves_nothing_unsent() -> Result<(), Failed> {
    let shared = shared(true)?;
    shared.image.write(0, &[1; 8192])?;
    shared.image.create_snapshot("a")?;
    let gate = Gate::new();
    gate.close();
    let mut disk = QcowDisk::new(shared.memory(&gate)?, Arc::clone(&shared.image))?;
    // The read is sent first, then those for what is before and behind the written sector.
    gate.release(Release::Last);
    gate.release(Release::Last);
    let mut ops = vec![Op::write(1, SECTOR, sector(2)), Op::read(2, 4096, sector(0))];
    let mut out = Vec::new();
    assert!(disk.submit_and_wait(&mut ops, 2, &mut out).is_err(), "the gate holds one");
    assert_eq!((ops.len(), out.len(), disk.in_flight(), gate.held()), (0, 0, 2, 2));
    gate.open();
    disk.wait(2, &mut out)?;
    for done in &out {
        done.result()?;
    }
    let mut bytes = [0; 1536];
    shared.image.read(0, &mut bytes)?;
    assert_eq!((bytes[511], bytes[512], bytes[1023], bytes[1024]), (1, 2, 2, 1));
    Ok(())
}

/// A read is held while its cluster is discarded, flushed and would be used again.
fn reads_in_flight_keep_their_clusters() -> Result<(), Failed> {
    let shared = shared(true)?;
    let image = &shared.image;
    image.write(0, &[1; 8192])?;
    image.flush()?;
    let gate = Gate::new();
    gate.close();
    let mut disk = QcowDisk::new(shared.memory(&gate)?, Arc::clone(image))?;
    for round in 0..2 {
        disk.submit(Op::read(round, round * 4096, AlignedBuf::new(4096, 8)?))?;
        image.discard(round * 4096, 4096)?;
        for place in 1..4 {
            image.flush()?;
            image.write((round * 10 + place) << 15, &[9; 4096])?;
        }
    }
    gate.open();
    let mut out = Vec::new();
    disk.wait(2, &mut out)?;
    for done in &out {
        done.result()?;
        let bytes = &done.buffers().as_slice()[0];
        assert!(bytes.iter().all(|byte| *byte == 1), "read {} sees {}", done.tag(), bytes[0]);
    }
    image.flush()?;
    let report = image.check()?;
    assert!(report.is_clean(), "{report:?}");
    Ok(())
}

/// An entry that points past the end of the file: the operation fails, and the image takes no more
/// changes; what is sound can still be read.
fn corruption_stops_changes() -> Result<(), Failed> {
    let shared = shared(true)?;
    shared.image.write(0, &[1; 8192])?;
    shared.image.flush()?;
    let l1 = shared.image.header().l1_offset;
    let store = MemStorage::over(shared.memory.clone());
    let mut word = [0; 8];
    store.read_at(&mut word, l1)?;
    let table = u64::from_be_bytes(word) & 0x00ff_ffff_ffff_fe00;
    store.write_at(&(1u64 << 50 | 1 << 63).to_be_bytes(), table + 8)?;
    for op in [|| Op::read(1, 4096, sector(0)), || Op::write(1, 4096, sector(9))] {
        let file = MemStorage::over(shared.memory.clone()).crash(Crash::Everything).file().clone();
        let parts = Parts { file: Box::new(MemStorage::over(file.clone())), data: None, backing: None };
        let image = Arc::new(Image::from_parts(parts, &OpenOptions::new().writable(true))?);
        let engine = MemEngine::open(file, DEPTH, Faults::new(), Gate::new())?;
        let mut disk = QcowDisk::new(engine, Arc::clone(&image))?;
        let mut run = |op: Op| -> Result<Option<i32>, Failed> {
            disk.submit(op)?;
            let mut out = Vec::new();
            disk.wait(1, &mut out)?;
            Ok(out[0].errno())
        };
        assert_eq!(run(op())?, Some(libc::EIO));
        assert!(!image.is_writable() && image.header().incompatible & 2 != 0);
        assert_eq!(run(Op::write(2, 0, sector(9)))?, Some(libc::EROFS));
        assert_eq!(run(Op::read(3, 0, sector(9)))?, None);
        assert_eq!(run(Op::flush(4))?, None);
    }
    Ok(())
}

/// An overlay with an engine on its raw backing file too: reads of either, of both and beyond the
/// backing file's end; one notifier tells of them all, and a copy reads from below.
fn overlays_read_through_two_engines() -> Result<(), Failed> {
    let raw: Vec<u8> = (0..50_000u32).map(|at| (at / 7) as u8 | 1).collect();
    let below = MemStorage::from_bytes(&raw);
    let mut options = CreateOptions::new(SIZE);
    options.cluster_size = 4096;
    options.backing = Some(("backing.raw".to_owned(), "raw".to_owned()));
    let store = MemStorage::new();
    let file = store.file().clone();
    let backing = Backing::raw(Box::new(MemStorage::over(below.file().clone())))?;
    let image = Arc::new(Image::create_from(
        Parts { file: Box::new(store), data: None, backing: Some(backing) },
        &options,
    )?);
    let (gates, faults) = ([Gate::new(), Gate::new()], Faults::new());
    let upper = MemEngine::open(file, DEPTH, Faults::new(), gates[0].clone())?;
    let lower = MemEngine::open(below.file().clone(), DEPTH, faults.clone(), gates[1].clone())?;
    let mut disk = QcowDisk::new(upper, Arc::clone(&image))?.with_backing(Box::new(lower));
    let mut model = raw;
    model.resize(SIZE as usize, 0);
    image.write(8192, &[2; 4096])?;
    model[8192..12288].fill(2);
    let mut out = Vec::new();

    disk.submit(Op::write(1, 20_000, sector(5)))?;
    disk.wait(1, &mut out)?;
    model[20_000..20_512].fill(5);
    assert!(faults.calls(Target::Read) > 0, "the copy came from below");

    gates.iter().for_each(Gate::close);
    let event = disk.notifier()?.try_clone_to_owned()?;
    let ranges = [(0, 4096), (8192, 4096), (5000, 9000), (48_000, 9000), (60_000, 512)];
    for (tag, (at, len)) in ranges.into_iter().enumerate() {
        disk.submit(Op::read(tag as u64, at, AlignedBuf::new(len, 8)?))?;
    }
    assert_eq!((gates[0].held(), gates[1].held()), (2, 4), "the last one needs neither");
    disk.wait(1, &mut out)?;
    gates.iter().for_each(Gate::open);
    while out.len() < 6 {
        disk.reap_many(&mut out, usize::MAX)?;
        if out.len() < 6 {
            eventfd::wait_readable(event.as_fd())?;
            eventfd::drain(event.as_fd())?;
        }
    }
    for done in out.iter().skip(1) {
        let (at, len) = ranges[done.tag() as usize];
        assert_eq!(done.result()?, len as u64);
        let bytes = &done.buffers().as_slice()[0];
        assert!(**bytes == model[at as usize..at as usize + len], "read {}", done.tag());
    }
    faults.reset();
    faults.at(Target::Read, 0, Fault::Errno(libc::EIO));
    disk.submit(Op::read(1, 5000, AlignedBuf::new(9000, 8)?))?;
    out.clear();
    disk.wait(1, &mut out)?;
    assert_eq!(out[0].errno(), Some(libc::EIO));
    assert!(image.is_writable() && image.check()?.is_clean());
    Ok(())
}

fn blocks_larger_than_clusters() -> Result<(), Failed> {
    let mut options = CreateOptions::new(SIZE);
    options.cluster_size = 512;
    let store = MemStorage::new();
    let align = wallgrind::block::align::Alignment::new(512, 4096).expect("powers of two");
    let file = store.file().with_alignment(align);
    let parts = Parts { file: Box::new(store), data: None, backing: None };
    drop(Image::create_from(parts, &options)?);
    let parts = Parts { file: Box::new(MemStorage::over(file.clone())), data: None, backing: None };
    let image = Arc::new(Image::from_parts(parts, &OpenOptions::new().writable(true))?);
    let engine = MemEngine::open(file, DEPTH, Faults::new(), Gate::new())?;
    let refused = QcowDisk::new(engine, image).err().map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::Unsupported));
    Ok(())
}
