//! Bencher Metric Format: JSON of benchmarks, their measures, and a value
//! with its interval for each, as `bencher run --adapter json` takes it.
//!
//! Taken from the project's reference of that format (2026): names of
//! measures are slugs; `latency` is its own, in nanoseconds.
//!
//! Neighbours: `github_action` has the other format of this kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::report::model::last_attempts;
use crate::store::{Metric, Rate, Record};
use crate::units::Throughput;

/// A value and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The median.
    pub value: f64,
    /// The lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_value: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper_value: Option<f64>,
}

/// Benchmarks, and of each the measures.
pub type Benchmarks = BTreeMap<String, BTreeMap<String, Value>>;

/// All metrics of all trials. Both meters of a scenario are measures of one benchmark.
pub fn bencher(records: &[Record]) -> Benchmarks {
    let records = last_attempts(records);
    let several = records.iter().any(|record| record.suite != records[0].suite);
    let mut all = Benchmarks::new();
    for record in records.into_iter().filter(|record| !record.metrics.is_empty()) {
        let name =
            if several { format!("{}/{}", record.suite, record.scenario) } else { record.scenario.clone() };
        let measures = all.entry(name).or_default();
        measures.extend(record.metrics.iter().map(|metric| (measure(metric), value(metric))));
        measures.extend(record.rates().iter().map(|rate| (rate_measure(rate), rate_value(rate))));
    }
    all
}

fn measure(metric: &Metric) -> String {
    let name = match metric.series.metric.as_str() {
        "wall_time" => "latency".to_string(),
        other => other.replace('_', "-"),
    };
    match &metric.series.party {
        Some(party) => format!("{party}-{name}"),
        None => name,
    }
}

/// `throughput` is its own measure, of operations a second.
fn rate_measure(rate: &Rate) -> String {
    match rate.of {
        Throughput::Elements(_) => "throughput".to_string(),
        Throughput::Bytes(_) => rate.of.rate_name().replace('_', "-"),
    }
}

fn rate_value(rate: &Rate) -> Value {
    Value {
        value: rate.median,
        lower_value: rate.median_ci.map(|ends| ends.0),
        upper_value: rate.median_ci.map(|ends| ends.1),
    }
}

fn value(metric: &Metric) -> Value {
    let several = metric.series.samples.len() > 1;
    let (low, high) = metric.summary.median_ci;
    Value {
        value: metric.summary.median,
        lower_value: several.then_some(low),
        upper_value: several.then_some(high),
    }
}
