//! Times: estimated, from pairs of processes in turn, or from stored records.
//!
//! Neighbours: `turns` reads the pairs, `settle` gives the verdict.

use super::exact::bare;
use super::line::{Line, Size};
use super::rule::Rule;
use super::turns::{self, Turns, shares};
use crate::stats::{Estimate, median, sorted};
use crate::store::{Metric, Record};

/// What processes of one executable differ by, as a standard deviation of the
/// logarithm of their medians, where fewer than three a side were measured:
/// the worst body that was measured on a shared machine (10.7 %).
pub const ASSUMED_SPREAD: f64 = 0.107;

/// So many processes a side say themselves how far processes are apart.
const ENOUGH: usize = 3;

/// Why a time that is one value in a process has no verdict.
const ALONE: &str = "one value from a process does not say how far processes are apart: three processes or more a \
                     side do, or --against, which measures the whole region of both builds in turn";

/// The freedom of an error that is not estimated.
const KNOWN: f64 = 1e9;

/// The lines of a record that was measured in turn with the other build: the
/// whole, and each party.
pub(super) fn in_turn(record: &Record, rule: &Rule) -> Vec<Line> {
    turns::parts(record).into_iter().filter_map(|party| part_in_turn(record, party, rule)).collect()
}

fn part_in_turn(record: &Record, party: Option<&str>, rule: &Rule) -> Option<Line> {
    let turns = Turns::of_party(record, party)?;
    let (before, after) = turns::series(record, party)?;
    let mut line = bare(record, after);
    (line.before, line.after) = (before.summary.median, after.summary.median);
    let Some((log_ratio, level, p)) = turns.seen(rule.level) else {
        line.size = Size::None("a time of zero has no ratio".into());
        return Some(line);
    };
    let interval = shares(log_ratio.interval(level));
    let remedy = remedy(&log_ratio, level, rule, &turns, record);
    let floor = floor(record, after);
    line.size = Size::Estimated { log_ratio, interval, p, adjusted_p: p, floor, remedy };
    Some(line)
}

/// How many pairs would settle it: an interval that fits between the change
/// and the nearer end of the margin.
fn remedy(estimate: &Estimate, level: f64, rule: &Rule, turns: &Turns, record: &Record) -> String {
    // Seconds that a draw took: a pair, or all pairs of the same layouts.
    let each = record.elapsed_ns as f64 / 1e9 / estimate.n.max(1) as f64;
    let change = (estimate.mean.exp() - 1.0).abs();
    let half = (change - rule.margin).abs().max(rule.margin / 4.0);
    match estimate.needed(half, level).map(|n| n.max(estimate.n + 1)) {
        Some(n) => {
            let layouts = match turns.layouts {
                have if have == 1 || have >= n => String::new(),
                _ => format!(" of as many layouts (--layouts={n})"),
            };
            format!(
                "about {n} pairs{layouts} ({:.0} s: --time), or a quieter machine",
                (n as f64 * each).ceil()
            )
        }
        None => "a quieter machine".into(),
    }
}

/// The least difference of one iteration that the clock could tell.
fn floor(record: &Record, metric: &Metric) -> f64 {
    let precision = record.facts.get("clock_precision_ns").and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let iterations = metric.series.samples.iter().map(|s| s.iterations).min().unwrap_or(1);
    precision / iterations.max(1) as f64
}

/// The line of a time that both sides stored, from the processes of each.
pub(super) fn stored(before: &[&Record], after: &[&Record], metric: &Metric, rule: &Rule) -> Option<Line> {
    let of = |records: &[&Record]| -> Vec<Medians> {
        records.iter().filter_map(|record| Medians::of(record, metric)).collect()
    };
    let (was, is) = (of(before), of(after));
    let (first, last) = (was.first()?, after.last()?);
    let mut line = bare(last, metric);
    let middle = |medians: &[Medians]| median(&sorted(&medians.iter().map(|m| m.median).collect::<Vec<_>>()));
    (line.before, line.after) = (middle(&was), middle(&is));
    if first.median <= 0.0 || line.after <= 0.0 {
        line.size = Size::None("a time of zero has no ratio".into());
        return Some(line);
    }
    if !say_themselves(&was, &is) && was.iter().chain(&is).any(|m| m.alone) {
        // The assumed spread is that of medians of many samples; a percentile
        // of single operations moves by more, and nobody knows by how much.
        line.size = Size::None(ALONE.into());
        return Some(line);
    }
    let (log_ratio, remedy) = difference(&was, &is)?;
    let p = log_ratio.p(0.0);
    let interval = shares(log_ratio.interval(rule.level));
    let floor = floor(last, metric);
    line.size = Size::Estimated { log_ratio, interval, p, adjusted_p: p, floor, remedy };
    Some(line)
}

/// The median of one process, and the error of its logarithm within it.
struct Medians {
    median: f64,
    error: f64,
    /// It is of one sample, and says nothing of its own error.
    alone: bool,
}

impl Medians {
    fn of(record: &Record, like: &Metric) -> Option<Self> {
        let same = |m: &&Metric| m.series.metric == like.series.metric && m.series.party == like.series.party;
        let metric = record.metrics.iter().find(same)?;
        let summary = &metric.summary;
        let (low, high) = summary.median_ci;
        // The 95 % interval of a normal value is 3.92 deviations wide.
        let error = if low > 0.0 { (high / low).ln() / 3.92 } else { 0.0 };
        Some(Self { median: summary.median, error, alone: metric.series.samples.len() == 1 })
    }
}

/// Whether there are processes enough on both sides to say how far they are apart.
fn say_themselves(was: &[Medians], is: &[Medians]) -> bool {
    was.len() >= ENOUGH && is.len() >= ENOUGH
}

/// After less before, and what would say more.
fn difference(was: &[Medians], is: &[Medians]) -> Option<(Estimate, String)> {
    let logs = |all: &[Medians]| all.iter().map(|m| m.median.ln()).collect::<Vec<_>>();
    if say_themselves(was, is) {
        let text = "more processes on both sides, or --against, which measures both builds in turn";
        return Some((Estimate::of_difference(&logs(was), &logs(is))?, text.into()));
    }
    let variance = |all: &[Medians]| {
        let within: f64 = all.iter().map(|m| m.error.powi(2)).sum();
        (within / all.len() as f64 + ASSUMED_SPREAD.powi(2)) / all.len() as f64
    };
    let mean = |all: &[Medians]| logs(all).iter().sum::<f64>() / all.len() as f64;
    let estimate = Estimate {
        mean: mean(is) - mean(was),
        error: (variance(was) + variance(is)).sqrt(),
        n: was.len().min(is.len()),
        freedom: KNOWN,
    };
    let spread = 100.0 * ASSUMED_SPREAD;
    let text = format!(
        "--against, which measures both builds in turn ({} and {} processes were stored, and processes of one \
         executable are taken to differ by {spread} %)",
        was.len(),
        is.len()
    );
    Some((estimate, text))
}
