//! The tables of a comparison as Markdown: times with ratios and their
//! intervals, then system calls and instructions.
//!
//! Neighbours: `table` measures what is shown here.

use std::fmt;

use super::costs::{Cost, NAMES};
use super::table::COLUMNS;
use crate::stats::{median, median_interval, order_statistic_interval, sorted};

/// The level of the intervals.
const LEVEL: f64 = 0.95;

/// What was measured of a row.
pub(super) struct Figures {
    pub label: &'static str,
    /// Nanoseconds an operation, of each column and round; empty for what cannot do it.
    pub times: Vec<Vec<f64>>,
    /// Of each column of this process; empty where nothing was counted.
    pub costs: Vec<Cost>,
}

/// Where and how.
pub(super) struct Heading {
    pub file_system: String,
    pub rounds: usize,
}

/// All of it.
pub(super) struct Measured {
    pub heading: Heading,
    pub figures: Vec<Figures>,
    /// Why places are empty.
    pub lacking: Vec<String>,
    pub failures: Vec<String>,
}

/// The median of ratios, round by round, and its interval.
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    fn of(these: &[f64], those: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = these.iter().zip(those).map(|(a, b)| a / b.max(1.0)).collect();
        if ratios.is_empty() {
            return None;
        }
        let ratios = sorted(&ratios);
        let exact = order_statistic_interval(&ratios, LEVEL);
        let (low, high) = exact.unwrap_or_else(|| median_interval(&ratios, LEVEL, 1));
        Some(Self { median: median(&ratios), low, high })
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} [{:.2}, {:.2}]", self.median, self.low, self.high)
    }
}

impl Figures {
    /// The peer with the lowest median, by its column.
    fn best_peer(&self) -> Option<usize> {
        let median = |column: &usize| self.times.get(*column).map(|times| median(&sorted(times)));
        let there =
            (2..COLUMNS.len()).filter(|column| self.times.get(*column).is_some_and(|t| !t.is_empty()));
        there.min_by(|a, b| median(a).partial_cmp(&median(b)).unwrap_or(std::cmp::Ordering::Equal))
    }

    fn times_line(&self) -> String {
        let floor = self.times.first().map_or(&[][..], Vec::as_slice);
        let mut line = format!("| {} | {} |", self.label, micros(floor));
        for times in self.times.iter().skip(1) {
            let cell = Ratio::of(times, floor).map_or_else(|| "-".to_owned(), |ratio| ratio.to_string());
            line.push_str(&format!(" {cell} |"));
        }
        let ours = self.times.get(1).map_or(&[][..], Vec::as_slice);
        let best = self.best_peer().and_then(|at| Some((COLUMNS[at], Ratio::of(ours, &self.times[at])?)));
        let best = best.map_or_else(|| "-".to_owned(), |(name, ratio)| format!("{ratio} of {name}"));
        line.push_str(&format!(" {best} |"));
        line
    }

    fn costs_line(&self) -> String {
        let mut line = format!("| {} |", self.label);
        for cost in &self.costs {
            let calls = cost.calls.map_or_else(|| "-".to_owned(), |n| format!("{n:.2}"));
            let instructions = cost.instructions.map_or_else(|| "-".to_owned(), |n| format!("{n:.0}"));
            line.push_str(&format!(" {calls} / {instructions} |"));
        }
        line
    }
}

fn micros(times: &[f64]) -> String {
    if times.is_empty() { "-".to_owned() } else { format!("{:.2}", median(&sorted(times)) / 1e3) }
}

fn heads(names: &[&str]) -> String {
    format!("| {} |\n|{}", names.join(" | "), " --- |".repeat(names.len()))
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Heading { file_system, rounds } = &self.heading;
        writeln!(
            f,
            "Time of an operation on {file_system}, page cache warm. The floor is bare system calls on a plain \
             file, in µs (median of {rounds} rounds in turns); the others are ratios to it, the last column is \
             ours to the best peer: the median of the rounds' ratios and its 95 % confidence interval. Lower is \
             better; - is what a subject cannot do.\n"
        )?;
        let mut names = vec!["", "floor, µs"];
        names.extend(&COLUMNS[1..]);
        names.push("wallgrind to the best peer");
        writeln!(f, "{}", heads(&names))?;
        self.figures.iter().try_for_each(|figures| writeln!(f, "{}", figures.times_line()))?;
        if self.figures.iter().any(|figures| !figures.costs.is_empty()) {
            let text = "\nSystem calls (strace) / instructions in user space (Valgrind) of an operation; lower is \
                        better. qemu is another process, and is not counted.\n";
            writeln!(f, "{text}")?;
            let mut names = vec![""];
            names.extend(NAMES);
            writeln!(f, "{}", heads(&names))?;
            self.figures.iter().try_for_each(|figures| writeln!(f, "{}", figures.costs_line()))?;
        }
        if !self.lacking.is_empty() {
            writeln!(f, "\nWhat is empty, and why:\n")?;
            self.lacking.iter().try_for_each(|reason| writeln!(f, "- {reason}"))?;
        }
        self.failures.iter().try_for_each(|failure| writeln!(f, "\nfailed: {failure}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let times = vec![vec![2_000.0; 9], vec![3_000.0; 9], vec![], vec![4_000.0; 9], vec![20_000.0; 9]];
        let costs = vec![Cost { calls: Some(1.0), instructions: Some(150.4) }, Cost::default()];
        Measured {
            heading: Heading { file_system: "ext4".into(), rounds: 9 },
            figures: vec![Figures { label: "a row", times, costs }],
            lacking: vec!["a row, imago: it has no rows".into()],
            failures: vec!["a row: imago: it broke".into()],
        }
    }

    #[test]
    fn ratios_are_to_the_floor_and_to_the_best_peer() {
        let text = measured().to_string();
        let row = "| a row | 2.00 | 1.50 [1.50, 1.50] | - | 2.00 [2.00, 2.00] | 10.00 [10.00, 10.00] | \
                   0.75 [0.75, 0.75] of qcow2_rs |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| a row | 1.00 / 150 | - / - |"), "{text}");
        assert!(text.contains("- a row, imago: it has no rows"));
        assert!(text.contains("failed: a row: imago: it broke"));
    }

    #[test]
    fn an_interval_is_as_wide_as_the_rounds_are_apart() {
        let ours: Vec<f64> = (0..21).map(|round| 1000.0 + f64::from(round)).collect();
        let ratio = Ratio::of(&ours, &[1000.0; 21]).expect("a ratio");
        assert!(ratio.low < ratio.median && ratio.median < ratio.high);
        assert!(ratio.low >= 1.0 && ratio.high <= 1.02);
        assert!(Ratio::of(&[], &[1.0]).is_none());
    }
}
