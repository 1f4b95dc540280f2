//! Disks over engines with requests in flight together: random sequences that
//! qemu judges, power cuts and faults in memory, and several threads on one
//! image. `WALLGRIND_SEQUENCES` and `WALLGRIND_RUNS` say how many.
//!
//! Neighbours: `qcow2/disk_guest` plays the sequences of `qcow2_oracle`,
//! `qcow2/disk_crash` cuts, `qcow2/disk_threads` shares an image.

#[path = "qcow2/bases.rs"]
mod bases;
#[path = "qcow2/disk_crash.rs"]
mod disk_crash;
#[path = "qcow2/disk_guest.rs"]
mod disk_guest;
#[path = "qcow2/disk_threads.rs"]
mod disk_threads;
#[path = "qcow2/qemu.rs"]
mod qemu;
#[path = "qcow2/scene.rs"]
#[allow(dead_code, reason = "shared with other test targets, which use other parts")]
mod scene;
#[path = "qcow2/sequence.rs"]
#[allow(dead_code, reason = "shared with other test targets, which use other parts")]
mod sequence;
#[path = "qcow2/trials.rs"]
mod trials;

use disk_guest::{DiskGuest, Held, Real};
use libtest_mimic::{Arguments, Failed, Trial};
use wallgrind::block::qcow2::{Compression, CreateOptions};

/// Sequences in a usual test run, over all bases together, for either engine.
const SEQUENCES: u32 = 64;
/// Runs with cuts in a usual test run, for each image, with and without faults.
const RUNS: u64 = 4;

type Change = fn(&mut CreateOptions);

const IMAGES: &[(&str, Change)] = &[
    ("plain_4k", |_| {}),
    ("v2_4k", |o| o.version = 2),
    ("clusters_512_w64", |o| (o.cluster_size, o.refcount_bits) = (512, 64)),
    ("subclusters_16k", |o| (o.cluster_size, o.extended_l2) = (16384, true)),
    ("clusters_64k_zstd", |o| (o.cluster_size, o.compression) = (65536, Compression::Zstd)),
];

fn main() -> std::process::ExitCode {
    let args = Arguments::from_args();
    let mut list = trials::sequences::<DiskGuest<Real>>("sequences_uring", SEQUENCES);
    list.extend(trials::sequences::<DiskGuest<Held>>("sequences_held", SEQUENCES));
    let runs = std::env::var("WALLGRIND_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(RUNS);
    for &(name, change) in IMAGES {
        for (group, faulty) in [("cuts", false), ("cuts_and_faults", true)] {
            list.push(Trial::test(format!("{group}::{name}"), move || cuts(change, runs, faulty)));
        }
    }
    list.extend(disk_threads::trials());
    list.push(qemu::without_tools(|name| name.starts_with("sequences_")));
    libtest_mimic::run(&args, list).exit_code()
}

fn cuts(change: Change, runs: u64, faulty: bool) -> Result<(), Failed> {
    for seed in 0..runs {
        disk_crash::run(change, seed, faulty).map_err(|why| format!("seed {seed}: {why}"))?;
    }
    Ok(())
}
