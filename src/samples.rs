//! Raw values as a meter took them, in their order: nothing is averaged,
//! sorted or removed here.
//!
//! Neighbours: `measure` makes them, `store` keeps them, `stats` sums them up.

use crate::units::{Direction, Unit};

/// One sample: the total of some iterations that were measured back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How many iterations the total is of; never 0.
    pub iterations: u64,
    /// The total, in the unit of the series.
    pub total: u64,
}

/// All samples of one metric (and party) of a trial, in the order in which
/// they were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// What is measured, such as `wall_time` or `instructions`.
    pub metric: String,
    /// The party it belongs to; `None` for the whole.
    pub party: Option<String>,
    /// The unit of the totals.
    pub unit: Unit,
    /// Which way the metric is better.
    pub direction: Direction,
    /// The samples.
    pub samples: Vec<Sample>,
}

impl Series {
    /// The value of each sample for one iteration, in order.
    pub fn per_iteration(&self) -> Vec<f64> {
        self.samples.iter().map(|s| s.total as f64 / s.iterations as f64).collect()
    }
}
