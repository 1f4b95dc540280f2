//! The meters under Valgrind, on a suite of toys: counts that are equal to the
//! last digit, changes that show exactly, and failures that name their cause.
//!
//! This target is its own suite: measured children are this executable.
//! Neighbours: `toys` holds the scenarios, `driver` takes the counts.

mod driver;
mod exact;
mod failures;
mod methods;
mod paths;
mod planted_tls;
mod toys;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};
use wallgrind::measure::valgrind;

fn main() -> ExitCode {
    let scenarios = toys::scenarios();
    if let Some(code) = valgrind::child(&scenarios) {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // Each test runs children on all processors.
    arguments.test_threads = Some(1);
    let tests: Vec<_> =
        [exact::TESTS, planted_tls::TESTS, methods::TESTS, failures::TESTS, paths::TESTS].concat();
    let trials = tests.into_iter().map(|(name, test)| {
        let ignored = valgrind::missing().is_some();
        Trial::ignorable_test(name, move || match test() {
            Ok(()) => Ok(Completion::Completed),
            Err(error) if error.is::<Missing>() => Ok(Completion::ignored_with(error.to_string())),
            Err(error) => Err(format!("{error:#}").into()),
        })
        .with_ignored_flag(ignored)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// A test: its name and what it does.
type Test = (&'static str, fn() -> anyhow::Result<()>);

/// A program that a test needs and that is not here.
#[derive(Debug)]
struct Missing(&'static str);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is not installed", self.0)
    }
}

impl std::error::Error for Missing {}
