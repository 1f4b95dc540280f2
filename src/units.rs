//! Quantities with their unit and the direction in which they are better.
//!
//! Neighbours: everything; this module sees only the standard library.

use std::fmt;

/// A number of bytes, for throughput and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A number of things done by one iteration, for throughput: requests,
/// handshakes, records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elements(pub u64);

/// What one iteration of a scenario gets done, so that a rate can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Throughput {
    /// Bytes an iteration.
    Bytes(u64),
    /// Things an iteration.
    Elements(u64),
}

impl From<Bytes> for Throughput {
    fn from(Bytes(n): Bytes) -> Self {
        Self::Bytes(n)
    }
}

impl From<Elements> for Throughput {
    fn from(Elements(n): Elements) -> Self {
        Self::Elements(n)
    }
}

/// The unit of a stored or printed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Instructions executed in user space.
    Instructions,
    /// Bytes.
    Bytes,
    /// Blocks of heap memory.
    Blocks,
    /// Cache, branch or other simulated events.
    Events,
    /// Estimated processor cycles.
    Cycles,
    /// System calls.
    SystemCalls,
    /// A number without a dimension.
    Ratio,
}

impl Unit {
    /// The symbol that is stored and printed, such as `ns`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Instructions => "instructions",
            Self::Bytes => "bytes",
            Self::Blocks => "blocks",
            Self::Events => "events",
            Self::Cycles => "cycles",
            Self::SystemCalls => "syscalls",
            Self::Ratio => "ratio",
        }
    }

    /// The unit with this [`symbol`](Self::symbol).
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        let all = [
            Self::Nanoseconds,
            Self::Instructions,
            Self::Bytes,
            Self::Blocks,
            Self::Events,
            Self::Cycles,
            Self::SystemCalls,
            Self::Ratio,
        ];
        all.into_iter().find(|unit| unit.symbol() == symbol)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

/// Which way a number is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Lower is better: times, counts, memory.
    LowerIsBetter,
    /// Higher is better: rates.
    HigherIsBetter,
}

impl Direction {
    /// The word that is stored: `lower` or `higher`.
    pub fn word(self) -> &'static str {
        match self {
            Self::LowerIsBetter => "lower",
            Self::HigherIsBetter => "higher",
        }
    }

    /// The direction with this [`word`](Self::word).
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "lower" => Some(Self::LowerIsBetter),
            "higher" => Some(Self::HigherIsBetter),
            _ => None,
        }
    }
}

/// A number with a comma between thousands, as all reports print it.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_told_apart() {
        let texts = [0, 12, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "12", "999", "1,000", "1,234,567"]);
    }
}
