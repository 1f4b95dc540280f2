//! A guest whose requests are in flight together on a disk over an engine:
//! io_uring on real files, or memory, where each is held and let go in random
//! order.
//!
//! Neighbours: `sequence` says what the guest does; `qcow2_disk` runs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use wallgrind::block::faults::Faults;
use wallgrind::block::faulty_driver::{Gate, Release};
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{Backing, FileOpener, Image, Opener, QcowDisk};
use wallgrind::block::{
    AlignedBuf, BlockFile, Completion, Engine, FileOptions, MemEngine, MemStorage, Op, Result, Storage,
    SyncEngine, UringEngine,
};

use super::sequence::{Guest, open_with};

/// Requests in flight, at most.
pub const DEPTH: u32 = 8;

/// Where a disk's file is, and how its engine is let go on.
pub trait World: Default {
    /// What opens the image's files.
    fn opener(&self) -> &dyn Opener;
    /// An engine on the file at `path`.
    fn engine(&self, path: &Path) -> Box<dyn Engine>;
    /// Whether what lies under an overlay is read through engines too.
    const BELOW: bool;
    /// Lets something happen that may be held.
    fn nudge(&self, rng: &mut fastrand::Rng);
    /// Writes what there is to `path` and beside it.
    fn save(&self);
}

/// Real files, over io_uring; over the synchronous engine where that is missing.
#[derive(Default)]
pub struct Real;

impl World for Real {
    fn opener(&self) -> &dyn Opener {
        &FileOpener
    }

    fn engine(&self, path: &Path) -> Box<dyn Engine> {
        let options = FileOptions { write: true, ..FileOptions::default() };
        let file = Arc::new(BlockFile::open(path, options).expect("open"));
        match UringEngine::open(Arc::clone(&file), DEPTH) {
            Ok(engine) => Box::new(engine),
            Err(_) => Box::new(SyncEngine::open(file, DEPTH).expect("an engine")),
        }
    }

    const BELOW: bool = true;

    fn nudge(&self, _: &mut fastrand::Rng) {}

    fn save(&self) {}
}

/// Files in memory, behind a gate that is closed.
#[derive(Default)]
pub struct Held {
    files: Files,
    gate: Gate,
}

#[derive(Default)]
struct Files(Mutex<BTreeMap<PathBuf, MemFile>>);

impl Files {
    fn get(&self, path: &Path) -> MemFile {
        let mut files = self.0.lock().expect("files");
        let load = || MemStorage::load(path).expect("load").file().clone();
        files.entry(path.to_owned()).or_insert_with(load).clone()
    }
}

impl Opener for Files {
    fn open(&self, path: &Path, _: bool) -> Result<Box<dyn Storage>> {
        Ok(Box::new(MemStorage::over(self.get(path))))
    }
}

impl World for Held {
    fn opener(&self) -> &dyn Opener {
        &self.files
    }

    fn engine(&self, path: &Path) -> Box<dyn Engine> {
        self.gate.close();
        let file = self.files.get(path);
        Box::new(MemEngine::open(file, DEPTH, Faults::new(), self.gate.clone()).expect("an engine"))
    }

    const BELOW: bool = false;

    fn nudge(&self, rng: &mut fastrand::Rng) {
        self.gate.release(if rng.bool() { Release::First } else { Release::Last });
    }

    fn save(&self) {
        for (path, file) in self.files.0.lock().expect("files").iter() {
            MemStorage::over(file.clone()).save(path).expect("save");
        }
    }
}

/// What is in flight: its range, and what a read must bring.
struct Asked {
    start: u64,
    end: u64,
    expected: Option<Vec<u8>>,
}

/// A disk over engines of `world`: on the image's data, and on what lies under it.
fn disk(world: &impl World, path: &Path, image: &Arc<Image>) -> QcowDisk<Box<dyn Engine>> {
    let data = match image.geometry().data_file {
        true => path.with_file_name("data.raw"),
        false => path.to_owned(),
    };
    let over = QcowDisk::new(world.engine(&data), Arc::clone(image)).expect("a disk");
    match image.backing().filter(|_| below(world)) {
        None => over,
        Some(Backing::Raw { .. }) => over.with_backing(world.engine(&path.with_file_name("backing.raw"))),
        Some(Backing::Qcow2(under)) => {
            let path = under.path().expect("opened by path").to_owned();
            over.with_backing(Box::new(disk(world, &path, under)))
        }
    }
}

fn below<W: World>(_: &W) -> bool {
    W::BELOW
}

/// See the module.
pub struct DiskGuest<W: World> {
    disk: Option<QcowDisk<Box<dyn Engine>>>,
    image: Option<Arc<Image>>,
    world: W,
    asked: BTreeMap<u64, Asked>,
    /// Not submitted yet.
    batch: Vec<Op>,
    next: u64,
    rng: fastrand::Rng,
}

impl<W: World> DiskGuest<W> {
    fn over(world: W, path: &Path, seed: u64) -> Self {
        let image = Arc::new(open_with(world.opener(), path));
        let disk = disk(&world, path, &image);
        Self {
            disk: Some(disk),
            image: Some(image),
            world,
            asked: BTreeMap::new(),
            batch: Vec::new(),
            next: 0,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    fn disk(&mut self) -> &mut QcowDisk<Box<dyn Engine>> {
        self.disk.as_mut().expect("open")
    }

    /// Asks for `op`, after what it must not be in flight with: a read with a change of its range.
    fn ask(&mut self, op: impl FnOnce(u64) -> Op, expected: Option<Vec<u8>>) {
        let op = op(self.next);
        self.next += 1;
        let (start, end) = (op.offset(), op.offset() + op.byte_len());
        let meets = |asked: &Asked| {
            asked.start < end && start < asked.end && asked.expected.is_some() != expected.is_some()
        };
        if self.asked.values().any(meets) {
            self.settle();
        }
        while self.asked.len() >= DEPTH as usize {
            self.submit();
            self.take();
        }
        self.asked.insert(op.tag(), Asked { start, end, expected });
        self.batch.push(op);
        if self.rng.u8(..) < 128 {
            self.submit();
        }
    }

    fn submit(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        self.disk().submit_batch(&mut batch).expect("accepted");
    }

    /// Lets something happen and looks at what is done.
    fn take(&mut self) {
        self.world.nudge(&mut self.rng);
        let mut out = Vec::new();
        self.disk().reap_many(&mut out, usize::MAX).expect("completions");
        out.into_iter().for_each(|done| self.see(&done));
    }

    fn see(&mut self, done: &Completion) {
        let asked = self.asked.remove(&done.tag()).expect("it was asked for");
        assert_eq!(done.result().expect("done"), asked.end - asked.start, "{:?}", done.kind());
        if let Some(expected) = asked.expected {
            let read: Vec<u8> = done.buffers().as_slice().iter().flat_map(|buf| buf.to_vec()).collect();
            assert!(read == expected, "read at {}", asked.start);
        }
    }

    fn settle(&mut self) {
        self.submit();
        while !self.asked.is_empty() {
            self.take();
        }
    }

    /// `data` in buffers that are cut somewhere.
    fn cut(&mut self, data: &[u8]) -> Vec<AlignedBuf> {
        let at = self.rng.usize(0..=data.len());
        let (head, tail) = data.split_at(at);
        [head, tail].map(|part| AlignedBuf::from_slice(part, 8).expect("memory")).into()
    }
}

impl<W: World> Guest for DiskGuest<W> {
    fn open(path: &Path) -> Self {
        Self::over(W::default(), path, 1)
    }

    fn image(&mut self) -> &Image {
        self.settle();
        self.image.as_ref().expect("open")
    }

    fn write(&mut self, at: u64, data: Vec<u8>) {
        let bufs = self.cut(&data);
        self.ask(|tag| Op::writev(tag, at, bufs), None);
    }

    fn zero(&mut self, at: u64, len: u64, unmap: bool) {
        self.ask(|tag| if unmap { Op::discard(tag, at, len) } else { Op::write_zeroes(tag, at, len) }, None);
    }

    fn discard(&mut self, at: u64, len: u64) -> (u64, u64) {
        self.ask(|tag| Op::discard(tag, at, len), None);
        (at, len)
    }

    fn read(&mut self, at: u64, expected: &[u8]) {
        let bufs = self.cut(&vec![1; expected.len()]);
        self.ask(|tag| Op::readv(tag, at, bufs), Some(expected.to_vec()));
    }

    fn flush(&mut self) {
        self.ask(Op::flush, None);
    }

    fn reopen(self, path: &Path) -> Self {
        let mut old = self;
        old.settle();
        (old.disk, old.image) = (None, None);
        Self::over(old.world, path, old.next)
    }

    fn close(self, _: &Path) {
        let mut old = self;
        old.settle();
        (old.disk, old.image) = (None, None);
        old.world.save();
    }
}
