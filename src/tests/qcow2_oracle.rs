//! Random sequences of everything a disk and its administrator can do, over
//! many base images: contents equal a plain array, and qemu finds the image
//! clean and reads the same. `WALLGRIND_SEQUENCES` says how many run in all.
//!
//! Neighbours: `qcow2/bases` makes the images, `qcow2/qemu` is the oracle.

#[path = "qcow2/bases.rs"]
mod bases;
#[path = "qcow2/qemu.rs"]
mod qemu;
#[path = "qcow2/sequence.rs"]
mod sequence;

use libtest_mimic::{Arguments, Failed, Trial};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Sequences in a usual test run, over all bases together.
const SEQUENCES: u32 = 200;

fn main() -> std::process::ExitCode {
    let args = Arguments::from_args();
    let missing = qemu::missing();
    let bases = bases::all();
    let wanted = std::env::var("WALLGRIND_SEQUENCES").ok().and_then(|text| text.parse().ok());
    let each = wanted.unwrap_or(SEQUENCES).div_ceil(bases.len() as u32);
    let trials = bases.into_iter().map(|base| {
        let name = match missing {
            Some(reason) => format!("sequences::{} ({reason})", base.name),
            None => format!("sequences::{}", base.name),
        };
        Trial::test(name, move || run(&base, each)).with_ignored_flag(missing.is_some())
    });
    let listed = qemu::without_tools(|name| name.starts_with("sequences::"));
    libtest_mimic::run(&args, trials.chain([listed]).collect()).exit_code()
}

fn run(base: &bases::Base, cases: u32) -> Result<(), Failed> {
    let shrinks = std::env::var("PROPTEST_MAX_SHRINK_ITERS").map_or(100, |text| text.parse().unwrap_or(100));
    let config = Config { cases, failure_persistence: None, max_shrink_iters: shrinks, ..Config::default() };
    // The seed is the base's name: other bases see other sequences, each run the same.
    let mut seed = [0; 32];
    for (at, byte) in base.name.bytes().enumerate() {
        seed[at % 32] ^= byte;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = sequence::steps();
    let result = runner.run(&strategy, |steps| {
        let outcome = std::panic::catch_unwind(|| sequence::play(base, &steps));
        outcome.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(text.unwrap_or_else(|| "panicked".to_owned()))
        })
    });
    result.map_err(|error| Failed::from(error.to_string()))
}
