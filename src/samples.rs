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

    /// Whether all samples agree to the last digit on the value of one iteration.
    pub fn is_exact(&self) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let first = self.samples.first();
        let agrees = |s: &Sample, first: &Sample| {
            product(s.total, first.iterations) == product(first.total, s.iterations)
        };
        first.is_some_and(|first| self.samples.iter().all(|s| agrees(s, first)))
    }
}

/// How often values occurred that are too many to be kept one by one: buckets
/// whose width is a fixed share of their value (HDR).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// What is measured, such as `op_time`.
    pub metric: String,
    /// The unit of the values.
    pub unit: Unit,
    /// Which way the values are better.
    pub direction: Direction,
    /// Significant decimal digits that a bucket keeps of its values.
    pub digits: u8,
    /// The least value, exactly.
    pub min: u64,
    /// The greatest value, exactly.
    pub max: u64,
    /// The greatest value that belongs to a bucket, and how many fell into it,
    /// in ascending order, without the empty ones.
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// The least value that is not below a share `p` (0 to 1) of all values,
    /// to the digits that are kept; 0 where there are none.
    pub fn quantile(&self, p: f64) -> u64 {
        let rank = (p.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        let at = self.buckets.iter().find(|(_, n)| {
            seen = n.saturating_add(seen);
            seen >= rank
        });
        at.map_or(self.max, |(value, _)| *value).max(self.min).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[(u64, u64)]) -> Series {
        Series {
            metric: "calls".into(),
            party: None,
            unit: Unit::SystemCalls,
            direction: Direction::LowerIsBetter,
            samples: samples
                .iter()
                .map(|(iterations, total)| Sample { iterations: *iterations, total: *total })
                .collect(),
        }
    }

    #[test]
    fn samples_of_any_length_agree_or_they_do_not() {
        assert!(series(&[(2, 258), (3, 387), (1, 129)]).is_exact());
        assert!(series(&[(3, 10), (6, 20)]).is_exact(), "a fraction an iteration is as good");
        assert!(series(&[(1, u64::MAX)]).is_exact());
        assert!(!series(&[(2, 258), (3, 388)]).is_exact());
        assert!(!series(&[]).is_exact());
    }

    #[test]
    fn a_quantile_has_its_share_of_the_values_below_it() {
        let mut histogram = Histogram {
            metric: "op_time".into(),
            unit: Unit::Nanoseconds,
            direction: Direction::LowerIsBetter,
            digits: 3,
            min: 10,
            max: 4_000,
            buckets: vec![(10, 50), (20, 40), (1_000, 9), (4_001, 1)],
        };
        assert_eq!(histogram.count(), 100);
        let at = |p| histogram.quantile(p);
        assert_eq!([at(0.0), at(0.5), at(0.501), at(0.9), at(0.99), at(1.0)], [10, 10, 20, 20, 1_000, 4_000]);
        histogram.buckets.clear();
        histogram.max = 10;
        assert_eq!(histogram.quantile(0.5), 10);
    }
}
