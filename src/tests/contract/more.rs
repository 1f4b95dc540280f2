//! More trials of the bench target, registered only where a test asks for
//! them: what bodies can say beside their time, and where their files are.
//!
//! Neighbours: `fixture` registers them; `numbers` and `scratch` look at them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use wallgrind::{Bencher, Bytes, Elements, Gauge, Gauges, Need, Ops, Suite, Unit};

use crate::fixture::{announce, hang};

/// In the environment of the bench target, adds these trials.
pub const ASK: &str = "CONTRACT_MORE";

/// What a machine may lack, as a kernel without io_uring does.
const RING: Need = Need::new("io_uring", || Err("io_uring_setup: Operation not permitted".into()));

pub fn register(suite: &mut Suite) {
    suite.bench("more::gauged", gauged);
    suite.bench("more::gauge_falls", |b| {
        b.gauges(Falls(u64::MAX));
        b.iter(|| 1)
    });
    suite.bench("more::two_gauges_of_a_name", |b| {
        b.gauges(Reads);
        b.gauges(Reads);
        b.iter(|| 1)
    });
    suite.bench("more::op_without_end", |b| b.iter_ops(|| Ok(()), |(), ops| ops.start(0), |()| Ok(())));
    suite.bench("more::no_ring", |b| b.iter(|| 1)).needs(RING);
    // One of the names that another benchmark knows.
    suite.bench("block::qcow_read::n128", |b| b.iter(|| 1));
    suite.bench("more::too_large", |b| b.iter(|| 1)).needs_scratch(Bytes(1 << 60));
    suite.bench("files::kept", |b| {
        file(b)?;
        b.iter(|| 1)
    });
    suite.bench("files::then_panic", |b| {
        file(b)?;
        b.iter(|| panic!("on purpose, with a file"))
    });
    suite.bench("files::then_hang", |b| {
        file(b)?;
        b.iter(hang)
    });
}

/// Makes a file in the scratch folder, and says where that is.
fn file(b: &mut Bencher<'_>) -> Result<()> {
    let folder = b.scratch_dir()?;
    std::fs::write(folder.join("image"), vec![7_u8; 10_000])?;
    b.fact("path_bytes", folder.as_os_str().len());
    announce(&format!("files in {}", folder.canonicalize()?.display()));
    Ok(())
}

static CALLS: AtomicU64 = AtomicU64::new(0);

/// One iteration: three calls, one of them waited for, two in a queue.
fn gauged(b: &mut Bencher<'_>) -> Result<()> {
    b.throughput(Elements(3));
    b.throughput(Bytes(3 << 20));
    b.fact("engine", "none");
    b.gauges(Reads);
    b.iter_ops(|| Ok(()), |(), ops| calls(ops), |()| Ok(()))
}

fn calls(ops: &mut Ops) {
    let call = || CALLS.fetch_add(1, Relaxed);
    ops.op(call);
    ops.start(0);
    ops.start(9);
    call();
    ops.done(9);
    call();
    ops.done(0);
}

struct Reads;

impl Gauges for Reads {
    fn names(&self) -> Vec<Gauge> {
        vec![
            Gauge::lower("calls_made", Unit::SystemCalls),
            Gauge::higher("bytes_moved", Unit::Bytes),
            Gauge::lower("calls_failed", Unit::SystemCalls),
        ]
    }

    fn read(&mut self, out: &mut Vec<u64>) {
        let calls = CALLS.load(Relaxed);
        out.extend([calls, calls * 4_096, 1]);
    }
}

struct Falls(u64);

impl Gauges for Falls {
    fn names(&self) -> Vec<Gauge> {
        vec![Gauge::lower("luck", Unit::Events)]
    }

    fn read(&mut self, out: &mut Vec<u64>) {
        self.0 -= 1;
        out.push(self.0);
    }
}
