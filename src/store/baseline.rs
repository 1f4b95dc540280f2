//! Baselines: records of a run under a name, with the executable that made
//! them, so that it can be measured again beside a later one.
//!
//! ```text
//! <out>/.baselines/.lock                 one writer at a time
//! <out>/.baselines/executables/<sha256>  by content: many names, one file; its layouts beside it
//! <out>/.baselines/<name>/<suite>.json   written last: what it names is whole
//! <out>/.baselines/<name>/<suite>-<sha256, cut>/…   records, as in a run folder
//! ```
//!
//! No run can be called `.baselines`. Saving again under a name adds to what
//! is there when the executable is the same, and replaces it otherwise.
//!
//! Neighbours: `dir` has the files of records; `flow` saves, `cli` lists.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::dir::RunDir;
use super::layouts::{self, copy_layouts};
use super::name::plain_name;
use super::record::Record;
use super::schema::MAJOR;
use crate::error::{Error, Kind, Result};
use crate::sys::{Held, Lock};

/// The folder of all baselines, in that of the runs.
const FOLDER: &str = ".baselines";
const EXECUTABLES: &str = "executables";

/// The baselines beside the runs of one folder.
#[derive(Clone, Debug)]
pub struct Baselines {
    folder: PathBuf,
}

/// What one bench target keeps under a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    schema_version: String,
    /// The name.
    pub name: String,
    /// The bench target.
    pub suite: String,
    /// SHA-256 of the executable, in hexadecimal digits.
    pub executable: String,
    /// The size of the executable, in bytes.
    pub bytes: u64,
    /// When it was saved (RFC 3339, UTC).
    pub saved: String,
    /// The folder of its records, within that of the name.
    records: String,
    /// What the results depend on; see `machine`.
    pub identity: BTreeMap<String, String>,
}

impl Baselines {
    /// The baselines of the folder `out`.
    pub fn of(out: &Path) -> Self {
        Self { folder: out.join(FOLDER) }
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter(|name| plain_name(name) && name != EXECUTABLES && self.folder.join(name).is_dir())
            .collect();
        names.sort();
        names
    }

    /// Saves records and the executable that made them.
    ///
    /// # Errors
    /// The name cannot name a folder, or something cannot be written.
    pub fn save(
        &self,
        (name, suite): (&str, &str),
        program: &Path,
        records: &[Record],
        identity: &BTreeMap<String, String>,
    ) -> Result<Kept> {
        if !plain_name(name) || name == EXECUTABLES {
            return Err(Error::new(Kind::Usage, format!("{name:?} cannot name a baseline"))
                .hint("use letters, digits, `-`, `_` and `.`, no dot first"));
        }
        let folder = self.folder.join(name);
        let failed = |error: io::Error| {
            Error::new(Kind::Io, format!("the baseline {name} cannot be written to {}", folder.display()))
                .hint("make room on that disk, or choose another folder with --out")
                .source(error)
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        let _held = self.lock().map_err(failed)?;
        let (executable, bytes) = self.keep(program).map_err(failed)?;
        copy_layouts(program, &self.folder.join(EXECUTABLES).join(&executable))?;
        let before = self.kept(name, suite).ok();
        let run = format!("{suite}-{}", &executable[..16]);
        let dir = RunDir::open(&folder, &run)?;
        records.iter().try_for_each(|record| dir.write(record).map(drop))?;
        let saved = jiff::Timestamp::now().to_string();
        let kept = Kept {
            schema_version: format!("{MAJOR}.0"),
            name: name.into(),
            suite: suite.into(),
            executable,
            bytes,
            saved,
            records: run,
            identity: identity.clone(),
        };
        write_whole(
            &folder,
            &manifest(suite),
            &serde_json::to_vec(&kept).map_err(io::Error::from).map_err(failed)?,
        )
        .map_err(failed)?;
        if let Some(before) = before.filter(|before| before.records != kept.records) {
            // Of another executable: its records must not be taken for those of this one.
            fs::remove_dir_all(folder.join(&before.records)).map_err(failed)?;
            self.drop_unused().map_err(failed)?;
        }
        Ok(kept)
    }

    /// What a bench target keeps under a name.
    ///
    /// # Errors
    /// There is no such baseline, it is half-written, damaged, or of a newer schema.
    pub fn kept(&self, name: &str, suite: &str) -> Result<Kept> {
        let folder = self.folder.join(name);
        if !plain_name(name) || !folder.is_dir() {
            return Err(Error::new(
                Kind::Io,
                format!("there is no baseline {name} in {}", self.folder.display()),
            ));
        }
        let file = folder.join(manifest(suite));
        let text = fs::read_to_string(&file).map_err(|error| self.unfinished(name, suite, error))?;
        parse(&file, &text)
    }

    /// Why a bench target has no file under a name that is there.
    fn unfinished(&self, name: &str, suite: &str, error: io::Error) -> Error {
        let others: Vec<String> = self.suites(name);
        let folder = self.folder.join(name);
        let begun = fs::read_dir(&folder).into_iter().flatten().flatten();
        let begun = begun.filter_map(|entry| entry.file_name().into_string().ok());
        if begun.into_iter().any(|file| file.starts_with(&format!("{suite}-"))) {
            return Error::new(Kind::Format, format!("the baseline {name} of {suite} was never finished"))
                .hint("save it again, or remove it: wallgrind baselines delete")
                .source(error);
        }
        let what = if others.is_empty() { "nothing".into() } else { others.join(", ") };
        Error::new(Kind::Io, format!("the baseline {name} holds {what}, and nothing of {suite}"))
            .hint(format!("save it with that bench target as well: --save-baseline {name}"))
    }

    /// The bench targets under a name.
    pub fn suites(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join(name)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut suites: Vec<String> = names
            .filter(|file| !file.starts_with('.'))
            .filter_map(|file| file.strip_suffix(".json").map(str::to_string))
            .collect();
        suites.sort();
        suites
    }

    /// The records of what is kept, in the order of their start.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn records(&self, kept: &Kept) -> Result<Vec<Record>> {
        RunDir::read(&self.folder(kept))
    }

    /// The folder of these records.
    pub fn folder(&self, kept: &Kept) -> PathBuf {
        self.folder.join(&kept.name).join(&kept.records)
    }

    /// The executable of what is kept.
    ///
    /// # Errors
    /// It is gone, or not what was kept.
    pub fn executable(&self, kept: &Kept) -> Result<PathBuf> {
        let path = self.folder.join(EXECUTABLES).join(&kept.executable);
        let again = "save the baseline again";
        let gone = |error| {
            let text =
                format!("the executable of the baseline {} cannot be read: {}", kept.name, path.display());
            Error::new(Kind::Io, text).hint(again).source(error)
        };
        let (sum, _) = digest(&path).map_err(gone)?;
        if sum != kept.executable {
            let text =
                format!("the executable of the baseline {} has changed: {}", kept.name, path.display());
            return Err(Error::new(Kind::Format, text).hint(again));
        }
        Ok(path)
    }

    /// How many layouts of its executable are kept; see `layouts`.
    pub fn layouts(&self, kept: &Kept) -> usize {
        let program = self.folder.join(EXECUTABLES).join(&kept.executable);
        layouts::numbered_of(&program, &kept.executable).map_or(0, |found| found.len())
    }

    /// Deletes a baseline and the executables that no other one names. Gives
    /// the bytes that this freed.
    ///
    /// # Errors
    /// There is no such baseline, or it cannot be removed.
    pub fn delete(&self, name: &str) -> Result<u64> {
        let folder = self.folder.join(name);
        let failed = |error: io::Error| {
            Error::new(Kind::Io, format!("the baseline {} cannot be removed", folder.display())).source(error)
        };
        if !self.names().iter().any(|known| known == name) {
            return Err(Error::new(
                Kind::Io,
                format!("there is no baseline {name} in {}", self.folder.display()),
            ));
        }
        let _held = self.lock().map_err(failed)?;
        let before = size_of(&self.folder);
        fs::remove_dir_all(&folder).map_err(failed)?;
        self.drop_unused().map_err(failed)?;
        Ok(before.saturating_sub(size_of(&self.folder)))
    }

    /// Bytes that all baselines take on disk.
    pub fn disk_use(&self) -> u64 {
        size_of(&self.folder)
    }

    fn lock(&self) -> io::Result<Held> {
        Lock::open(&self.folder.join(".lock"))?.take()
    }

    /// Puts an executable where its content says; gives its sum and size.
    fn keep(&self, program: &Path) -> io::Result<(String, u64)> {
        let (sum, bytes) = digest(program)?;
        let folder = self.folder.join(EXECUTABLES);
        fs::create_dir_all(&folder)?;
        let there = folder.join(&sum);
        if digest(&there).is_ok_and(|(known, _)| known == sum) {
            return Ok((sum, bytes));
        }
        let mut file = tempfile::Builder::new().prefix(".unfinished-").tempfile_in(&folder)?;
        io::copy(&mut File::open(program)?, &mut file)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
        file.as_file().sync_all()?;
        file.persist(&there).map_err(|error| error.error)?;
        Ok((sum, bytes))
    }

    /// Removes the executables that no baseline names, with their layouts.
    fn drop_unused(&self) -> io::Result<()> {
        let mut used = Vec::new();
        for name in self.names() {
            let kept = self.suites(&name).into_iter().filter_map(|suite| self.kept(&name, &suite).ok());
            used.extend(kept.map(|kept| kept.executable));
        }
        for entry in fs::read_dir(self.folder.join(EXECUTABLES)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let sum = name.strip_suffix(layouts::SUFFIX).unwrap_or(&name);
            if used.iter().any(|used| used == sum) {
                continue;
            }
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        Ok(())
    }
}

fn manifest(suite: &str) -> String {
    format!("{suite}.json")
}

fn parse(file: &Path, text: &str) -> Result<Kept> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: String,
    }
    let damaged = |error: serde_json::Error| {
        Error::new(Kind::Format, format!("{} is not a whole baseline", file.display()))
            .hint("save it again, or remove it: wallgrind baselines delete")
            .source(error)
    };
    let Version { schema_version } = serde_json::from_str(text).map_err(damaged)?;
    let major = schema_version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    if major.is_some_and(|major| major > MAJOR) {
        let text = format!(
            "{} has schema {schema_version}, and this wallgrind reads up to {MAJOR}.x",
            file.display()
        );
        return Err(Error::new(Kind::Format, text).hint("use the wallgrind that wrote it, or a newer one"));
    }
    let kept: Kept = serde_json::from_str(text).map_err(damaged)?;
    let sum = &kept.executable;
    let whole = sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()) && plain_name(&kept.records);
    if !whole {
        return Err(Error::new(Kind::Format, format!("{} names no executable", file.display()))
            .hint("save it again, or remove it: wallgrind baselines delete"));
    }
    Ok(kept)
}

/// A file that is there whole, or as it was before.
pub(super) fn write_whole(folder: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".unfinished-").tempfile_in(folder)?;
    file.write_all(text)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name)).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// SHA-256 of a file in hexadecimal digits, and its size in bytes.
///
/// # Errors
/// It cannot be read.
pub fn digest(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => {
                hasher.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
    Ok((hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), bytes))
}

/// Bytes of all files below a folder.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => size_of(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}
