//! Confidence intervals of a median.
//!
//! Neighbours: `summary` stores the bootstrap interval; the interval of order
//! statistics is its cross-check in tests, and exact where it exists.

use fastrand::Rng;
use statrs::distribution::{Binomial, DiscreteCDF};

use super::quantile::{quantile, sorted};

/// Resamples of the bootstrap: the ends of a 95 % interval then rest on 50
/// resamples each, and 1,000 samples take a few milliseconds.
pub const RESAMPLES: usize = 2_000;

/// The confidence interval of the median of `ascending` at `level` (0.95, say)
/// by the percentile bootstrap: Efron, "Bootstrap Methods: Another Look at the
/// Jackknife" (1979). The same values and seed give the same interval.
///
/// With fewer than six values the interval covers less than it says, since
/// even their whole range does; callers say how many there were.
pub fn median_interval(ascending: &[f64], level: f64, seed: u64) -> (f64, f64) {
    let mut rng = Rng::with_seed(seed);
    let mut drawn = vec![0u32; ascending.len()];
    let medians: Vec<f64> = (0..RESAMPLES).map(|_| resampled(ascending, &mut drawn, &mut rng)).collect();
    let medians = sorted(&medians);
    let tail = (1.0 - level) / 2.0;
    (quantile(&medians, tail), quantile(&medians, 1.0 - tail))
}

/// The median of one resample. Counting how often each value was drawn finds
/// it without sorting the resample.
fn resampled(ascending: &[f64], drawn: &mut [u32], rng: &mut Rng) -> f64 {
    let n = ascending.len();
    drawn.fill(0);
    for _ in 0..n {
        drawn[rng.usize(..n)] += 1;
    }
    let lower = nth(ascending, drawn, (n - 1) / 2);
    if n % 2 == 1 { lower } else { (lower + nth(ascending, drawn, n / 2)) / 2.0 }
}

/// The value of rank `rank` (from 0) among those drawn.
fn nth(ascending: &[f64], drawn: &[u32], rank: usize) -> f64 {
    let mut seen = 0;
    for (value, times) in ascending.iter().zip(drawn) {
        seen += *times as usize;
        if seen > rank {
            return *value;
        }
    }
    f64::NAN
}

/// The narrowest interval between two values of `ascending`, of equal rank
/// from below and above, that covers the median with at least `level`,
/// whatever the distribution (a sign test turned round; Conover, "Practical
/// Nonparametric Statistics"). `None` when there are too few values for it:
/// fewer than six at 95 %.
pub fn order_statistic_interval(ascending: &[f64], level: f64) -> Option<(f64, f64)> {
    let n = ascending.len();
    let below = Binomial::new(0.5, n as u64).ok()?;
    let tail = (1.0 - level) / 2.0;
    let rank = (0..n / 2).take_while(|k| below.cdf(*k as u64) <= tail).last()?;
    Some((ascending[rank], ascending[n - 1 - rank]))
}
