//! Whether the shards of a run make up the whole of it: which are missing or
//! there twice, which trials are, and what was not measured alike.
//!
//! Neighbours: `alike` has the conditions, `store` what a shard was to do;
//! `cli::merge` goes through the folders.

use std::collections::{BTreeMap, BTreeSet};

use super::alike::Conditions;
use crate::store::{Record, ShardManifest};

/// Names and numbers that are listed in one line; the others are counted.
const LISTED: usize = 10;

/// Lines of one kind; the others are counted.
const LINES: usize = 20;

/// The folders of a run's shards, and what is in them.
#[derive(Debug, Default)]
pub struct Parts {
    folders: Vec<String>,
    /// The folders of each trial, by bench target, meter and scenario.
    trials: BTreeMap<(String, String), BTreeMap<String, BTreeSet<usize>>>,
    plans: BTreeMap<(String, String), Vec<(usize, ShardManifest)>>,
    conditions: Conditions,
}

/// What is wrong with the parts of a run, a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flaws {
    /// Trials and shards that are there twice: nobody knows which counts.
    pub double: Vec<String>,
    /// Shards and trials that are not there.
    pub missing: Vec<String>,
    /// What was divided or measured under other conditions.
    pub unlike: Vec<String>,
    /// What cannot be told.
    pub unknown: Vec<String>,
}

impl Parts {
    /// Adds a folder; what is added next lies in it.
    pub fn folder(&mut self, name: &str, manifests: Vec<ShardManifest>) {
        self.folders.push(name.to_string());
        let at = self.folders.len() - 1;
        for manifest in manifests {
            let key = (manifest.suite.clone(), manifest.mode.clone());
            self.plans.entry(key).or_default().push((at, manifest));
        }
    }

    /// Adds a record of the last folder.
    pub fn record(&mut self, record: &Record) {
        let Some(folder) = self.folders.last() else { return };
        let trials = self.trials.entry((record.suite.clone(), record.mode.clone())).or_default();
        trials.entry(record.scenario.clone()).or_default().insert(self.folders.len() - 1);
        self.conditions.add(folder, record);
    }

    /// How many trials there are.
    pub fn trials(&self) -> usize {
        self.trials.values().map(BTreeMap::len).sum()
    }

    /// What is wrong with them.
    pub fn flaws(&self) -> Flaws {
        let mut flaws = Flaws { unlike: self.conditions.differences(), ..Flaws::default() };
        for ((suite, mode), trials) in &self.trials {
            let double = trials.iter().filter(|(_, folders)| folders.len() > 1);
            let line = |(name, folders): (&String, &BTreeSet<usize>)| {
                format!("{name} ({suite}, {mode}) is in {}", self.names(folders.iter().copied(), " and in "))
            };
            flaws.double.extend(double.map(line));
        }
        for ((suite, mode), plans) in &self.plans {
            let what = format!("{suite} ({mode})");
            self.one_plan(&what, plans, &mut flaws);
            self.all_shards(&what, plans, &mut flaws);
            self.all_trials(&what, (suite, mode), plans, &mut flaws);
        }
        flaws.unknown = self.undivided();
        for lines in [&mut flaws.double, &mut flaws.missing, &mut flaws.unlike] {
            let more = lines.len().saturating_sub(LINES);
            if more > 0 {
                lines.truncate(LINES);
                lines.push(format!("and {more} more of this kind"));
            }
        }
        flaws
    }

    fn names(&self, folders: impl Iterator<Item = usize>, between: &str) -> String {
        let all: BTreeSet<&str> = folders.map(|at| self.folders[at].as_str()).collect();
        listed(all.into_iter(), between)
    }

    /// All machines must have divided the same scenarios in the same way.
    fn one_plan(&self, what: &str, plans: &[(usize, ShardManifest)], flaws: &mut Flaws) {
        type Key = fn(&ShardManifest) -> (String, String);
        let kinds: [(&str, Key); 3] = [
            ("into another number of shards", |plan| (plan.of.to_string(), format!("{} shards", plan.of))),
            ("from another list of scenarios (filters, features, code)", |plan| {
                (plan.list.clone(), format!("{} scenarios, {}", plan.of_all_shards, plan.list))
            }),
            ("by other durations (--shard-by)", |plan| {
                (plan.plan.clone(), format!("by {}", plan.by.as_deref().unwrap_or("equal weights")))
            }),
        ];
        for (how, key) in kinds {
            let mut seen: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
            for (at, plan) in plans {
                seen.entry(key(plan)).or_default().push(*at);
            }
            let values: BTreeSet<&String> = seen.keys().map(|(value, _)| value).collect();
            if values.len() > 1 {
                let line = |((_, text), at): (&(String, String), &Vec<usize>)| {
                    format!("{text} in {}", self.names(at.iter().copied(), ", "))
                };
                let sides: Vec<String> = seen.iter().map(line).collect();
                flaws.unlike.push(format!("{what} was divided {how}: {}", sides.join("; ")));
                // The rest follows from it.
                return;
            }
        }
    }

    fn all_shards(&self, what: &str, plans: &[(usize, ShardManifest)], flaws: &mut Flaws) {
        let mut seen: BTreeMap<usize, BTreeMap<usize, BTreeSet<usize>>> = BTreeMap::new();
        for (at, plan) in plans {
            seen.entry(plan.of).or_default().entry(plan.shard).or_default().insert(*at);
        }
        for (of, shards) in seen {
            let absent: Vec<usize> = (1..=of).filter(|shard| !shards.contains_key(shard)).collect();
            if !absent.is_empty() {
                let (noun, verb) = if absent.len() == 1 { ("shard", "is") } else { ("shards", "are") };
                let numbers: Vec<String> = absent.iter().map(usize::to_string).collect();
                let numbers = listed(numbers.iter().map(String::as_str), ", ");
                flaws.missing.push(format!("{noun} {numbers} of {of} of {what} {verb} missing"));
            }
            for (shard, folders) in shards.iter().filter(|(_, folders)| folders.len() > 1) {
                let names = self.names(folders.iter().copied(), " and in ");
                flaws.double.push(format!("shard {shard}/{of} of {what} is in {names}"));
            }
        }
    }

    /// Each trial that a shard was to run must have left a record.
    fn all_trials(
        &self,
        what: &str,
        (suite, mode): (&String, &String),
        plans: &[(usize, ShardManifest)],
        flaws: &mut Flaws,
    ) {
        let none = BTreeMap::new();
        let trials = self.trials.get(&(suite.clone(), mode.clone())).unwrap_or(&none);
        for (at, plan) in plans {
            let absent: Vec<&str> = plan
                .scenarios
                .iter()
                .filter(|name| !trials.contains_key(*name))
                .map(String::as_str)
                .collect();
            if !absent.is_empty() {
                let (n, all, place) = (absent.len(), plan.scenarios.len(), plan.place());
                let names = listed(absent.into_iter(), ", ");
                let folder = &self.folders[*at];
                flaws.missing.push(format!(
                    "shard {place} of {what} in {folder} lacks {n} of its {all} trials: {names}"
                ));
            }
        }
    }

    /// Folders that do not say what they were to hold.
    fn undivided(&self) -> Vec<String> {
        let divided: BTreeSet<usize> = self.plans.values().flatten().map(|(at, _)| *at).collect();
        let silent: Vec<usize> = (0..self.folders.len()).filter(|at| !divided.contains(at)).collect();
        if silent.is_empty() {
            return Vec::new();
        }
        let names = self.names(silent.into_iter(), ", ");
        vec![format!("not run with --shard: {names}; trials that are missing there cannot be found")]
    }
}

/// Some of many, and how many more there are.
fn listed<'a>(all: impl Iterator<Item = &'a str>, between: &str) -> String {
    let all: Vec<&str> = all.collect();
    let shown = all.iter().take(LISTED).copied().collect::<Vec<_>>().join(between);
    match all.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{counted, timed};
    use super::*;

    fn plan(shard: usize, of: usize, names: &[&str]) -> ShardManifest {
        let names = names.iter().map(|name| (*name).to_string()).collect();
        ShardManifest::new(("run", "s", "cachegrind"), (shard, of), names)
    }

    fn parts(folders: &[(&str, Vec<ShardManifest>, &[&str])]) -> Parts {
        let mut parts = Parts::default();
        for (name, plans, trials) in folders {
            parts.folder(name, plans.clone());
            trials.iter().for_each(|trial| parts.record(&counted(trial, 100)));
        }
        parts
    }

    #[test]
    fn a_whole_run_has_no_flaw() {
        let all = parts(&[
            ("one", vec![plan(1, 3, &["a::x", "a::y"])], &["a::x", "a::y"]),
            ("two", vec![plan(2, 3, &["a::z"])], &["a::z"]),
            ("three", vec![plan(3, 3, &[])], &[]),
        ]);
        assert_eq!((all.flaws(), all.trials()), (Flaws::default(), 3));
    }

    #[test]
    fn what_is_missing_is_named() {
        let flaws = parts(&[
            ("one", vec![plan(1, 4, &["a::x", "a::y"])], &["a::y"]),
            ("three", vec![plan(3, 4, &[])], &[]),
        ])
        .flaws();
        let expected = [
            "shards 2, 4 of 4 of s (cachegrind) are missing",
            "shard 1/4 of s (cachegrind) in one lacks 1 of its 2 trials: a::x",
        ];
        assert_eq!(flaws.missing, expected);
        assert_eq!((flaws.double.len(), flaws.unlike.len(), flaws.unknown.len()), (0, 0, 0));
        let names: Vec<String> = (0..30).map(|i| format!("a::t{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let many = parts(&[("one", vec![plan(1, 1, &names)], &[])]).flaws();
        assert!(many.missing[0].ends_with("a::t9 and 20 more"), "{:?}", many.missing);
    }

    #[test]
    fn what_is_there_twice_is_named() {
        let flaws = parts(&[
            ("one", vec![plan(1, 2, &["a::x"])], &["a::x"]),
            ("again", vec![plan(1, 2, &["a::x"])], &["a::x"]),
            ("two", vec![plan(2, 2, &["a::y"])], &["a::y"]),
        ])
        .flaws();
        let expected = [
            "a::x (s, cachegrind) is in again and in one",
            "shard 1/2 of s (cachegrind) is in again and in one",
        ];
        assert_eq!((flaws.double, flaws.missing), (expected.map(String::from).to_vec(), Vec::new()));
        // A trial that was tried again is there once.
        let mut parts = parts(&[("one", vec![plan(1, 1, &["a::x"])], &["a::x"])]);
        parts.record(&Record { attempt: 2, ..counted("a::x", 100) });
        assert_eq!(parts.flaws(), Flaws::default());
        // So is one that two meters measured.
        parts.folder("times", Vec::new());
        parts.record(&timed("a::x", 100));
        assert_eq!(parts.flaws().double, [""; 0]);
    }

    #[test]
    fn machines_that_divided_otherwise_are_named() {
        let of = |change: fn(&mut ShardManifest)| {
            let mut other = plan(2, 2, &["a::y"]);
            change(&mut other);
            let all =
                parts(&[("one", vec![plan(1, 2, &["a::x"])], &["a::x"]), ("two", vec![other], &["a::y"])]);
            all.flaws().unlike
        };
        assert_eq!(of(|_| ()), [""; 0]);
        assert!(
            of(|plan| plan.of = 3)[0].contains("another number of shards: 2 shards in one; 3 shards in two")
        );
        assert!(of(|plan| plan.list = "c0ffee".into())[0].contains("another list of scenarios"));
        let by = of(|plan| (plan.plan, plan.by) = ("c0ffee".into(), Some("main".into())));
        assert!(
            by[0].contains("by other durations (--shard-by): by equal weights in one; by main in two"),
            "{by:?}"
        );
    }

    #[test]
    fn a_folder_that_says_nothing_of_shards_is_named() {
        let flaws =
            parts(&[("one", vec![plan(1, 1, &["a::x"])], &["a::x"]), ("two", Vec::new(), &["a::y"])]).flaws();
        assert_eq!(
            flaws.unknown,
            ["not run with --shard: two; trials that are missing there cannot be found"]
        );
        assert_eq!(Flaws { unknown: Vec::new(), ..flaws }, Flaws::default());
    }

    #[test]
    fn sixty_four_shards_of_twenty_thousand_trials_are_whole_or_say_what_is_missing() {
        let merged = |without: &str, shards: usize| {
            let (mut parts, mut record) = (Parts::default(), counted("a::x", 100));
            for shard in 1..=shards {
                let names: Vec<String> =
                    (shard - 1..20_000).step_by(64).map(|i| format!("a::t{i:05}")).collect();
                let plan = ShardManifest::new(("run", "s", "cachegrind"), (shard, 64), names.clone());
                parts.folder(&format!("shard{shard}"), vec![plan]);
                for name in names.into_iter().filter(|name| name != without) {
                    record.scenario = name;
                    parts.record(&record);
                }
            }
            (parts.flaws(), parts.trials())
        };
        assert_eq!(merged("", 64), (Flaws::default(), 20_000));
        let (flaws, trials) = merged("a::t00065", 63);
        let expected = [
            "shard 64 of 64 of s (cachegrind) is missing",
            "shard 2/64 of s (cachegrind) in shard2 lacks 1 of its 313 trials: a::t00065",
        ];
        assert_eq!((flaws.missing, trials), (expected.map(String::from).to_vec(), 20_000 - 312 - 1));
    }

    #[test]
    fn a_thousand_flaws_are_counted() {
        let names: Vec<String> = (0..1_000).map(|i| format!("a::t{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let flaws = parts(&[("one", Vec::new(), &names), ("two", Vec::new(), &names)]).flaws();
        assert_eq!((flaws.double.len(), flaws.double[20].as_str()), (21, "and 980 more of this kind"));
    }
}
