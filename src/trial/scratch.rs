//! The temporary folder of a run: bodies make their scratch files in it, and
//! it goes away with the run, however a trial ended.
//!
//! A run that is killed (SIGKILL) leaves its folder; the next run sweeps it,
//! since the lock beside it is free then.
//!
//! Neighbours: `flow` makes it, `runner` empties it after a time-out.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{Error, Kind, Result};
use crate::sys::{self, Held, Lock};

const PREFIX: &str = "wallgrind-run-";

/// The lock file in a scratch folder, held as long as the run lives.
const LOCK: &str = ".lock";

/// A folder younger than this may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// The temporary folder of a run.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    _held: Option<Held>,
    original: Option<OsString>,
}

impl Scratch {
    /// Makes the folder and points `TMPDIR` to it. Sweeps what killed runs left.
    ///
    /// # Errors
    /// The temporary folder cannot be written.
    pub fn make() -> Result<Self> {
        let original = std::env::var_os("TMPDIR");
        let parent = std::env::temp_dir();
        sweep(&parent);
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent).map_err(|error| {
            Error::new(Kind::Io, format!("no temporary folder can be made in {}", parent.display()))
                .source(error)
                .hint("set TMPDIR to a folder that can be written")
        })?;
        let lock = Lock::open(&dir.path().join(LOCK)).and_then(Lock::try_take);
        sys::set_temp_dir(dir.path());
        Ok(Self { dir, _held: lock.ok().and_then(std::result::Result::ok), original })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Removes the folder, and gives what `TMPDIR` was before.
    pub fn remove(self) -> Option<OsString> {
        // What cannot be removed is swept by a later run.
        let _ = self.dir.close();
        self.original
    }
}

/// Removes the folders of runs that have been killed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let ours = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let named = entry.file_name().to_str()?.starts_with(PREFIX);
        let old = entry.metadata().ok()?.modified().ok()?.elapsed().ok()? > YOUNG;
        (named && old).then(|| entry.path())
    });
    ours.filter(|path| is_abandoned(path)).for_each(|path| drop(fs::remove_dir_all(path)));
}

/// Whether nobody holds the lock in a scratch folder. One without a lock is
/// left alone: it is somebody else's.
fn is_abandoned(dir: &Path) -> bool {
    let lock: PathBuf = dir.join(LOCK);
    lock.is_file() && Lock::open(&lock).and_then(Lock::try_take).is_ok_and(|taken| taken.is_ok())
}
