//! Wall times as criterion keeps them, so that tools that read its folder
//! (critcmp, cargo-criterion) read ours: for each trial `estimates.json` and
//! `benchmark.json` in a folder with the name of the baseline.
//!
//! Taken from what criterion 0.5 writes and critcmp 0.1.8 reads. Estimates are
//! of the samples, one iteration each, in nanoseconds, with intervals and
//! errors from a bootstrap as criterion has them.
//!
//! Neighbours: `.ci/critcmp` lets critcmp itself read this.

use std::collections::BTreeSet;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::report::model::last_attempts;
use crate::stats::{mad, mean, median, quantile, sorted};
use crate::store::Record;
use crate::units::{Throughput, Unit};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 500;

/// The level of its intervals.
const LEVEL: f64 = 0.95;

/// What makes the median absolute deviation of normal values their standard
/// deviation, as criterion states it.
const NORMAL: f64 = 1.4826;

/// The two files of one trial, and the folder for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// Below the folder of criterion: `DIRECTORY`; the baseline's folder lies in it.
    pub directory: String,
    /// `benchmark.json`.
    pub benchmark: Benchmark,
    /// `estimates.json`.
    pub estimates: Estimates,
}

/// What the trial is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "criterion's own names")]
pub struct Benchmark {
    pub group_id: String,
    pub function_id: Option<String>,
    pub value_str: Option<String>,
    pub throughput: Option<Amount>,
    pub full_id: String,
    pub directory_name: String,
    pub title: String,
}

/// What one iteration gets done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Things.
    Elements(u64),
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "criterion's own names")]
pub struct Estimates {
    pub mean: Estimate,
    pub median: Estimate,
    pub median_abs_dev: Estimate,
    pub slope: Option<Estimate>,
    pub std_dev: Estimate,
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "criterion's own names")]
pub struct Estimate {
    pub confidence_interval: Interval,
    pub point_estimate: f64,
    pub standard_error: f64,
}

/// An interval with its level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "criterion's own names")]
pub struct Interval {
    pub confidence_level: f64,
    pub lower_bound: f64,
    pub upper_bound: f64,
}

/// The trials that were measured in wall time, and why others are not there:
/// a count of instructions would be shown as nanoseconds.
pub fn criterion(records: &[Record]) -> (Vec<Criterion>, Vec<String>) {
    let (mut all, mut left_out): (Vec<Criterion>, Vec<String>) = (Vec::new(), Vec::new());
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for record in last_attempts(records) {
        let time = record.metrics.first().filter(|metric| metric.series.unit == Unit::Nanoseconds);
        let Some(time) = time else {
            left_out.push(format!("{} ({})", record.scenario, record.mode));
            continue;
        };
        // Criterion, too, numbers the folders of names that make the same.
        let name = directory(&record.scenario);
        let mut numbered = (2..).map(|n| format!("{name}_{n}"));
        let mut directory = name.clone();
        while !taken.insert(directory.clone()) {
            directory = numbered.next().unwrap_or_default();
        }
        let estimates = estimates(&time.series.per_iteration());
        all.push(Criterion { benchmark: benchmark(record, &directory), directory, estimates });
    }
    (all, left_out)
}

fn benchmark(record: &Record, directory: &str) -> Benchmark {
    let (group, function) = match record.scenario.rsplit_once("::") {
        Some((group, function)) => (group.to_string(), Some(function.to_string())),
        None => (record.scenario.clone(), None),
    };
    Benchmark {
        group_id: group,
        function_id: function,
        value_str: None,
        throughput: record.throughput.first().map(|throughput| match *throughput {
            Throughput::Bytes(n) => Amount::Bytes(n),
            Throughput::Elements(n) => Amount::Elements(n),
        }),
        full_id: record.scenario.clone(),
        directory_name: directory.to_string(),
        title: record.scenario.clone(),
    }
}

/// A name as that of a folder: criterion takes out what file systems do not take.
fn directory(name: &str) -> String {
    let fits = |c: char| !c.is_control() && !"?\"/\\*<>:|^".contains(c);
    let text: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(64).collect();
    let text = text.trim_matches([' ', '.']).to_string();
    if text.is_empty() { "_".into() } else { text }
}

/// Estimates of what the values say, each with the same resamples.
fn estimates(values: &[f64]) -> Estimates {
    let of = |values: &[f64]| -> [f64; 4] {
        let ascending = sorted(values);
        [mean(values), median(&ascending), NORMAL * mad(&ascending), deviation(values)]
    };
    let points = of(values);
    let mut rng = Rng::with_seed(0);
    let mut drawn: [Vec<f64>; 4] = Default::default();
    for _ in 0..RESAMPLES {
        let resample: Vec<f64> = values.iter().map(|_| values[rng.usize(..values.len())]).collect();
        for (all, value) in drawn.iter_mut().zip(of(&resample)) {
            all.push(value);
        }
    }
    let estimate = |i: usize| {
        let ascending = sorted(&drawn[i]);
        let tail = (1.0 - LEVEL) / 2.0;
        let interval = Interval {
            confidence_level: LEVEL,
            lower_bound: quantile(&ascending, tail),
            upper_bound: quantile(&ascending, 1.0 - tail),
        };
        Estimate {
            confidence_interval: interval,
            point_estimate: points[i],
            standard_error: deviation(&drawn[i]),
        }
    };
    Estimates {
        mean: estimate(0),
        median: estimate(1),
        median_abs_dev: estimate(2),
        slope: None,
        std_dev: estimate(3),
    }
}

/// The standard deviation of a sample; nothing for one value.
fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|v| (v - middle).powi(2)).sum();
    (squares / (values.len().max(2) - 1) as f64).sqrt()
}
