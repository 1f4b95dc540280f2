//! The folder in which measured children find their program and leave their
//! files: its path has the same length in each run. It is a part of the run's
//! scratch folder, which a run that is killed leaves and the next one removes
//! (`sys::RunFolder`); where that is elsewhere than in `/tmp`, a link there
//! leads to it.
//!
//! Files of bodies are beside it in that folder; a link gives them a path of
//! fixed length here, too.
//!
//! Neighbours: `launch` works in it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tempfile::TempDir;

use crate::error::{Error, Kind, Result};
use crate::sys::{RUN_PREFIX, RunFolder, RunLink, is_run_folder, takes_programs};

/// The place that every machine has, with a path of one length.
const SHORT: &str = "/tmp";
/// Parts of a run's folder that can be made: one for each counter of a process.
const PARTS: u32 = 1000;

/// The folder of all children of a run.
pub(super) struct Scratch {
    folder: PathBuf,
    program: PathBuf,
    runs: AtomicU32,
    /// What the folder's path leads through, removed behind it.
    _way: Way,
}

/// How the path of fixed length comes about.
enum Way {
    /// The run's folder has it.
    Run,
    /// A link to the run's folder.
    Link { _link: RunLink },
    /// A folder of its own: there is no run's, or it takes no programs.
    Own { _folder: RunFolder },
}

/// A folder of one run, removed when it is done with.
pub(super) struct Folder(PathBuf);

impl Scratch {
    /// Makes the folder, with this executable in it.
    ///
    /// # Errors
    /// There is no place for it.
    pub(super) fn make() -> Result<Self> {
        // The flow has pointed the temporary folder to the run's scratch folder.
        let (run, short) = (std::env::temp_dir(), Path::new(SHORT));
        Self::make_for(&run, short)
            .or_else(|_| Self::make_own(short))
            .or_else(|_| Self::make_own(&run))
            .map_err(|error| {
                Error::new(Kind::Io, "no scratch folder for measured children")
                    .hint("set TMPDIR to a folder that can be written")
                    .source(error)
            })
    }

    /// In the run's folder, under a path of fixed length.
    fn make_for(run: &Path, short: &Path) -> io::Result<Self> {
        if !is_run_folder(run, RUN_PREFIX) || !takes_programs(run) {
            return Err(io::Error::other("no run has a folder that takes programs"));
        }
        if run.parent() == Some(short) {
            return Self::make_in(run, Way::Run);
        }
        let link = RunLink::make_in(short, RUN_PREFIX, run)?;
        let path = link.path().to_path_buf();
        Self::make_in(&path, Way::Link { _link: link })
    }

    fn make_own(parent: &Path) -> io::Result<Self> {
        let folder = RunFolder::make_in(parent, RUN_PREFIX)?;
        let path = folder.path().to_path_buf();
        Self::make_in(&path, Way::Own { _folder: folder })
    }

    fn make_in(place: &Path, way: Way) -> io::Result<Self> {
        let folder = part(place)?;
        let program = folder.join("program");
        // From here on it goes away, whatever fails.
        let made = Self { folder, program, runs: AtomicU32::new(0), _way: way };
        provide(&std::env::current_exe()?, &made.program)?;
        Ok(made)
    }

    /// The executable under a path of fixed length.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// A new folder for one run of a scenario.
    pub(super) fn folder(&self) -> io::Result<Folder> {
        let number = self.runs.fetch_add(1, Relaxed);
        let path = self.folder.join(format!("{number:08}"));
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now goes with the run's folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A part of `place` that nobody else has, with a name of fixed length.
fn part(place: &Path) -> io::Result<PathBuf> {
    for number in 0..PARTS {
        let folder = place.join(format!("w{number:03}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("all {PARTS} parts of {} are taken", place.display())))
}

/// A folder for the files of a body, in the scratch folder of the run, with
/// `link` leading there: the path that the body sees has one length wherever
/// the scratch folder is. Removed when it is dropped.
pub(super) fn behind(link: &Path) -> io::Result<TempDir> {
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

    /// A run's folder.
    fn run_in(parent: &Path) -> RunFolder {
        RunFolder::make_in(parent, RUN_PREFIX).expect("a folder")
    }

    #[test]
    fn paths_are_of_one_length_and_go_away() {
        let [short, long] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let deep = long.path().join("deep/down");
        fs::create_dir_all(&deep).expect("folders");
        let (near, far) = (run_in(short.path()), run_in(&deep));
        let all = [
            Scratch::make_for(near.path(), short.path()).expect("in the run's folder"),
            Scratch::make_for(near.path(), short.path()).expect("a second counter's"),
            Scratch::make_for(far.path(), short.path()).expect("by a link"),
            Scratch::make_own(short.path()).expect("a folder of its own"),
        ];
        for scratch in &all {
            assert_eq!(scratch.program().as_os_str().len(), all[0].program().as_os_str().len());
            assert!(scratch.program().starts_with(short.path()) && scratch.program().exists());
        }
        let inside = |scratch: &Scratch, run: &RunFolder| {
            let real = scratch.program.parent().expect("a folder").canonicalize().expect("its path");
            real.starts_with(run.path().canonicalize().expect("its path"))
        };
        assert!(inside(&all[0], &near) && inside(&all[1], &near) && inside(&all[2], &far));
        assert_ne!(all[0].program(), all[1].program());

        let folder = all[2].folder().expect("a folder");
        let link = folder.path().join("0.tmp");
        let place = behind(&link).expect("a folder and a link");
        fs::write(link.join("image"), "x").expect("a file through the link");
        let real = place.path().to_path_buf();
        assert!(real.join("image").exists());
        drop(place);
        assert!(!real.exists());
        drop((folder, all, near, far));
        for parent in [short.path(), &deep] {
            assert_eq!(fs::read_dir(parent).expect("the parent").count(), 0);
        }
    }

    #[test]
    fn what_is_no_folder_of_a_run_is_not_used() {
        let short = tempfile::tempdir().expect("a folder");
        assert!(Scratch::make_for(short.path(), short.path()).is_err());
        assert_eq!(fs::read_dir(short.path()).expect("the folder").count(), 0);
    }
}
