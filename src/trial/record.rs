//! Makes the record of a trial.
//!
//! Neighbours: `runner` says how it ended, `store` keeps it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::body::Verdict;
use crate::measure::{Failure, Outcome};
use crate::plan::{Action, Plan};
use crate::scenario::Scenario;
use crate::store::{Metric, Record, Status};

/// What all records of a run have in common.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The bench target.
    pub suite: String,
    /// Commit, toolchain, machine; empty when nothing is recorded.
    pub facts: BTreeMap<String, String>,
}

/// A trial that has begun.
pub struct Begun {
    at: Timestamp,
    clock: Instant,
}

impl Begun {
    /// Now.
    pub fn now() -> Self {
        Self { at: Timestamp::now(), clock: Instant::now() }
    }

    /// The record of a trial that ended just now.
    pub fn ended(&self, scenario: &Scenario, plan: &Plan, identity: &Identity, verdict: Verdict) -> Record {
        let elapsed = self.clock.elapsed();
        let mut record = empty(scenario, plan, identity);
        record.started = self.at.to_string();
        record.elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        match verdict {
            Ok(outcome) => fill(&mut record, outcome, plan),
            Err(Failure::TimedOut(reason)) => record.status = Status::TimedOut(reason),
            Err(Failure::Failed(reason) | Failure::Panicked(reason)) => {
                record.status = Status::Failed(reason)
            }
        }
        limit(&mut record, plan.test_time, elapsed);
        record
    }
}

/// The record of a trial that this machine cannot run.
pub fn ignored(scenario: &Scenario, plan: &Plan, identity: &Identity, reason: String) -> Record {
    let mut record = empty(scenario, plan, identity);
    record.status = Status::Ignored(reason);
    record
}

fn empty(scenario: &Scenario, plan: &Plan, identity: &Identity) -> Record {
    let mode = if plan.action == Action::Measure { plan.mode.name() } else { "smoke" };
    Record {
        run_id: plan.run_id.clone(),
        suite: identity.suite.clone(),
        params: scenario.params_stated().to_vec(),
        attempt: plan.attempt,
        started: Timestamp::now().to_string(),
        facts: scenario.variables().into_iter().map(variable).chain(shard(plan)).collect(),
        identity: identity.facts.clone().into(),
        ..Record::new(scenario.id().to_string(), mode)
    }
}

/// The fact of the part of a run that this is one of: `2/4`.
fn shard(plan: &Plan) -> Option<(String, String)> {
    plan.shard.as_ref().map(|shard| ("shard".to_string(), shard.to_string()))
}

/// The fact of a variable that the body reads.
fn variable((name, value): (&str, Option<OsString>)) -> (String, String) {
    let value = value.map_or_else(|| "not set".into(), |value| value.to_string_lossy().into_owned());
    (format!("variable.{name}"), value)
}

/// Puts what was measured into a record.
fn fill(record: &mut Record, outcome: Outcome, plan: &Plan) {
    let Outcome { series, histograms, throughput, facts, notes, functions } = outcome;
    let metrics: Option<Vec<Metric>> =
        series.into_iter().map(|series| Metric::new(series, plan.walltime.seed)).collect();
    record.metrics = metrics.unwrap_or_default();
    if plan.action == Action::Measure && record.metrics.is_empty() {
        record.status = Status::Failed("the meter gave no number".into());
        return;
    }
    record.histograms = histograms;
    record.facts.extend(facts);
    (record.throughput, record.notes, record.functions) = (throughput, notes, functions);
}

/// Fails a trial that took longer than `--ensure-time` allows. A number from
/// a failed trial would be taken for a result.
fn limit(record: &mut Record, limit: Option<Duration>, elapsed: Duration) {
    if let (Some(limit), Status::Ok) = (limit, &record.status)
        && elapsed > limit
    {
        record.metrics.clear();
        record.histograms.clear();
        record.status = Status::Failed(format!(
            "it took {:.3} s, and --ensure-time allows {:.3} s",
            elapsed.as_secs_f64(),
            limit.as_secs_f64()
        ));
    }
}
