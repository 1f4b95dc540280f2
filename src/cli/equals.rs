//! The A/A test of `doctor`: a bench executable against itself, in turn, for
//! the whole time, to see how small a change this machine can see.
//!
//! Neighbours: `doctor` prints it; `report::sights` judges the records.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::revision;
use super::term::say;
use crate::compare::Rule;
use crate::error::{Error, Kind, Result};
use crate::report::{self, Asked, Seen};
use crate::store::RunDir;

/// What is to be tested.
pub(super) struct Test<'a> {
    /// An executable, or else a bench target that cargo builds.
    pub program: Option<&'a Path>,
    /// The bench target; all of them when left out.
    pub bench: Option<&'a str>,
    /// Names of scenarios, or parts of them.
    pub filters: &'a [String],
    /// The time of each scenario.
    pub time: Duration,
    /// The margin of later comparisons.
    pub margin: f64,
    /// Their level.
    pub level: f64,
    /// The change that is to be seen.
    pub change: f64,
}

/// What it gave.
pub(super) struct Tested {
    pub asked: Asked,
    pub seen: Vec<Seen>,
    /// Scenarios that were not tested, and why.
    pub left_out: Vec<(String, String)>,
}

/// Variables that would make it another kind of run.
const OTHERS: [&str; 6] = [
    "WALLGRIND_BASELINE",
    "WALLGRIND_SAVE_BASELINE",
    "WALLGRIND_AGAINST",
    "WALLGRIND_RUN",
    "WALLGRIND_MANY",
    "WALLGRIND_SHARD",
];

/// A margin within which no interval ever lies, so that no test ends early.
const NONE: &str = "0.0000001%";

/// Runs the test.
///
/// # Errors
/// There is no such executable, it does not build, or nothing was measured.
pub(super) fn test(out: &Path, wanted: &Test<'_>) -> Result<Tested> {
    let rule = Rule { margin: wanted.margin, level: wanted.level, ..Rule::default() };
    let asked = Asked { rule, seconds: wanted.time.as_secs_f64(), change: wanted.change };
    let out = std::path::absolute(out)
        .map_err(|e| Error::new(Kind::Io, format!("the folder {}", out.display())).source(e))?;
    let mut tested = Tested { asked, seen: Vec::new(), left_out: Vec::new() };
    let mut records = Vec::new();
    for program in programs(wanted)? {
        records.extend(run(&out, &program, wanted)?);
    }
    if records.is_empty() {
        return Err(Error::new(Kind::Missing, "no scenario was tested")
            .hint("`cargo bench -- --list` shows what there is; give a part of a name"));
    }
    (tested.seen, tested.left_out) = report::seen(&records, &tested.asked);
    Ok(tested)
}

fn programs(wanted: &Test<'_>) -> Result<Vec<PathBuf>> {
    let Some(program) = wanted.program else { return revision::build_here(wanted.bench) };
    if !program.is_file() {
        return Err(Error::new(Kind::Io, format!("there is no executable {}", program.display()))
            .hint("--program takes a bench executable; cargo bench --no-run prints where they are"));
    }
    let absolute = std::path::absolute(program)
        .map_err(|e| Error::new(Kind::Io, format!("the path {}", program.display())).source(e))?;
    Ok(vec![absolute])
}

fn run(out: &Path, program: &Path, wanted: &Test<'_>) -> Result<Vec<crate::store::Record>> {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // A name of its own: the records of this run and of no other are judged.
    let run = format!("doctor-{}-{stem}", std::process::id());
    let mut bench = Command::new(program);
    for name in OTHERS {
        bench.env_remove(name);
    }
    bench.args(["--bench", "--mode", "walltime", "--format", "json", "--no-fail", "--margin", NONE]);
    bench.arg("--time").arg(format!("{}s", wanted.time.as_secs_f64())).arg("--against").arg(program);
    bench.args(["--run-id", &run]).arg("--out").arg(out).args(wanted.filters);
    bench.stdin(Stdio::null()).stdout(Stdio::null());
    say(&format!("testing {stem} against itself"));
    let ended = bench.status().map_err(|e| {
        Error::new(Kind::Missing, format!("{} cannot be started", program.display())).source(e)
    })?;
    let folder = out.join(&run);
    if !folder.is_dir() {
        // Nothing of it matched, or it has said why it could not begin.
        return match ended.success() {
            true => Ok(Vec::new()),
            false => Err(Error::new(Kind::Format, format!("{} failed ({ended})", program.display()))
                .hint("what it said stands above; --program takes a bench executable of wallgrind's")),
        };
    }
    say(&format!("records: {}", folder.display()));
    RunDir::read(&folder)
}
