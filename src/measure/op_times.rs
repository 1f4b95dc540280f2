//! The times of single operations, gathered in a histogram whose relative
//! error and size are bounded however many there are.
//!
//! Neighbours: `walltime_loop` fills it in a pass of its own, `walltime` makes
//! metrics of it.

use anyhow::{Context, Result};

use crate::samples::{Histogram, Sample, Series};
use crate::scenario::Ops;
use crate::units::{Direction, Unit};

/// Significant decimal digits that are kept: an error of 0.1 % at most.
const DIGITS: u8 = 3;

/// Operations that take longer, an hour, are put down as this long; their
/// greatest is kept exactly all the same.
const LONGEST_NS: u64 = 3_600 * 1_000_000_000;

/// The metrics that are made of the histogram, and their share of the operations.
const QUANTILES: [(&str, f64); 4] = [("op_p50", 0.5), ("op_p90", 0.9), ("op_p99", 0.99), ("op_max", 1.0)];

/// Fewer operations than this say nothing about the 99th percentile.
pub(super) const FEW: u64 = 1_000;

/// The times of the operations of one scenario.
#[derive(Clone, Debug)]
pub(super) struct OpTimes {
    times: hdrhistogram::Histogram<u64>,
    min: u64,
    max: u64,
    /// Iterations that they were in.
    pub iterations: u64,
    /// The time of the whole pass, set-ups and checks included, in nanoseconds.
    pub elapsed_ns: u64,
}

impl OpTimes {
    /// None yet.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn new() -> Result<Self> {
        let times = hdrhistogram::Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).context("a histogram")?;
        Ok(Self { times, min: u64::MAX, max: 0, iterations: 0, elapsed_ns: 0 })
    }

    /// Takes over the operations of the last `iterations`.
    ///
    /// # Errors
    /// Operations were not marked in pairs.
    pub(super) fn take(&mut self, ops: &mut Ops, iterations: u64) -> Result<()> {
        self.iterations += iterations;
        ops.take(|ns| {
            self.times.saturating_record(ns);
            self.min = self.min.min(ns);
            self.max = self.max.max(ns);
        })
    }

    /// How many operations there were.
    pub(super) fn count(&self) -> u64 {
        self.times.len()
    }

    /// The histogram as it is stored; `None` when nothing was marked.
    pub(super) fn histogram(&self) -> Option<Histogram> {
        let bucket = |b: hdrhistogram::iterators::IterationValue<u64>| {
            (b.value_iterated_to(), b.count_since_last_iteration())
        };
        (self.count() > 0).then(|| Histogram {
            metric: "op_time".into(),
            unit: Unit::Nanoseconds,
            direction: Direction::LowerIsBetter,
            digits: DIGITS,
            min: self.min,
            max: self.max,
            buckets: self.times.iter_recorded().map(bucket).collect(),
        })
    }
}

/// The metrics of a histogram of times. Each is of all operations together, so
/// it is a single sample.
pub(super) fn series(histogram: &Histogram) -> Vec<Series> {
    let of = |(metric, p): (&str, f64)| Series {
        metric: metric.into(),
        party: None,
        unit: histogram.unit,
        direction: histogram.direction,
        samples: vec![Sample { iterations: 1, total: histogram.quantile(p) }],
    };
    QUANTILES.map(of).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_times_keep_three_digits_and_exact_ends() {
        let mut ops = Ops::default();
        let mut times = OpTimes::new().expect("memory");
        let mut all: Vec<u64> = (0..100_000_u64).map(|i| 50 + i * i % 1_000_003).collect();
        for chunk in all.chunks(1_000) {
            let mut readings: Vec<u64> = chunk.iter().flat_map(|ns| [7, 7 + ns]).rev().collect();
            ops.switch_on(move || readings.pop().unwrap_or_default());
            chunk.iter().for_each(|_| ops.op(|| ()));
            times.take(&mut ops, 1).expect("in pairs");
        }
        all.sort_unstable();
        let histogram = times.histogram().expect("times");
        assert_eq!((histogram.count(), times.iterations), (100_000, 100));
        assert_eq!((histogram.min, histogram.max), (all[0], all[99_999]));
        for (series, at) in series(&histogram).iter().zip([49_999, 89_999, 98_999, 99_999]) {
            let (told, exact) = (series.samples[0].total as f64, all[at] as f64);
            assert!((told / exact - 1.0).abs() <= 0.001, "{}: {told} for {exact}", series.metric);
        }
    }

    #[test]
    fn where_nothing_was_marked_there_is_nothing() {
        assert_eq!(OpTimes::new().expect("memory").histogram(), None);
    }
}
