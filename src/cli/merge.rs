//! The command `merge`: the runs of shards become one run, when they are the
//! whole of it and fit together. Else nothing is written, unless that is wanted.
//!
//! Neighbours: `compare` finds what is wrong, `store` copies; `commands` calls it.

use std::path::{Path, PathBuf};

use super::busy::Busy;
use super::commands::folder_of;
use super::exchange::new_run;
use super::term::{print, say};
use crate::compare::{Flaws, Parts};
use crate::error::{Error, Kind, Result};
use crate::store::{Joined, ShardManifest, read_bytes, record_files, record_of, side_by_side};
use crate::units::grouped;

/// What to merge.
#[derive(Debug, clap::Args)]
pub struct Merge {
    /// The runs, or folders with records: one for each shard
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The name of the new run [a new one]
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Merge what there is, although shards, trials or whole files are missing
    #[arg(long)]
    partial: bool,
    /// Merge what was divided or measured under other conditions
    #[arg(long)]
    force: bool,
}

/// The folder of a run, and the files of its records.
struct Source {
    name: String,
    folder: PathBuf,
    files: Vec<PathBuf>,
}

/// What was read, and what was wrong with it.
struct Read {
    parts: Parts,
    records: usize,
    /// Files that could not be read, and folders without any.
    faults: Vec<Error>,
    /// Files of one name that differ: of what is double, or of names that are nearly one.
    clashes: Vec<Error>,
}

impl Read {
    /// Keeps a clash until all that is double is known, which says it better.
    fn clash(&mut self, put: Result<()>) -> Result<()> {
        match put {
            Err(error) if error.kind() == Kind::Format => self.clashes.push(error),
            put => return put,
        }
        Ok(())
    }
}

/// Merges runs and says where the new one is.
///
/// # Errors
/// A run cannot be read; something is missing, double or measured otherwise;
/// or the new run cannot be written. Nothing is written then.
pub fn merge(out: &Path, wanted: &Merge) -> Result<()> {
    let run_id = new_run(wanted.run_id.as_deref())?;
    let sources = sources(out, &wanted.runs)?;
    let joined = Joined::begin(out, &run_id)?;
    let busy = Busy::new();
    let read = read(&sources, &joined, &busy)?;
    busy.step("looking for what is missing", 0);
    let flaws = read.parts.flaws();
    let (trials, records) = (read.parts.trials(), read.records);
    drop(busy);
    judge(wanted, flaws, read.faults)?;
    if let Some(clash) = read.clashes.into_iter().next() {
        return Err(clash);
    }
    if records == 0 {
        return Err(Error::new(Kind::Io, "none of these runs holds a record, so there is nothing to merge")
            .hint("wallgrind runs lists the runs that do"));
    }
    let busy = Busy::new();
    busy.step("waiting for the disk", 0);
    let folder = joined.finish()?;
    drop(busy);
    let (runs, trials, records) = (sources.len(), grouped(trials as u64), grouped(records as u64));
    print(&format!("{runs} runs, {trials} trials, {records} records in {}\n", folder.display()))
}

/// The folders of the runs, each once.
fn sources(out: &Path, runs: &[String]) -> Result<Vec<Source>> {
    let mut all: Vec<Source> = Vec::new();
    for run in runs {
        let folder = folder_of(out, Some(run))?;
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if let Some(known) = all.iter().find(|known| real(&known.folder) == real(&folder)) {
            let text = if known.name == *run {
                format!("{run} is named twice")
            } else {
                format!("{run} and {} are one folder", known.name)
            };
            return Err(Error::new(Kind::Usage, text).hint("name each shard once"));
        }
        let files = record_files(&folder)?;
        all.push(Source { name: run.clone(), folder, files });
    }
    Ok(all)
}

/// Reads each file once: it is checked, and copied as it is.
fn read(sources: &[Source], joined: &Joined, busy: &Busy) -> Result<Read> {
    let mut read = Read { parts: Parts::default(), records: 0, faults: Vec::new(), clashes: Vec::new() };
    busy.step("merging records", sources.iter().map(|source| source.files.len()).sum());
    for source in sources {
        let (manifests, faults) = ShardManifest::all(&source.folder);
        if source.files.is_empty() && manifests.is_empty() && faults.is_empty() {
            read.faults.push(
                Error::new(Kind::Io, format!("{} holds no records", source.folder.display()))
                    .hint("look whether that shard has run to its end"),
            );
        }
        read.faults.extend(faults);
        read.parts.folder(&source.name, manifests);
        let whole = |file: &Path| {
            let bytes = read_bytes(file)?;
            Ok((record_of(file, &bytes)?, bytes))
        };
        side_by_side(&source.files, whole, |file, part| {
            busy.one();
            match part {
                Ok((record, bytes)) => {
                    read.parts.record(&record);
                    read.records += 1;
                    let name = Path::new(file.file_name().unwrap_or_default());
                    read.clash(joined.put(name, &bytes))?;
                }
                Err(fault) => read.faults.push(fault),
            }
            Ok(())
        })?;
        read.clash(joined.put_rest(&source.folder))?;
    }
    Ok(read)
}

/// Says what is wrong, and refuses what was not said to be wanted all the same.
fn judge(wanted: &Merge, flaws: Flaws, faults: Vec<Error>) -> Result<()> {
    let said =
        |text: &str, passes: bool| say(&format!("{}: {text}", if passes { "warning" } else { "error" }));
    let (broken, missing, unlike, double) =
        (faults.len(), flaws.missing.len(), flaws.unlike.len(), flaws.double.len());
    for fault in faults {
        let report = fault.report();
        let text = report.strip_prefix("error: ").unwrap_or(&report);
        said(text, wanted.partial);
    }
    flaws.missing.iter().for_each(|text| said(text, wanted.partial));
    flaws.unlike.iter().for_each(|text| said(text, wanted.force));
    flaws.double.iter().for_each(|text| said(text, false));
    flaws.unknown.iter().for_each(|text| said(text, true));
    let mut ways = Vec::new();
    if broken + missing > 0 && !wanted.partial {
        ways.push("run what is missing again, or merge the rest with --partial");
    }
    if unlike > 0 && !wanted.force {
        ways.push("run the shards that differ again, or merge them all the same with --force");
    }
    if double > 0 {
        ways.push("name each shard once, and only runs with different trials");
    }
    if ways.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::Format, "these runs do not make one; nothing was written").hint(ways.join("; ")))
}
