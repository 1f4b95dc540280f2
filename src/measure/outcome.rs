//! What a meter gives back: raw series and how they were taken, or a reason.
//!
//! Neighbours: the meters make it, `trial` turns it into a record.

use std::collections::BTreeMap;

use crate::samples::{Histogram, Series};
use crate::units::Throughput;

/// What measuring one scenario gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The raw series; the first one is the headline of the trial.
    pub series: Vec<Series>,
    /// Values that were too many to be kept one by one.
    pub histograms: Vec<Histogram>,
    /// What one iteration gets done.
    pub throughput: Vec<Throughput>,
    /// How it was measured: method, clock precision, seeds, tool versions, migrations.
    /// Values that are numbers carry their unit in the key (`clock_precision_ns`).
    pub facts: BTreeMap<String, String>,
    /// What a reader should know before trusting the numbers.
    pub notes: Vec<String>,
    /// Instructions by function (symbol, count), largest first; empty where not counted.
    pub functions: Vec<(String, u64)>,
}

impl Outcome {
    /// Notes which metrics are gauges of the body, so that reports show them.
    pub(super) fn name_gauges(&mut self, names: &[&str]) {
        if !names.is_empty() {
            self.facts.insert("gauges".into(), names.join(","));
        }
    }

    /// Adds what a body has stated. A fact of the meter's own stays.
    pub(super) fn add_facts(&mut self, stated: &BTreeMap<String, String>) {
        for (key, value) in stated {
            if self.facts.contains_key(key) {
                self.notes.push(format!(
                    "the body's fact {key} has the name of one of the meter's: it is not kept"
                ));
            } else {
                self.facts.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Why there is no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The body, its check or the meter failed.
    Failed(String),
    /// The body panicked, with the message.
    Panicked(String),
    /// It did not end in time.
    TimedOut(String),
}

impl Failure {
    /// The whole chain of an error, outermost first.
    pub fn from_error(error: &anyhow::Error) -> Self {
        Self::Failed(format!("{error:#}"))
    }

    /// The reason in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::Failed(reason) | Self::Panicked(reason) | Self::TimedOut(reason) => reason,
        }
    }
}
