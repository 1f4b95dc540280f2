//! How long the trials of a run took, and nothing else of them: samples are
//! passed over, so that a run of many thousand trials is read at once.
//!
//! Neighbours: `dir` reads whole records; `cli::shards` weighs trials by them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::dir::{read_bytes, record_files};
use super::schema::MAJOR;
use crate::error::{Error, Kind, Result};

/// What trials took, in nanoseconds, by scenario; by bench target and meter.
pub type Durations = BTreeMap<(String, String), BTreeMap<String, u64>>;

/// The part of a record that is read.
#[derive(Deserialize)]
struct Took {
    schema_version: String,
    suite: String,
    scenario: String,
    mode: String,
    elapsed_ns: u64,
}

/// What the trials of a run folder took; of several attempts, the longest.
/// Trials that were not run took no time, and are left out.
///
/// # Errors
/// The folder or one of its records cannot be read: what is missing would
/// divide a run otherwise here than on a machine where it is whole.
pub fn durations(run: &Path) -> Result<Durations> {
    let mut all = Durations::new();
    for file in record_files(run)? {
        let name = file.display();
        let again = "name another run, or remove the file on every machine";
        let bytes = read_bytes(&file)?;
        let took: Took = serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(Kind::Format, format!("{name} is not a whole record")).hint(again).source(error)
        })?;
        let major = took.schema_version.split('.').next().and_then(|major| major.parse::<u64>().ok());
        if major != Some(MAJOR) {
            let text =
                format!("{name} has schema {}, and this wallgrind reads {MAJOR}.x", took.schema_version);
            return Err(Error::new(Kind::Format, text).hint(again));
        }
        if took.elapsed_ns > 0 {
            let known = all.entry((took.suite, took.mode)).or_default().entry(took.scenario).or_default();
            *known = (*known).max(took.elapsed_ns);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::super::{Record, RunDir};
    use super::*;
    use std::fs;

    #[test]
    fn durations_are_those_of_the_records() {
        let out = tempfile::tempdir().expect("a folder");
        let dir = RunDir::open(out.path(), "r").expect("a run");
        let write = |scenario: &str, attempt: u32, elapsed_ns: u64| {
            dir.write(&Record { elapsed_ns, ..record(scenario, attempt) }).expect("written");
        };
        for (scenario, attempt, ns) in [("a::x", 1, 7), ("a::x", 2, 5), ("a::y", 1, 3), ("a::ignored", 1, 0)]
        {
            write(scenario, attempt, ns);
        }
        let all = durations(dir.path()).expect("read");
        let ours = &all[&("mine".to_string(), "walltime".to_string())];
        let expected = BTreeMap::from([("a::x".to_string(), 7), ("a::y".to_string(), 3)]);
        assert_eq!((all.len(), ours), (1, &expected));
    }

    #[test]
    fn a_record_that_is_not_whole_is_named() {
        let out = tempfile::tempdir().expect("a folder");
        let dir = RunDir::open(out.path(), "r").expect("a run");
        let file = dir.write(&record("a::x", 1)).expect("written");
        let good = fs::read_to_string(&file).expect("read");
        for (text, says) in
            [(good[..40].to_string(), "not a whole record"), (good.replace("\"1.", "\"9."), "schema 9.")]
        {
            fs::write(&file, text).expect("written");
            let report = durations(dir.path()).expect_err("refused").report();
            assert!(report.contains(says) && report.contains("mine.a.x"), "{report}");
        }
        assert!(durations(&out.path().join("none")).is_err());
    }
}
