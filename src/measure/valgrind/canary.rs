//! Regions whose counts are known, measured in each run in the same way as all
//! others: a Valgrind that ignores requests, a method that is off by a single
//! instruction, or an executable without symbols must never yield a number.
//!
//! Neighbours: `child` runs the canary, `counter` asks for it at the start.

use std::thread;
use std::time::Duration;

use super::child::CANARY_BLOCK;
use super::launch::{Launcher, Order};
use super::readings::{self, Reading};
use super::roi::CANARY_INSTRUCTIONS;
use super::settings::Settings;
use crate::error::{Error, Kind, Result};
use crate::plan::Mode;

/// Loops of the canary.
const LOOPS: u64 = 1_000;

/// How long a canary may take, which is half a second on a machine with
/// nothing else to do, whatever is asked of a scenario.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Marking a region takes a few dozen instructions. A Valgrind that ignores
/// the requests counts the whole program, in both canaries alike.
const MOST_OVERHEAD: u64 = 1_000;

/// What the canaries said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Canary {
    /// Instructions that marking a region takes, to be subtracted.
    pub overhead: u64,
    /// What was expected and found, in words.
    pub text: String,
}

/// Measures an empty region and one with a known count.
///
/// # Errors
/// Children cannot be run, or the count is not what it must be.
pub(super) fn run(launcher: &Launcher, settings: &Settings) -> Result<Canary> {
    let (empty, known) = thread::scope(|scope| {
        let empty = scope.spawn(|| measure(launcher, settings, 0));
        let known = measure(launcher, settings, LOOPS);
        (empty.join().unwrap_or_else(|_| Err("a thread panicked".into())), known)
    });
    let failed = |reason: String| {
        Error::new(Kind::Missing, format!("the canary under valgrind failed: {reason}"))
            .hint("`wallgrind doctor` shows what this machine lacks")
    };
    let (empty, known) = (empty.map_err(failed)?, known.map_err(failed)?);
    if settings.mode == Mode::Dhat { heap(&empty, &known) } else { counts(&empty, &known) }.map_err(failed)
}

fn measure(launcher: &Launcher, settings: &Settings, loops: u64) -> std::result::Result<Reading, String> {
    let order = Order {
        scenario: None,
        loops,
        parties: 1,
        method: settings.method,
        warm: settings.warm,
        iterations: 1,
        ballast: settings.ballast,
        seed: 0,
        timeout: TIMEOUT,
    };
    let (left, _folder) = launcher.run(&order).map_err(|failure| failure.reason().to_string())?;
    let left = left.first().ok_or("no child was run")?;
    match settings.mode {
        Mode::Dhat => readings::heap(left, settings.ballast as u64, None),
        _ => readings::counts(left, settings, 0, None),
    }
}

fn counts(empty: &Reading, known: &Reading) -> std::result::Result<Canary, String> {
    let (overhead, found) = (empty.count("Ir"), known.count("Ir"));
    let expected = LOOPS * CANARY_INSTRUCTIONS;
    if overhead > MOST_OVERHEAD || found.checked_sub(overhead) != Some(expected) {
        return Err(format!(
            "{found} instructions were counted where {expected} were executed, and {overhead} in an empty \
             region: this valgrind does not tell the region from the rest, or counts what is not executed"
        ));
    }
    Ok(Canary { overhead, text: format!("{expected} of {expected} instructions") })
}

fn heap(empty: &Reading, known: &Reading) -> std::result::Result<Canary, String> {
    let (empty, known) = (empty.heap.unwrap_or_default(), known.heap.unwrap_or_default());
    let bytes = LOOPS * CANARY_BLOCK as u64;
    let found = [known.total, known.peak].map(|a| (a.bytes, a.blocks));
    if found != [(bytes, LOOPS); 2] || empty.total.blocks != 0 {
        return Err(format!(
            "{LOOPS} blocks of {bytes} bytes in all were allocated and held, but {known:?} was found, \
             and {} blocks in an empty region",
            empty.total.blocks
        ));
    }
    Ok(Canary { overhead: 0, text: format!("{bytes} bytes in {LOOPS} blocks, of as many") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(n: u64) -> Reading {
        Reading { events: vec![("Ir".to_string(), n)], ..Reading::default() }
    }

    #[test]
    fn a_valgrind_that_counts_the_whole_program_is_found_out() {
        let overhead = counts(&reading(49), &reading(4_049)).map(|canary| canary.overhead);
        assert_eq!(overhead, Ok(49));
        for (empty, known) in [(49, 4_048), (49, 4_050), (0, 0), (5_000_049, 5_004_049), (49, 48)] {
            assert!(counts(&reading(empty), &reading(known)).is_err(), "{empty}, {known}");
        }
    }
}
