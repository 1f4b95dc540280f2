//! The fuzzer's runs without a fuzzer: inputs from a fixed seed, and the ones
//! that found something once.
//!
//! Neighbours: `qcow2/fuzz` has the runs, `.ci/fuzz` the real thing.

#[path = "qcow2/found.rs"]
mod found;
#[path = "qcow2/fuzz/mod.rs"]
#[allow(dead_code, reason = "shared with other test targets, which use other parts")]
mod fuzz;
#[path = "qcow2/image.rs"]
#[allow(dead_code, reason = "shared with other test targets, which use other parts")]
mod image;

/// Inputs of a usual test run.
const RUNS: u64 = 400;

#[test]
fn inputs_from_a_fixed_seed() {
    let runs = std::env::var("WALLGRIND_FUZZ_RUNS").ok().and_then(|text| text.parse().ok());
    let seed = std::env::var("WALLGRIND_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    let mut rng = fastrand::Rng::with_seed(seed.unwrap_or(7));
    for run in 0..runs.unwrap_or(RUNS) {
        let mut bytes: Vec<u8> = (0..rng.usize(2..200)).map(|_| rng.u8(..)).collect();
        // Each kind in turn, whole and damaged.
        bytes[0] = (run % 16) as u8;
        if run / 16 % 2 == 0 {
            bytes[1] &= 127;
        }
        let outcome = std::panic::catch_unwind(|| fuzz::play::play(&bytes));
        assert!(outcome.is_ok(), "run {run}: {bytes:?}");
    }
}

#[test]
fn inputs_that_found_something_once() {
    for (what, digits) in fuzz::inputs::KEPT {
        let outcome = std::panic::catch_unwind(|| fuzz::play::play(&fuzz::inputs::bytes(digits)));
        assert!(outcome.is_ok(), "{what}");
    }
}

/// Plays the input in the file that `WALLGRIND_FUZZ_INPUT` names.
#[test]
#[ignore = "needs WALLGRIND_FUZZ_INPUT"]
fn one_input() {
    let path = std::env::var_os("WALLGRIND_FUZZ_INPUT").expect("WALLGRIND_FUZZ_INPUT");
    fuzz::play::play(&std::fs::read(path).expect("read"));
}
