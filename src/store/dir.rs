//! The folder of a run: one file a trial, complete or not there.
//!
//! Neighbours: `json` is the text of a file; `trial` writes, reports read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use super::json::{from_json, to_json};
use super::name::{file_stem, plain_name};
use super::record::Record;
use super::shared::Shared;
use super::side_by_side::side_by_side;
use crate::error::{Error, Kind, Result};

/// Start of the names of files that are still being written; readers pass them by.
const UNFINISHED: &str = ".unfinished-";

/// The folder of one run: one file a trial, written atomically when it ends.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

/// What a run folder holds.
#[derive(Debug, Default)]
pub struct Found {
    /// The records that could be read, in the order of their start.
    pub records: Vec<Record>,
    /// One error for each file that could not, which it names.
    pub faults: Vec<Error>,
}

impl RunDir {
    /// Makes (or joins) `<out>/<run_id>/` and checks that it can be written.
    ///
    /// # Errors
    /// [`Kind::Usage`] when the run id is no plain file name; [`Kind::Io`]
    /// when the folder cannot be made or written, with the folder's name.
    pub fn open(out: &Path, run_id: &str) -> Result<Self> {
        if !plain_name(run_id) {
            return Err(Error::new(Kind::Usage, format!("run id {run_id:?} cannot name a folder"))
                .hint("use letters, digits, `-`, `_` and `.`, no dot first, at most 200 characters"));
        }
        let path = out.join(run_id);
        fs::create_dir_all(&path).map_err(|e| unwritable(&path, e))?;
        unfinished(&path).map_err(|e| unwritable(&path, e))?;
        Ok(Self { path })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one record, and returns the path of its file. The file appears
    /// under its name when it is complete and on disk (temporary file, fsync,
    /// link, fsync of the folder), so a run that is killed leaves whole records
    /// only. An existing file is never replaced: a second record of the same
    /// trial and attempt gets a number behind its name.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be written (disk full, for example), with
    /// the name of the file.
    pub fn write(&self, record: &Record) -> Result<PathBuf> {
        let text = to_json(record)?;
        let stem = file_stem(record);
        let wanted = self.path.join(format!("{stem}.json"));
        let failed = |error: io::Error| {
            Error::new(Kind::Io, format!("cannot write the record {}", wanted.display()))
                .hint("make room on that disk, or choose another folder with --out")
                .source(error)
        };
        let mut file = unfinished(&self.path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        let path = publish(file, &self.path, &stem).map_err(failed)?;
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(path)
    }

    /// Reads all records of a run folder, in the order of their start.
    /// [`scan`](Self::scan) goes on when a file is damaged; this does not.
    ///
    /// # Errors
    /// The folder or one of its records cannot be read.
    pub fn read(path: &Path) -> Result<Vec<Record>> {
        let found = Self::scan(path)?;
        found.faults.into_iter().next().map_or(Ok(found.records), Err)
    }

    /// Reads what can be read of a run folder. Files that are not records by
    /// their name (`*.json`, no dot first) are passed by.
    ///
    /// # Errors
    /// [`Kind::Io`] when the folder itself cannot be read.
    pub fn scan(path: &Path) -> Result<Found> {
        let mut found = Found::default();
        let mut last = Shared::default();
        side_by_side(&record_files(path)?, read_record, |_, read| {
            match read {
                Ok(mut record) => {
                    record.identity.join(&mut last);
                    found.records.push(record);
                }
                Err(fault) => found.faults.push(fault),
            }
            Ok(())
        })?;
        // Stable: records that started at the same time stay in the order of their names.
        found.records.sort_by_cached_key(|r| (r.started.parse::<jiff::Timestamp>().ok(), r.started.clone()));
        Ok(found)
    }
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Io, format!("cannot read the run folder {}", path.display())).source(error)
}

pub(super) fn unwritable(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Io, format!("cannot write to the folder {}", path.display()))
        .hint("choose another folder with --out, or WALLGRIND_OUT")
        .source(error)
}

/// A temporary file in the folder itself: a link or rename cannot cross file systems.
fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    Builder::new().prefix(UNFINISHED).tempfile_in(folder)
}

/// Gives the finished file the first free name, without replacing any.
fn publish(mut file: NamedTempFile, folder: &Path, stem: &str) -> io::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    // Temporary files are private; records are for everybody whom the folder lets in.
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    for again in 1u32.. {
        let name = if again == 1 { format!("{stem}.json") } else { format!("{stem}-{again}.json") };
        let path = folder.join(name);
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => file = error.file,
            Err(error) => return Err(error.error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The files of a run folder that are records by their names, in their order.
///
/// # Errors
/// [`Kind::Io`] when the folder cannot be read.
pub fn record_files(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
        files.push(entry.map_err(|error| unreadable(path, error))?.path());
    }
    // A pipe or a device would never end.
    let endless = |file: &PathBuf| file.metadata().is_ok_and(|data| !data.is_file() && !data.is_dir());
    files.retain(|file| is_record_file(file) && !endless(file));
    files.sort();
    Ok(files)
}

pub(super) fn is_record_file(file: &Path) -> bool {
    let hidden = file.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && file.extension().is_some_and(|extension| extension == "json")
}

/// Reads one file.
///
/// # Errors
/// [`Kind::Io`] or [`Kind::Format`], with the name of the file.
pub fn read_record(file: &Path) -> Result<Record> {
    read_bytes(file).and_then(|bytes| record_of(file, &bytes))
}

/// Reads the bytes of one file.
///
/// # Errors
/// [`Kind::Io`], with the name of the file.
pub fn read_bytes(file: &Path) -> Result<Vec<u8>> {
    let failed =
        |error| Error::new(Kind::Io, format!("cannot read the record {}", file.display())).source(error);
    fs::read(file).map_err(|error: io::Error| failed(error))
}

/// The record in the bytes of a file.
///
/// # Errors
/// [`Kind::Format`], with the name of the file.
pub fn record_of(file: &Path, bytes: &[u8]) -> Result<Record> {
    let name = file.display().to_string();
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Error::new(Kind::Format, format!("{name} is not a whole record"))
            .hint("delete the file, or measure that scenario again")
            .source(error)
    })?;
    from_json(&name, text)
}
