//! Counts, memory and system calls: exact values, so any difference is real.
//!
//! Neighbours: `settle` calls it; `times` is for what is not exact.

use super::line::{Line, Size, Verdict};
use crate::store::{Metric, Record};

/// A line for each metric that both records have in the same unit.
pub(super) fn lines(before: &Record, after: &Record, is_exact: impl Fn(&Metric) -> bool) -> Vec<Line> {
    let of = |metric: &Metric| {
        let twin = before.metrics.iter().find(|m| {
            m.series.metric == metric.series.metric
                && m.series.party == metric.series.party
                && m.series.unit == metric.series.unit
        })?;
        Some(line(after, twin, metric))
    };
    after.metrics.iter().filter(|m| is_exact(m)).filter_map(of).collect()
}

fn line(record: &Record, before: &Metric, after: &Metric) -> Line {
    let mut line = bare(record, after);
    (line.before, line.after) = (before.summary.median, after.summary.median);
    line.verdict = if !agree(before, after) {
        Verdict::NotKnown(
            "the samples disagree about the direction: more --seeds, or a body without chance".into(),
        )
    } else if line.before == line.after {
        Verdict::Same
    } else {
        line.called()
    };
    line
}

/// A line without values.
pub(super) fn bare(record: &Record, metric: &Metric) -> Line {
    Line {
        suite: record.suite.clone(),
        scenario: record.scenario.clone(),
        mode: record.mode.clone(),
        metric: metric.series.metric.clone(),
        party: metric.series.party.clone(),
        unit: metric.series.unit,
        direction: metric.series.direction,
        before: f64::NAN,
        after: f64::NAN,
        size: Size::Exact,
        verdict: Verdict::Same,
        fails: false,
        usual: None,
        marks: Vec::new(),
        moved: Vec::new(),
    }
}

/// Whether the samples of both sides (one a seed) all moved the same way.
/// Where their numbers differ, the ranges must not overlap.
fn agree(before: &Metric, after: &Metric) -> bool {
    let (was, is) = (before.series.per_iteration(), after.series.per_iteration());
    if was.len() == is.len() {
        let up = was.iter().zip(&is).any(|(was, is)| is > was);
        let down = was.iter().zip(&is).any(|(was, is)| is < was);
        return !(up && down);
    }
    let (a, b) = (&before.summary, &after.summary);
    let constant = a.min == a.max && b.min == b.max;
    constant || a.max < b.min || b.max < a.min
}
