//! The formats of the GitHub action `benchmark-action/github-action-benchmark`:
//! its custom list of results, written and read, and the file `data.js` in
//! which it keeps its history, read.
//!
//! Taken from its README (`customSmallerIsBetter`, `customBiggerIsBetter`) and
//! from the interfaces in its `src/write.ts` (2026).
//!
//! Neighbours: `bencher` has the other format of this kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::report::model::last_attempts;
use crate::samples::{Sample, Series};
use crate::store::{Metric, Rate, Record};
use crate::units::{Direction, Unit};

/// One result of its list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The unit, as it is shown.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// How far it is from others: a text that it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    /// A text that it shows when it is pointed at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<String>,
}

/// All metrics that are better this way, as its list. A list is better one way.
pub fn github_action(records: &[Record], better: Direction) -> Vec<Entry> {
    let mut all = Vec::new();
    for record in last_attempts(records) {
        let of = record.metrics.iter().filter(|metric| metric.series.direction == better);
        all.extend(of.map(|metric| entry(record, metric)));
        if better == Direction::HigherIsBetter {
            all.extend(record.rates().iter().map(|rate| rate_entry(record, rate)));
        }
    }
    all
}

fn entry(record: &Record, Metric { series, summary }: &Metric) -> Entry {
    let party = series.party.as_ref().map(|party| format!(" [{party}]")).unwrap_or_default();
    // The headline bears the name of the scenario alone, in its meter.
    let metric = match series.metric.as_str() {
        "wall_time" => String::new(),
        other => format!(" {other}"),
    };
    let several = series.samples.len() > 1;
    let (low, high) = summary.median_ci;
    Entry {
        name: format!("{}{metric}{party}", record.scenario),
        unit: series.unit.symbol().into(),
        value: summary.median,
        range: several.then(|| format!("± {}", (summary.median - low).max(high - summary.median))),
        extra: Some(format!("{} samples, {}, {}", series.samples.len(), record.suite, record.mode)),
    }
}

fn rate_entry(record: &Record, rate: &Rate) -> Entry {
    let furthest = |(low, high): (f64, f64)| (rate.median - low).max(high - rate.median);
    Entry {
        name: format!("{} {}", record.scenario, rate.of.rate_name()),
        unit: rate.of.rate_unit().into(),
        value: rate.median,
        range: rate.median_ci.map(|ends| format!("± {}", furthest(ends))),
        extra: Some(format!("{}, {}", record.suite, record.mode)),
    }
}

/// What the file `data.js` holds.
#[derive(Deserialize)]
struct Data {
    entries: BTreeMap<String, Vec<Run>>,
}

/// One run in it.
#[derive(Deserialize)]
struct Run {
    commit: Commit,
    /// Milliseconds since 1970.
    date: i64,
    tool: String,
    benches: Vec<Entry>,
}

#[derive(Deserialize)]
struct Commit {
    id: String,
}

/// What the beginning of `data.js` is, before the JSON.
const ASSIGNMENT: &str = "window.BENCHMARK_DATA =";

/// Tools whose results are better when they are greater.
const BIGGER: [&str; 3] = ["benchmarkjs", "pytest", "customBiggerIsBetter"];

/// Makes records of a list of results, whose direction is `better`, or of the
/// last run of each suite in a `data.js`, whose direction it says itself.
///
/// # Errors
/// [`Kind::Format`]: the text is neither, or a value is no amount.
pub fn import(text: &str, better: Direction, run_id: &str, started: &str) -> Result<Vec<Record>> {
    let wrong = |error: serde_json::Error| {
        Error::new(Kind::Format, "this is no file of github-action-benchmark")
            .hint("name its data.js, or a list of objects with name, unit and value")
            .source(error)
    };
    let Some(data) = text.trim_start().strip_prefix(ASSIGNMENT) else {
        let entries: Vec<Entry> = serde_json::from_str(text).map_err(wrong)?;
        let base = base("github_action_benchmark", run_id, started);
        return entries.into_iter().map(|entry| record(&base, entry, better)).collect();
    };
    let data: Data = serde_json::from_str(data.trim().trim_end_matches(';')).map_err(wrong)?;
    let mut all = Vec::new();
    for (suite, runs) in data.entries {
        let Some(run) = runs.into_iter().max_by_key(|run| run.date) else { continue };
        let date =
            jiff::Timestamp::from_millisecond(run.date).map_or_else(|_| started.into(), |at| at.to_string());
        let mut base = base(&suite, run_id, &date);
        base.identity.insert("commit".into(), run.commit.id);
        base.facts.insert("tool".into(), run.tool.clone());
        let bigger = BIGGER.contains(&run.tool.as_str());
        let better = if bigger { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
        for entry in run.benches {
            all.push(record(&base, entry, better)?);
        }
    }
    Ok(all)
}

/// A value is kept to its thousandth: as so many iterations.
const PARTS: u64 = 1_000;

fn record(base: &Record, entry: Entry, better: Direction) -> Result<Record> {
    let (unit, factor) = unit(&entry.unit);
    let total = entry.value * factor * PARTS as f64;
    if !total.is_finite() || !(0.0..9e15).contains(&total) {
        return Err(Error::new(
            Kind::Format,
            format!("{:?}: {} {} is no amount", entry.name, entry.value, entry.unit),
        ));
    }
    let series = Series {
        metric: if unit == Unit::Nanoseconds { "wall_time" } else { "value" }.into(),
        party: None,
        unit,
        direction: better,
        samples: vec![Sample { iterations: PARTS, total: total.round() as u64 }],
    };
    let mut record = base.clone();
    record.scenario.clone_from(&entry.name);
    if unit == Unit::Nanoseconds {
        record.mode = "walltime".into();
    }
    record.metrics.extend(Metric::new(series, 0));
    record.facts.insert("foreign_unit".into(), entry.unit);
    let texts = [("foreign_range", entry.range), ("foreign_extra", entry.extra)];
    record.facts.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_string(), text?))));
    Ok(record)
}

/// Our unit for one of its, and what a value in it is multiplied by. Rates and
/// units that we do not have are numbers without a dimension; the fact
/// `foreign_unit` says what they are.
fn unit(foreign: &str) -> (Unit, f64) {
    let first = foreign.split('/').next().unwrap_or_default().trim().to_ascii_lowercase();
    match first.as_str() {
        "ns" | "nanoseconds" => (Unit::Nanoseconds, 1.0),
        "us" | "µs" | "μs" | "usec" | "microseconds" => (Unit::Nanoseconds, 1e3),
        "ms" | "msec" | "milliseconds" => (Unit::Nanoseconds, 1e6),
        "s" | "sec" | "seconds" => (Unit::Nanoseconds, 1e9),
        "bytes" | "b" => (Unit::Bytes, 1.0),
        "instructions" => (Unit::Instructions, 1.0),
        "cycles" => (Unit::Cycles, 1.0),
        "syscalls" => (Unit::SystemCalls, 1.0),
        _ => (Unit::Ratio, 1.0),
    }
}

fn base(suite: &str, run_id: &str, started: &str) -> Record {
    Record {
        run_id: run_id.to_string(),
        suite: suite.to_string(),
        started: started.to_string(),
        facts: BTreeMap::from([("source".to_string(), "github-action-benchmark".to_string())]),
        notes: vec![
            "imported from github-action-benchmark: one value a trial, without its samples".to_string(),
        ],
        ..Record::new("", "imported")
    }
}
