//! The folder in which measured children find their program and leave their
//! files: its path has the same length in each run, and it goes away with the
//! run, or with the next one when a run was killed.
//!
//! Neighbours: `launch` works in it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::error::{Error, Kind, Result};

const PREFIX: &str = "wallgrind-children-";
/// Held by a run as long as it lives.
const LOCK: &str = "lock";
/// A folder younger than this may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// The folder of all children of a run.
pub(super) struct Scratch {
    folder: TempDir,
    program: PathBuf,
    runs: AtomicU32,
    _lock: File,
}

/// A folder of one run, removed when it is done with.
pub(super) struct Folder(PathBuf);

impl Scratch {
    /// Makes the folder, with this executable in it.
    ///
    /// # Errors
    /// There is no place for it.
    pub(super) fn make() -> Result<Self> {
        Self::make_in(Path::new("/tmp")).or_else(|_| Self::make_in(&std::env::temp_dir())).map_err(|error| {
            Error::new(Kind::Io, "no scratch folder for measured children")
                .hint("set TMPDIR to a folder that can be written")
                .source(error)
        })
    }

    fn make_in(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).rand_bytes(8).tempdir_in(parent)?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.lock()?;
        let program = folder.path().join("program");
        provide(&std::env::current_exe()?, &program)?;
        Ok(Self { folder, program, runs: AtomicU32::new(0), _lock: lock })
    }

    /// The executable under a path of fixed length.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// A new folder for one run of a scenario.
    pub(super) fn folder(&self) -> io::Result<Folder> {
        let number = self.runs.fetch_add(1, Relaxed);
        let path = self.folder.path().join(format!("{number:08}"));
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now goes with the folder above it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Puts the executable at `program`: a copy without debug information, which
/// Valgrind would read anew for each child (0.2 s of its start), or a link to
/// the executable itself where there is no `strip`. Symbols stay in both.
fn provide(executable: &Path, program: &Path) -> io::Result<()> {
    let stripped = Command::new("strip")
        .arg("--strip-debug")
        .arg("-o")
        .arg(program)
        .arg(executable)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if stripped.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let _ = fs::remove_file(program);
    symlink(executable, program)
}

/// Removes what runs that were killed have left: folders that nobody locks.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    let age = folder.metadata().and_then(|m| m.modified()).map(|at| SystemTime::now().duration_since(at));
    let is_old = matches!(age, Ok(Ok(age)) if age > YOUNG);
    match File::open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound && is_old,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_away_with_its_run_or_with_the_next_one() {
        let parent = tempfile::tempdir().expect("a folder");
        let alive = Scratch::make_in(parent.path()).expect("scratch");
        let killed = parent.path().join(format!("{PREFIX}killed00"));
        fs::create_dir(&killed)
            .and_then(|()| fs::write(killed.join(LOCK), ""))
            .expect("a folder left behind");
        let next = Scratch::make_in(parent.path()).expect("scratch");
        assert!(!killed.exists() && alive.program().exists());
        assert_eq!(alive.program().as_os_str().len(), next.program().as_os_str().len());
        let path = next.folder.path().to_path_buf();
        drop(next);
        assert!(!path.exists());
    }
}
