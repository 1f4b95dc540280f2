//! What a record looks like on disk: one type tree per major version, apart
//! from the types in memory, so that neither can change the other unnoticed.
//!
//! Neighbours: `record` is the form in memory, `json` reads and writes this
//! form. Fields may be added within a major version (a reader ignores what it
//! does not know); anything else is a new major version and a new type tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::{Metric, Rate, Record, Status, Summary};
use crate::samples::{Histogram, Sample, Series};
use crate::units::{Direction, Throughput, Unit};

/// The major version that this program writes, and the newest that it reads.
pub const MAJOR: u64 = 1;
/// The minor version that this program writes.
pub const MINOR: u64 = 2;

/// The form of a record as JSON Schema (draft 2020-12), for other programs.
/// What is added within a major version is optional in it.
pub const JSON_SCHEMA: &str = include_str!("record.schema.json");

/// A record of schema 1.
#[derive(Serialize, Deserialize)]
pub(super) struct RecordV1 {
    schema_version: String,
    run_id: String,
    suite: String,
    scenario: String,
    params: Vec<(String, String)>,
    mode: String,
    attempt: u32,
    status: StatusV1,
    started: String,
    elapsed_ns: u64,
    metrics: Vec<MetricV1>,
    /// From 1.1 on.
    #[serde(default)]
    histograms: Vec<HistogramV1>,
    throughput: Vec<ThroughputV1>,
    facts: BTreeMap<String, String>,
    notes: Vec<String>,
    functions: Vec<(String, u64)>,
    identity: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
enum StatusV1 {
    Ok,
    Failed(String),
    TimedOut(String),
    Ignored(String),
}

#[derive(Serialize, Deserialize)]
struct MetricV1 {
    metric: String,
    party: Option<String>,
    unit: String,
    better: String,
    /// Pairs of iterations and their total, in the order taken.
    samples: Vec<(u64, u64)>,
    summary: SummaryV1,
}

/// Values in the unit stated.
#[derive(Serialize, Deserialize)]
struct HistogramV1 {
    metric: String,
    unit: String,
    better: String,
    significant_digits: u8,
    count: u64,
    min: u64,
    max: u64,
    /// Pairs of the greatest value of a bucket and how many are in it, ascending.
    buckets: Vec<(u64, u64)>,
}

/// Values are for one iteration, in the unit of the metric around it.
#[derive(Serialize, Deserialize)]
struct SummaryV1 {
    median: f64,
    median_ci95: (f64, f64),
    mad: f64,
    quartiles: (f64, f64),
    min: f64,
    max: f64,
    mean: f64,
    outliers: u64,
    drift_rho: f64,
    drift_p: f64,
}

#[derive(Serialize, Deserialize)]
struct ThroughputV1 {
    unit: String,
    per_iteration: u64,
    /// From 1.2 on, of a record whose headline is a time. It is for readers
    /// elsewhere: here it is computed from the metrics again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<RateV1>,
}

#[derive(Serialize, Deserialize)]
struct RateV1 {
    unit: String,
    better: String,
    median: f64,
    median_ci95: Option<(f64, f64)>,
}

impl From<&Record> for RecordV1 {
    fn from(record: &Record) -> Self {
        Self {
            schema_version: format!("{MAJOR}.{MINOR}"),
            run_id: record.run_id.clone(),
            suite: record.suite.clone(),
            scenario: record.scenario.clone(),
            params: record.params.clone(),
            mode: record.mode.clone(),
            attempt: record.attempt,
            status: (&record.status).into(),
            started: record.started.clone(),
            elapsed_ns: record.elapsed_ns,
            metrics: record.metrics.iter().map(MetricV1::from).collect(),
            histograms: record.histograms.iter().map(HistogramV1::from).collect(),
            throughput: throughput(record),
            facts: record.facts.clone(),
            notes: record.notes.clone(),
            functions: record.functions.clone(),
            identity: BTreeMap::clone(&record.identity),
        }
    }
}

impl From<&Status> for StatusV1 {
    fn from(status: &Status) -> Self {
        match status.clone() {
            Status::Ok => Self::Ok,
            Status::Failed(reason) => Self::Failed(reason),
            Status::TimedOut(reason) => Self::TimedOut(reason),
            Status::Ignored(reason) => Self::Ignored(reason),
        }
    }
}

impl From<&Metric> for MetricV1 {
    fn from(Metric { series, summary }: &Metric) -> Self {
        Self {
            metric: series.metric.clone(),
            party: series.party.clone(),
            unit: series.unit.symbol().into(),
            better: series.direction.word().into(),
            samples: series.samples.iter().map(|s| (s.iterations, s.total)).collect(),
            summary: summary.into(),
        }
    }
}

impl From<&Histogram> for HistogramV1 {
    fn from(histogram: &Histogram) -> Self {
        Self {
            metric: histogram.metric.clone(),
            unit: histogram.unit.symbol().into(),
            better: histogram.direction.word().into(),
            significant_digits: histogram.digits,
            count: histogram.count(),
            min: histogram.min,
            max: histogram.max,
            buckets: histogram.buckets.clone(),
        }
    }
}

impl From<&Summary> for SummaryV1 {
    fn from(s: &Summary) -> Self {
        Self {
            median: s.median,
            median_ci95: s.median_ci,
            mad: s.mad,
            quartiles: s.quartiles,
            min: s.min,
            max: s.max,
            mean: s.mean,
            outliers: s.outliers,
            drift_rho: s.drift.0,
            drift_p: s.drift.1,
        }
    }
}

/// What an iteration gets done, and the rate where there is one for each.
fn throughput(record: &Record) -> Vec<ThroughputV1> {
    let rates = record.rates();
    let form = |(at, throughput): (usize, &Throughput)| {
        let (unit, per_iteration) = match *throughput {
            Throughput::Bytes(n) => ("bytes", n),
            Throughput::Elements(n) => ("elements", n),
        };
        ThroughputV1 { unit: unit.into(), per_iteration, rate: rates.get(at).map(RateV1::from) }
    };
    record.throughput.iter().enumerate().map(form).collect()
}

impl From<&Rate> for RateV1 {
    fn from(rate: &Rate) -> Self {
        Self {
            unit: rate.of.rate_unit().into(),
            better: Direction::HigherIsBetter.word().into(),
            median: rate.median,
            median_ci95: rate.median_ci,
        }
    }
}

impl RecordV1 {
    /// The version that it says of itself.
    pub(super) fn version(&self) -> &str {
        &self.schema_version
    }

    /// The record in memory, or what is wrong with this one.
    pub(super) fn into_record(self) -> Result<Record, String> {
        let status = match self.status {
            StatusV1::Ok => Status::Ok,
            StatusV1::Failed(reason) => Status::Failed(reason),
            StatusV1::TimedOut(reason) => Status::TimedOut(reason),
            StatusV1::Ignored(reason) => Status::Ignored(reason),
        };
        Ok(Record {
            run_id: self.run_id,
            suite: self.suite,
            scenario: self.scenario,
            params: self.params,
            mode: self.mode,
            attempt: self.attempt,
            status,
            started: self.started,
            elapsed_ns: self.elapsed_ns,
            metrics: fitted(self.metrics.into_iter().map(MetricV1::into_metric).collect::<Result<_, _>>()?),
            histograms: self
                .histograms
                .into_iter()
                .map(HistogramV1::into_histogram)
                .collect::<Result<_, _>>()?,
            throughput: self.throughput.iter().map(ThroughputV1::to_throughput).collect::<Result<_, _>>()?,
            // Made anew, its nodes are full: many thousand records are held at once.
            facts: self.facts.into_iter().collect(),
            notes: self.notes,
            functions: self.functions,
            identity: self.identity.into(),
        })
    }
}

/// A list without the room that was taken in advance, before its length was known.
fn fitted<T>(mut list: Vec<T>) -> Vec<T> {
    list.shrink_to_fit();
    list
}

/// The unit and the direction of a metric, in their words.
fn dimension(name: &str, unit: &str, better: &str) -> Result<(Unit, Direction), String> {
    let known = Unit::from_symbol(unit)
        .ok_or_else(|| format!("metric {name} has the unit {unit:?}, which is none"))?;
    let direction = Direction::from_word(better)
        .ok_or_else(|| format!("metric {name} is better {better:?}, which is no direction"))?;
    Ok((known, direction))
}

impl HistogramV1 {
    fn into_histogram(self) -> Result<Histogram, String> {
        let (unit, direction) = dimension(&self.metric, &self.unit, &self.better)?;
        let histogram = Histogram {
            metric: self.metric,
            unit,
            direction,
            digits: self.significant_digits,
            min: self.min,
            max: self.max,
            buckets: self.buckets,
        };
        let total = histogram.buckets.iter().try_fold(0_u64, |sum, (_, n)| sum.checked_add(*n));
        if total != Some(self.count) {
            return Err(format!(
                "histogram {} does not hold the {} values it says",
                histogram.metric, self.count
            ));
        }
        if !histogram.buckets.is_sorted_by(|a, b| a.0 < b.0) || histogram.min > histogram.max {
            return Err(format!("histogram {} is out of order", histogram.metric));
        }
        Ok(histogram)
    }
}

impl MetricV1 {
    fn into_metric(self) -> Result<Metric, String> {
        let name = self.metric;
        let (unit, direction) = dimension(&name, &self.unit, &self.better)?;
        if self.samples.iter().any(|(iterations, _)| *iterations == 0) {
            return Err(format!("metric {name} has a sample of 0 iterations"));
        }
        let samples = self.samples.into_iter().map(|(iterations, total)| Sample { iterations, total });
        let samples = fitted(samples.collect());
        let series = Series { metric: name, party: self.party, unit, direction, samples };
        Ok(Metric { series, summary: self.summary.into() })
    }
}

impl From<SummaryV1> for Summary {
    fn from(s: SummaryV1) -> Self {
        Self {
            median: s.median,
            median_ci: s.median_ci95,
            mad: s.mad,
            quartiles: s.quartiles,
            min: s.min,
            max: s.max,
            mean: s.mean,
            outliers: s.outliers,
            drift: (s.drift_rho, s.drift_p),
        }
    }
}

impl ThroughputV1 {
    fn to_throughput(&self) -> Result<Throughput, String> {
        match self.unit.as_str() {
            "bytes" => Ok(Throughput::Bytes(self.per_iteration)),
            "elements" => Ok(Throughput::Elements(self.per_iteration)),
            other => Err(format!("throughput has the unknown unit {other:?}")),
        }
    }
}
