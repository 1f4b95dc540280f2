//! Dividing a run over machines: which of the selected trials are this
//! shard's. Every machine divides by itself, from the names and the durations
//! alone, so all of them must come to the same.
//!
//! What a machine lacks has no say in it, nor has `--ignored`: machines differ.
//! Neighbours: `select` applies it, `store` keeps what the shard was to do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::commands::{folder_of, run_names};
use super::select::named;
use crate::error::{Error, Kind, Result};
use crate::plan::{Plan, Shard};
use crate::scenario::Scenario;
use crate::store::{Baselines, Durations, ShardManifest, durations};

/// The word for the latest run that has durations.
const LATEST: &str = "latest";

/// The part of the selected scenarios that is this shard's.
#[derive(Clone, Debug, Default)]
pub struct Division {
    /// The names of this shard.
    ours: BTreeSet<String>,
    /// The names of all shards.
    pub all: BTreeSet<String>,
    /// How many times they measure: each scenario, and each of its parties.
    pub tests: usize,
    list: String,
    plan: String,
    by: Option<String>,
    /// What should be said of it.
    pub warnings: Vec<String>,
}

impl Division {
    /// Whether a scenario is this shard's.
    pub fn takes(&self, name: &str) -> bool {
        self.ours.contains(name)
    }

    /// What this shard is to do; `names` are those of its trials that are not filtered out.
    pub fn manifest(&self, plan: &Plan, shard: &Shard, suite: &str, names: &[&str]) -> ShardManifest {
        let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
        let run = (plan.run_id.as_str(), suite, plan.mode.name());
        let mut manifest = ShardManifest::new(run, (shard.number, shard.of), names);
        manifest.of_all_shards = self.all.len();
        (manifest.list, manifest.plan) = (self.list.clone(), self.plan.clone());
        manifest.by.clone_from(&self.by);
        manifest
    }
}

/// Divides the scenarios that a plan selects; `None` when it wants all of them.
///
/// # Errors
/// The run whose durations are wanted cannot be read.
pub fn divide(scenarios: &[Scenario], plan: &Plan, suite: &str) -> Result<Option<Division>> {
    let Some(shard) = &plan.shard else { return Ok(None) };
    let chosen = named(scenarios, &plan.selection);
    let names: Vec<&str> = chosen.iter().map(|scenario| scenario.id().as_str()).collect();
    let (by, took) = match &shard.by {
        Some(by) => known_durations(plan, suite, by)?,
        None => (String::new(), BTreeMap::new()),
    };
    let shards = partition(&names, &took, shard.of, first_of(suite, shard.of));
    let mine = names.iter().zip(&shards).filter(|(_, at)| **at + 1 == shard.number);
    let stated = |scenario: &&Scenario| format!("{} {:?}", scenario.id(), scenario.params_stated());
    let list = digest(chosen.iter().map(stated));
    let placed = digest(names.iter().zip(&shards).map(|(name, at)| format!("{name} {at}/{}", shard.of)));
    let warning = (shard.by.is_some() && took.is_empty() && !names.is_empty()).then(|| {
        format!(
            "warning: --shard-by: {by} holds no durations of {suite} in mode {}: all trials weigh the same",
            plan.mode.name()
        )
    });
    Ok(Some(Division {
        ours: mine.map(|(name, _)| (*name).to_string()).collect(),
        all: names.iter().map(|name| (*name).to_string()).collect(),
        tests: chosen.iter().map(|scenario| 1 + scenario.party_names().len()).sum(),
        list,
        plan: placed,
        by: shard.by.is_some().then_some(by),
        warnings: warning.into_iter().collect(),
    }))
}

/// The name of the run, and what the trials of a bench target took in it.
fn known_durations(plan: &Plan, suite: &str, by: &str) -> Result<(String, BTreeMap<String, u64>)> {
    let key = (suite.to_string(), plan.mode.name().to_string());
    let of = |mut all: Durations| all.remove(&key).unwrap_or_default();
    let store = Baselines::of(&plan.out);
    if store.names().iter().any(|name| name == by) {
        if !store.suites(by).iter().any(|known| known == suite) {
            return Ok((by.into(), BTreeMap::new()));
        }
        return Ok((by.into(), of(durations(&store.folder(&store.kept(by, suite)?))?)));
    }
    let runs = run_names(&plan.out).unwrap_or_default();
    if by == LATEST && !runs.iter().any(|run| run == by) && !Path::new(by).is_dir() {
        for run in runs.iter().rev().filter(|run| **run != plan.run_id) {
            let folder = plan.out.join(run);
            let took = if is_whole(&folder, &key) { of(durations(&folder)?) } else { BTreeMap::new() };
            if !took.is_empty() {
                return Ok((run.clone(), took));
            }
        }
        return Ok((plan.out.display().to_string(), BTreeMap::new()));
    }
    if runs.is_empty() && !Path::new(by).is_dir() {
        let text = format!("--shard-by: there is no run {by}, nor any other, in {}", plan.out.display());
        return Err(Error::new(Kind::Io, text)
            .hint("name a folder with records, or leave it out: then all trials weigh the same"));
    }
    Ok((by.into(), of(durations(&folder_of(&plan.out, Some(by))?)?)))
}

/// Whether a run is no shard, or has all of them: else the next shard on this
/// machine would be divided by the one before.
fn is_whole(folder: &Path, (suite, mode): &(String, String)) -> bool {
    let all = ShardManifest::all(folder).0;
    let ours: Vec<_> = all.iter().filter(|part| part.suite == *suite && part.mode == *mode).collect();
    let shards: BTreeSet<usize> = ours.iter().map(|part| part.shard).collect();
    ours.iter().all(|part| part.of == shards.len())
}

/// The shard that gets the first trial: what does not divide evenly should not
/// fall to the same shards for each bench target of a package.
fn first_of(suite: &str, of: usize) -> usize {
    suite.bytes().fold(0, |sum, byte| (sum * 31 + usize::from(byte)) % of.max(1))
}

/// The shard of each name, from 0: the trial that takes longest goes to the
/// shard that has least so far (R. L. Graham, "Bounds on Multiprocessing
/// Timing Anomalies", 1969: at most 4/3 of the best there is). A trial that is
/// not known weighs as much as the middle one of those that are.
fn partition(names: &[&str], took: &BTreeMap<String, u64>, of: usize, first: usize) -> Vec<usize> {
    let mut known: Vec<u64> = names.iter().filter_map(|name| took.get(*name).copied()).collect();
    known.sort_unstable();
    let middle = known.get(known.len() / 2).copied().unwrap_or(1);
    let weight = |name: &str| took.get(name).copied().unwrap_or(middle).max(1);
    let mut order: Vec<usize> = (0..names.len()).collect();
    // By name, not by place: where a scenario is registered is no matter.
    order.sort_by_key(|at| (Reverse(weight(names[*at])), names[*at]));
    let turn = |shard: usize| (shard + of - first % of) % of;
    let mut least: BinaryHeap<_> = (0..of).map(|shard| Reverse((0_u128, turn(shard), shard))).collect();
    let mut shards = vec![0; names.len()];
    for at in order {
        let Some(Reverse((load, turn, shard))) = least.pop() else { break };
        shards[at] = shard;
        least.push(Reverse((load + u128::from(weight(names[at])), turn, shard)));
    }
    shards
}

/// The first 64 bits of the SHA-256 of lines in their order by name, in hexadecimal digits.
fn digest(lines: impl Iterator<Item = String>) -> String {
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    let mut hasher = Sha256::new();
    lines.iter().for_each(|line| hasher.update(format!("{line}\n")));
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "shards_tests.rs"]
mod tests;
