//! Quantities with their unit and the direction in which they are better.
//!
//! Neighbours: everything; this module sees only the standard library.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

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

impl Throughput {
    /// How much is done in a second when one iteration takes `ns` nanoseconds.
    pub fn per_second(self, ns: f64) -> f64 {
        let (Self::Bytes(n) | Self::Elements(n)) = self;
        n as f64 * 1e9 / ns
    }

    /// The name of that rate as a metric; higher is better.
    pub fn rate_name(self) -> &'static str {
        match self {
            Self::Bytes(_) => "bytes_per_second",
            Self::Elements(_) => "elements_per_second",
        }
    }

    /// The symbol of its unit.
    pub fn rate_unit(self) -> &'static str {
        match self {
            Self::Bytes(_) => "bytes/s",
            Self::Elements(_) => "elements/s",
        }
    }
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
    /// A unit of a suite's own, by its symbol; made by [`Unit::named`].
    Named(&'static str),
}

/// The longest symbol of a unit, in bytes.
const LONGEST_SYMBOL: usize = 32;

/// How many symbols of units that only files know are kept for the life of the process.
const MOST_SYMBOLS: usize = 1000;

impl Unit {
    /// A unit of your own, such as `requests`; the one that is here already, if
    /// its symbol is known. A symbol is 1 to 32 of `a-z`, `A-Z`, `0-9` and
    /// `_ / % . ^ -`, a letter or `%` first; a suite that uses another one fails
    /// its trials with a reason.
    pub fn named(symbol: &'static str) -> Self {
        Self::known(symbol).unwrap_or(Self::Named(symbol))
    }

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
            Self::Named(symbol) => symbol,
        }
    }

    /// Whether its symbol can be printed and stored wherever units are.
    pub fn is_sound(self) -> bool {
        is_sound(self.symbol())
    }

    /// The unit with this [`symbol`](Self::symbol), one of a suite's own
    /// included; `None` where there can be no such unit.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        Self::known(symbol).or_else(|| kept(symbol))
    }

    fn known(symbol: &str) -> Option<Self> {
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

fn is_sound(symbol: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '%';
    let any = |b: u8| b.is_ascii_alphanumeric() || b"_/%.^-".contains(&b);
    symbol.starts_with(first) && symbol.len() <= LONGEST_SYMBOL && symbol.bytes().all(any)
}

/// Units are copied everywhere, so a symbol that comes from a file is kept for
/// good: each one once, and no more than a file can have in earnest.
fn kept(symbol: &str) -> Option<Unit> {
    static SYMBOLS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    keep(&mut SYMBOLS.lock().unwrap_or_else(PoisonError::into_inner), symbol)
}

fn keep(symbols: &mut BTreeSet<&'static str>, symbol: &str) -> Option<Unit> {
    if let Some(known) = symbols.get(symbol) {
        return Some(Unit::Named(known));
    }
    if !is_sound(symbol) || symbols.len() >= MOST_SYMBOLS {
        return None;
    }
    let symbol: &'static str = Box::leak(symbol.into());
    symbols.insert(symbol);
    Some(Unit::Named(symbol))
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
    use std::collections::BTreeSet;

    use super::{Throughput, Unit, grouped, keep};

    #[test]
    fn a_unit_of_its_own_comes_back_from_its_symbol() {
        assert_eq!(Unit::named("ns"), Unit::Nanoseconds);
        assert_eq!(Unit::from_symbol("requests"), Some(Unit::named("requests")));
        assert_eq!(Unit::from_symbol("J/op"), Some(Unit::named("J/op")));
        for bad in ["", "two words", "1x", "a,b", "ä", "a\n", &"x".repeat(33)] {
            assert_eq!(Unit::from_symbol(bad), None, "{bad:?}");
        }
        assert!(Unit::named("%").is_sound() && !Unit::named("two words").is_sound());
    }

    #[test]
    fn a_file_of_a_million_units_fills_no_memory() {
        let mut symbols = BTreeSet::new();
        let taken = (0..3000).filter(|n| keep(&mut symbols, &format!("unit{n}")).is_some()).count();
        assert_eq!((taken, symbols.len()), (1000, 1000));
        assert!(keep(&mut symbols, "unit0").is_some() && keep(&mut symbols, "unit2999").is_none());
    }

    #[test]
    fn a_rate_is_for_a_second() {
        let (bytes, elements) = (Throughput::Bytes(1000), Throughput::Elements(3));
        assert_eq!((bytes.per_second(500.0), elements.per_second(1e9)), (2e9, 3.0));
    }

    #[test]
    fn thousands_are_told_apart() {
        let texts = [0, 12, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "12", "999", "1,000", "1,234,567"]);
    }
}
