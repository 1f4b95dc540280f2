//! The other side of a run: a stored baseline, or another build that is
//! measured in this run; and what is kept as a baseline.
//!
//! Neighbours: `run` prepares it before the first trial, `finish` asks it
//! after each of them and at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::{self, Division};
use crate::compare::{Kinship, Usual, compare, judge_alone};
use crate::error::{Error, Kind, Result};
use crate::plan::{Action, Mode, Plan, With};
use crate::report::{self, Look};
use crate::scenario::Scenario;
use crate::store::{Baselines, Kept, LEAST_LAYOUTS, Record, Status, layouts_of, read_history};
use crate::sys;
use crate::trial::{self, Alive, Duel, Identity, Waited, Watch};

/// What a run is compared with.
pub struct Comparing {
    plan: Plan,
    label: String,
    kinship: Kinship,
    /// Records of the other side, those of a scenario side by side; none for
    /// times that are measured in turn.
    before: Vec<Record>,
    /// Names that only the other side has.
    only_before: Vec<String>,
    family: usize,
    duel: Option<(Duel, BTreeSet<String>)>,
}

impl Comparing {
    /// Finds the other side of a plan. Another build is asked for its trials,
    /// and its counts are taken here, before those of this build.
    ///
    /// # Errors
    /// There is no such baseline or executable, or it cannot be used.
    pub fn prepare(
        plan: &Plan,
        (suite, division): (&str, Option<&Division>),
        scratch: &Path,
        to_run: &[&'static Scenario],
        watch: &mut Watch,
    ) -> Result<Waited<Option<Self>>> {
        let mut plan = plan.clone();
        if let Some(folder) = plan.compare.history.as_ref().filter(|_| plan.compare.with.is_some()) {
            plan.compare.rule.usual = Usual::of(&read_history(folder)?);
        }
        let plan = &plan;
        let comparing = |label: String, kinship, before| Self {
            plan: plan.clone(),
            label,
            kinship,
            before,
            only_before: Vec::new(),
            // The tests of all shards: a verdict must hold when they are merged.
            family: division.map_or(to_run.len(), |division| division.all.len()).max(1),
            duel: None,
        };
        match &plan.compare.with {
            None => Ok(Waited::Done(None)),
            Some(With::Stored(name)) => {
                let store = Baselines::of(&plan.out);
                let kept = kept(&store, name, suite)?;
                let mut before = store.records(&kept)?;
                let ours = names(to_run);
                before.retain(|record| {
                    record.mode == plan.mode.name() && ours.contains(record.scenario.as_str())
                });
                let before = by_scenario(before);
                Ok(Waited::Done(Some(comparing(in_words(&kept), Kinship::Stored, before))))
            }
            Some(With::InTurn(what)) => {
                let Other { label, program: other, built } = other(plan, what, suite)?;
                let refused = |why: String| {
                    Error::new(Kind::Usage, format!("{label} cannot be measured: {why}"))
                        .hint("--against takes a baseline, or a bench executable that wallgrind built, of this machine's kind")
                };
                let listed = trial::list(&other, &selection(plan)).map_err(refused)?;
                let ours = names(to_run);
                let (both, theirs): (Vec<_>, Vec<_>) =
                    listed.into_iter().partition(|name| ours.contains(name.as_str()));
                let mut comparing = comparing(label, Kinship::InTurn, Vec::new());
                comparing.only_before = missing_here(theirs, division);
                if plan.mode == Mode::Walltime {
                    let both: BTreeSet<String> = both.into_iter().collect();
                    let tests = tests(to_run, &both, division);
                    comparing.family = tests;
                    let cpus = match plan.walltime.cpu {
                        Some(cpu) => vec![cpu],
                        None => sys::processors(),
                    };
                    let builds = builds(other, trial::this_program())?;
                    comparing.label.push_str(&layouts_in_words(&builds));
                    let duel = Duel {
                        builds,
                        variables: variables(plan),
                        cpus,
                        family: tests,
                        alive: Alive::default(),
                    };
                    comparing.duel = Some((duel, both));
                    return Ok(Waited::Done(Some(comparing)));
                }
                Ok(match trial::count_other(&other, &both, &variables(plan), scratch, watch)? {
                    Waited::Done(before) => {
                        let before = before.into_iter().map(|record| with(record, &built)).collect();
                        comparing.before = by_scenario(before);
                        Waited::Done(Some(comparing))
                    }
                    Waited::TimedOut => Waited::TimedOut,
                    Waited::Interrupted(signal) => Waited::Interrupted(signal),
                })
            }
        }
    }

    /// The two builds that are to be measured in turn, and the trials.
    pub fn duel(&self) -> Option<(Duel, BTreeSet<String>)> {
        self.duel.clone()
    }

    /// Why a trial that has been measured is beyond its limits.
    pub fn failure(&self, record: &Record) -> Option<String> {
        if self.plan.compare.no_fail || record.status != Status::Ok {
            return None;
        }
        let rule = &self.plan.compare.rule;
        let before = of_scenario(&self.before, &record.scenario);
        let lines = judge_alone(before, record, self.kinship, rule, self.family);
        report::failure(&lines, &self.label)
    }

    /// The table of verdicts, and whether something is beyond its limit.
    pub fn end(&self, records: &[Record], look: Look) -> (String, bool) {
        let rule = &self.plan.compare.rule;
        let mut comparison = compare(&self.before, records, self.kinship, rule);
        let mode = self.plan.mode.name().to_string();
        let gone =
            self.only_before.iter().map(|name| (name.clone(), mode.clone(), "not there now".to_string()));
        comparison.unmatched.extend(gone);
        let fails = comparison.fails() && !self.plan.compare.no_fail;
        (report::verdicts(&comparison, &self.label, rule, look), fails)
    }
}

/// Keeps what was measured, if the plan wants it; gives what is to be said.
///
/// # Errors
/// Nothing was measured, or it cannot be written.
pub fn save(plan: &Plan, identity: &Identity, records: &[Record]) -> Result<Option<String>> {
    let Some(name) = plan.compare.save.as_deref().filter(|_| plan.action == Action::Measure) else {
        return Ok(None);
    };
    let good: Vec<Record> = records.iter().filter(|record| record.status == Status::Ok).cloned().collect();
    if good.is_empty() {
        return Err(Error::new(Kind::Missing, format!("nothing was measured that could be kept as {name}"))
            .hint("a baseline is made of trials that went well"));
    }
    let store = Baselines::of(&plan.out);
    let kept = store.save((name, &identity.suite), &trial::this_program(), &good, &identity.facts)?;
    let left = records.len() - good.len();
    let left = if left > 0 { format!(", {left} without numbers left out") } else { String::new() };
    Ok(Some(format!("kept as {}: {} trials{left}", in_words(&kept), good.len())))
}

fn in_words(kept: &Kept) -> String {
    format!("baseline {} (saved {})", kept.name, kept.saved.split('.').next().unwrap_or_default())
}

/// What is kept under a name, with near names when there is nothing.
fn kept(store: &Baselines, name: &str, suite: &str) -> Result<Kept> {
    store.kept(name, suite).map_err(|error| {
        let names = store.names();
        if names.iter().any(|known| known == name) {
            return error;
        }
        match cli::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None if names.is_empty() => error.hint("--save-baseline keeps one"),
            None => error.hint(format!("there are {}", names.join(", "))),
        }
    })
}

/// The other executable.
struct Other {
    label: String,
    program: PathBuf,
    /// What is known of its build, where it was kept.
    built: BTreeMap<String, String>,
}

/// The value of what could not be found out.
const UNKNOWN: &str = "unknown";

/// Facts that an executable knows only where cargo has put it.
const BY_PLACE: [&str; 2] = ["features", "profile_settings"];

/// A record with what is known of the build from when its executable was kept.
fn with(mut record: Record, built: &BTreeMap<String, String>) -> Record {
    for key in BY_PLACE {
        if let Some(value) = built.get(key).filter(|_| record.identity.get(key).is_some_and(|v| v == UNKNOWN))
        {
            record.identity.insert(key.into(), value.clone());
        }
    }
    record
}

/// The other executable: a baseline's when there is one of that name.
fn other(plan: &Plan, what: &str, suite: &str) -> Result<Other> {
    let store = Baselines::of(&plan.out);
    let path = Path::new(what);
    if what.contains('/') || (path.is_file() && !store.names().iter().any(|name| name == what)) {
        if !path.is_file() {
            return Err(Error::new(Kind::Io, format!("there is no executable {what}"))
                .hint("--against takes a baseline by name, or an executable by path"));
        }
        let path = std::path::absolute(path)
            .map_err(|error| Error::new(Kind::Io, format!("the path {what}")).source(error))?;
        return Ok(Other { label: what.to_string(), program: path, built: BTreeMap::new() });
    }
    let kept = kept(&store, what, suite)?;
    let program = store.executable(&kept)?;
    Ok(Other { label: in_words(&kept), program, built: kept.identity })
}

/// What the other build and this one are started as: their layouts where both
/// have enough. With layouts of one only, the other's single one would decide.
fn builds(other: PathBuf, this: PathBuf) -> Result<[Vec<PathBuf>; 2]> {
    let layouts = [layouts_of(&other)?, layouts_of(&this)?];
    let both = layouts.iter().all(|of| of.len() >= LEAST_LAYOUTS as usize);
    Ok(if both { layouts } else { [vec![other], vec![this]] })
}

fn layouts_in_words(builds: &[Vec<PathBuf>; 2]) -> String {
    match builds[0].len().min(builds[1].len()) {
        1 => String::new(),
        count => format!(", each in {count} layouts"),
    }
}

/// Names that only the other build has: what another shard of this one has is not missing.
fn missing_here(theirs: Vec<String>, division: Option<&Division>) -> Vec<String> {
    let elsewhere = |name: &String| division.is_some_and(|division| division.all.contains(name));
    theirs.into_iter().filter(|name| !elsewhere(name)).collect()
}

/// The tests of times that both builds have: each scenario and its parties, of all shards.
fn tests(to_run: &[&'static Scenario], both: &BTreeSet<String>, division: Option<&Division>) -> usize {
    let in_both = to_run.iter().filter(|scenario| both.contains(scenario.id().as_str()));
    let here = in_both.map(|scenario| 1 + scenario.party_names().len()).sum::<usize>().max(1);
    division.map_or(here, |division| division.tests.max(here))
}

fn names(to_run: &[&'static Scenario]) -> BTreeSet<&'static str> {
    to_run.iter().map(|scenario| scenario.id().as_str()).collect()
}

/// Records in the order of their scenarios, those of one in the order they had:
/// after each trial its own are looked for.
fn by_scenario(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by(|a, b| a.scenario.cmp(&b.scenario));
    records
}

/// The records of one scenario, of many in their order.
fn of_scenario<'a>(records: &'a [Record], scenario: &str) -> &'a [Record] {
    let from = records.partition_point(|record| record.scenario.as_str() < scenario);
    let to = records.partition_point(|record| record.scenario.as_str() <= scenario);
    &records[from..to]
}

/// The selection of a plan as arguments.
fn selection(plan: &Plan) -> Vec<OsString> {
    let selection = &plan.selection;
    let mut arguments: Vec<OsString> = selection.filters.iter().map(OsString::from).collect();
    for skip in &selection.skip {
        arguments.extend(["--skip".into(), skip.into()]);
    }
    arguments.extend(selection.exact.then(|| "--exact".into()));
    arguments
}

/// What was set for measuring, for the processes of both builds.
fn variables(plan: &Plan) -> Vec<(String, OsString)> {
    plan.compare.settings.iter().map(|(name, value)| (name.clone(), OsString::from(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(scenario: &str, attempt: u32) -> Record {
        Record {
            run_id: "run".into(),
            suite: "s".into(),
            attempt,
            started: "2026-01-01T00:00:00Z".into(),
            elapsed_ns: 1,
            ..Record::new(scenario, "walltime")
        }
    }

    #[test]
    fn the_records_of_a_scenario_are_found_in_their_order() {
        let all = [("b::x", 1), ("a", 2), ("c", 1), ("a", 1), ("b", 1), ("b::x", 2)];
        let all = by_scenario(all.map(|(name, attempt)| record(name, attempt)).into());
        let attempts = |name: &str| -> Vec<u32> {
            let found = of_scenario(&all, name);
            assert!(found.iter().all(|record| record.scenario == name), "{name}");
            found.iter().map(|record| record.attempt).collect()
        };
        assert_eq!((attempts("a"), attempts("b"), attempts("b::x")), (vec![2, 1], vec![1], vec![1, 2]));
        assert_eq!((attempts("c"), attempts("0"), attempts("d")), (vec![1], vec![], vec![]));
    }
}
