//! What a shard of a run was to do: a file in the run's folder that names the
//! scenarios of the shard, so that `wallgrind merge` finds those that are missing.
//!
//! ```text
//! <run>/shards/<suite>.<mode>.<K>-of-<N>.<plan>.json
//! ```
//!
//! It is written before the first trial. Starting a shard again under the same
//! plan writes the same file; under another plan, one beside it.
//!
//! Neighbours: `dir` has the folder, `cli::shards` divides, `cli::merge` reads.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::baseline::write_whole;
use super::dir::is_record_file;
use super::name::plain;
use crate::error::{Error, Kind, Result};

/// The folder of these files in that of a run.
pub const SHARDS: &str = "shards";

/// The most parts that a run is divided into.
pub const MOST_SHARDS: usize = 100_000;

/// The version that is written, and the newest major one that is read.
const VERSION: &str = "1.0";

/// What one shard of a bench target was to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardManifest {
    schema_version: String,
    /// The run.
    pub run_id: String,
    /// The bench target.
    pub suite: String,
    /// The meter.
    pub mode: String,
    /// Which shard, from 1.
    pub shard: usize,
    /// Of how many.
    pub of: usize,
    /// The names of its scenarios, in the order of registration.
    pub scenarios: Vec<String>,
    /// How many scenarios all shards have together.
    pub of_all_shards: usize,
    /// Stands for the names and parameters of all scenarios, in hexadecimal digits.
    pub list: String,
    /// Stands for the shard of each of them.
    pub plan: String,
    /// The run by whose durations they were weighed.
    pub by: Option<String>,
}

impl ShardManifest {
    /// What a shard is to do; `names` are its own.
    pub fn new(
        (run_id, suite, mode): (&str, &str, &str),
        (shard, of): (usize, usize),
        names: Vec<String>,
    ) -> Self {
        Self {
            schema_version: VERSION.into(),
            run_id: run_id.into(),
            suite: suite.into(),
            mode: mode.into(),
            shard,
            of,
            of_all_shards: names.len(),
            scenarios: names,
            list: String::new(),
            plan: String::new(),
            by: None,
        }
    }

    /// `2/4`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.shard, self.of)
    }

    fn file(&self) -> String {
        let Self { suite, mode, shard, of, plan, .. } = self;
        format!("{}.{mode}.{shard}-of-{of}.{plan}.json", plain(suite))
    }

    /// Writes it into the folder of a run.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be written, with the name of its folder.
    pub fn write(&self, run: &Path) -> Result<()> {
        let folder = run.join(SHARDS);
        let failed = |error: io::Error| {
            Error::new(Kind::Io, format!("what the shard is to do cannot be written to {}", folder.display()))
                .hint("make room on that disk, or choose another folder with --out")
                .source(error)
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        write_whole(&folder, &self.file(), &text).map_err(failed)
    }

    /// Those of a run, by their names; one error for each file that cannot be
    /// read. A run that was not divided has none.
    pub fn all(run: &Path) -> (Vec<Self>, Vec<Error>) {
        let entries = fs::read_dir(run.join(SHARDS)).into_iter().flatten().flatten();
        let mut files: Vec<_> =
            entries.map(|entry| entry.path()).filter(|file| is_record_file(file)).collect();
        files.sort();
        let (mut read, mut faults) = (Vec::new(), Vec::new());
        for file in files {
            match Self::read(&file) {
                Ok(manifest) => read.push(manifest),
                Err(fault) => faults.push(fault),
            }
        }
        (read, faults)
    }

    fn read(file: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: String,
        }
        let wrong = |why: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(Kind::Format, format!("{} does not say what a shard was to do", file.display()))
                .hint("run that shard again")
                .source(why)
        };
        let text = fs::read_to_string(file).map_err(|error| wrong(error.into()))?;
        let Version { schema_version } = serde_json::from_str(&text).map_err(|error| wrong(error.into()))?;
        if schema_version.split('.').next() != VERSION.split('.').next() {
            let text = format!(
                "{} has version {schema_version}, and this wallgrind reads {VERSION}",
                file.display()
            );
            return Err(Error::new(Kind::Format, text)
                .hint("read it with the wallgrind that wrote it, or a newer one"));
        }
        let manifest: Self = serde_json::from_str(&text).map_err(|error| wrong(error.into()))?;
        if manifest.shard == 0 || manifest.shard > manifest.of || manifest.of > MOST_SHARDS {
            return Err(wrong(format!("there is no shard {}", manifest.place()).into()));
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(shard: usize) -> ShardManifest {
        let plan = "c0ffee".into();
        ShardManifest {
            plan,
            ..ShardManifest::new(("r", "a suite", "walltime"), (shard, 4), vec!["a::x".into()])
        }
    }

    #[test]
    fn what_was_written_is_read_and_the_same_plan_has_one_file() {
        let run = tempfile::tempdir().expect("a folder");
        assert_eq!(ShardManifest::all(run.path()).0, []);
        for shard in [2, 1, 2] {
            manifest(shard).write(run.path()).expect("written");
        }
        let (read, faults) = ShardManifest::all(run.path());
        assert_eq!((read, faults.len()), (vec![manifest(1), manifest(2)], 0));
        let other = ShardManifest { plan: "decade".into(), ..manifest(1) };
        other.write(run.path()).expect("written");
        assert_eq!(ShardManifest::all(run.path()).0.len(), 3);
    }

    #[test]
    fn damage_and_other_versions_are_named() {
        let run = tempfile::tempdir().expect("a folder");
        manifest(1).write(run.path()).expect("written");
        let file = run.path().join(SHARDS).join(manifest(1).file());
        let good = fs::read_to_string(&file).expect("read");
        for (text, says) in [
            (good[..good.len() / 2].to_string(), "does not say"),
            (good.replace("\"1.0\"", "\"2.0\""), "version 2.0"),
            (good.replace("\"shard\":1", "\"shard\":5"), "no shard 5/4"),
            (good.replace("\"of\":4", "\"of\":4000000000"), "no shard 1/4000000000"),
            (String::new(), "does not say"),
        ] {
            fs::write(&file, text).expect("written");
            let (read, faults) = ShardManifest::all(run.path());
            assert_eq!((read.len(), faults.len()), (0, 1));
            assert!(faults[0].report().contains(says), "{}", faults[0].report());
        }
        fs::write(&file, good.replace("\"1.0\"", "\"1.7\"")).expect("written");
        assert_eq!(ShardManifest::all(run.path()).0.len(), 1, "a newer minor version is read");
    }
}
