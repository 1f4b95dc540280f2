//! What the hot paths of the block layer cost in instructions, within narrow
//! bounds, so that nobody makes them longer unseen. Built as tests are, so the
//! numbers are larger than those of a measured build; they grow with the same code.
//!
//! Neighbours: `toys` registers these scenarios with its own; the target
//! `qcow2_growth` pins the system calls of the same paths.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use wallgrind::block::qcow2::{Compression, CreateOptions, Image, OpenOptions};
use wallgrind::block::sys::eventfd;
use wallgrind::block::{AioEngine, AlignedBuf, BlockFile, Engine, ErrorKind, FileOptions, Op, UringEngine};
use wallgrind::plan::Mode;
use wallgrind::{Bencher, Suite};

use crate::Test;
use crate::driver::{outcomes, plan, total};

pub const TESTS: &[Test] = &[("hot_paths_of_the_block_layer_cost_what_they_did", cost_what_they_did)];

const CLUSTER: u64 = 64 << 10;

/// Operations in a region.
const COUNT: u64 = 64;

/// One operation, by its number.
type Operation = fn(&Image, &mut [u8], u64) -> wallgrind::block::Result<()>;

/// A path, and instructions of one operation of it: measured here, and what it may be at most.
struct HotPath {
    name: &'static str,
    len: u64,
    operation: Operation,
    most: u64,
}

/// What is more than a twentieth below its bound is an improvement: write it down here.
const PATHS: [HotPath; 5] = [
    HotPath {
        name: "hot_path::read",
        len: 4096,
        operation: |i, buf, n| i.read(n * CLUSTER, buf),
        most: 5_900,
    },
    HotPath {
        name: "hot_path::contiguous_read",
        len: 8 * CLUSTER,
        operation: |i, buf, n| i.read(n * CLUSTER, buf),
        most: 16_410,
    },
    HotPath {
        name: "hot_path::overwrite",
        len: 4096,
        operation: |i, buf, n| i.write(n * CLUSTER, buf),
        most: 8_960,
    },
    HotPath {
        name: "hot_path::allocating_write",
        len: 4096,
        operation: |i, buf, n| i.write((1024 + n) * CLUSTER, buf),
        most: 20_470,
    },
    HotPath {
        name: "hot_path::cold_read",
        len: 4096,
        // Each in a part of an L2 table of its own; none has data.
        operation: |i, buf, n| i.read((2048 + 512 * n) * CLUSTER, buf),
        most: 85_090,
    },
];

/// Taking completions that have arrived, and instructions of one.
struct Drain {
    name: &'static str,
    open: fn(Arc<BlockFile>) -> wallgrind::block::Result<Box<dyn Engine>>,
    most: u64,
}

const DRAINS: [Drain; 2] = [
    Drain {
        name: "hot_path::aio_completion",
        open: |file| Ok(Box::new(AioEngine::open(file, COUNT as u32)?)),
        most: 1_170,
    },
    Drain {
        name: "hot_path::uring_completion",
        open: |file| Ok(Box::new(UringEngine::open(file, COUNT as u32)?)),
        most: 1_120,
    },
];

pub fn register(suite: &mut Suite) {
    for path in &PATHS {
        suite.bench(path.name, |b| walk(b, path));
    }
    for path in &DRAINS {
        suite.bench(path.name, |b| drain(b, path));
    }
}

/// Writes are submitted and seen to land in set-up; the region takes what came of them.
fn drain(b: &mut Bencher<'_>, path: &Drain) -> Result<()> {
    let file = queue_file(&b.scratch_dir()?)?;
    let submitted = || -> Result<_> {
        let mut engine = (path.open)(Arc::clone(&file))?;
        let write = |n| Ok(Op::write(n, n * 4096, AlignedBuf::new(4096, 4096)?));
        let mut ops = (0..COUNT).map(write).collect::<wallgrind::block::Result<Vec<Op>>>()?;
        let mut landed = 0;
        engine.notifier()?;
        engine.submit_batch(&mut ops)?;
        while landed < COUNT {
            let fd = engine.notifier()?;
            eventfd::wait(fd)?;
            landed += eventfd::drain(fd)?.unwrap_or(0);
        }
        Ok((engine, Vec::with_capacity(COUNT as usize)))
    };
    b.iter_full(
        submitted,
        |(mut engine, mut out)| {
            let result = engine.wait(COUNT as usize, &mut out);
            (engine, out, result)
        },
        |(_, out, result)| {
            result?;
            ensure!(out.len() == COUNT as usize, "{} completions", out.len());
            for done in &out {
                ensure!(done.result()? == 4096, "{done:?}");
            }
            Ok(())
        },
    )
}

fn queue_file(folder: &Path) -> Result<Arc<BlockFile>> {
    let options = FileOptions { write: true, create: true, ..FileOptions::default() };
    Ok(Arc::new(BlockFile::open(&folder.join("hot_path_queue"), options)?))
}

fn made(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("hot_path");
    let _ = std::fs::remove_file(&path);
    let mut options = CreateOptions::new(8 << 30);
    options.compression = Compression::Zstd;
    Image::create(&path, &options)?;
    let image = Image::open(&path, &OpenOptions::new().writable(true))?;
    for number in 0..2 * COUNT + 8 {
        image.write(number * CLUSTER, &[7; CLUSTER as usize])?;
    }
    // So that the tables of the cold reads are there.
    for table in 0..16 {
        image.write((8192 * table + 512 * 15) * CLUSTER + CLUSTER, &[7; 512])?;
    }
    image.close()?;
    Ok(path)
}

fn walk(b: &mut Bencher<'_>, path: &HotPath) -> Result<()> {
    let file = made(&b.scratch_dir()?)?;
    let image = Image::open(&file, &OpenOptions::new().writable(true))?;
    let mut buf = vec![7; path.len as usize];
    let next = Cell::new(0);
    let operation = path.operation;
    b.iter_checked(
        || {
            let from = next.replace(next.get() + COUNT);
            (from..from + COUNT).try_for_each(|number| operation(&image, &mut buf, number))
        },
        |result| Ok(result?),
    )
}

fn cost_what_they_did() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut bounds: Vec<(&str, u64)> = PATHS.iter().map(|path| (path.name, path.most)).collect();
    for path in &DRAINS {
        // A machine may have no such queue.
        match (path.open)(queue_file(folder.path())?) {
            Ok(_) => bounds.push((path.name, path.most)),
            Err(error) => ensure!(error.kind() == ErrorKind::Missing, "{}: {error}", path.name),
        }
    }
    let names: Vec<&str> = bounds.iter().map(|bound| bound.0).collect();
    let found = outcomes(&plan(Mode::Cachegrind, folder.path().to_path_buf()), &names)?;
    let mut wrong = Vec::new();
    for ((name, most), outcome) in bounds.into_iter().zip(found) {
        let outcome = outcome.map_err(|failure| anyhow::anyhow!("{name}: {failure:?}"))?;
        let each = total(&outcome, "instructions")? / COUNT;
        if each > most || each < most * 19 / 20 {
            wrong.push(format!("{name}: {each} instructions an operation, bound {most}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
