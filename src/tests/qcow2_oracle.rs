//! Random sequences of everything a disk and its administrator can do, over
//! many base images: contents equal a plain array, and qemu finds the image
//! clean and reads the same. `WALLGRIND_SEQUENCES` says how many run in all.
//!
//! Neighbours: `qcow2/bases` makes the images, `qcow2/qemu` is the oracle;
//! `qcow2_disk` runs the same sequences with requests in flight together.

#[path = "qcow2/bases.rs"]
mod bases;
#[path = "qcow2/qemu.rs"]
mod qemu;
#[path = "qcow2/sequence.rs"]
mod sequence;
#[path = "qcow2/trials.rs"]
mod trials;

use libtest_mimic::Arguments;

/// Sequences in a usual test run, over all bases together.
const SEQUENCES: u32 = 200;

fn main() -> std::process::ExitCode {
    let args = Arguments::from_args();
    let mut trials = trials::sequences::<sequence::Calls>("sequences", SEQUENCES);
    trials.push(qemu::without_tools(|name| name.starts_with("sequences::")));
    libtest_mimic::run(&args, trials).exit_code()
}
