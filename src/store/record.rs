//! What one trial left behind, as it is in memory. What it looks like on disk
//! is `schema`'s affair.
//!
//! Neighbours: `trial` makes records; `compare` and `report` work from them alone.

use std::collections::BTreeMap;

use super::shared::Shared;
use crate::samples::{Histogram, Series};
use crate::stats::summarize;
use crate::units::{Throughput, Unit};

pub use crate::stats::Summary;

/// How a trial ended. A failure or a skip is a status with a reason, never a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Measured, and every check held.
    Ok,
    /// The body, its check or the meter failed.
    Failed(String),
    /// It did not end in time.
    TimedOut(String),
    /// It was not run, for the reason given.
    Ignored(String),
}

/// One metric of a trial: the raw series and its summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The raw series.
    pub series: Series,
    /// The summary, which can be computed from the series again.
    pub summary: Summary,
}

impl Metric {
    /// A series with its summary; `seed` is that of the bootstrap. `None` for
    /// a series without samples, which has no summary.
    pub fn new(series: Series, seed: u64) -> Option<Self> {
        let summary = summarize(&series.per_iteration(), seed)?;
        Some(Self { series, summary })
    }
}

/// How much a trial gets done in a second: higher is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// What one iteration gets done.
    pub of: Throughput,
    /// From the median time.
    pub median: f64,
    /// From the 95 % interval of the median time, the lower rate first; `None`
    /// where that reaches down to no time at all.
    pub median_ci: Option<(f64, f64)>,
}

impl Record {
    /// The record of a trial that went well and in which nothing is yet, of
    /// no run and the beginning of 1970.
    pub fn new(scenario: impl Into<String>, mode: impl Into<String>) -> Self {
        Self {
            run_id: String::new(),
            suite: String::new(),
            scenario: scenario.into(),
            params: Vec::new(),
            mode: mode.into(),
            attempt: 1,
            status: Status::Ok,
            started: "1970-01-01T00:00:00Z".into(),
            elapsed_ns: 0,
            metrics: Vec::new(),
            histograms: Vec::new(),
            throughput: Vec::new(),
            facts: BTreeMap::new(),
            notes: Vec::new(),
            functions: Vec::new(),
            identity: Shared::default(),
        }
    }

    /// The rates of the headline, in the order in which the body stated what
    /// it gets done; none where the headline is no time, or one of nothing.
    pub fn rates(&self) -> Vec<Rate> {
        let Some(Metric { series, summary }) = self.metrics.first() else { return Vec::new() };
        if series.unit != Unit::Nanoseconds || summary.median <= 0.0 {
            return Vec::new();
        }
        let (low, high) = summary.median_ci;
        let rate = |of: &Throughput| Rate {
            of: *of,
            median: of.per_second(summary.median),
            median_ci: (low > 0.0).then(|| (of.per_second(high), of.per_second(low))),
        };
        self.throughput.iter().map(rate).collect()
    }
}

/// What one trial left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Joins the records of one run.
    pub run_id: String,
    /// The bench target.
    pub suite: String,
    /// The scenario.
    pub scenario: String,
    /// Its parameters, in the order stated.
    pub params: Vec<(String, String)>,
    /// The meter: `walltime`, `cachegrind`, `dhat` or `smoke`.
    pub mode: String,
    /// Attempt of a trial that a client retries, from 1.
    pub attempt: u32,
    /// How it ended.
    pub status: Status,
    /// When it started (RFC 3339, UTC).
    pub started: String,
    /// How long the whole trial took, in nanoseconds.
    pub elapsed_ns: u64,
    /// What was measured; empty unless the status is [`Status::Ok`]. The first
    /// one is the headline.
    pub metrics: Vec<Metric>,
    /// Values that were too many to be kept one by one: the times of single
    /// operations. Empty in records of schema 1.0.
    pub histograms: Vec<Histogram>,
    /// What one iteration gets done.
    pub throughput: Vec<Throughput>,
    /// How it was measured; see [`Outcome::facts`](crate::measure::Outcome::facts).
    pub facts: BTreeMap<String, String>,
    /// What a reader should know before trusting the numbers.
    pub notes: Vec<String>,
    /// Instructions by function (symbol, count), largest first.
    pub functions: Vec<(String, u64)>,
    /// What the result depends on: commit, toolchain, machine; see `machine`.
    pub identity: Shared,
}
