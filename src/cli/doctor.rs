//! The command `doctor`: what this machine is to a benchmark, how small a
//! change it can see, and whether the counts of a suite are equal to the last digit.
//!
//! Neighbours: `commands` calls it; `machine` and `equals` look, `report` judges.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::equals::{self, Test, Tested};
use super::term::{Color, Out, Term, print, say};
use super::value;
use crate::block::probe;
use crate::error::{Error, Kind, Result};
use crate::machine::{self, Check, WATCH};
use crate::report::{self, Determinism, Look, determinism};
use crate::store::RunDir;

/// What is to be looked at.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Count the scenarios of this package's bench targets N times, and list those that differ
    #[arg(long)]
    determinism: bool,
    /// How often each scenario is counted
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..))]
    repeat: u32,
    /// The bench target, built by cargo, whose scenarios are tested against themselves
    #[arg(long, value_name = "NAME", conflicts_with = "program")]
    bench: Option<String>,
    /// A bench executable instead
    #[arg(long, value_name = "PATH", conflicts_with = "determinism")]
    program: Option<PathBuf>,
    /// The time of each scenario, as later with --against
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = value::duration)]
    time: Duration,
    /// Changes up to this will be none
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = value::share)]
    margin: f64,
    /// The chance of a false call, for all scenarios together
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = value::share)]
    level: f64,
    /// The change that is to be seen [twice the margin]
    #[arg(long, value_name = "SHARE", value_parser = value::share)]
    change: Option<f64>,
    /// text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
    /// Names of scenarios, or parts of them [all]
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

/// Prints what this machine is, and what an A/A test says if one is asked for;
/// or the scenarios whose counts differ.
///
/// # Errors
/// The bench targets cannot be run, nothing was measured, or counts differ.
pub fn doctor(out: &Path, wanted: &Doctor) -> Result<()> {
    if wanted.determinism {
        return repeat(out, wanted);
    }
    let mut checks = machine::health(Path::new("/"), WATCH);
    checks.extend(tried());
    let is_text = wanted.format == "text";
    if is_text {
        print(&in_words(&checks))?;
    }
    let is_asked_for = wanted.bench.is_some() || wanted.program.is_some() || !wanted.filters.is_empty();
    let tested = is_asked_for.then(|| equals::test(out, &test_of(wanted))).transpose()?;
    if !is_text {
        return print(&format!("{:#}\n", as_json(&checks, tested.as_ref())));
    }
    match tested {
        Some(tested) => {
            let width = Term::new(Color::Auto, true, false).width();
            let look = Look { width, color: Color::Auto.wanted(Out::stdout().is_terminal()) };
            print(&report::sights(&tested.seen, &tested.left_out, &tested.asked, look))
        }
        None => print(
            "how small a change can be seen here? wallgrind doctor --bench NAME [FILTER], which tests each \
             scenario against itself\n",
        ),
    }
}

fn test_of(wanted: &Doctor) -> Test<'_> {
    Test {
        program: wanted.program.as_deref(),
        bench: wanted.bench.as_deref(),
        filters: &wanted.filters,
        time: wanted.time,
        margin: wanted.margin,
        level: wanted.level,
        change: wanted.change.unwrap_or((2.0 * wanted.margin).min(0.99)),
    }
}

/// What only trying can tell.
fn tried() -> [Check; 3] {
    let valgrind = match Command::new("valgrind").arg("--version").output() {
        Ok(said) => {
            let version = String::from_utf8_lossy(&said.stdout).trim().to_string();
            Check::good("Valgrind", version, "instructions and heap use can be counted")
        }
        Err(error) => {
            let means = "instructions and heap use cannot be counted; wall time can";
            Check::mind("Valgrind", format!("missing ({error})"), means, "apt-get install valgrind")
        }
    };
    let io_uring = match probe::io_uring() {
        Ok(opcodes) => {
            let found = format!("{} of the operations in use", opcodes.len());
            Check::good("io_uring", found, "its scenarios run")
        }
        Err(error) => {
            let means = "its scenarios are ignored";
            Check::mind(
                "io_uring",
                error.to_string(),
                means,
                "sysctl kernel.io_uring_disabled=0; in a container, a seccomp profile that allows it",
            )
        }
    };
    [valgrind, io_uring, direct(&std::env::temp_dir())]
}

fn direct(folder: &Path) -> Check {
    let name = "O_DIRECT";
    let file = tempfile::NamedTempFile::new_in(folder).map_err(|error| error.to_string());
    match file.and_then(|file| probe::direct(file.path()).map_err(|error| error.to_string())) {
        Ok(direct) => {
            let found = format!("works in {} (aligned to {})", folder.display(), direct.alignment.memory());
            Check::good(name, found, "scenarios that pass the page cache by run")
        }
        Err(why) => {
            let means = "scenarios that pass the page cache by are ignored";
            Check::mind(name, why, means, "--scratch-dir on a file system that has it, such as ext4 or xfs")
        }
    }
}

/// The checks as text, and the facts that are kept beside results.
fn in_words(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        text.push_str(&format!("{:<8} {:<13} {}\n", check.state.word(), check.name, check.found));
        if check.state != machine::Health::Good {
            text.push_str(&format!("{:<23}{}\n", "", check.means));
        }
        if !check.way_out.is_empty() {
            text.push_str(&format!("{:<23}way out: {}\n", "", check.way_out));
        }
    }
    text.push_str("\nkept beside each result:\n");
    for (fact, value) in machine::identity() {
        text.push_str(&format!("{fact:<24} {value}\n"));
    }
    text + "\n"
}

/// The same as one object; numbers carry their unit in their key.
fn as_json(checks: &[Check], tested: Option<&Tested>) -> serde_json::Value {
    let check = |check: &Check| {
        serde_json::json!({
            "name": check.name, "state": check.state.word(), "found": check.found,
            "means": check.means, "way_out": check.way_out,
        })
    };
    let of = |tested: &Tested| {
        let asked = &tested.asked;
        let seen = |s: &report::Seen| {
            serde_json::json!({
                "scenario": s.scenario, "pairs": s.sight.pairs, "pair_s": s.sight.pair_s,
                "pair_spread_share": s.sight.deviation, "change_share": s.change,
                "false_call": s.false_call, "smallest_seen_share": s.smallest,
                "time_to_see_s": s.time_to_see_s, "time_to_agree_s": s.time_to_agree_s,
            })
        };
        let left_out = |(name, why): &(String, String)| serde_json::json!({"scenario": name, "why": why});
        serde_json::json!({
            "time_s": asked.seconds, "margin_share": asked.rule.margin, "level_share": asked.rule.level,
            "change_share": asked.change,
            "scenarios": tested.seen.iter().map(seen).collect::<Vec<_>>(),
            "left_out": tested.left_out.iter().map(left_out).collect::<Vec<_>>(),
        })
    };
    serde_json::json!({
        "checks": checks.iter().map(check).collect::<Vec<_>>(),
        "identity": machine::identity(),
        "against_itself": tested.map(of),
    })
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
