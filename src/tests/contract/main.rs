//! The harness contract: what cargo, nextest and editors expect of a bench
//! target, driven from outside.
//!
//! This executable is both sides: with `CONTRACT_FIXTURE` in its environment
//! it is a bench target with trials of every kind (`fixture`); without it, it
//! is the test that starts itself so (`bench`) and looks at what comes out.

mod bad_input;
mod bench;
mod clients;
mod compared;
mod counted;
mod doctor;
mod events;
mod explained;
mod fixture;
mod foreign;
mod isolation;
mod list;
mod more;
mod numbers;
mod processes;
mod records;
mod revisions;
mod scratch;
mod shards;
mod terminal;
mod timeout;

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

/// A safety net: no test here waits for a clock, so this long is for ever.
const FOR_EVER: Duration = Duration::from_secs(600);

fn main() -> ExitCode {
    if fixture::is_asked_for() {
        return wallgrind::main(fixture::register);
    }
    std::thread::spawn(|| {
        std::thread::park_timeout(FOR_EVER);
        std::process::abort();
    });
    let tests: Vec<Trial> = [
        bad_input::tests(),
        clients::tests(),
        compared::tests(),
        counted::tests(),
        doctor::tests(),
        events::tests(),
        explained::tests(),
        foreign::tests(),
        isolation::tests(),
        list::tests(),
        numbers::tests(),
        processes::tests(),
        records::tests(),
        revisions::tests(),
        scratch::tests(),
        shards::tests(),
        terminal::tests(),
        timeout::tests(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// Makes trials of test functions, named after their module and themselves.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub fn tests() -> Vec<libtest_mimic::Trial> {
            let module = module_path!().rsplit("::").next().unwrap_or_default();
            vec![$(libtest_mimic::Trial::test(format!("{module}::{}", stringify!($name)), || {
                $name();
                Ok(())
            })),+]
        }
    };
}
use tests;

/// Trials of test functions, of which those marked `true` need Valgrind: they
/// are listed as ignored where it is not installed.
fn trials(module: &str, tests: &[(&str, bool, fn())]) -> Vec<Trial> {
    let has_valgrind = std::process::Command::new("valgrind").arg("--version").output().is_ok();
    let trial = |(name, needs_valgrind, test): &(&str, bool, fn())| {
        let test = *test;
        let trial = Trial::test(format!("{module}::{name}"), move || {
            test();
            Ok(())
        });
        trial.with_ignored_flag(*needs_valgrind && !has_valgrind)
    };
    tests.iter().map(trial).collect()
}
