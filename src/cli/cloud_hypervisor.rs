//! A run as the report of Cloud Hypervisor's `performance-metrics`.
//!
//! Neighbours: `commands` calls it; the form is `report::exchange`'s.

use std::path::Path;
use std::process::{Command, Stdio};

use super::baselines::records;
use super::commands::judge_faults;
use super::exchange::write;
use super::formats::is_standard_output;
use super::term::{print, say};
use crate::error::{Error, Kind, Result};
use crate::families::block::reference_names;
use crate::report::exchange::cloud_hypervisor::{Revision, report};
use crate::store::Record;

/// Writes a run as that report, into the file `to`, or to standard output.
///
/// # Errors
/// The run cannot be read or holds nothing that has a name there, or the file
/// cannot be written.
pub fn export(out: &Path, run: &str, to: &Path) -> Result<()> {
    let (records, faults) = records(out, run)?;
    let (made, left_out) = report(&records, &reference_names(), &revision(&records), &date(&records));
    if !left_out.is_empty() {
        say(&format!("left out: {}", left_out.join(", ")));
    }
    if made.results.is_empty() {
        // What could not be read may have been all there was.
        judge_faults(faults)?;
        return Err(Error::new(
            Kind::Format,
            format!("run {run} holds nothing that Cloud Hypervisor's benchmark has a name for"),
        )
        .hint("its trials are block::STEM::n128 and block::STEM::n256, in wall time"));
    }
    let text = serde_json::to_string_pretty(&made)
        .map_err(|error| Error::new(Kind::Format, "the report cannot be written as JSON").source(error))?;
    if is_standard_output(to) {
        print(&(text + "\n"))?;
    } else {
        write(to, &(text + "\n"))?;
        print(&format!("{} results in {}\n", made.results.len(), to.display()))?;
    }
    judge_faults(faults)
}

/// What git says of the commit that the records are of, if this is a clone of it.
fn revision(records: &[Record]) -> Revision {
    let identity = |key: &str| records.iter().find_map(|record| record.identity.get(key));
    let Some(commit) = identity("commit").filter(|commit| is_commit(commit)) else {
        return Revision::default();
    };
    let dirty = if identity("tree_dirty").is_some_and(|dirty| dirty == "yes") { "-dirty" } else { "" };
    let described = git(&["describe", commit]);
    Revision {
        human_readable: if described.is_empty() { described } else { described + dirty },
        revision: commit.clone(),
        commit_date: git(&["show", "-s", "--format=%cd", commit]),
    }
}

/// Nothing else may become an argument of git.
fn is_commit(text: &str) -> bool {
    text.len() >= 7 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// What git prints, or nothing where it fails.
fn git(arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    String::from_utf8_lossy(&text.unwrap_or_default()).trim().to_string()
}

/// When the run began, as `date` prints it.
fn date(records: &[Record]) -> String {
    let first = records.iter().filter_map(|record| record.started.parse::<jiff::Timestamp>().ok()).min();
    first.map(|at| at.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()).unwrap_or_default()
}
