//! The comparison of two sides: lines for all that can be compared, and the
//! verdicts, once the number of tests is known.
//!
//! Neighbours: `exact` and `times` make the lines; reports show them.

use super::comparable::{Kinship, differences};
use super::exact::{self, bare};
use super::functions::moved;
use super::limits::Limit;
use super::line::{Line, Size, Verdict};
use super::pairs::{Sides, sides};
use super::rule::{Many, Rule};
use super::times;
use super::turns::{BASELINE_SUFFIX, Turns};
use crate::stats::{benjamini_hochberg, holm, is_equivalent};
use crate::store::{Metric, Record, Status};
use crate::units::Unit;

/// Functions that are named where a count moved.
const MOVED: usize = 3;

/// Both sides of a run, compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// What could be compared, by scenario.
    pub lines: Vec<Line>,
    /// What could not: scenario, meter, and why.
    pub unmatched: Vec<(String, String, String)>,
    /// Metrics that were given a limit and that no line has.
    pub unknown_limits: Vec<String>,
}

impl Comparison {
    /// Whether something is worse than its limit allows.
    pub fn fails(&self) -> bool {
        self.lines.iter().any(|line| line.fails)
    }
}

/// Compares all records of two sides.
pub fn compare(before: &[Record], after: &[Record], kinship: Kinship, rule: &Rule) -> Comparison {
    let mut comparison = Comparison::default();
    for ((scenario, mode, _), sides) in sides(before, after) {
        let lines = lines(&sides, kinship, rule);
        if lines.is_empty() && mode != "smoke" {
            comparison.unmatched.push((scenario, mode, why_not(&sides)));
        }
        comparison.lines.extend(lines);
    }
    let tested: Vec<f64> = comparison.lines.iter().filter_map(p_of).collect();
    let mut adjusted = match rule.many {
        Many::Holm => holm(&tested),
        Many::BenjaminiHochberg => benjamini_hochberg(&tested),
    }
    .into_iter();
    for line in &mut comparison.lines {
        let p = p_of(line).and_then(|_| adjusted.next());
        settle(line, p, rule);
    }
    let known = |name: &&str| comparison.lines.iter().any(|line| line.metric == *name);
    let unknown = rule.limits.names().filter(|name| !known(name)).map(str::to_string).collect();
    comparison.unknown_limits = unknown;
    comparison
}

/// Compares one record before the others of its run are known: each p value
/// counts `family` times (Bonferroni), so whatever is called here will be
/// called when all are known.
pub fn judge_alone(
    before: &[Record],
    after: &Record,
    kinship: Kinship,
    rule: &Rule,
    family: usize,
) -> Vec<Line> {
    let ours = std::slice::from_ref(after);
    let mut all = Vec::new();
    for (_, sides) in sides(before, ours) {
        all.extend(lines(&sides, kinship, rule));
    }
    for line in &mut all {
        let p = p_of(line).map(|p| (p * family.max(1) as f64).min(1.0));
        settle(line, p, rule);
    }
    all
}

fn p_of(line: &Line) -> Option<f64> {
    match &line.size {
        Size::Estimated { p, .. } => Some(*p),
        Size::Exact | Size::None(_) => None,
    }
}

/// The lines of one scenario and meter, without verdicts on times yet.
fn lines(sides: &Sides<'_>, kinship: Kinship, rule: &Rule) -> Vec<Line> {
    let (before, after) = sides.measured();
    let Some(last) = after.last() else { return Vec::new() };
    if Turns::of(last).is_some() {
        return times::in_turn(last, rule);
    }
    let Some(reference) = before.last() else { return Vec::new() };
    let differences = differences(reference, last, kinship);
    if !differences.is_empty() && !rule.force {
        return last
            .metrics
            .first()
            .map(|metric| refused(last, reference, metric, &differences))
            .into_iter()
            .collect();
    }
    let mut lines: Vec<Line> = Vec::new();
    for metric in last.metrics.iter().filter(|m| is_whole_time(m)) {
        lines.extend(times::stored(&before, &after, metric, rule));
    }
    lines.extend(exact::lines(reference, last, |m| m.series.unit != Unit::Nanoseconds));
    for line in &mut lines {
        line.marks.clone_from(&differences);
        if line.metric == "instructions" && line.party.is_none() && line.before != line.after {
            line.moved = moved(reference, last, MOVED);
        }
    }
    lines
}

fn is_whole_time(metric: &Metric) -> bool {
    let series = &metric.series;
    series.unit == Unit::Nanoseconds && series.party.is_none() && !series.metric.ends_with(BASELINE_SUFFIX)
}

fn refused(last: &Record, reference: &Record, metric: &Metric, differences: &[String]) -> Line {
    let mut line = bare(last, metric);
    line.after = metric.summary.median;
    line.before = reference.metrics.first().map_or(f64::NAN, |m| m.summary.median);
    line.size = Size::None(format!("not comparable: {} (--force compares anyway)", differences.join("; ")));
    line
}

/// Gives the verdict on a line whose p value, with all tests accounted for, is `p`.
fn settle(line: &mut Line, p: Option<f64>, rule: &Rule) {
    let called = line.called();
    line.usual = rule.usual.about(line);
    // A limit that is typed by name is what the user wants, whatever is usual.
    let learnt =
        line.usual.and_then(|learnt| learnt.unusual).filter(|_| rule.limits.named(&line.metric).is_none());
    let before = line.before;
    let is_unusual = |worse: f64| learnt.is_none_or(|share| Limit::Share(share).is_exceeded(before, worse));
    let (change, worse) = (line.change(), line.worse_by());
    match &mut line.size {
        Size::None(reason) => line.verdict = Verdict::NotKnown(reason.clone()),
        Size::Exact => {
            let limit = rule.limits.of_count(&line.metric);
            line.fails =
                line.verdict == Verdict::Slower && limit.is_exceeded(before, worse) && is_unusual(worse);
        }
        Size::Estimated { interval, adjusted_p, floor, remedy, .. } => {
            *adjusted_p = p.unwrap_or(*adjusted_p);
            let beyond = change.is_some_and(|change| change.abs() > rule.margin) && worse.abs() > *floor;
            line.verdict = if *adjusted_p <= rule.level && beyond {
                called
            } else if is_equivalent(*interval, (-rule.margin, rule.margin)) {
                Verdict::Same
            } else {
                Verdict::NotKnown(remedy.clone())
            };
            let limit = rule.limits.of_time(&line.metric, rule.margin);
            line.fails =
                line.verdict == Verdict::Slower && limit.is_exceeded(before, worse) && is_unusual(worse);
        }
    }
}

/// Why nothing of a scenario could be compared.
fn why_not(sides: &Sides<'_>) -> String {
    let side = |records: &[&Record], when: &str| match records.last().map(|r| &r.status) {
        None => Some(format!("not there {when}")),
        Some(Status::Ok) => None,
        Some(Status::Failed(reason)) => Some(format!("failed {when}: {reason}")),
        Some(Status::TimedOut(_)) => Some(format!("timed out {when}")),
        Some(Status::Ignored(reason)) => Some(format!("ignored {when}: {reason}")),
    };
    let reasons: Vec<String> =
        [side(&sides.before, "before"), side(&sides.after, "now")].into_iter().flatten().collect();
    if reasons.is_empty() { "no metric in common".into() } else { reasons.join("; ") }
}
