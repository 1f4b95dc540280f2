//! The summary of one series of values.
//!
//! Neighbours: `trial` makes it from raw samples, `store` keeps it beside
//! them, and a test computes it from the store again.

use super::bootstrap::median_interval;
use super::quantile::{mad, mean, median, outliers, quartiles, sorted};
use super::rank::spearman;

/// The summary of one series; values are for one iteration, in the unit of the series.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// 95 % confidence interval of the median (percentile bootstrap, seeded).
    pub median_ci: (f64, f64),
    /// Median absolute deviation from the median (not scaled).
    pub mad: f64,
    /// First and third quartile.
    pub quartiles: (f64, f64),
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Samples beyond 1.5 interquartile ranges from the quartiles (Tukey); counted, never removed.
    pub outliers: u64,
    /// Spearman rank correlation of value with order, -1 to 1, and its two-sided p value.
    pub drift: (f64, f64),
}

/// Sums up the values of a series, given in the order in which they were
/// taken. `seed` is that of the bootstrap. `None` when there are no values, or
/// when one is not a finite number: there is no summary of those.
pub fn summarize(values: &[f64], seed: u64) -> Option<Summary> {
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let ascending = sorted(values);
    let (min, max) = (*ascending.first()?, *ascending.last()?);
    let order: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
    let drift = spearman(&order, values);
    Some(Summary {
        median: median(&ascending),
        median_ci: median_interval(&ascending, 0.95, seed),
        mad: mad(&ascending),
        quartiles: quartiles(&ascending),
        min,
        max,
        mean: mean(values),
        outliers: outliers(&ascending) as u64,
        drift: (drift.rho, drift.p),
    })
}
