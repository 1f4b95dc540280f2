//! How much worse a metric may be before its trial fails: `--max-regress`.
//!
//! Neighbours: `settle` asks it for each line.

use super::rule::percent;

/// How much worse one metric may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A share of the value before.
    Share(f64),
    /// An amount in the metric's unit.
    Amount(f64),
}

impl Limit {
    /// Whether a value that was `before` and is worse by `worse` is beyond it.
    pub fn is_exceeded(self, before: f64, worse: f64) -> bool {
        match self {
            Self::Share(share) => worse > share * before.abs(),
            Self::Amount(amount) => worse > amount,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither a share such as 0.1% nor an amount such as 200");
        let (number, share) = match text.strip_suffix('%') {
            Some(number) => (number, true),
            None => (text, false),
        };
        let value: f64 = number.trim().parse().map_err(|_| wrong())?;
        if !value.is_finite() || value < 0.0 {
            return Err(wrong());
        }
        Ok(if share { Self::Share(value / 100.0) } else { Self::Amount(value) })
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Share(share) => percent(share),
            Self::Amount(amount) => amount.to_string(),
        }
    }
}

/// Limits by metric, and one for all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    named: Vec<(String, Limit)>,
    others: Option<Limit>,
}

/// Short names of metrics.
const SHORT: [(&str, &str); 6] = [
    ("ir", "instructions"),
    ("wall", "wall_time"),
    ("cycles", "estimated_cycles"),
    ("peak_bytes", "heap_peak_bytes"),
    ("total_bytes", "heap_total_bytes"),
    ("syscalls", "system_calls"),
];

impl Limits {
    /// `0.1%`, `200`, or `ir=0.1%,wall=2%,peak_bytes=0`; a limit without a
    /// name is that of all metrics but times, whose own is the margin.
    ///
    /// # Errors
    /// What is wrong with the text, and what it takes.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                None => limits.others = Some(Limit::parse(part)?),
                Some((name, limit)) => {
                    let name = name.trim();
                    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                    if name.is_empty() || !name.chars().all(fits) {
                        return Err(format!(
                            "{name:?} is no name of a metric, such as ir, wall or peak_bytes"
                        ));
                    }
                    let whole =
                        SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, whole)| whole);
                    limits.named.push((whole.to_string(), Limit::parse(limit.trim())?));
                }
            }
        }
        Ok(limits)
    }

    /// The limit of a metric that is no time: nothing unless told.
    pub fn of_count(&self, metric: &str) -> Limit {
        self.named(metric).or(self.others).unwrap_or(Limit::Amount(0.0))
    }

    /// The limit of a time: the margin unless told by name.
    pub fn of_time(&self, metric: &str, margin: f64) -> Limit {
        self.named(metric).unwrap_or(Limit::Share(margin))
    }

    pub(super) fn named(&self, metric: &str) -> Option<Limit> {
        self.named.iter().rev().find(|(name, _)| name == metric).map(|(_, limit)| *limit)
    }

    /// The names that limits were given for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|(name, _)| name.as_str())
    }

    /// The limits of all metrics that are no times, in words.
    pub(super) fn words(&self) -> String {
        let named = self.named.iter().filter(|(name, _)| name != "wall_time");
        let mut words: Vec<String> = named.map(|(name, limit)| format!("{name} {}", limit.words())).collect();
        let others = if words.is_empty() { "all" } else { "others" };
        words.push(format!("{others} {}", self.of_count("").words()));
        words.join(", ")
    }
}
