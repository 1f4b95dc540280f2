//! The command `history`: runs of the main line in a folder of JSON lines,
//! what is usual for each scenario, and when its level changed.
//!
//! Neighbours: `commands` calls it; `store` has the files, `stats` the method.

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::commands::{folder_of, judge_faults};
use super::names::nearest;
use super::term::print;
use crate::compare::Rule;
use crate::error::{Error, Kind, Result};
use crate::stats::{ENOUGH, change_points, unusual_change};
use crate::store::{Point, RunDir, add_to_history, read_history};

/// Changes are called at this share of false ones in a series without any.
const LEVEL: f64 = 0.01;

/// What to do with a history.
#[derive(Debug, Subcommand)]
pub enum History {
    /// Add a run
    Add {
        /// The run, or a folder with records; the latest when left out
        run: Option<String>,
        /// The folder of the history
        #[arg(long, value_name = "DIR", default_value = "bench-history")]
        dir: PathBuf,
    },
    /// Show what is usual for each scenario, and when its level changed
    Show {
        /// The folder of the history
        #[arg(long, value_name = "DIR", default_value = "bench-history")]
        dir: PathBuf,
        /// Names of scenarios, or parts of them [all]
        filters: Vec<String>,
    },
}

/// Adds or shows.
///
/// # Errors
/// The run or the history cannot be read or written.
pub fn history(out: &Path, wanted: &History) -> Result<()> {
    match wanted {
        History::Add { run, dir } => {
            let found = RunDir::scan(&folder_of(out, run.as_deref())?)?;
            let added = add_to_history(dir, &found.records)?;
            print(&format!("{added} lines added to {}\n", dir.display()))?;
            judge_faults(found.faults)
        }
        History::Show { dir, filters } => {
            let (mut text, all) = (String::new(), read_history(dir)?);
            let names: Vec<&str> = all.iter().flatten().map(|point| point.scenario.as_str()).collect();
            for points in &all {
                let is_wanted =
                    |point: &Point| filters.is_empty() || filters.iter().any(|f| point.scenario.contains(f));
                if points.first().is_some_and(is_wanted) {
                    text.push_str(&series(points));
                }
            }
            if text.is_empty() {
                return Err(none(dir, filters, &names));
            }
            print(&text)
        }
    }
}

/// There is nothing to show, and what is there instead.
fn none(dir: &Path, filters: &[String], names: &[&str]) -> Error {
    let dir = dir.display();
    let Some(filter) = filters.first().filter(|_| !names.is_empty()) else {
        return Error::new(Kind::Missing, format!("the history {dir} is empty"))
            .hint("wallgrind history add RUN puts a run into it");
    };
    let error =
        Error::new(Kind::Missing, format!("the history {dir} has no scenario {}", filters.join(", ")));
    match nearest(filter, names.iter().copied()) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint("without a name, all of them are shown"),
    }
}

/// A value as people write it: whole ones to the last digit, others to nine.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 {
        return value.to_string();
    }
    let rounded: f64 = format!("{value:.8e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// The lines of one scenario and meter: one for each metric, and one for each change.
fn series(points: &[Point]) -> String {
    let Some(last) = points.last() else { return String::new() };
    let mut text = format!("{} ({})\n", last.scenario, last.mode);
    for metric in last.medians.keys() {
        let of: Vec<(&Point, f64)> =
            points.iter().filter_map(|point| Some((point, *point.medians.get(metric)?))).collect();
        let values: Vec<f64> = of.iter().map(|(_, value)| *value).collect();
        // Never under the margin: below it no time is called anyway.
        let margin = if metric.ends_with(" ns") { Rule::default().margin } else { 0.0 };
        let usual = match unusual_change(&values).map(|share| share.max(margin)) {
            Some(share) => format!("a change above {:.2} % between neighbours is unusual", 100.0 * share),
            None => format!("{ENOUGH} are needed to say what is usual"),
        };
        let latest = values.last().copied().unwrap_or(f64::NAN);
        text.push_str(&format!("  {metric}: {} last, {} runs, {usual}\n", plain(latest), values.len()));
        for at in change_points(&values, LEVEL, 0) {
            let (point, _) = of[at];
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            let change = 100.0 * (mean(&values[at..]) / mean(&values[..at]) - 1.0);
            let commit: String = point.commit.chars().take(12).collect();
            text.push_str(&format!("    changed at {} (commit {commit}): {change:+.2} %\n", point.started));
        }
    }
    text
}
