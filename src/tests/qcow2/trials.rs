//! Random sequences as trials, one for each base image.
//!
//! Neighbours: `bases` and `sequence`; `qcow2_oracle` and `qcow2_disk` list them.

use libtest_mimic::{Failed, Trial};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::sequence::Guest;
use super::{bases, qemu, sequence};

/// A trial for each base, with `usual` sequences over all of them together unless
/// `WALLGRIND_SEQUENCES` says how many. Without qemu they are ignored.
pub fn sequences<G: Guest>(group: &str, usual: u32) -> Vec<Trial> {
    let missing = qemu::missing();
    let bases = bases::all();
    let wanted = std::env::var("WALLGRIND_SEQUENCES").ok().and_then(|text| text.parse().ok());
    let each = wanted.unwrap_or(usual).div_ceil(bases.len() as u32);
    let trials = bases.into_iter().map(|base| {
        let name = match missing {
            Some(reason) => format!("{group}::{} ({reason})", base.name),
            None => format!("{group}::{}", base.name),
        };
        Trial::test(name, move || run::<G>(&base, each)).with_ignored_flag(missing.is_some())
    });
    trials.collect()
}

fn run<G: Guest>(base: &bases::Base, cases: u32) -> Result<(), Failed> {
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
        let outcome = std::panic::catch_unwind(|| sequence::play::<G>(base, &steps));
        outcome.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(text.unwrap_or_else(|| "panicked".to_owned()))
        })
    });
    result.map_err(|error| Failed::from(error.to_string()))
}
