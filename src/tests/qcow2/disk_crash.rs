//! Requests in flight on a disk in memory, held, let go in any order, failed
//! and torn, and the power cut at any time: what was flushed is there, no
//! sector holds what was never written to it, and a check finds leaks at most.
//!
//! Neighbours: `qcow2_disk` lists the trials; `scene` makes and opens images.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wallgrind::block::faults::{Fault, Faults, Target};
use wallgrind::block::faulty_driver::{Gate, Release};
use wallgrind::block::mem::crash::Crash;
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{CreateOptions, Image, OpenOptions, Parts, QcowDisk};
use wallgrind::block::{AlignedBuf, Completion, Engine, MemEngine, MemStorage, Op, OpKind};

use super::scene;

const SECTOR: u64 = 512;
const SECTORS: u64 = scene::SIZE as u64 / SECTOR;
const DEPTH: u32 = 8;
/// Requests in one run.
const REQUESTS: u64 = 60;
/// Images that are tried for each cut.
const WAYS: usize = 7;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Done,
    Failed,
}

/// What each sector may hold: the requests that changed it, oldest first. 0 is none.
struct Track {
    sectors: Vec<Vec<u64>>,
    fates: BTreeMap<u64, Fate>,
    /// Requests that wrote zeroes.
    zeroes: BTreeSet<u64>,
    /// What had been done when each flush was asked for.
    flushes: BTreeMap<u64, BTreeSet<u64>>,
}

/// What request `tag` writes to `sector`.
fn content(tag: u64, sector: u64) -> [u8; SECTOR as usize] {
    let mut bytes = [0; SECTOR as usize];
    if tag > 0 {
        bytes.fill(tag as u8);
        bytes[..8].copy_from_slice(&tag.to_le_bytes());
        bytes[8..16].copy_from_slice(&sector.to_le_bytes());
    }
    bytes
}

impl Track {
    fn new() -> Self {
        Self {
            sectors: vec![vec![0]; SECTORS as usize],
            fates: BTreeMap::from([(0, Fate::Done)]),
            zeroes: BTreeSet::from([0]),
            flushes: BTreeMap::new(),
        }
    }

    fn asked(&mut self, op: &Op) {
        let tag = op.tag();
        self.fates.insert(tag, Fate::Open);
        match op.kind() {
            OpKind::Read => return,
            OpKind::Flush => {
                let done = self.fates.iter().filter(|(_, fate)| **fate == Fate::Done);
                self.flushes.insert(tag, done.map(|(tag, _)| *tag).collect());
            }
            OpKind::WriteZeroes | OpKind::Discard => drop(self.zeroes.insert(tag)),
            OpKind::Write => {}
        }
        let (first, end) = (op.offset() / SECTOR, (op.offset() + op.byte_len()) / SECTOR);
        (first..end).for_each(|sector| self.sectors[sector as usize].push(tag));
    }

    fn ended(&mut self, done: &Completion) -> Result<(), String> {
        let tag = done.tag();
        let fate = match done.errno() {
            None => Fate::Done,
            Some(libc::EIO | libc::ENOSPC) => Fate::Failed,
            Some(other) => return Err(format!("{:?} {tag} failed with errno {other}", done.kind())),
        };
        self.fates.insert(tag, fate);
        let durable = self.flushes.remove(&tag).filter(|_| fate == Fate::Done);
        if let Some(durable) = durable {
            for sector in &mut self.sectors {
                // Changes of one sector take turns: what came before a durable one is gone.
                if let Some(at) = sector.iter().rposition(|tag| durable.contains(tag)) {
                    sector.drain(..at);
                }
            }
        }
        Ok(())
    }

    fn bytes(&self, tag: u64, sector: u64) -> [u8; SECTOR as usize] {
        content(if self.zeroes.contains(&tag) { 0 } else { tag }, sector)
    }

    /// Why `disk` cannot be what a cut leaves, or what is there now, if so.
    fn judge(&self, disk: &[u8], now: bool) -> Result<(), String> {
        for (index, bytes) in disk.chunks(SECTOR as usize).enumerate() {
            let all = &self.sectors[index];
            // Of what is done, the running program sees the newest.
            let last = all.iter().rposition(|tag| self.fates.get(tag) == Some(&Fate::Done));
            let known = if now { &all[last.unwrap_or(0)..] } else { &all[..] };
            if !known.iter().any(|tag| self.bytes(*tag, index as u64) == *bytes) {
                let seen = u64::from_le_bytes(bytes[..8].try_into().unwrap_or_default());
                return Err(format!("sector {index} holds {seen}, not one of {known:?} (now: {now})"));
            }
        }
        Ok(())
    }
}

/// One run: a disk in memory with requests in flight.
struct Run {
    file: MemFile,
    image: Arc<Image>,
    disk: Option<QcowDisk<MemEngine>>,
    metadata_faults: Faults,
    faults: Faults,
    gate: Gate,
    rng: fastrand::Rng,
    track: Track,
    next: u64,
    cuts: u64,
}

impl Run {
    fn new(change: fn(&mut CreateOptions), seed: u64) -> Result<Self, String> {
        let file = scene::fresh(change);
        let store = MemStorage::over(file.clone());
        let metadata_faults = store.faults().clone();
        let image = Arc::new(scene::open(store).map_err(|error| error.to_string())?);
        let (faults, gate) = (Faults::new(), Gate::new());
        gate.close();
        let engine = MemEngine::open(file.clone(), DEPTH, faults.clone(), gate.clone());
        let engine = engine.map_err(|error| error.to_string())?;
        let disk = QcowDisk::new(engine, Arc::clone(&image)).map_err(|error| error.to_string())?;
        Ok(Self {
            file,
            image,
            disk: Some(disk),
            metadata_faults,
            faults,
            gate,
            rng: fastrand::Rng::with_seed(seed),
            track: Track::new(),
            next: 1,
            cuts: 0,
        })
    }

    /// A request of any kind, in sectors.
    fn request(&mut self) -> Op {
        let tag = self.next;
        self.next += 1;
        let len = if self.rng.bool() { self.rng.u64(1..=3) } else { self.rng.u64(1..=24) };
        let first = self.rng.u64(0..=SECTORS - len);
        let (at, bytes) = (first * SECTOR, len * SECTOR);
        let buf = |tag| {
            let all: Vec<u8> = (first..first + len).flat_map(|sector| content(tag, sector)).collect();
            AlignedBuf::from_slice(&all, 8).expect("memory")
        };
        match self.rng.u8(0..16) {
            0..9 => Op::write(tag, at, buf(tag)),
            9 => Op::write_zeroes(tag, at, bytes),
            10..12 => Op::discard(tag, at, bytes),
            12..14 => Op::read(tag, at, buf(0)),
            _ => Op::flush(tag),
        }
    }

    fn disk(&mut self) -> &mut QcowDisk<MemEngine> {
        self.disk.as_mut().expect("open")
    }

    fn take(&mut self, release: Release) -> Result<(), String> {
        self.gate.release(release);
        let mut out = Vec::new();
        self.disk().reap_many(&mut out, usize::MAX).map_err(|error| error.to_string())?;
        out.iter().try_for_each(|done| self.track.ended(done))
    }

    fn settle(&mut self) -> Result<(), String> {
        while self.disk().in_flight() > 0 {
            self.take(Release::First)?;
        }
        Ok(())
    }

    fn plant_fault(&mut self) {
        let fault = match self.rng.u8(0..4) {
            0 => Fault::Errno(libc::EIO),
            1 => Fault::Errno(libc::ENOSPC),
            2 => Fault::Torn(SECTOR as usize * self.rng.usize(0..4)),
            _ => Fault::Short(SECTOR as usize),
        };
        let faults = if self.rng.u8(0..3) == 0 { &self.metadata_faults } else { &self.faults };
        faults.reset();
        faults.at(Target::Any, self.rng.u64(0..6), fault);
    }

    fn step(&mut self, faulty: bool) -> Result<(), String> {
        if faulty && self.rng.u8(0..4) == 0 {
            self.plant_fault();
        }
        let mut ops = Vec::new();
        for _ in 0..self.rng.u64(1..4) {
            ops.push(self.request());
        }
        while self.disk().in_flight() + ops.len() > DEPTH as usize {
            let which = if self.rng.bool() { Release::First } else { Release::Last };
            self.take(which)?;
        }
        // What a request does may be done before its submission returns.
        ops.iter().for_each(|op| self.track.asked(op));
        self.disk().submit_batch(&mut ops).map_err(|error| error.to_string())
    }

    /// Cuts the power in several ways and looks at what is left.
    fn cut(&mut self) -> Result<(), String> {
        for (way, left) in MemStorage::over(self.file.clone()).crashes(WAYS) {
            self.cuts += 1;
            self.look(&left).map_err(|why| format!("after {} requests, {way:?}: {why}", self.next))?;
        }
        Ok(())
    }

    fn look(&self, left: &MemStorage) -> Result<(), String> {
        let copy = left.crash(Crash::Everything);
        let parts = Parts { file: Box::new(copy), data: None, backing: None };
        let seen = Image::from_parts(parts, &OpenOptions::new()).map_err(|e| format!("open: {e}"))?;
        let report = seen.check().map_err(|error| error.to_string())?;
        if report.corruptions + report.check_errors > 0 {
            return Err(format!("{report:?}"));
        }
        let image = scene::open(MemStorage::over(left.file().clone())).map_err(|e| format!("open: {e}"))?;
        self.track.judge(&read(&image)?, false)?;
        image.write(1024, &[0xee; 9000]).map_err(|error| format!("write: {error}"))
    }

    fn finish(&mut self, faulty: bool) -> Result<(), String> {
        self.metadata_faults.reset();
        self.faults.reset();
        self.settle()?;
        if !self.image.is_writable() {
            return Err("frozen by a fault".to_owned());
        }
        // What failed is not tried again: a last write and flush work as ever.
        let last = self.next;
        let data: Vec<u8> = (0..SECTORS).flat_map(|sector| content(last, sector)).collect();
        self.track.judge(&read(&self.image)?, true)?;
        let report = self.image.check().map_err(|error| error.to_string())?;
        if report.corruptions + report.check_errors > 0 || (!faulty && report.leaks > 0) {
            return Err(format!("in the end: {report:?}"));
        }
        let buf = AlignedBuf::from_slice(&data[..20 * SECTOR as usize], 8).expect("memory");
        for op in [Op::write(last, 0, buf), Op::flush(last + 1)] {
            self.track.asked(&op);
            self.disk().submit(op).map_err(|refused| refused.to_string())?;
            self.settle()?;
            if self.track.fates.values().next_back() != Some(&Fate::Done) {
                return Err("the last operations fail".to_owned());
            }
        }
        self.cut()?;
        self.disk = None;
        Ok(())
    }
}

fn read(image: &Image) -> Result<Vec<u8>, String> {
    let mut disk = vec![1; image.size() as usize];
    image.read(0, &mut disk).map_err(|error| format!("read: {error}"))?;
    Ok(disk)
}

/// A run of random requests, cut every few of them; with or without faults.
pub fn run(change: fn(&mut CreateOptions), seed: u64, faulty: bool) -> Result<(), String> {
    let mut run = Run::new(change, seed)?;
    while run.next < REQUESTS {
        run.step(faulty)?;
        if run.rng.bool() {
            run.cut()?;
        }
    }
    run.finish(faulty)?;
    assert!(run.cuts > 10, "only {} images", run.cuts);
    Ok(())
}
