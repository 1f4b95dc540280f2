//! The texts of libtest's pretty and terse formats, as its readers parse
//! them. Pure: what happened in, text out.
//!
//! Neighbours: `events` (which writes them), `json` (the third format).

use super::events::{Ending, Tally};
use crate::units::grouped;

/// Characters that terse mode puts on a line before it says how far it is.
const TERSE_COLUMNS: usize = 88;

/// Colours of outcomes.
#[derive(Clone, Copy, Debug)]
pub struct Paint(pub bool);

impl Paint {
    fn dress(self, text: &str, code: u8) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    fn good(self, text: &str) -> String {
        self.dress(text, 32)
    }

    fn bad(self, text: &str) -> String {
        self.dress(text, 31)
    }

    fn skipped(self, text: &str) -> String {
        self.dress(text, 33)
    }

    fn measured(self, text: &str) -> String {
        self.dress(text, 36)
    }
}

/// The line before the first trial.
pub fn title(total: usize, shuffle: Option<u64>) -> String {
    let plural = if total == 1 { "" } else { "s" };
    let seed = shuffle.map(|seed| format!(" (shuffle seed: {seed})")).unwrap_or_default();
    format!("\nrunning {total} test{plural}{seed}\n")
}

/// `test NAME ... ok`, in one piece: a line that is begun before the body
/// runs would be split by what bodies print.
pub fn pretty(name: &str, ending: &Ending<'_>, time: &str, paint: Paint) -> String {
    let outcome = match ending {
        Ending::Passed => paint.good("ok"),
        Ending::Failed { .. } => paint.bad("FAILED"),
        Ending::Ignored(reason) => format!("{}, {reason}", paint.skipped("ignored")),
        Ending::Measured { .. } => format!("{}: {}", paint.measured("bench"), value(ending)),
    };
    format!("test {name} ... {outcome}{time}\n")
}

/// `1,234 ns/iter (+/- 56)`, as cargo-benchcmp and github-action-benchmark parse it.
fn value(ending: &Ending<'_>) -> String {
    let Ending::Measured { median, deviation, unit } = ending else { return String::new() };
    format!("{} {unit}/iter (+/- {})", thousands(*median), thousands(*deviation))
}

/// A character for what passed or was ignored, a line with the name for the
/// rest. `column` is how many characters the line has, and is kept up.
pub fn terse(
    name: &str,
    ending: &Ending<'_>,
    time: &str,
    paint: Paint,
    column: &mut usize,
    ended: (usize, usize),
) -> String {
    let character = match ending {
        Ending::Passed => paint.good("."),
        Ending::Ignored(_) => paint.skipped("i"),
        Ending::Failed { .. } | Ending::Measured { .. } => {
            let before = if std::mem::take(column) > 0 { "\n" } else { "" };
            let line = match ending {
                Ending::Failed { .. } => format!("{name} --- {}{time}\n", paint.bad("FAILED")),
                _ => pretty(name, ending, time, paint),
            };
            return format!("{before}{line}");
        }
    };
    *column += 1;
    if *column < TERSE_COLUMNS {
        return character;
    }
    *column = 0;
    format!("{character} {}/{}\n", ended.0, ended.1)
}

/// The failures with their texts, and their names.
pub fn failures(tally: &Tally) -> String {
    if tally.failures.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nfailures:\n");
    for (name, reason) in &tally.failures {
        text.push_str(&format!("\n---- {name} stdout ----\nError: {reason}\n"));
    }
    text.push_str("\n\nfailures:\n");
    for (name, _) in &tally.failures {
        text.push_str(&format!("    {name}\n"));
    }
    text
}

/// The last line.
pub fn result(tally: &Tally, seconds: f64, paint: Paint) -> String {
    let outcome = if tally.failed > 0 { paint.bad("FAILED") } else { paint.good("ok") };
    format!(
        "\ntest result: {outcome}. {} passed; {} failed; {} ignored; {} measured; {} filtered out; \
         finished in {seconds:.2}s\n\n",
        tally.passed, tally.failed, tally.ignored, tally.measured, tally.filtered_out
    )
}

/// A line of the log file, in libtest's form.
pub fn log(name: &str, ending: &Ending<'_>, time: &str) -> String {
    match ending {
        Ending::Passed => format!("ok {name}{time}\n"),
        Ending::Failed { reason, .. } => {
            format!("failed: {} {name}{time}\n", reason.lines().collect::<Vec<_>>().join(" "))
        }
        Ending::Ignored(reason) => format!("ignored, {reason} {name}\n"),
        Ending::Measured { .. } => format!("{} {name}{time}\n", value(ending)),
    }
}

/// A number, rounded, with a comma between thousands.
fn thousands(number: f64) -> String {
    // A time or a count: whole, and far below what a u64 holds.
    grouped(number.max(0.0).round_ties_even() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: Ending<'static> = Ending::Measured { median: 1234.4, deviation: 55.6, unit: "ns" };
    const FAILED: Ending<'static> = Ending::Failed { reason: "a\nb", timed_out: false };

    #[test]
    fn pretty_lines_are_libtests() {
        let line = |ending: &Ending<'_>| pretty("a::b", ending, "", Paint(false));
        assert_eq!(line(&MEASURED), "test a::b ... bench: 1,234 ns/iter (+/- 56)\n");
        assert_eq!(line(&Ending::Passed), "test a::b ... ok\n");
        assert_eq!(line(&FAILED), "test a::b ... FAILED\n");
        assert_eq!(line(&Ending::Ignored("no x")), "test a::b ... ignored, no x\n");
        let count = Ending::Measured { median: 1_234_567.0, deviation: 0.0, unit: "instructions" };
        assert_eq!(line(&count), "test a::b ... bench: 1,234,567 instructions/iter (+/- 0)\n");
        assert!(
            pretty("a", &Ending::Passed, " <0.100s>", Paint(true)).contains("\x1b[32mok\x1b[0m <0.100s>")
        );
    }

    #[test]
    fn terse_keeps_names_of_what_matters() {
        let mut column = 0;
        let mut text = String::new();
        for ending in [&Ending::Passed, &Ending::Ignored("x"), &FAILED, &MEASURED, &Ending::Passed] {
            text.push_str(&terse("a", ending, "", Paint(false), &mut column, (1, 5)));
        }
        assert_eq!(text, ".i\na --- FAILED\ntest a ... bench: 1,234 ns/iter (+/- 56)\n.");
        for _ in 0..TERSE_COLUMNS - 1 {
            text = terse("a", &Ending::Passed, "", Paint(false), &mut column, (88, 100));
        }
        assert_eq!(text, ". 88/100\n");
        assert_eq!(column, 0);
    }

    #[test]
    fn thousands_are_told_apart() {
        let all = [0.0, 999.0, 1000.0, 1_234_567.8, -1.0].map(thousands);
        assert_eq!(all, ["0", "999", "1,000", "1,234,568", "0"]);
    }

    #[test]
    fn failures_come_with_their_texts() {
        let failures_of =
            |list: Vec<(String, String)>| failures(&Tally { failures: list, ..Tally::default() });
        assert_eq!(failures_of(vec![]), "");
        let text = failures_of(vec![("a".into(), "why".into())]);
        assert!(text.contains("---- a stdout ----\nError: why\n") && text.ends_with("failures:\n    a\n"));
    }
}
