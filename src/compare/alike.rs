//! Whether the parts of one run were measured alike: by one build of one
//! commit, and, for times that are not ratios, on machines of one kind.
//!
//! Neighbours: `comparable` has the tables of what counts; `cli::merge` asks.

use std::collections::{BTreeMap, BTreeSet};

use super::comparable::{BUILD, MACHINE, METER, UNKNOWN};
use super::turns::Turns;
use crate::store::{Record, Shared};

/// What all parts of a run have in common, and two runs need not.
const SOURCE: [(&str, &str); 5] = [
    ("commit", "commit"),
    ("tree_dirty", "changes that are not committed"),
    ("package_version", "version of the package"),
    // Not called a version: that is the name of a dependency's, of which it is one as well.
    ("wallgrind", "wallgrind"),
    ("dependencies", "dependencies"),
];

/// What the keys of the versions of dependencies begin with.
const DEPENDENCY: &str = "dep.";

/// Facts of the meter that belong to a scenario, not to the run.
const OF_A_SCENARIO: [&str; 2] = ["method", "file_system"];

/// Folders that are named for one value; the others are counted.
const NAMED: usize = 3;

/// The conditions of the records of several folders.
#[derive(Debug, Default)]
pub struct Conditions {
    /// The folders by value, by bench target, meter and name of the fact.
    seen: BTreeMap<(String, String, String), BTreeMap<String, BTreeSet<String>>>,
    /// The last record but for its numbers: those of a process are all alike.
    last: Option<Seen>,
}

/// What a record says of its conditions.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    folder: String,
    suite: String,
    mode: String,
    in_turn: bool,
    identity: Shared,
    facts: BTreeMap<String, String>,
}

impl Conditions {
    /// Adds a record that lies in `folder`.
    pub fn add(&mut self, folder: &str, record: &Record) {
        let this = Seen {
            folder: folder.to_string(),
            suite: record.suite.clone(),
            mode: record.mode.clone(),
            in_turn: Turns::of(record).is_some(),
            identity: record.identity.clone(),
            facts: meter(record).collect(),
        };
        if self.last.as_ref() == Some(&this) {
            return;
        }
        for (name, value) in conditions(record) {
            let key = (record.suite.clone(), record.mode.clone(), name);
            self.seen.entry(key).or_default().entry(value).or_default().insert(folder.to_string());
        }
        self.last = Some(this);
    }

    /// What differs between folders and should not, in words.
    pub fn differences(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for ((_, _, name), values) in self.seen.iter().filter(|(_, values)| values.len() > 1) {
            let text: Vec<String> =
                values.iter().map(|(value, where_)| format!("{value} in {}", list(where_))).collect();
            all.push(format!("{name}: {}", text.join("; ")));
        }
        // Bench targets and meters of one build say the same.
        all.sort();
        all.dedup();
        all
    }
}

fn list(folders: &BTreeSet<String>) -> String {
    let named: Vec<&str> = folders.iter().take(NAMED).map(String::as_str).collect();
    match folders.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The facts of the meter that hold for the whole run.
fn meter(record: &Record) -> impl Iterator<Item = (String, String)> {
    let of_run = METER.iter().filter(|(key, _)| !OF_A_SCENARIO.contains(key));
    of_run.filter_map(|(key, name)| Some(((*name).to_string(), record.facts.get(*key)?.clone())))
}

/// What must be the same for all parts of the run that a record is in. What
/// is not known differs from nothing. Two builds in turn are on one machine,
/// whichever it is.
fn conditions(record: &Record) -> Vec<(String, String)> {
    let known = |key: &str| record.identity.get(key).filter(|value| *value != UNKNOWN).cloned();
    let named = |table: &[(&str, &str)]| -> Vec<(String, String)> {
        table.iter().filter_map(|(key, name)| Some(((*name).to_string(), known(key)?))).collect()
    };
    let mut all = named(&SOURCE);
    all.extend(named(&BUILD));
    let of_dependencies =
        record.identity.iter().filter_map(|(key, value)| Some((key.strip_prefix(DEPENDENCY)?, value)));
    all.extend(of_dependencies.map(|(name, version)| (format!("version of {name}"), version.clone())));
    if Turns::of(record).is_none() {
        all.extend(meter(record));
        if record.mode == "walltime" {
            all.extend(named(&MACHINE));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::tests::timed;
    use super::*;

    fn with(facts: &[(&str, &str)]) -> Record {
        let mut record = timed("a::x", 100);
        for (key, value) in facts {
            record.identity.insert((*key).into(), (*value).into());
        }
        record
    }

    fn differences(records: &[(&str, Record)]) -> Vec<String> {
        let mut all = Conditions::default();
        records.iter().for_each(|(folder, record)| all.add(folder, record));
        all.differences()
    }

    #[test]
    fn a_run_is_of_one_build_of_one_commit() {
        let same = [("commit", "c0ffee"), ("rustc", "1.95"), ("dep.ring", "1")];
        assert_eq!(differences(&[("a", with(&same)), ("b", with(&same))]), [""; 0]);
        let other = [("commit", "decade"), ("rustc", "1.96"), ("dep.ring", "2")];
        let expected = [
            "commit: c0ffee in a; decade in b",
            "toolchain: 1.95 in a; 1.96 in b",
            "version of ring: 1 in a; 2 in b",
        ];
        assert_eq!(differences(&[("a", with(&same)), ("b", with(&other))]), expected);
        let unknown = [("commit", "unknown"), ("rustc", "unknown")];
        assert_eq!(differences(&[("a", with(&same)), ("b", with(&unknown))]), [""; 0]);
    }

    #[test]
    fn one_record_does_not_differ_from_itself() {
        // Whoever depends on wallgrind has it among the dependencies, too, with its source.
        let stranger = [("wallgrind", "0.1.0"), ("dep.wallgrind", "0.1.0 (path)"), ("dep.version", "1")];
        assert_eq!(differences(&[("a", with(&stranger)), ("b", with(&stranger))]), [""; 0]);
        let newer = [("wallgrind", "0.2.0"), ("dep.wallgrind", "0.2.0 (path)")];
        let expected = [
            "version of wallgrind: 0.1.0 (path) in a; 0.2.0 (path) in b",
            "wallgrind: 0.1.0 in a; 0.2.0 in b",
        ];
        assert_eq!(differences(&[("a", with(&stranger)), ("b", with(&newer))]), expected);
    }

    #[test]
    fn the_machine_matters_for_times_alone() {
        let (one, two) = (with(&[("cpu_model", "one")]), with(&[("cpu_model", "two")]));
        assert_eq!(differences(&[("a", one.clone()), ("b", two.clone())]), ["processor: one in a; two in b"]);
        let counted = |record: &Record| Record { mode: "cachegrind".into(), ..record.clone() };
        assert_eq!(differences(&[("a", counted(&one)), ("b", counted(&two))]), [""; 0]);
    }

    #[test]
    fn many_folders_are_counted() {
        let all: Vec<(String, Record)> = (0..9)
            .map(|i| (format!("shard{i}"), with(&[("commit", if i == 4 { "x" } else { "y" })])))
            .collect();
        let all: Vec<(&str, Record)> =
            all.iter().map(|(name, record)| (name.as_str(), record.clone())).collect();
        assert_eq!(differences(&all), ["commit: x in shard4; y in shard0, shard1, shard2 and 5 more"]);
    }
}
