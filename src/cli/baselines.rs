//! The commands `baselines` and `compare`: what is kept, and two runs side by side.
//!
//! Neighbours: `commands` calls it; `store` has the files, `compare` the verdicts.

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::commands::{folder_of, judge_faults};
use super::names::nearest;
use super::term::{Color, Out, Term, print};
use super::value;
use crate::compare::{Kinship, Limits, Many, Rule, Usual, compare};
use crate::error::{Error, Kind, Result};
use crate::report::{self, Look};
use crate::store::{Baselines, Found, Record, RunDir, read_history};
use crate::units::grouped;

/// What to do with baselines.
#[derive(Debug, Subcommand)]
pub enum Wanted {
    /// List them, with what they take on disk (the default)
    List,
    /// Show what one holds, and what its results depend on
    Show {
        /// The baseline
        name: String,
    },
    /// Delete one, and its executables if no other has them
    Delete {
        /// The baseline
        name: String,
    },
}

/// Lists, shows or deletes.
///
/// # Errors
/// There is no such baseline, or it cannot be read or removed.
pub fn baselines(out: &Path, wanted: Option<&Wanted>) -> Result<()> {
    let store = Baselines::of(out);
    match wanted {
        None | Some(Wanted::List) => print(&list(&store)),
        Some(Wanted::Show { name }) => print(&show(&store, name)?),
        Some(Wanted::Delete { name }) => {
            let freed = store.delete(name).map_err(|error| known(&store, name, error))?;
            print(&format!("deleted {name}: {} bytes freed\n", grouped(freed)))
        }
    }
}

fn list(store: &Baselines) -> String {
    let mut text = String::new();
    for name in store.names() {
        for suite in store.suites(&name) {
            let line = store.kept(&name, &suite).and_then(|kept| {
                let records = store.records(&kept)?.len();
                let (sum, bytes) = (&kept.executable[..16], grouped(kept.bytes));
                let layouts = match store.layouts(&kept) {
                    0 => String::new(),
                    n => format!(", {n} layouts"),
                };
                Ok(format!(
                    "{name}  {suite}  saved {}  {records} records  executable {sum}, {bytes} bytes{layouts}\n",
                    kept.saved
                ))
            });
            text.push_str(&line.unwrap_or_else(|error| format!("{name}  {suite}  {}\n", error.chain())));
        }
    }
    text + &format!("{} bytes on disk\n", grouped(store.disk_use()))
}

fn show(store: &Baselines, name: &str) -> Result<String> {
    let suites = store.suites(name);
    if suites.is_empty() {
        // Says what is wrong with it.
        store.kept(name, "any").map_err(|error| known(store, name, error))?;
    }
    let mut text = String::new();
    for suite in suites {
        let kept = store.kept(name, &suite)?;
        text.push_str(&format!("{name}  {suite}  saved {}\n", kept.saved));
        text.push_str(&format!("  executable: {}\n", store.executable(&kept)?.display()));
        for record in store.records(&kept)? {
            text.push_str(&format!("  {} {} ({})\n", record.mode, record.scenario, record.started));
        }
        for (fact, value) in &kept.identity {
            text.push_str(&format!("  {fact:<24} {value}\n"));
        }
    }
    Ok(text)
}

/// An error with a near name, when the name is not known.
fn known(store: &Baselines, name: &str, error: Error) -> Error {
    let names = store.names();
    match nearest(name, names.iter().map(String::as_str)).filter(|near| *near != name) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error,
    }
}

/// How two runs are compared.
#[derive(Debug, clap::Args)]
pub struct TwoRuns {
    /// The run before: its name, a folder with records, or a baseline
    before: String,
    /// The run after
    after: String,
    #[command(flatten)]
    judging: Judging,
    /// Folder of a history: changes that are usual in it do not fail
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Report what is beyond its limits, without failing
    #[arg(long)]
    no_fail: bool,
}

/// The rule by which verdicts on stored records are given.
#[derive(Debug, clap::Args)]
pub struct Judging {
    /// Changes of a time up to this are none
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = value::share)]
    margin: f64,
    /// The chance of a false call, for all of the run together
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = value::share)]
    level: f64,
    /// What is done about many tests
    #[arg(long, value_name = "HOW", default_value = "holm", value_parser = ["holm", "bh"])]
    many: String,
    /// How much worse a metric may be: 0.1%, or ir=0.1%,wall=2%,peak_bytes=0
    #[arg(long, value_name = "LIMITS", value_parser = Limits::parse)]
    max_regress: Option<Limits>,
    /// Compare what was measured under other conditions, and say so in each line
    #[arg(long)]
    force: bool,
}

impl Judging {
    /// The rule as it was set, with what changes are usual.
    pub fn rule(&self, usual: Usual) -> Rule {
        Rule {
            margin: self.margin,
            level: self.level,
            many: if self.many == "bh" { Many::BenjaminiHochberg } else { Many::Holm },
            limits: self.max_regress.clone().unwrap_or_default(),
            force: self.force,
            usual,
        }
    }
}

/// Compares two runs and prints the verdicts.
///
/// # Errors
/// A run cannot be read, or something is worse than its limit allows.
pub fn two_runs(out: &Path, wanted: &TwoRuns) -> Result<()> {
    let (before, mut faults) = records(out, &wanted.before)?;
    let (after, more) = records(out, &wanted.after)?;
    faults.extend(more);
    let usual = match &wanted.history {
        Some(folder) => Usual::of(&read_history(folder)?),
        None => Usual::default(),
    };
    let rule = wanted.judging.rule(usual);
    let comparison = compare(&before, &after, Kinship::Stored, &rule);
    let width = Term::new(Color::Auto, true, false).width();
    let look = Look { width, color: Color::Auto.wanted(Out::stdout().is_terminal()) };
    print(&report::verdicts(&comparison, &wanted.before, &rule, look))?;
    judge_faults(faults)?;
    if comparison.fails() && !wanted.no_fail {
        return Err(Error::new(Kind::Format, format!("{} is beyond its limits", wanted.after))
            .hint("--max-regress sets them, --no-fail only reports"));
    }
    Ok(())
}

/// The records of a baseline or a run, and what of it could not be read.
///
/// # Errors
/// There is no such run, or it is empty.
pub fn records(out: &Path, what: &str) -> Result<(Vec<Record>, Vec<Error>)> {
    let store = Baselines::of(out);
    if store.names().iter().any(|name| name == what) {
        let mut all = Vec::new();
        for suite in store.suites(what) {
            all.extend(store.records(&store.kept(what, &suite)?)?);
        }
        return Ok((all, Vec::new()));
    }
    let folder = folder_of(out, Some(what))?;
    let Found { records, faults } = RunDir::scan(&folder)?;
    if records.is_empty() && faults.is_empty() {
        return Err(Error::new(Kind::Io, format!("{} holds no records", folder.display()))
            .hint("wallgrind runs lists the runs that do"));
    }
    Ok((records, faults))
}
