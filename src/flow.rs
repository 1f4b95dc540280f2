//! The whole flow in one function (to be replaced by the real one).
use std::process::ExitCode;

use crate::measure;
use crate::scenario::Suite;

/// Runs a suite as a bench target: reads arguments and environment, runs the
/// selected trials one at a time, writes records, and reports.
pub fn main(register: impl FnOnce(&mut Suite)) -> ExitCode {
    let mut suite = Suite::new();
    register(&mut suite);
    let Ok(scenarios) = suite.finish() else { return ExitCode::from(101) };
    if let Some(code) = measure::valgrind::child(&scenarios) {
        return code;
    }
    let filter = std::env::args().nth(1).filter(|a| !a.starts_with('-')).unwrap_or_default();
    let failed = scenarios
        .iter()
        .filter(|s| s.id().as_str().contains(&filter))
        .filter(|s| measure::smoke(s).is_err())
        .count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
}
