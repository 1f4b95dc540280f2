//! The command `doctor`: what this machine is to a benchmark, and whether the
//! counts of a suite are equal to the last digit.
//!
//! Neighbours: `commands` calls it; `report::determinism` judges the records.

use std::path::Path;
use std::process::Command;

use super::term::{print, say};
use crate::error::{Error, Kind, Result};
use crate::machine;
use crate::report::{Determinism, determinism};
use crate::store::RunDir;

/// What of a suite is to be repeated, and how often.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Count the scenarios of this package's bench targets N times, and list those that differ
    #[arg(long)]
    determinism: bool,
    /// How often each scenario is counted
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..))]
    repeat: u32,
    /// The bench target [all]
    #[arg(long, value_name = "NAME")]
    bench: Option<String>,
    /// Names of scenarios, or parts of them [all]
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

/// Prints what this machine is, or the scenarios whose counts differ.
///
/// # Errors
/// The bench targets cannot be run, nothing was counted, or counts differ.
pub fn doctor(out: &Path, wanted: &Doctor) -> Result<()> {
    if wanted.determinism {
        return repeat(out, wanted);
    }
    let mut text = String::new();
    for (fact, value) in machine::identity() {
        text.push_str(&format!("{fact:<24} {value}\n"));
    }
    text.push_str(&format!("{:<24} {}\n", "valgrind", valgrind()));
    print(&text)?;
    Ok(())
}

fn valgrind() -> String {
    match Command::new("valgrind").arg("--version").output() {
        Ok(said) => String::from_utf8_lossy(&said.stdout).trim().to_string(),
        Err(error) => format!("missing ({error}); counts need it: apt-get install valgrind"),
    }
}

fn repeat(out: &Path, wanted: &Doctor) -> Result<()> {
    let out = std::path::absolute(out)
        .map_err(|e| Error::new(Kind::Io, format!("the folder {}", out.display())).source(e))?;
    // A name of its own: the records of this run and of no other are judged.
    let run = format!("doctor-{}", std::process::id());
    let mut bench = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    bench.arg("bench");
    match &wanted.bench {
        Some(name) => bench.args(["--bench", name]),
        None => bench.arg("--benches"),
    };
    bench.args(["--", "--mode", "cachegrind", "--run-id", &run, "--repeat", &wanted.repeat.to_string()]);
    bench.arg("--out").arg(&out).args(&wanted.filters);
    let ended = bench.status().map_err(|e| {
        Error::new(Kind::Missing, "cargo cannot be started")
            .source(e)
            .hint("run it where `cargo bench` works")
    })?;
    let folder = out.join(&run);
    let records = if folder.is_dir() { RunDir::read(&folder)? } else { Vec::new() };
    let found = determinism(&records);
    print(&found.report())?;
    say(&format!("records: {}", folder.display()));
    judge(&found, ended.success())
}

/// Equal counts are the only good end.
fn judge(found: &Determinism, ended_well: bool) -> Result<()> {
    if !found.differing.is_empty() {
        return Err(
            Error::new(Kind::Format, "counts differ from run to run").hint("the lines above say where")
        );
    }
    if found.equal.is_empty() {
        return Err(Error::new(Kind::Missing, "nothing was counted")
            .hint("`cargo bench -- --mode cachegrind --list` shows what there is"));
    }
    if !ended_well || !found.uncounted.is_empty() {
        return Err(Error::new(Kind::Format, "some scenarios have no count").hint("the lines above say why"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_counts_of_all_scenarios_are_a_good_end() {
        let one = || vec![("a".to_string(), "why".to_string())];
        let found = |equal: &[&str], differing, uncounted| Determinism {
            equal: equal.iter().map(|s| s.to_string()).collect(),
            differing,
            uncounted,
        };
        assert!(judge(&found(&["a"], vec![], vec![]), true).is_ok());
        let bad = [
            (found(&["a"], one(), vec![]), true, "counts differ"),
            (found(&[], vec![], vec![]), true, "nothing was counted"),
            (found(&["a"], vec![], one()), true, "no count"),
            (found(&["a"], vec![], vec![]), false, "no count"),
        ];
        for (found, well, says) in bad {
            let error = judge(&found, well).expect_err(says);
            assert!(error.report().contains(says), "{}", error.report());
        }
    }
}
