//! The history of a main line: a plain folder with a file of JSON lines for
//! each scenario and meter, to be kept in git and merged by its lines.
//!
//! A line is one run: its commit, its start, and the median of each metric. A
//! line that is there already (the same run) is not added again. Lines of two
//! branches that were merged are put in order when they are read.
//!
//! Neighbours: `record` is what is added, `cli::history` reads it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::name::history_stem;
use super::record::{Record, Status};
use crate::error::{Error, Kind, Result};
use crate::units::Unit;

/// One run of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The major version of this form.
    pub history: u32,
    /// When it started (RFC 3339, UTC).
    pub started: String,
    /// The run.
    pub run_id: String,
    /// The commit, or `unknown`.
    pub commit: String,
    /// The bench target, the scenario and the meter.
    pub suite: String,
    /// The scenario.
    pub scenario: String,
    /// The meter.
    pub mode: String,
    /// Medians by metric and unit, such as `wall_time ns`, with the party before it where there is one.
    pub medians: BTreeMap<String, f64>,
}

/// The version that is written, and the newest that is read.
const VERSION: u32 = 1;

impl Point {
    fn of(record: &Record) -> Self {
        let median = |metric: &super::record::Metric| {
            let series = &metric.series;
            (history_key(series.party.as_deref(), &series.metric, series.unit), metric.summary.median)
        };
        Self {
            history: VERSION,
            started: record.started.clone(),
            run_id: record.run_id.clone(),
            commit: record.identity.get("commit").cloned().unwrap_or_else(|| "unknown".into()),
            suite: record.suite.clone(),
            scenario: record.scenario.clone(),
            mode: record.mode.clone(),
            medians: record.metrics.iter().map(median).collect(),
        }
    }
}

/// The name of a metric in a history: `wall_time ns`, `client wall_time ns`.
pub fn history_key(party: Option<&str>, metric: &str, unit: Unit) -> String {
    let party = party.map(|party| format!("{party} ")).unwrap_or_default();
    format!("{party}{metric} {unit}")
}

/// Adds what was measured to the history in `folder`; gives how many lines are new.
///
/// # Errors
/// The folder or one of its files cannot be read or written.
pub fn add_to_history(folder: &Path, records: &[Record]) -> Result<usize> {
    fs::create_dir_all(folder).map_err(|error| unusable(folder, error))?;
    let mut added = 0;
    for record in records.iter().filter(|r| r.status == Status::Ok && !r.metrics.is_empty()) {
        let file = folder.join(format!("{}.jsonl", history_stem(record)));
        let point = Point::of(record);
        if file.is_file() && read(&file)?.contains(&point) {
            continue;
        }
        let line = serde_json::to_string(&point).map_err(|error| unusable(&file, error.into()))? + "\n";
        // One write at the end of the file: lines of two processes stay whole.
        let mut open =
            OpenOptions::new().create(true).append(true).open(&file).map_err(|e| unusable(&file, e))?;
        open.write_all(line.as_bytes()).and_then(|()| open.sync_all()).map_err(|e| unusable(&file, e))?;
        added += 1;
    }
    Ok(added)
}

/// All points of a history, each scenario's in the order of their start.
///
/// # Errors
/// The folder or one of its files cannot be read.
pub fn read_history(folder: &Path) -> Result<Vec<Vec<Point>>> {
    let entries = fs::read_dir(folder).map_err(|error| unusable(folder, error))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<Vec<Point>> {
    let text = fs::read_to_string(file).map_err(|error| unusable(file, error))?;
    let mut points = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| {
            Error::new(Kind::Format, format!("{}, line {}: {what}", file.display(), number + 1))
                .hint("remove the line; it may be left over from a merge")
        };
        let point: Point = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if point.history > VERSION {
            return Err(wrong(format!("version {} is newer than this wallgrind reads", point.history)));
        }
        points.push(point);
    }
    points.sort_by(|a: &Point, b| (&a.started, &a.run_id).cmp(&(&b.started, &b.run_id)));
    points.dedup();
    Ok(points)
}

fn unusable(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Io, format!("the history {} cannot be used", path.display())).source(error)
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    #[test]
    fn runs_are_added_once_and_read_in_their_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |day: u32, run: &str| Record {
            started: format!("2026-01-{day:02}T00:00:00Z"),
            run_id: run.into(),
            ..record("a::x", 1)
        };
        let mut failed = record("a::y", 1);
        failed.status = Status::Failed("why".into());
        let add = |records: &[Record]| add_to_history(folder.path(), records).expect("added");
        assert_eq!((add(&[at(2, "two"), failed]), add(&[at(1, "one"), at(2, "two")])), (1, 1));
        let history = read_history(folder.path()).expect("read");
        let runs: Vec<&str> = history[0].iter().map(|point| point.run_id.as_str()).collect();
        assert_eq!((history.len(), runs), (1, vec!["one", "two"]));
        assert!(history[0][0].medians.contains_key("wall_time ns"), "{:?}", history[0][0]);
        assert!(history[0][0].medians.contains_key("client wall_time ns"));
    }

    #[test]
    fn rubbish_and_newer_lines_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        add_to_history(folder.path(), &[record("a::x", 1)]).expect("added");
        let file = fs::read_dir(folder.path()).expect("a folder").next().expect("a file").expect("it").path();
        let good = fs::read_to_string(&file).expect("read");
        for (bad, says) in [
            (format!("{good}<<<<<<< ours\n"), "line 2"),
            (good.replace("\"history\":1", "\"history\":2"), "version 2 is newer"),
        ] {
            fs::write(&file, bad).expect("written");
            let report = read_history(folder.path()).expect_err("refused").report();
            assert!(report.contains(says), "{report}");
        }
        assert!(read_history(&folder.path().join("none")).is_err());
    }
}
