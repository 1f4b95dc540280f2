//! The table of an A/A test: how far processes of one executable are apart,
//! and so how small a change can be seen.
//!
//! Neighbours: `compare` has the plan (`Sight`), the `doctor` command asks.

use super::format::{percent, signed_percent};
use super::grid::{Cell, Column, Line as Row, Span, Style, lay_out, wrap};
use super::terminal::{Look, write_line};
use crate::compare::{Comparison, Kinship, Line, Rule, SEEN, Sight, Size, Verdict, compare};
use crate::store::{Record, Status};

/// What was asked of the A/A test.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The rule that later comparisons will have.
    pub rule: Rule,
    /// Seconds that each scenario will have.
    pub seconds: f64,
    /// The change that is to be seen, as a share.
    pub change: f64,
}

/// What an A/A test says of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The scenario.
    pub scenario: String,
    /// How far its pairs are apart.
    pub sight: Sight,
    /// The change of nothing that was measured, as a share.
    pub change: f64,
    /// Whether it was called, which is false.
    pub false_call: bool,
    /// The smallest change that is seen in the time asked for, as a share.
    pub smallest: f64,
    /// Seconds until the change asked for is seen.
    pub time_to_see_s: Option<f64>,
    /// Seconds until equal builds are called the same.
    pub time_to_agree_s: Option<f64>,
}

/// What records of an executable against itself say; the others, and why not.
pub fn seen(records: &[Record], asked: &Asked) -> (Vec<Seen>, Vec<(String, String)>) {
    let comparison = compare(&[], records, Kinship::InTurn, &asked.rule);
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for record in records {
        let line = whole(&comparison, &record.scenario);
        match (Sight::of(record), line) {
            (Some(sight), Some(line)) => good.push((record, sight, line)),
            _ => bad.push((record.scenario.clone(), why_not(record))),
        }
    }
    // Parties are tested, too.
    let family = comparison.lines.iter().filter(|line| matches!(line.size, Size::Estimated { .. })).count();
    let of = |(record, sight, line): (&Record, Sight, &Line)| Seen {
        scenario: record.scenario.clone(),
        sight,
        change: line.change().unwrap_or_default(),
        false_call: matches!(line.verdict, Verdict::Slower | Verdict::Faster),
        smallest: sight.smallest(asked.seconds, &asked.rule, family),
        time_to_see_s: sight.time_to_see(asked.change, &asked.rule, family),
        time_to_agree_s: sight.time_to_agree(&asked.rule),
    };
    (good.into_iter().map(of).collect(), bad)
}

/// The line of the whole wall time of a scenario.
fn whole<'a>(comparison: &'a Comparison, scenario: &str) -> Option<&'a Line> {
    let is_whole = |line: &&Line| line.scenario == scenario && line.party.is_none();
    comparison.lines.iter().filter(is_whole).find(|line| matches!(line.size, Size::Estimated { .. }))
}

fn why_not(record: &Record) -> String {
    match &record.status {
        Status::Ok => "it was not measured in turn".into(),
        Status::Failed(why) | Status::Ignored(why) => why.lines().next().unwrap_or_default().to_string(),
        Status::TimedOut(_) => "timed out".into(),
    }
}

/// Renders an A/A test.
pub fn sights(seen: &[Seen], left_out: &[(String, String)], asked: &Asked, look: Look) -> String {
    let column = |title: String, goes| Column { title, goes };
    let columns = [
        column(format!("seen in {} s", asked.seconds), 0),
        column(format!("time for {}", signed_percent(asked.change)), 1),
        column("time for same".into(), 2),
        column("a pair's spread".into(), 3),
        column("pairs".into(), 4),
    ];
    let both = |text: String| -> Cell { (text.clone(), text) };
    let row = |s: &Seen| Row::Row {
        name: s.scenario.clone(),
        cells: vec![
            both(signed_percent(s.smallest)),
            both(seconds(s.time_to_see_s)),
            both(seconds(s.time_to_agree_s)),
            both(percent(s.sight.deviation)),
            both(s.sight.pairs.to_string()),
        ],
        aside: if s.false_call { format!("FALSE CALL: {}", signed_percent(s.change)) } else { String::new() },
    };
    let mut rows: Vec<Row> = seen.iter().map(row).collect();
    rows.extend(left_out.iter().map(|(name, why)| Row::Text {
        name: name.clone(),
        style: Style::Faint,
        text: format!("not tested: {why}"),
    }));
    let heading = wrap("A/A: the executable against itself", look.width);
    let mut lines: Vec<Vec<Span>> = heading.into_iter().map(|line| vec![(Style::Heading, line)]).collect();
    lines.extend(lay_out(&columns, &rows, look.width));
    for text in words(seen, asked) {
        lines.extend(wrap(&text, look.width).into_iter().map(|line| vec![(Style::Faint, line)]));
    }
    let mut text = String::new();
    lines.iter().for_each(|line| write_line(&mut text, line, look.color));
    text
}

fn words(seen: &[Seen], asked: &Asked) -> [String; 2] {
    let margin = percent(asked.rule.margin);
    let calls = seen.iter().filter(|s| s.false_call).count();
    [
        format!("{calls} false calls in {} comparisons", seen.len()),
        format!(
            "seen: the smallest slowdown that {} of 100 comparisons (--against) of these {} scenarios call in that \
             time for each; same: until equal builds are called the same within ±{margin}, as often. As long as the \
             machine stays as it is now",
            100.0 * SEEN,
            seen.len()
        ),
    ]
}

fn seconds(time: Option<f64>) -> String {
    match time {
        Some(s) if s < 99.5 => format!("{:.0} s", s.ceil()),
        Some(s) if s < 5_970.0 => format!("{:.0} min", (s / 60.0).ceil()),
        Some(s) => format!("{:.0} h", (s / 3_600.0).ceil()),
        None => "never".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked { rule: Rule::default(), seconds: 10.0, change: 0.02 }
    }

    #[test]
    fn a_table_says_what_is_seen_and_what_was_called_falsely() {
        let sight = Sight { deviation: 0.02, pair_s: 0.1, pairs: 100 };
        let of = |name: &str, false_call| Seen {
            scenario: name.into(),
            sight,
            change: 0.03,
            false_call,
            smallest: 0.0215,
            time_to_see_s: Some(12.2),
            time_to_agree_s: None,
        };
        let left_out = [("c::z".to_string(), "no moon".to_string())];
        let look = Look { width: 120, color: false };
        let text = sights(&[of("a::x", false), of("b::y", true)], &left_out, &asked(), look);
        let row = text.lines().find(|line| line.contains("a::x")).expect("a row");
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["a::x", "+2.15", "%", "13", "s", "never", "2", "%", "100"]);
        assert!(text.contains("FALSE CALL: +3.00 %") && text.contains("1 false calls in 2"), "{text}");
        assert!(text.contains("not tested: no moon"), "{text}");
        for width in [20, 40, 80] {
            let text = sights(&[of("a::x", true)], &[], &asked(), Look { width, color: false });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        }
        assert_eq!([seconds(Some(150.0)), seconds(Some(7_300.0))], ["3 min", "3 h"]);
    }
}
