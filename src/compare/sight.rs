//! How small a change a machine can see in a given time, from a scenario that
//! was measured in turn with itself.
//!
//! A change is seen when 95 of 100 comparisons would call it: when it is so
//! far above what the rule asks (significant with all tests and looks
//! accounted for, and beyond the margin) that chance brings it below in one
//! of twenty only. Neighbours: `turns` has the rule that is planned for.

use super::rule::Rule;
use super::turns::{Turns, next_look};
use crate::stats::{Look, levels, t_critical};
use crate::store::Record;

/// How often a change that is there must be called.
pub const SEEN: f64 = 0.95;

/// Fewer pairs than this are never taken.
const LEAST: usize = 5;

/// More pairs than this are no plan.
const MOST: usize = 20_000;

/// How far pairs of processes are apart, and how long one takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// Standard deviation of the logarithm of a pair (of all pairs of the same
    /// layouts together, where builds have many) where the ends count as the
    /// nearest value that is kept, which is what a trimmed mean feels.
    pub deviation: f64,
    /// Seconds that a pair takes.
    pub pair_s: f64,
    /// Pairs it is known from.
    pub pairs: usize,
}

impl Sight {
    /// What a record in turn says; `None` for any other record.
    pub fn of(record: &Record) -> Option<Self> {
        let turns = Turns::of(record)?;
        let estimate = turns.estimate(turns.log_ratios.len())?;
        let pairs = estimate.n as f64;
        Some(Self {
            deviation: estimate.error / error_of(estimate.n),
            pair_s: record.elapsed_ns as f64 / 1e9 / pairs,
            pairs: estimate.n,
        })
    }

    /// The smallest change, as a share, that is seen in so many seconds, when
    /// `family` tests are made.
    pub fn smallest(&self, seconds: f64, rule: &Rule, family: usize) -> f64 {
        self.smallest_of((seconds / self.pair_s) as usize, rule, family)
    }

    /// Seconds after which a change of this share is seen; `None` when it is
    /// not beyond the margin, or would take more than 20_000 pairs.
    pub fn time_to_see(&self, change: f64, rule: &Rule, family: usize) -> Option<f64> {
        self.time(change > rule.margin, |pairs| self.smallest_of(pairs, rule, family) <= change)
    }

    /// Seconds after which two equal builds are called the same, 95 times of 100.
    pub fn time_to_agree(&self, rule: &Rule) -> Option<f64> {
        self.time(true, |pairs| {
            let planned = self.planned(pairs, rule.level);
            let away = t_critical(1.0 - SEEN, planned.freedom) * planned.error;
            planned.half + away <= rule.margin.ln_1p()
        })
    }

    fn smallest_of(&self, pairs: usize, rule: &Rule, family: usize) -> f64 {
        let planned = self.planned(pairs, rule.level / family.max(1) as f64);
        // One-sided: only what falls short counts.
        let chance = t_critical(2.0 * (1.0 - SEEN), planned.freedom) * planned.error;
        (planned.half.max(rule.margin.ln_1p()) + chance).exp_m1()
    }

    /// What so many pairs would say, at the level that is left for the last look.
    fn planned(&self, pairs: usize, level: f64) -> Planned {
        let n = pairs.clamp(LEAST, MOST);
        let freedom = kept(n) - 1.5;
        let error = self.deviation * error_of(n);
        let last = levels(level, Rule::SPENDING, &looks(n)).last().copied().unwrap_or(level);
        Planned { error, freedom, half: t_critical(last, freedom) * error }
    }

    /// The time of the least number of pairs for which `enough` holds.
    fn time(&self, possible: bool, enough: impl Fn(usize) -> bool) -> Option<f64> {
        if !possible || !enough(MOST) {
            return None;
        }
        let (mut low, mut high) = (LEAST - 1, MOST);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high as f64 * self.pair_s)
    }
}

/// Values that a trimmed mean keeps of `n`.
fn kept(n: usize) -> f64 {
    (n - 2 * (n / 5)) as f64
}

/// The error of the trimmed mean of `n` values whose deviation, the ends drawn in, is 1.
fn error_of(n: usize) -> f64 {
    let h = kept(n);
    (n as f64 * (1.0 + 1.2 / h) / (h * (h - 1.0))).sqrt()
}

struct Planned {
    error: f64,
    freedom: f64,
    /// Half the width of the interval.
    half: f64,
}

/// The looks at `n` pairs that use the whole time.
fn looks(n: usize) -> Vec<Look> {
    let before = std::iter::successors(Some(next_look(0)), |look| Some(next_look(*look)));
    let mut looks: Vec<Look> = before
        .take_while(|look| *look < n)
        .map(|look| Look { n: look as f64, share: look as f64 / n as f64 })
        .collect();
    looks.push(Look { n: n as f64, share: 1.0 });
    looks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Estimate;

    /// Sums of twelve uniform values are near enough to normal ones.
    fn normal(rng: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
    }

    /// How often of 200 a change is called at one of the looks.
    fn called(deviation: f64, pairs: usize, change: f64, family: usize) -> usize {
        let (rule, mut rng, plan) = (Rule::default(), fastrand::Rng::with_seed(11), looks(pairs));
        let level = rule.level / family as f64;
        let bounds: Vec<f64> = (1..=plan.len())
            .map(|k| *levels(level, Rule::SPENDING, &plan[..k]).last().expect("a look"))
            .collect();
        let one = |rng: &mut fastrand::Rng| {
            let all: Vec<f64> = (0..pairs).map(|_| change.ln_1p() + deviation * normal(rng)).collect();
            plan.iter().zip(&bounds).any(|(look, bound)| {
                let seen = Estimate::of_trimmed(&all[..look.n as usize]).expect("values");
                seen.mean.abs() > rule.margin.ln_1p() && seen.p(0.0) <= *bound
            })
        };
        (0..200).filter(|_| one(&mut rng)).count()
    }

    #[test]
    fn the_smallest_change_is_called_as_often_as_it_says_and_half_of_it_is_not() {
        let mut rng = fastrand::Rng::with_seed(5);
        let many: Vec<f64> = (0..5_000).map(|_| 0.02 * normal(&mut rng)).collect();
        let felt = Estimate::of_trimmed(&many).expect("values").error / error_of(many.len());
        let sight = Sight { deviation: felt, pair_s: 0.1, pairs: 5_000 };
        for (pairs, family) in [(12, 1), (30, 4)] {
            let smallest = sight.smallest_of(pairs, &Rule::default(), family);
            // Of 200 at 95 % one standard deviation is 3.
            let often = called(0.02, pairs, smallest, family);
            assert!((181..=200).contains(&often), "{pairs} pairs, {smallest}: {often} of 200");
            let seldom = called(0.02, pairs, smallest / 2.0, family);
            assert!(seldom <= 100, "{pairs} pairs, {smallest}: half of it {seldom} of 200");
        }
    }

    #[test]
    fn times_and_changes_are_the_same_plan_read_both_ways() {
        let sight = Sight { deviation: 0.03, pair_s: 0.2, pairs: 50 };
        let rule = Rule::default();
        let time = sight.time_to_see(0.02, &rule, 3).expect("possible");
        assert!(sight.smallest(time + 0.01, &rule, 3) <= 0.02);
        assert!(sight.smallest(0.9 * time, &rule, 3) > 0.02);
        assert!(
            sight.time_to_see(0.05, &rule, 3) < Some(time) && sight.time_to_see(0.02, &rule, 1) < Some(time)
        );
        // What is not beyond the margin is never called.
        assert_eq!(sight.time_to_see(rule.margin, &rule, 1), None);
        // Twice the spread takes about four times as long.
        let twice = Sight { deviation: 0.06, ..sight }.time_to_agree(&rule).expect("possible");
        let ratio = twice / sight.time_to_agree(&rule).expect("possible");
        assert!((3.5..4.6).contains(&ratio), "{ratio}");
        assert_eq!(Sight { deviation: 5.0, ..sight }.time_to_agree(&rule), None);
    }
}
