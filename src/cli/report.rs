//! The command `report`: a run, or two of them, as a page or as a comment.
//!
//! Neighbours: `commands` calls it; `baselines` reads the two sides, `report`
//! makes the texts.

use std::path::{Path, PathBuf};

use super::baselines::{Judging, records};
use super::busy::Busy;
use super::commands::judge_faults;
use super::exchange::write;
use super::formats::is_standard_output;
use super::term::print;
use crate::compare::{Comparison, Kinship, Turns, Usual, compare};
use crate::error::{Error, Kind, Result};
use crate::report::{self, Against, Entry, Sources};
use crate::store::{Point, Record, read_history};

/// What to report, and where to.
#[derive(Debug, clap::Args)]
pub struct Report {
    /// The run, a folder with records, or a baseline
    run: String,
    /// What to compare it with: a baseline, a run, or a folder with records
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Write a page to this file: plots and all numbers, in one file; - is standard output
    #[arg(long, value_name = "PATH", required_unless_present = "markdown")]
    html: Option<PathBuf>,
    /// Write the comment of a pull request to this file; - is standard output
    #[arg(long, value_name = "PATH")]
    markdown: Option<PathBuf>,
    /// Folder of a history: shown with each trial, and what changes are usual in it do not fail
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    #[command(flatten)]
    judging: Judging,
}

/// Writes the reports. What could not be read of a run is said, and fails the
/// command when the reports of the rest are written.
///
/// # Errors
/// A run or the history cannot be read, or a report cannot be written.
pub fn report(out: &Path, wanted: &Report) -> Result<()> {
    if wanted.html.is_some() && wanted.html == wanted.markdown {
        return Err(Error::new(Kind::Usage, "--html and --markdown name the same file")
            .hint("each is a text of its own: name two"));
    }
    let busy = Busy::new();
    busy.step("reading records", 0);
    let (after, mut faults) = records(out, &wanted.run)?;
    let before = match &wanted.baseline {
        Some(name) => {
            let (before, more) = records(out, name)?;
            faults.extend(more);
            Some(before)
        }
        None => None,
    };
    if after.is_empty() {
        drop(busy);
        return judge_faults(faults);
    }
    let history = wanted.history.as_deref().map_or_else(|| Ok(Vec::new()), read_history)?;
    let written = write_all(wanted, &after, before.as_deref(), &history, busy)?;
    print(&written)?;
    judge_faults(faults)
}

/// How a report is made.
type Make = fn(&Sources<'_>, &[Entry<'_>]) -> String;

/// Writes what is wanted, and says what was written. `busy` has gone by then.
fn write_all(
    wanted: &Report,
    after: &[Record],
    before: Option<&[Record]>,
    history: &[Vec<Point>],
    busy: Busy,
) -> Result<String> {
    busy.step("comparing", 0);
    let rule = wanted.judging.rule(Usual::of(history));
    let comparison = comparison(before, after, &rule);
    let label = wanted.baseline.as_deref().unwrap_or("the build that was measured in turn");
    let against = comparison.as_ref().map(|comparison| Against {
        label,
        records: before.unwrap_or_default(),
        comparison,
        rule: &rule,
    });
    let sources = Sources { run: &wanted.run, records: after, against, history };
    let entries = report::entries(&sources);
    let (mut written, mut shown) = (String::new(), Vec::new());
    let all: [(&Option<PathBuf>, Make, &str); 2] = [
        (&wanted.html, report::html, "making the page"),
        (&wanted.markdown, report::markdown, "making the comment"),
    ];
    for (path, make, what) in
        all.into_iter().filter_map(|(path, make, what)| Some((path.as_ref()?, make, what)))
    {
        busy.step(what, 0);
        let text = make(&sources, &entries);
        if is_standard_output(path) {
            shown.push(text);
            continue;
        }
        write(path, &text)?;
        written.push_str(&format!("{} trials in {}\n", entries.len(), path.display()));
    }
    drop(busy);
    shown.iter().try_for_each(|text| print(text))?;
    Ok(written)
}

/// The verdicts: against a baseline, or between the two builds of a run that
/// measured them in turn. `None` where there is only one side.
fn comparison(
    before: Option<&[Record]>,
    after: &[Record],
    rule: &crate::compare::Rule,
) -> Option<Comparison> {
    if let Some(before) = before {
        return Some(compare(before, after, Kinship::Stored, rule));
    }
    let in_turn: Vec<Record> = after.iter().filter(|record| Turns::of(record).is_some()).cloned().collect();
    (!in_turn.is_empty()).then(|| compare(&[], &in_turn, Kinship::InTurn, rule))
}
