//! The folder in which measured children find their program and leave their
//! files: its path has the same length in each run, and it goes away with the
//! run, or with the next one when a run was killed (`sys::RunFolder`).
//!
//! Files of bodies are not in it but in the scratch folder of the run; a link
//! gives them a path of fixed length here, too.
//!
//! Neighbours: `launch` works in it.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tempfile::TempDir;

use crate::error::{Error, Kind, Result};
use crate::sys::RunFolder;

const PREFIX: &str = "wallgrind-children-";

/// The folder of all children of a run.
pub(super) struct Scratch {
    folder: RunFolder,
    program: PathBuf,
    runs: AtomicU32,
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
        let folder = RunFolder::make_in(parent, PREFIX)?;
        let program = folder.path().join("program");
        provide(&std::env::current_exe()?, &program)?;
        Ok(Self { folder, program, runs: AtomicU32::new(0) })
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

/// A folder for the files of a body, in the scratch folder of the run, with
/// `link` leading there: the path that the body sees has one length wherever
/// the scratch folder is. Removed when it is dropped.
pub(super) fn behind(link: &Path) -> io::Result<TempDir> {
    // The flow has pointed the temporary folder to the run's scratch folder.
    let place = tempfile::Builder::new().prefix("wallgrind-child-").tempdir()?;
    symlink(place.path(), link)?;
    Ok(place)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_two_runs_are_of_one_length_and_go_away() {
        let parent = tempfile::tempdir().expect("a folder");
        let [first, second] = [(); 2].map(|()| Scratch::make_in(parent.path()).expect("scratch"));
        assert_eq!(first.program().as_os_str().len(), second.program().as_os_str().len());
        let folder = first.folder().expect("a folder");
        let link = folder.path().join("0.tmp");
        let place = behind(&link).expect("a folder and a link");
        fs::write(link.join("image"), "x").expect("a file through the link");
        let real = place.path().to_path_buf();
        assert!(real.join("image").exists() && !real.starts_with(parent.path()));
        drop(place);
        drop((folder, first, second));
        assert!(!real.exists());
        assert_eq!(fs::read_dir(parent.path()).expect("the parent").count(), 0);
    }
}
