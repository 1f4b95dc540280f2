//! Two builds measured in turn: what a record holds of it, and when enough is
//! known to stop.
//!
//! The record of such a trial has the steps of this build as `wall_time` and
//! those of the other as `wall_time_baseline`, as many of each, pair of
//! processes by pair; and the same for each party, where both builds tell them
//! apart. A pair gives one number, the median of the logarithms
//! of the ratios of neighbouring steps: the pair, not the step, is what varies
//! by chance. Over the pairs a trimmed mean is taken.
//!
//! Neighbours: `trial` takes the pairs and asks whether to stop; `times`
//! makes a line of them.

use super::rule::Rule;
use crate::stats::{Estimate, Look, is_equivalent, levels, mean, median, sequential_p, sorted};
use crate::store::{Metric, Record};

/// What the name of a metric of the other build ends in.
pub const BASELINE_SUFFIX: &str = "_baseline";

/// The first look, in pairs, unless the time ends before: fewer say little
/// when the ends are trimmed.
const FIRST_LOOK: usize = 8;

/// The number of pairs at which to look next after a look at `n`.
pub fn next_look(n: usize) -> usize {
    if n < FIRST_LOOK { FIRST_LOOK } else { n + n.div_ceil(2) }
}

/// What pairs of processes gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns {
    /// Logarithm of after over before, for each pair.
    pub log_ratios: Vec<f64>,
    /// When they were looked at.
    pub looks: Vec<Look>,
    /// How many pairs of layouts there are, which come in turn; 1 where builds
    /// were linked once, and every pair of processes is a draw of its own.
    pub layouts: usize,
}

impl Turns {
    /// The number that a pair of processes gives: `before` and `after` are the
    /// times of its steps, for one iteration, neighbours in time side by side.
    /// (The ratio of the two medians is up to 1.5 times as far from pair to pair.)
    pub fn log_ratio(before: &[f64], after: &[f64]) -> f64 {
        let ratios: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| (after / before).ln()).collect();
        median(&sorted(&ratios))
    }

    /// What a record holds of pairs; `None` when it was not measured in turn,
    /// or does not fit together.
    pub fn of(record: &Record) -> Option<Self> {
        Self::of_party(record, None)
    }

    /// The same for one party; `None` is the whole.
    pub fn of_party(record: &Record, party: Option<&str>) -> Option<Self> {
        let (before, after) = series(record, party)?;
        let steps: usize = record.facts.get("steps_per_pair")?.parse().ok().filter(|n| *n > 0)?;
        let looks = record.facts.get("looks")?.split(' ').map(look).collect::<Option<Vec<_>>>()?;
        let (before, after) = (before.series.per_iteration(), after.series.per_iteration());
        let pairs = before.chunks_exact(steps).zip(after.chunks_exact(steps));
        let log_ratios: Vec<f64> = pairs.map(|(before, after)| Self::log_ratio(before, after)).collect();
        let last = looks.last()?;
        let layouts = match record.facts.get("layouts") {
            None => 1,
            Some(count) => count.parse::<usize>().ok()?,
        };
        (before.len() == after.len() && last.n == log_ratios.len() as f64).then_some(Self {
            log_ratios,
            looks,
            layouts,
        })
    }

    /// What the first `pairs` pairs say. Pairs of the same layouts are one
    /// draw, their mean: that they agree says nothing of other layouts.
    pub fn estimate(&self, pairs: usize) -> Option<Estimate> {
        let ratios = &self.log_ratios[..pairs.min(self.log_ratios.len())];
        let draws = if self.layouts > 1 { self.layouts.min(ratios.len()) } else { ratios.len() };
        let draw = |from: usize| {
            let same: Vec<f64> = ratios.iter().skip(from).step_by(draws).copied().collect();
            mean(&same)
        };
        Estimate::of_trimmed(&(0..draws).map(draw).collect::<Vec<f64>>())
    }

    /// The looks as a record keeps them: `5@0.25 8@1`.
    pub fn looks_in_words(looks: &[Look]) -> String {
        let words: Vec<String> = looks.iter().map(|look| format!("{}@{}", look.n, look.share)).collect();
        words.join(" ")
    }

    /// What the pairs say at the last look: the estimate, the level at which
    /// that look stops for an error of `level` in all, and the p value with
    /// all looks accounted for.
    pub fn seen(&self, level: f64) -> Option<(Estimate, f64, f64)> {
        let estimate = self.estimate(self.log_ratios.len())?;
        let last = *levels(level, Rule::SPENDING, &self.looks).last()?;
        let seen: Vec<f64> = self.looks.iter().map(|look| self.p_at(look)).collect();
        Some((estimate, last, sequential_p(Rule::SPENDING, &self.looks, &seen)))
    }

    /// The p value of "no change" at a look.
    fn p_at(&self, look: &Look) -> f64 {
        self.estimate(look.n as usize).map_or(1.0, |estimate| estimate.p(0.0))
    }
}

/// The two series of a record that was measured in turn.
pub(super) fn series<'a>(record: &'a Record, party: Option<&str>) -> Option<(&'a Metric, &'a Metric)> {
    let of_party = || record.metrics.iter().filter(|m| m.series.party.as_deref() == party);
    let after = of_party().next()?;
    let name = format!("{}{BASELINE_SUFFIX}", after.series.metric);
    let before = of_party().find(|m| m.series.metric == name)?;
    Some((before, after))
}

/// The whole, and each party that a record in turn has.
pub(super) fn parts(record: &Record) -> Vec<Option<&str>> {
    let mut parts = Vec::new();
    for metric in &record.metrics {
        let party = metric.series.party.as_deref();
        if !parts.contains(&party) && series(record, party).is_some() {
            parts.push(party);
        }
    }
    parts
}

fn look(word: &str) -> Option<Look> {
    let (n, share) = word.split_once('@')?;
    let look = Look { n: n.parse().ok()?, share: share.parse().ok()? };
    (look.n >= 1.0 && look.n.is_finite() && (0.0..=1.0).contains(&look.share)).then_some(look)
}

/// Whether the answer is clear at the last look: a change beyond the margin
/// that would be called even with all `family` tests of the run accounted for,
/// or an interval within the margin.
pub fn is_settled(turns: &Turns, rule: &Rule, family: usize) -> bool {
    let Some(estimate) = turns.estimate(turns.log_ratios.len()) else { return false };
    let level_at = |level: f64| levels(level, Rule::SPENDING, &turns.looks).last().copied().unwrap_or(0.0);
    let called = estimate.p(0.0) <= level_at(rule.level / family.max(1) as f64);
    let change = estimate.mean.exp() - 1.0;
    (called && change.abs() > rule.margin)
        || is_equivalent(shares(estimate.interval(level_at(rule.level))), (-rule.margin, rule.margin))
}

/// An interval of a logarithm as one of shares.
pub(super) fn shares((low, high): (f64, f64)) -> (f64, f64) {
    (low.exp() - 1.0, high.exp() - 1.0)
}
