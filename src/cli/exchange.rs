//! Results in and out of the formats of other tools, and the functions of a
//! trial: the commands `export`, `import` and `annotate`.
//!
//! Neighbours: `commands` calls it; the formats are `report::exchange`'s.

use std::fs;
use std::path::{Path, PathBuf};

use super::baselines::records;
use super::commands::{folder_of, judge_faults, run_names};
use super::names::meant;
use super::term::{print, say};
use super::value;
use super::whole::write_whole;
use crate::error::{Error, Kind, Result};
use crate::families;
use crate::report;
use crate::report::exchange::{self, Import};
use crate::store::{Baselines, Record, RunDir, Status};

/// The files of rustls' own benchmark.
const ICOUNTS: &str = "icounts.csv";
const MEMORY: &str = "memory.csv";
const WALLTIME: &str = "walltime.csv";

/// Writes a run as rustls' own benchmark would have, into `to`.
///
/// # Errors
/// The run cannot be read, or the folder cannot be written.
pub fn export(out: &Path, run: &str, to: &Path) -> Result<()> {
    let (records, faults) = records(out, run)?;
    let exported = exchange::export(&records);
    let mut written = Vec::new();
    for (name, text) in
        [(ICOUNTS, &exported.icounts), (MEMORY, &exported.memory), (WALLTIME, &exported.walltime)]
    {
        if !text.is_empty() {
            make_dir(to)?;
            write(&to.join(name), text)?;
            written.push(name);
        }
    }
    // A baseline has none, and a run may have its name.
    let profiles = match Baselines::of(out).names().iter().any(|name| name == run) {
        true => 0,
        false => export_profiles(&folder_of(out, Some(run))?, &exported.profiles, &to.join("callgrind"))?,
    };
    if !exported.left_out.is_empty() {
        say(&format!("left out, without numbers or a name there: {}", exported.left_out.join(", ")));
    }
    if written.is_empty() {
        // What could not be read may have been all there was.
        judge_faults(faults)?;
        return Err(Error::new(
            Kind::Format,
            format!("run {run} holds nothing that rustls' benchmark has a name for"),
        )
        .hint("its trials are those under tls:: that the reference has, in any mode"));
    }
    print(&format!("{} and {} profiles in {}\n", written.join(", "), profiles, to.display()))?;
    judge_faults(faults)
}

/// Writes the profiles that the run still has; gives how many. A run that was
/// imported has none.
fn export_profiles(folder: &Path, profiles: &[(String, String)], to: &Path) -> Result<usize> {
    let there = |(_, from): &&(String, String)| folder.join(from).is_file();
    let profiles: Vec<_> = profiles.iter().filter(there).collect();
    for (name, from) in &profiles {
        let from = folder.join(from);
        let text = fs::read_to_string(&from).map_err(|error| unreadable(&from, error))?;
        make_dir(to)?;
        write(&to.join(name), &exchange::callgrind_from_cachegrind(&text)?)?;
    }
    Ok(profiles.len())
}

/// Reads a result folder of rustls' own benchmark into a run of ours.
///
/// # Errors
/// A file cannot be read, or the records cannot be written.
pub fn import(out: &Path, from: &Path, run_id: Option<&str>) -> Result<()> {
    let text = |name: &str| match fs::read_to_string(from.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&from.join(name), error)),
    };
    let (icounts, memory, walltime) = (text(ICOUNTS)?, text(MEMORY)?, text(WALLTIME)?);
    if icounts.is_none() && memory.is_none() && walltime.is_none() {
        let files = [ICOUNTS, MEMORY, WALLTIME].join(", ");
        return Err(Error::new(Kind::Io, format!("{} holds none of {files}", from.display()))
            .hint("name the folder that rustls' ci-bench wrote its results into"));
    }
    let run_id = new_run(run_id)?;
    let started = jiff::Timestamp::now().to_string();
    let files = Import {
        icounts: icounts.as_deref(),
        memory: memory.as_deref(),
        walltime: walltime.as_deref(),
        run_id: &run_id,
        started: &started,
    };
    let records = exchange::import(&files, &|name| families::tls::from_reference(name))?;
    keep(out, &run_id, &records)
}

/// The name that was asked for, or a new one.
///
/// # Errors
/// It cannot name a folder.
pub fn new_run(wanted: Option<&str>) -> Result<String> {
    match wanted {
        Some(name) => {
            value::folder_name(name).map_err(|wrong| Error::new(Kind::Usage, format!("--run-id: {wrong}")))
        }
        None => Ok(super::place::new_run()),
    }
}

/// Writes records of another tool into a run, and says where.
///
/// # Errors
/// They cannot be written.
pub fn keep(out: &Path, run_id: &str, records: &[Record]) -> Result<()> {
    let folder = RunDir::open(out, run_id)?;
    for record in records {
        folder.write(record)?;
    }
    print(&format!("{} records in {}\n", records.len(), folder.path().display()))
}

/// Shows the functions in which a trial spent its instructions, from the
/// latest run that counted them, or from `run`.
///
/// # Errors
/// There is no such trial, or its instructions were not counted.
pub fn annotate(out: &Path, trial: &str, run: Option<&str>, top: usize) -> Result<()> {
    let folders: Vec<PathBuf> = match run {
        Some(run) => vec![folder_of(out, Some(run))?],
        None => run_names(out)?.iter().rev().map(|name| out.join(name)).collect(),
    };
    let mut names: Vec<String> = Vec::new();
    for folder in folders {
        // A damaged file of another trial is no reason to refuse this one.
        let records = RunDir::scan(&folder)?.records;
        let counted = |record: &&Record| record.scenario == trial && record.status == Status::Ok;
        if let Some(text) = records.iter().filter(counted).find_map(|record| report::annotate(record, top)) {
            print(&text)?;
            return Ok(());
        }
        names.extend(records.into_iter().map(|record| record.scenario));
    }
    let known = names.iter().any(|name| name == trial);
    let error = Error::new(Kind::Io, format!("no record of {trial} has functions in it"));
    Err(match meant(trial, names.iter().map(String::as_str)).filter(|_| !known) {
        Some(meant) => error.hint(meant),
        None => error.hint(format!("count them first: cargo bench -- {trial} --exact --mode cachegrind")),
    })
}

pub fn make_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(|error| {
        Error::new(Kind::Io, format!("the folder {} cannot be made", dir.display())).source(error)
    })
}

/// Writes a file of another tool.
///
/// # Errors
/// The file cannot be written; the error names it.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    write_whole(path, text.as_bytes())
}

pub fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::new(Kind::Io, format!("{} cannot be read", path.display())).source(error)
}
