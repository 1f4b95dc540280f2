//! The commands `export` and `import` for all formats: which there are, and
//! where they go. Those of one file go to a file or to standard output.
//!
//! Neighbours: `commands` calls it; the formats are `report::exchange`'s;
//! `exchange` and `cloud_hypervisor` have those of two projects.

use std::fs;
use std::path::{Path, PathBuf};

use super::baselines::records;
use super::commands::judge_faults;
use super::term::{print, say};
use super::{cloud_hypervisor, exchange};
use crate::error::{Error, Kind, Result};
use crate::report::exchange::criterion::{Criterion, criterion};
use crate::report::exchange::github_action::{self, github_action};
use crate::report::exchange::{bencher, csv, junit};
use crate::store::{Record, to_json};
use crate::units::Direction;

/// The formats that are written.
pub const NAMES: [&str; 10] = [
    "json",
    "jsonl",
    "csv",
    "junit",
    "bencher",
    "github-action-benchmark",
    "github-action-benchmark-bigger",
    "criterion",
    "rustls-ci",
    "cloud-hypervisor",
];

/// Those of them that are folders of files.
const FOLDERS: [&str; 2] = ["criterion", "rustls-ci"];

/// Whether a path means standard output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// What is read, and into which run.
#[derive(Debug, clap::Args)]
pub struct Imported {
    /// The format
    #[arg(value_parser = ["rustls-ci", "github-action-benchmark", "github-action-benchmark-bigger"])]
    format: String,
    /// The folder to read (rustls-ci), or the file
    from: PathBuf,
    /// The name of the run [a new one]
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
}

/// Writes a run in a format.
///
/// # Errors
/// The run cannot be read or has nothing for that format, or the file cannot be written.
pub fn export(out: &Path, format: &str, run: &str, to: &Path) -> Result<()> {
    if FOLDERS.contains(&format) && is_standard_output(to) {
        return Err(Error::new(Kind::Usage, format!("{format} is a folder of files, which - cannot take"))
            .hint("name a folder for it"));
    }
    match format {
        "rustls-ci" => return exchange::export(out, run, to),
        "cloud-hypervisor" => return cloud_hypervisor::export(out, run, to),
        _ => {}
    }
    let (records, faults) = records(out, run)?;
    if records.is_empty() {
        return judge_faults(faults);
    }
    if format == "criterion" {
        folders(&records, run, to)?;
        return judge_faults(faults);
    }
    let text = text(format, &records)?;
    if is_standard_output(to) {
        print(&text)?;
    } else {
        exchange::write(to, &text)?;
        print(&format!("{} records in {}\n", records.len(), to.display()))?;
    }
    judge_faults(faults)
}

/// A run as the text of one file.
fn text(format: &str, records: &[Record]) -> Result<String> {
    match format {
        "json" => {
            let all: Vec<String> = records.iter().map(to_json).collect::<Result<_>>()?;
            let all: Vec<&str> = all.iter().map(|text| text.trim_end()).collect();
            Ok(format!("[\n{}\n]\n", all.join(",\n")))
        }
        "jsonl" => records.iter().map(to_json).collect(),
        "csv" => csv(records),
        "junit" => Ok(junit(records)),
        "bencher" => pretty(&bencher(records)),
        "github-action-benchmark" => list(records, Direction::LowerIsBetter),
        _ => list(records, Direction::HigherIsBetter),
    }
}

/// A list for github-action-benchmark, whose results are all better one way.
fn list(records: &[Record], better: Direction) -> Result<String> {
    let others = match better {
        Direction::LowerIsBetter => Direction::HigherIsBetter,
        Direction::HigherIsBetter => Direction::LowerIsBetter,
    };
    let (list, left_out) = (github_action(records, better), github_action(records, others));
    if !left_out.is_empty() {
        let (tool, format) = match others {
            Direction::LowerIsBetter => ("customSmallerIsBetter", "github-action-benchmark"),
            Direction::HigherIsBetter => ("customBiggerIsBetter", "github-action-benchmark-bigger"),
        };
        say(&format!(
            "{} results are better the other way, for {tool}: export them as {format}",
            left_out.len()
        ));
    }
    if list.is_empty() {
        let way = if better == Direction::LowerIsBetter { "lower" } else { "greater" };
        return Err(Error::new(Kind::Format, format!("nothing of this run is better when it is {way}")));
    }
    pretty(&list)
}

fn pretty<T: serde::Serialize>(value: &T) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::new(Kind::Format, "the results cannot be written as JSON").source(error))?;
    Ok(text + "\n")
}

/// Writes a run into a folder of criterion, as the baseline of its name.
fn folders(records: &[Record], run: &str, to: &Path) -> Result<()> {
    let (all, left_out) = criterion(records);
    let baseline = Path::new(run).file_name().unwrap_or_default();
    if all.is_empty() {
        return Err(Error::new(
            Kind::Format,
            "nothing of this run was measured in wall time, as all of criterion is",
        ));
    }
    for Criterion { directory, benchmark, estimates } in &all {
        let folder = to.join(directory).join(baseline);
        exchange::make_dir(&folder)?;
        exchange::write(&folder.join("benchmark.json"), &pretty(benchmark)?)?;
        exchange::write(&folder.join("estimates.json"), &pretty(estimates)?)?;
    }
    if !left_out.is_empty() {
        say(&format!("left out, without a wall time: {}", left_out.join(", ")));
    }
    print(&format!("{} benchmarks in {}\n", all.len(), to.display()))
}

/// Reads results of another tool into a run.
///
/// # Errors
/// They cannot be read, or the run cannot be written.
pub fn import(out: &Path, wanted: &Imported) -> Result<()> {
    let better = match wanted.format.as_str() {
        "rustls-ci" => return exchange::import(out, &wanted.from, wanted.run_id.as_deref()),
        "github-action-benchmark" => Direction::LowerIsBetter,
        _ => Direction::HigherIsBetter,
    };
    let text = fs::read_to_string(&wanted.from).map_err(|error| exchange::unreadable(&wanted.from, error))?;
    let run_id = exchange::new_run(wanted.run_id.as_deref())?;
    let started = jiff::Timestamp::now().to_string();
    let records = github_action::import(&text, better, &run_id, &started)?;
    if records.is_empty() {
        return Err(Error::new(Kind::Format, format!("{} holds no results", wanted.from.display()))
            .hint("no run was made of it"));
    }
    exchange::keep(out, &run_id, &records)
}
