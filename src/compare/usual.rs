//! What is usual from run to run of the main line, learnt from a history: a
//! limit for each scenario and metric.
//!
//! Neighbours: `settle` asks it for each line; `store` reads the history.

use std::collections::BTreeMap;

use super::line::Line;
use crate::stats::unusual_change;
use crate::store::{Point, history_key};

/// What a history says of one metric of a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learnt {
    /// Changes between neighbours above this share are unusual; `None` where
    /// there are too few runs.
    pub unusual: Option<f64>,
    /// Runs in the history.
    pub runs: usize,
}

/// Scenario, meter, and metric with party and unit.
type Key = (String, String, String);

/// What a history says of all metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usual(BTreeMap<Key, Learnt>);

impl Usual {
    /// Learns from the points of each scenario, in their order. Where two
    /// suites have a scenario of one name, the wider limit holds for both.
    pub fn of(history: &[Vec<Point>]) -> Self {
        let mut all = BTreeMap::new();
        for points in history {
            let Some(last) = points.last() else { continue };
            for metric in last.medians.keys() {
                let values: Vec<f64> =
                    points.iter().filter_map(|point| point.medians.get(metric).copied()).collect();
                let learnt = Learnt { unusual: unusual_change(&values), runs: values.len() };
                let known: &mut Learnt =
                    all.entry((last.scenario.clone(), last.mode.clone(), metric.clone())).or_insert(learnt);
                if learnt.unusual > known.unusual {
                    *known = learnt;
                }
            }
        }
        Self(all)
    }

    /// Whether there is no history at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is known of a line.
    pub(super) fn about(&self, line: &Line) -> Option<Learnt> {
        let key = history_key(line.party.as_deref(), &line.metric, line.unit);
        self.0.get(&(line.scenario.clone(), line.mode.clone(), key)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{counted, timed};
    use super::super::{Comparison, Kinship, Limits, Rule, Verdict, compare};
    use super::*;
    use crate::store::Record;

    /// A history of so many runs whose medians are these, one after the other, again and again.
    fn history(scenario: &str, mode: &str, metric: &str, medians: &[f64], runs: usize) -> Vec<Point> {
        let point = |(at, median): (usize, &f64)| Point {
            history: 1,
            started: format!("2026-01-{:02}T00:00:00Z", at + 1),
            run_id: format!("run{at}"),
            commit: "c".into(),
            suite: "s".into(),
            scenario: scenario.into(),
            mode: mode.into(),
            medians: [(metric.to_string(), *median)].into(),
        };
        medians.iter().cycle().take(runs).enumerate().map(point).collect()
    }

    fn judged(before: Record, after: Record, rule: &Rule) -> Line {
        let Comparison { mut lines, .. } = compare(&[before], &[after], Kinship::Stored, rule);
        lines.remove(0)
    }

    /// Counts go up and down by 2 %: so much is usual.
    fn rule(runs: usize, limits: &str) -> Rule {
        let history = history("a", "cachegrind", "instructions instructions", &[1_000.0, 1_020.0], runs);
        let limits =
            if limits.is_empty() { Limits::default() } else { Limits::parse(limits).expect("limits") };
        Rule { usual: Usual::of(&[history]), limits, ..Rule::default() }
    }

    #[test]
    fn what_is_usual_does_not_fail_and_what_is_not_does() {
        let judge = |after: u64, rule: &Rule| judged(counted("a", 100_000), counted("a", after), rule);
        let usual = judge(101_000, &rule(12, ""));
        assert_eq!((&usual.verdict, usual.fails), (&Verdict::Slower, false));
        let Learnt { unusual, runs } = usual.usual.expect("a history");
        assert_eq!((runs, unusual.map(|share| (1_000.0 * share).round())), (12, Some(21.0)));
        assert!(judge(103_000, &rule(12, "")).fails);
        // Nine runs say nothing, and the limit is that of counts: nothing.
        assert!(judge(100_001, &rule(9, "")).fails);
        assert_eq!(judge(100_001, &rule(9, "")).usual, Some(Learnt { unusual: None, runs: 9 }));
        // One that is typed by name is what holds.
        assert!(judge(101_000, &rule(12, "ir=0.5%")).fails);
        // One without a name is for all: the wider of the two holds.
        assert!(!judge(101_000, &rule(12, "0.5%")).fails && judge(103_000, &rule(12, "0.5%")).fails);
        // Another scenario has no history.
        assert_eq!(judged(counted("b", 1), counted("b", 2), &rule(12, "")).usual, None);
    }

    #[test]
    fn times_are_never_held_to_less_than_the_margin() {
        // Hardly any change from run to run.
        let calm = Usual::of(&[history("a", "walltime", "wall_time ns", &[1_000.0, 1_000.1], 12)]);
        let rule = Rule { usual: calm, margin: 0.9, ..Rule::default() };
        // Ten times as long is called from stored records, and is beyond the margin of 90 %.
        assert!(judged(timed("a", 1_000), timed("a", 10_000), &rule).fails);
        let wild = Usual::of(&[history("a", "walltime", "wall_time ns", &[1_000.0, 20_000.0], 12)]);
        let rule = Rule { usual: wild, ..Rule::default() };
        let line = judged(timed("a", 1_000), timed("a", 10_000), &rule);
        assert_eq!((&line.verdict, line.fails), (&Verdict::Slower, false));
    }
}
