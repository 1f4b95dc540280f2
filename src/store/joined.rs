//! A run folder that is made of others: there whole under its name, or not at all.
//!
//! Files are copied as they are, byte by byte, into a hidden folder beside it,
//! which gets the name when everything is on disk. Nothing that is there
//! already is replaced.
//!
//! Neighbours: `dir` writes the folders that are joined; `cli::merge` joins.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::dir::{is_record_file, unreadable, unwritable};
use super::name::plain_name;
use crate::error::{Error, Kind, Result};
use crate::sys::{self, RunFolder};

/// What the name of the folder begins with until it is whole: no run's does.
const UNFINISHED: &str = ".unfinished-merge-";

/// A run that is being joined. Dropping it removes what it has so far; what a
/// killed process has left is removed by the next one.
#[derive(Debug)]
pub struct Joined {
    folder: RunFolder,
    target: PathBuf,
}

impl Joined {
    /// Begins the run `<out>/<run_id>`.
    ///
    /// # Errors
    /// [`Kind::Usage`] when there is such a run or there can be none;
    /// [`Kind::Io`] when `out` cannot be written.
    pub fn begin(out: &Path, run_id: &str) -> Result<Self> {
        let target = out.join(run_id);
        if !plain_name(run_id) {
            return Err(Error::new(Kind::Usage, format!("{run_id:?} cannot name a run"))
                .hint("use letters, digits, `-`, `_` and `.`, no dot first, at most 200 characters"));
        }
        if target.symlink_metadata().is_ok() {
            return Err(taken(&target));
        }
        fs::create_dir_all(out).map_err(|error| unwritable(out, error))?;
        let folder = RunFolder::make_in(out, UNFINISHED).map_err(|error| unwritable(out, error))?;
        Ok(Self { folder, target })
    }

    /// Puts a file into it; `within` is its path there.
    ///
    /// # Errors
    /// [`Kind::Format`] when another file of that name is there and differs;
    /// [`Kind::Io`] when it cannot be written.
    pub fn put(&self, within: &Path, bytes: &[u8]) -> Result<()> {
        let path = self.folder.path().join(within);
        let failed = |error: io::Error| {
            Error::new(Kind::Io, format!("cannot write {} of {}", within.display(), self.target.display()))
                .hint("make room on that disk, or choose another folder with --out")
                .source(error)
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        match File::create_new(&path) {
            Ok(mut file) => io::Write::write_all(&mut file, bytes).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if fs::read(&path).map_err(failed)? == bytes {
                    return Ok(());
                }
                Err(Error::new(
                    Kind::Format,
                    format!("two runs have a file {}, and they differ", within.display()),
                )
                .hint("merge the shards of one run, each once"))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Copies what stands beside the records of a run: what shards were to do,
    /// and the profiles of counts.
    ///
    /// # Errors
    /// Something cannot be read or written.
    pub fn put_rest(&self, run: &Path) -> Result<()> {
        self.copy(run, Path::new(""))
    }

    fn copy(&self, run: &Path, within: &Path) -> Result<()> {
        let folder = run.join(within);
        for entry in fs::read_dir(&folder).map_err(|error| unreadable(&folder, error))? {
            let entry = entry.map_err(|error| unreadable(&folder, error))?;
            let kind = entry.file_type().map_err(|error| unreadable(&folder, error))?;
            let (name, path) = (within.join(entry.file_name()), entry.path());
            // Hidden ones were being written when their process was killed.
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let is_record = within == Path::new("") && is_record_file(&path);
            if hidden || is_record {
                continue;
            }
            if kind.is_dir() {
                self.copy(run, &name)?;
            } else if kind.is_file() {
                self.put(&name, &fs::read(&path).map_err(|error| unreadable(&path, error))?)?;
            }
        }
        Ok(())
    }

    /// Gives the run its name, when all of it is on disk.
    ///
    /// # Errors
    /// [`Kind::Usage`] when there is such a run by now; [`Kind::Io`] when it cannot be written.
    pub fn finish(self) -> Result<PathBuf> {
        let Self { folder, target } = self;
        let ready = || -> io::Result<()> {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
            // One call for many thousand files, instead of one for each.
            sys::sync_file_system(&File::open(folder.path())?)
        };
        ready().map_err(|error| unwritable(&target, error))?;
        match folder.keep_as(&target) {
            Ok(()) => Ok(target),
            Err(_) if target.exists() => Err(taken(&target)),
            Err(error) => Err(unwritable(&target, error)),
        }
    }
}

fn taken(target: &Path) -> Error {
    Error::new(Kind::Usage, format!("there is {} already, and nothing of it is replaced", target.display()))
        .hint("choose another name with --run-id, or remove that run")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_run_is_there_whole_or_not_at_all() {
        let out = tempfile::tempdir().expect("a folder");
        let joined = Joined::begin(out.path(), "all").expect("begun");
        joined.put(Path::new("a.json"), b"1").expect("written");
        assert!(names(out.path())[0].starts_with('.'), "no run yet");
        drop(joined);
        assert_eq!(names(out.path()), [""; 0]);
        let joined = Joined::begin(out.path(), "all").expect("begun");
        joined.put(Path::new("a.json"), b"1").expect("written");
        joined.put(Path::new("below/b"), b"2").expect("written");
        let target = joined.finish().expect("finished");
        assert_eq!(
            (names(out.path()), names(&target)),
            (vec!["all".into()], vec!["a.json".into(), "below".into()])
        );
    }

    #[test]
    fn what_a_killed_merge_has_left_goes_with_the_next_one() {
        let out = tempfile::tempdir().expect("a folder");
        let killed = Joined::begin(out.path(), "killed").expect("begun");
        killed.put(Path::new("a.json"), b"1").expect("written");
        let alive = names(out.path());
        // As a killed process leaves it: the folder is there, and nobody holds its lock.
        let left = out.path().join(format!("{UNFINISHED}killed00"));
        fs::create_dir_all(left.join("below")).expect("a folder");
        for entry in fs::read_dir(killed.folder.path()).expect("a folder").flatten() {
            fs::copy(entry.path(), left.join(entry.file_name())).expect("copied");
        }
        let next = Joined::begin(out.path(), "next").expect("begun");
        assert!(!left.exists(), "what was left is still there");
        assert!(alive.iter().all(|name| out.path().join(name).exists()), "one that is in use has gone");
        drop((killed, next));
        assert_eq!(names(out.path()), [""; 0]);
    }

    #[test]
    fn nothing_is_replaced() {
        let out = tempfile::tempdir().expect("a folder");
        let (late, joined) =
            (Joined::begin(out.path(), "all"), Joined::begin(out.path(), "all").expect("begun"));
        joined.put(Path::new("a.json"), b"1").expect("written");
        joined.put(Path::new("a.json"), b"1").expect("the same");
        let report = joined.put(Path::new("a.json"), b"2").expect_err("refused").report();
        assert!(report.contains("two runs have a file a.json"), "{report}");
        joined.finish().expect("finished");
        for error in [late.expect("begun").finish().map(drop), Joined::begin(out.path(), "all").map(drop)] {
            let report = error.expect_err("refused").report();
            assert!(report.contains("already") && report.contains("--run-id"), "{report}");
        }
        assert_eq!(fs::read(out.path().join("all/a.json")).expect("still there"), b"1");
        assert!(Joined::begin(out.path(), "../up").is_err_and(|error| error.kind() == Kind::Usage));
    }

    #[test]
    fn what_stands_beside_records_is_copied_and_what_was_half_written_is_not() {
        let out = tempfile::tempdir().expect("a folder");
        let run = out.path().join("run");
        fs::create_dir_all(run.join("valgrind/deep")).expect("a folder");
        for file in ["a.json", ".unfinished-x", "notes.txt", "valgrind/deep/out.json", "valgrind/.hidden"] {
            fs::write(run.join(file), file).expect("written");
        }
        let joined = Joined::begin(out.path(), "all").expect("begun");
        joined.put_rest(&run).expect("copied");
        let target = joined.finish().expect("finished");
        assert_eq!(names(&target), ["notes.txt", "valgrind"]);
        assert_eq!(names(&target.join("valgrind/deep")), ["out.json"]);
        assert_eq!(names(&target.join("valgrind")), ["deep"]);
    }
}
