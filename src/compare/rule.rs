//! The rule by which a verdict is given, as the user set it.
//!
//! Neighbours: `settle` applies it; `cli` resolves it.

use super::limits::Limits;
use super::usual::Usual;
use crate::stats::Spending;

/// What is done about many tests in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Many {
    /// Holm: the chance that any of the calls is false stays within the level.
    #[default]
    Holm,
    /// Benjamini and Hochberg: the share of false calls among the calls does.
    BenjaminiHochberg,
}

/// The rule of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Changes of a time up to this share are no change.
    pub margin: f64,
    /// The chance of a false call, for all calls of the run together.
    pub level: f64,
    /// What is done about many tests.
    pub many: Many,
    /// How much worse a metric may be.
    pub limits: Limits,
    /// Compare what should not be compared, and say so in each line.
    pub force: bool,
    /// What is usual from run to run, where a history was given.
    pub usual: Usual,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            margin: 0.01,
            level: 0.01,
            many: Many::Holm,
            limits: Limits::default(),
            force: false,
            usual: Usual::default(),
        }
    }
}

impl Rule {
    /// How the level is spent over the looks at pairs: the square keeps most
    /// of it for later, when there are pairs enough to see a few per cent.
    pub const SPENDING: Spending = Spending::Power(2.0);

    /// The rule for times in words.
    pub fn words_on_times(&self) -> String {
        let (margin, level) = (percent(self.margin), percent(self.level));
        let many = match self.many {
            Many::Holm => "for all of them together (Holm)",
            Many::BenjaminiHochberg => "as their share among all calls (Benjamini-Hochberg)",
        };
        format!(
            "times: slower or faster when significant (false calls: at most {level}, {many}), beyond {margin}, \
             and beyond what the clock resolves; same when the {} interval lies within ±{margin}; else not \
             known; in turn: t of the trimmed mean over pairs of processes, p and interval count all looks at growing \
             data (sequential); limit: {}",
            percent(1.0 - self.level),
            self.limits.of_time("wall_time", self.margin).words()
        )
    }

    /// The limits that were learnt, in words.
    pub fn words_on_usual(&self) -> String {
        "usual: changes from run to run in the history, up to the upper quartile and three interquartile ranges \
         (from ten runs on); a change within it does not fail, unless --max-regress names the metric"
            .into()
    }

    /// The rule for all other metrics in words.
    pub fn words_on_counts(&self) -> String {
        format!("counts: exact; limits: {}", self.limits.words())
    }
}

/// A share as people type it: `0.1 %`.
pub(super) fn percent(share: f64) -> String {
    let hundredths = format!("{:.3}", 100.0 * share);
    format!("{} %", hundredths.trim_end_matches('0').trim_end_matches('.'))
}
