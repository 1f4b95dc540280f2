//! One line of a comparison: a metric of a scenario, before and after.
//!
//! Neighbours: `exact` and `times` make lines, `settle` gives the verdicts.

use super::usual::Learnt;
use crate::stats::Estimate;
use crate::units::{Direction, Unit};

/// The answer to "did it get slower?".
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It got worse.
    Slower,
    /// It got better.
    Faster,
    /// It is the same: exactly, or within the margin.
    Same,
    /// It cannot be told; what would settle it.
    NotKnown(String),
}

impl Verdict {
    /// The word for a metric of this unit.
    pub fn word(&self, unit: Unit) -> &'static str {
        let is_speed = matches!(unit, Unit::Nanoseconds | Unit::Instructions | Unit::Cycles);
        match (self, is_speed) {
            (Self::Slower, true) => "slower",
            (Self::Slower, false) => "worse",
            (Self::Faster, true) => "faster",
            (Self::Faster, false) => "better",
            (Self::Same, _) => "same",
            (Self::NotKnown(_), _) => "not known",
        }
    }
}

/// How large a change is.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// Two exact values.
    Exact,
    /// The logarithm of the ratio, estimated.
    Estimated {
        /// Mean and error of the logarithm of after over before.
        log_ratio: Estimate,
        /// Interval of the change as a share, at the rule's level.
        interval: (f64, f64),
        /// p value of "no change", with all looks accounted for.
        p: f64,
        /// The same with all tests of the run accounted for.
        adjusted_p: f64,
        /// The least difference, in the metric's unit, that the clock could tell.
        floor: f64,
        /// What would settle it if it is not known.
        remedy: String,
    },
    /// Not compared, for this reason.
    None(String),
}

/// One metric of a scenario, before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The bench target.
    pub suite: String,
    /// The scenario.
    pub scenario: String,
    /// The meter.
    pub mode: String,
    /// The metric.
    pub metric: String,
    /// The party, if it is that of one.
    pub party: Option<String>,
    /// The unit of `before` and `after`.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// The value before, for one iteration.
    pub before: f64,
    /// The value after.
    pub after: f64,
    /// How large the change is.
    pub size: Size,
    /// The answer.
    pub verdict: Verdict,
    /// Whether it is worse than its limit allows.
    pub fails: bool,
    /// What is usual for it, where a history was given that has it.
    pub usual: Option<Learnt>,
    /// What differs between the sides that should not, and was forced.
    pub marks: Vec<String>,
    /// Functions whose counts moved most, with the difference.
    pub moved: Vec<(String, i64)>,
}

impl Line {
    /// The change as a share of the value before; `None` when that is zero.
    pub fn change(&self) -> Option<f64> {
        match &self.size {
            Size::Estimated { log_ratio, .. } => Some(log_ratio.mean.exp() - 1.0),
            _ if self.before == self.after => Some(0.0),
            _ => (self.before != 0.0).then(|| self.after / self.before - 1.0),
        }
    }

    /// By how much it got worse, in its unit; below zero when it got better.
    pub fn worse_by(&self) -> f64 {
        let change = match &self.size {
            // The ratio within pairs says more than the two medians over all of them.
            Size::Estimated { log_ratio, .. } => self.before * (log_ratio.mean.exp() - 1.0),
            _ => self.after - self.before,
        };
        match self.direction {
            Direction::LowerIsBetter => change,
            Direction::HigherIsBetter => -change,
        }
    }

    /// The verdict for a change to the worse or to the better.
    pub fn called(&self) -> Verdict {
        if self.worse_by() > 0.0 { Verdict::Slower } else { Verdict::Faster }
    }
}
