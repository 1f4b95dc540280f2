//! What the hot paths of the block layer cost in instructions, within narrow
//! bounds, so that nobody makes them longer unseen. Built as tests are, so the
//! numbers are larger than those of a measured build; they grow with the same code.
//!
//! Neighbours: `toys` registers these scenarios with its own; the target
//! `qcow2_growth` pins the system calls of the same paths.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use wallgrind::block::qcow2::{Compression, CreateOptions, Image, OpenOptions};
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
        most: 6_460,
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

pub fn register(suite: &mut Suite) {
    for path in &PATHS {
        suite.bench(path.name, |b| walk(b, path));
    }
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
    let names: Vec<&str> = PATHS.iter().map(|path| path.name).collect();
    let found = outcomes(&plan(Mode::Cachegrind, folder.path().to_path_buf()), &names)?;
    let mut wrong = Vec::new();
    for (path, outcome) in PATHS.iter().zip(found) {
        let outcome = outcome.map_err(|failure| anyhow::anyhow!("{}: {failure:?}", path.name))?;
        let each = total(&outcome, "instructions")? / COUNT;
        if each > path.most || each < path.most * 19 / 20 {
            wrong.push(format!("{}: {each} instructions an operation, bound {}", path.name, path.most));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
