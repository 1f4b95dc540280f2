//! Growth: what a larger disk and more threads cost. One sparse image of each
//! size is opened, read, written and flushed in turns, and the medians are laid
//! out as a table.
//!
//! Neighbours: [`crate::block`] is what is measured; a bench target prints the
//! text. `peers` compares with others, this compares sizes with each other.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::place;
use crate::block::qcow2::{CreateOptions, Image, OpenOptions};
use crate::block::sys::counters;

/// Disks, in GiB.
const SIZES: [(&str, u64); 4] = [("1 GiB", 1), ("64 GiB", 64), ("1 TiB", 1024), ("16 TiB", 16_384)];

/// Threads that read at the same time.
const THREADS: [usize; 3] = [1, 2, 4];

/// Places with data, at equal distances; from 64 GiB on each has an L2 table of its own.
const PLACES: u64 = 64;

/// Reads of each thread.
const READS: u64 = 4096;

const CLUSTER: u64 = 64 << 10;
const SMALL: usize = 4 << 10;

/// What is measured of a disk, in the order of the rows.
const ROWS: [&str; 10] = [
    "open, µs",
    "open, system calls",
    "first read of 4 KiB, µs",
    "read of 4 KiB through another L2 table, µs",
    "random read of 4 KiB, 1 thread, µs",
    "random read of 4 KiB, 2 threads, µs an operation of each",
    "random read of 4 KiB, 4 threads, µs an operation of each",
    "allocating write of 64 KiB, µs",
    "flush after 64 of them, µs",
    "metadata in memory, KiB",
];

/// A run over all sizes.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Rounds; in each, every size has its turn.
    pub rounds: usize,
}

/// The rows of one size in one round.
type Column = [f64; ROWS.len()];

impl Growth {
    /// What the arguments of a bench target, without the program's name, ask
    /// for; `None` where it is no such table.
    ///
    /// # Errors
    /// Another argument stands beside `--growth`, and would mean nothing.
    pub fn asked(args: &[String]) -> Result<Option<Self>> {
        if !args.iter().any(|arg| arg == "--growth") {
            return Ok(None);
        }
        // Cargo adds `--bench`.
        let is_other = |arg: &&String| !["--growth", "--bench"].contains(&arg.as_str());
        let others: Vec<&str> = args.iter().filter(is_other).map(String::as_str).collect();
        ensure!(
            others.is_empty(),
            "--growth makes one table of all its sizes, and {} cannot be used with it\n  \
             hint: give --growth alone; the folder is that of TMPDIR",
            others.join(" ")
        );
        Ok(Some(Self { rounds: 21 }))
    }

    /// Measures, and gives the table.
    ///
    /// # Errors
    /// An image that cannot be made or used, or that reads wrong.
    pub fn table(&self) -> Result<String> {
        let dir = tempfile::tempdir()?;
        let mut columns = vec![Vec::new(); SIZES.len()];
        for round in 0..=self.rounds {
            for ((label, gib), column) in SIZES.iter().zip(&mut columns) {
                let path = dir.path().join("image");
                let found = measure(&path, gib << 30).with_context(|| format!("a disk of {label}"))?;
                std::fs::remove_file(&path)?;
                // The first round warms up.
                column.extend((round > 0).then_some(found));
            }
        }
        lay_out(&columns, self.rounds, &place::file_system(dir.path()))
    }
}

fn lay_out(columns: &[Vec<Column>], rounds: usize, file_system: &str) -> Result<String> {
    let mut text = String::new();
    writeln!(
        text,
        "median of {rounds} rounds in turn; lower is better\nfile system: {file_system}; page cache: warm"
    )?;
    write!(text, "{:58}", "")?;
    SIZES.iter().try_for_each(|(label, _)| write!(text, "{label:>10}"))?;
    text.push('\n');
    for (row, label) in ROWS.iter().enumerate() {
        write!(text, "{label:58}")?;
        for column in columns {
            let mut values: Vec<f64> = column.iter().map(|values| values[row]).collect();
            values.sort_by(f64::total_cmp);
            write!(text, "{:>10.2}", values.get(values.len() / 2).copied().unwrap_or(f64::NAN))?;
        }
        text.push('\n');
    }
    Ok(text)
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64 / 1e3
}

fn options() -> OpenOptions {
    OpenOptions::new().writable(true)
}

fn place_of(number: u64, size: u64) -> u64 {
    number * (size / PLACES)
}

fn content(number: u64) -> Vec<u8> {
    vec![number as u8 + 1; CLUSTER as usize]
}

fn make(path: &PathBuf, size: u64) -> Result<()> {
    Image::create(path, &CreateOptions::new(size))?;
    let image = Image::open(path, &options())?;
    for number in 0..PLACES {
        image.write(place_of(number, size), &content(number))?;
    }
    Ok(image.close()?)
}

fn measure(path: &Path, size: u64) -> Result<Column> {
    make(&path.to_path_buf(), size)?;
    let before = counters::thread();
    let start = Instant::now();
    let image = Image::open(path, &options())?;
    let open = micros(start);
    let calls = (counters::thread() - before).total() as f64;
    let start = Instant::now();
    read(&image, 0, size)?;
    let first = micros(start);
    let start = Instant::now();
    (1..PLACES).try_for_each(|number| read(&image, number, size))?;
    let cold = micros(start) / (PLACES - 1) as f64;
    let mut random = [0.0; THREADS.len()];
    for (time, threads) in random.iter_mut().zip(THREADS) {
        *time = random_reads(&image, size, threads)?;
    }
    let start = Instant::now();
    for number in 0..PLACES {
        image.write(place_of(number, size) + CLUSTER, &content(number))?;
    }
    let write = micros(start) / PLACES as f64;
    let start = Instant::now();
    image.flush()?;
    let flush = micros(start);
    let memory = image.metadata_bytes() as f64 / 1024.0;
    Ok([open, calls, first, cold, random[0], random[1], random[2], write, flush, memory])
}

fn read(image: &Image, number: u64, size: u64) -> Result<()> {
    let mut buf = [0; SMALL];
    image.read(place_of(number, size), &mut buf)?;
    ensure!(buf == [number as u8 + 1; SMALL], "wrong bytes at place {number}");
    Ok(())
}

/// The time of a read, in µs, while `threads` of them read at random.
fn random_reads(image: &Image, size: u64, threads: usize) -> Result<f64> {
    let gate = Barrier::new(threads);
    let one = |thread: usize| -> Result<f64> {
        let mut state = thread as u64 + 1;
        gate.wait();
        let start = Instant::now();
        for _ in 0..READS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            read(image, (state >> 33) % PLACES, size)?;
        }
        Ok(micros(start) / READS as f64)
    };
    std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        let mut sum = 0.0;
        for thread in running {
            sum += thread.join().map_err(|_| anyhow::anyhow!("a reading thread panicked"))??;
        }
        Ok(sum / threads as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_beside_growth_is_refused() {
        let of = |line: &str| Growth::asked(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(of("--bench zlib --shard 1/2").expect("valid").is_none(), "no table is wanted");
        assert!(of("--growth --bench").expect("valid").is_some());
        for other in ["--shard 1/2", "--list", "--subject all", "zlib"] {
            let said = of(&format!("--bench --growth {other}")).expect_err("refused").to_string();
            assert!(said.contains(&format!("{other} cannot be used with it\n  hint: ")), "{said}");
        }
    }

    #[test]
    fn a_round_gives_a_number_for_each_size_and_row() {
        let text = Growth { rounds: 1 }.table().expect("a table");
        let rows: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(rows.len(), ROWS.len(), "{text}");
        for (row, label) in rows.iter().zip(ROWS) {
            let numbers: Vec<f64> =
                row[58..].split_whitespace().filter_map(|number| number.parse().ok()).collect();
            assert!(row.starts_with(label) && numbers.len() == SIZES.len(), "{row}");
            assert!(numbers.iter().all(|number| *number > 0.0), "{row}");
        }
    }
}
