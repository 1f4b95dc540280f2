//! The scratch folder of a run: bodies make their files in it, on the file
//! system that was asked for, and it goes away with the run, however a trial
//! ended.
//!
//! Neighbours: `flow` makes it, `runner` gives isolated trials a part of it;
//! `sys::RunFolder` locks, removes and sweeps it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::scenario::Scenario;
use crate::sys::{self, RUN_PREFIX, RunFolder};

/// The way out of whatever is wrong with the folder.
const HINT: &str =
    "--scratch-dir (WALLGRIND_SCRATCH_DIR) takes a folder that exists, can be written and has room";

/// The scratch folder of a run.
#[derive(Debug)]
pub struct Scratch {
    folder: RunFolder,
    original: Option<OsString>,
}

impl Scratch {
    /// Makes the folder below `parent` and points `TMPDIR` to it. Sweeps what
    /// killed runs left there.
    ///
    /// # Errors
    /// `parent` does not exist or cannot be written.
    pub fn make(parent: &Path) -> Result<Self> {
        let original = std::env::var_os("TMPDIR");
        // Whatever a body makes its working directory, the path must still hold.
        let made = parent.canonicalize().and_then(|parent| RunFolder::make_in(&parent, RUN_PREFIX));
        let folder = made.map_err(|error| {
            Error::new(Kind::Io, format!("no scratch folder can be made in {}", parent.display()))
                .source(error)
                .hint(HINT)
        })?;
        sys::set_temp_dir(folder.path());
        Ok(Self { folder, original })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the folder, and gives what `TMPDIR` was before.
    pub fn remove(self) -> Option<OsString> {
        self.original
    }

    /// Checks that there is room for `selected`, of which `at_once` may run at
    /// a time; `parent` is the folder as it was asked for.
    ///
    /// # Errors
    /// There is not; the message has the path, what is needed, and what there is.
    pub fn check_room(&self, parent: &Path, selected: &[&Scenario], at_once: usize) -> Result<()> {
        let needed = needed(selected, at_once);
        let Some(free) = (needed > 0).then(|| sys::free_bytes(self.path()).ok()).flatten() else {
            return Ok(());
        };
        if free >= needed {
            return Ok(());
        }
        let path: PathBuf = parent.canonicalize().unwrap_or_else(|_| parent.to_path_buf());
        Err(Error::new(
            Kind::Io,
            format!(
                "the scratch folder {} has room for {}, and the selected trials need {}",
                path.display(),
                mib(free),
                mib(needed)
            ),
        )
        .hint(HINT))
    }
}

/// The most room, in bytes, that `at_once` of the trials take together; each
/// party of a trial under Valgrind has files of its own.
fn needed(selected: &[&Scenario], at_once: usize) -> u64 {
    let parties = |s: &Scenario| if at_once > 1 { s.party_names().len().max(1) as u64 } else { 1 };
    let mut all: Vec<u64> =
        selected.iter().map(|s| s.scratch_stated().0.saturating_mul(parties(s))).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.iter().take(at_once.max(1)).fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Suite;
    use crate::units::Bytes;

    #[test]
    fn room_is_needed_for_what_runs_at_a_time() {
        let mut suite = Suite::new();
        suite.needs_scratch(Bytes(1));
        for (name, bytes) in [("a", 10), ("b", 300), ("c", 0), ("d", 2_000)] {
            suite.bench(name, |b| b.iter(|| 1)).needs_scratch(Bytes(bytes));
        }
        suite.bench("e", |b| b.iter(|| 1)).parties("x", "y");
        let all = suite.finish().expect("a valid suite");
        let all: Vec<&Scenario> = all.iter().collect();
        assert_eq!([needed(&all, 1), needed(&all, 2), needed(&all, 99)], [2_001, 2_302, 2_316]);
        assert_eq!((needed(&all[..1], 1), needed(&[], 3)), (11, 0));
    }
}
