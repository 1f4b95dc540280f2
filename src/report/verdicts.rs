//! The table of verdicts: a comparison in, text out. Verdict first, then the
//! size of the change with its interval, and the rule at the end.
//!
//! Neighbours: `compare` gives the verdicts, `grid` makes the table fit.

use super::format::{signed_count, signed_percent, value};
use super::grid::{Cell, Column, Line as Row, Span, Style, indented, lay_out, wrap};
use super::terminal::{Look, write_line};
use crate::compare::{Comparison, Learnt, Line, Rule, Size, Verdict};

/// More lines that are the same than this are counted instead of listed.
const MOST_SAME: usize = 24;

/// Renders a comparison with `label`, the other side in words.
pub fn verdicts(comparison: &Comparison, label: &str, rule: &Rule, look: Look) -> String {
    let mut out: Vec<Vec<Span>> = Vec::new();
    let mut say = |style: Style, text: &str, indent: usize| {
        out.extend(indented(text, indent, look.width).into_iter().map(|line| vec![(style, line)]));
    };
    say(Style::Heading, &format!("compared with {label}"), 0);
    say(Style::Plain, &totals(comparison), 0);
    let table = table(comparison, look.width);
    let mut below: Vec<Vec<Span>> = Vec::new();
    for text in asides(comparison).into_iter().chain(words(comparison, rule)) {
        below.extend(wrap(&text, look.width).into_iter().map(|line| vec![(Style::Faint, line)]));
    }
    let mut text = String::new();
    for line in out.iter().chain(&table).chain(&below) {
        write_line(&mut text, line, look.color);
    }
    text
}

/// How often each verdict was given.
fn totals(comparison: &Comparison) -> String {
    let count = |rank: u8| comparison.lines.iter().filter(|line| self::rank(&line.verdict) == rank).count();
    let mut words = Vec::new();
    for (rank, word) in [(0, "slower"), (1, "faster"), (3, "same"), (2, "not known")] {
        words.push(format!("{} {word}", count(rank)));
    }
    let fails = comparison.lines.iter().filter(|line| line.fails).count();
    if fails > 0 {
        words.push(format!("{fails} beyond the limit"));
    }
    if !comparison.unmatched.is_empty() {
        words.push(format!("{} not compared", comparison.unmatched.len()));
    }
    words.join(", ")
}

/// What comes first.
fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Slower => 0,
        Verdict::Faster => 1,
        Verdict::NotKnown(_) => 2,
        Verdict::Same => 3,
    }
}

fn table(comparison: &Comparison, width: usize) -> Vec<Vec<Span>> {
    let column = |title: &str, goes| Column { title: title.into(), goes };
    let columns = [column("change", 0), column("interval", 1), column("before", 2), column("after", 2)];
    let mut rows = Vec::new();
    for rank in 0..4 {
        let lines: Vec<&Line> =
            comparison.lines.iter().filter(|line| self::rank(&line.verdict) == rank).collect();
        if rank == 3 && lines.len() > MOST_SAME {
            rows.push(Row::Group(format!("same: {} lines", lines.len())));
            continue;
        }
        let mut words: Vec<&str> = lines.iter().map(|line| line.verdict.word(line.unit)).collect();
        words.sort_unstable();
        words.dedup();
        // Speeds and amounts have words of their own.
        for word in words {
            rows.push(Row::Group(word.to_string()));
            let of_word: Vec<&&Line> =
                lines.iter().filter(|line| line.verdict.word(line.unit) == word).collect();
            for (at, line) in of_word.iter().enumerate() {
                // A reason that neighbours share is said once, below the last of them.
                let again = of_word.get(at + 1).is_some_and(|next| shares_reason(line, next));
                rows.extend(row(line, !again));
            }
        }
    }
    lay_out(&columns, &rows, width)
}

/// Whether two lines are not compared for one and the same reason.
fn shares_reason(a: &Line, b: &Line) -> bool {
    matches!((&a.size, &b.size), (Size::None(a), Size::None(b)) if a == b)
}

/// The row of a line, and rows for what is to be said below it.
fn row(line: &Line, with_reason: bool) -> Vec<Row> {
    let both = |v: f64| (value(v, line.unit, false), value(v, line.unit, true));
    let name = name(line);
    let mut rows = vec![Row::Row {
        name,
        cells: vec![change(line), interval(line), both(line.before), both(line.after)],
        aside: aside(line),
    }];
    for (function, by) in &line.moved {
        let text = format!("{} {function}", signed_count(*by as f64));
        rows.push(Row::Text { name: String::new(), style: Style::Faint, text });
    }
    if let Verdict::NotKnown(remedy) = &line.verdict
        && with_reason
    {
        let text = match line.size {
            Size::Estimated { .. } => format!("would settle it: {remedy}"),
            _ => remedy.clone(),
        };
        rows.push(Row::Text { name: String::new(), style: Style::Faint, text });
    }
    rows
}

fn name(line: &Line) -> String {
    let metric = line.metric.as_str();
    let party = line.party.as_ref().map(|party| format!(" [{party}]")).unwrap_or_default();
    match metric {
        "wall_time" => format!("{}{party}", line.scenario),
        _ => format!("{} {metric}{party}", line.scenario),
    }
}

pub(super) fn change(line: &Line) -> Cell {
    if let Size::None(_) = line.size {
        return Cell::default();
    }
    let share = line.change().map_or_else(|| "from 0".to_string(), signed_percent);
    let text = match line.size {
        Size::Exact if line.before != line.after => {
            format!("{} ({share})", signed_count(line.after - line.before))
        }
        _ => share.clone(),
    };
    (text, share)
}

pub(super) fn interval(line: &Line) -> Cell {
    let Size::Estimated { interval: (low, high), .. } = line.size else { return Cell::default() };
    let text = format!("{} to {}", signed_percent(low), signed_percent(high));
    (text.clone(), text)
}

fn aside(line: &Line) -> String {
    let mut words = Vec::new();
    if line.fails {
        words.push("beyond the limit".to_string());
    }
    if let Size::Estimated { adjusted_p, .. } = line.size {
        words.push(format!("p {}", p_value(adjusted_p)));
    }
    words.extend(line.usual.map(usual));
    words.extend(line.marks.iter().map(|mark| format!("FORCED, {mark}")));
    words.join("; ")
}

fn usual(learnt: Learnt) -> String {
    match learnt.unusual {
        Some(share) => format!("usual up to {:.2} % ({} runs)", 100.0 * share, learnt.runs),
        None => format!("usual: {} runs are too few", learnt.runs),
    }
}

pub(super) fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }
}

/// The parts of the rule that were used.
pub(super) fn words(comparison: &Comparison, rule: &Rule) -> Vec<String> {
    let lines = || comparison.lines.iter();
    let mut words = Vec::new();
    if lines().any(|line| matches!(line.size, Size::Estimated { .. })) {
        words.push(rule.words_on_times());
    }
    if lines().any(|line| line.size == Size::Exact) {
        words.push(rule.words_on_counts());
    }
    if lines().any(|line| line.usual.is_some()) {
        words.push(rule.words_on_usual());
    } else if !rule.usual.is_empty() {
        words.push("the history has none of these".into());
    }
    words
}

/// What could not be compared, and limits that nothing has.
fn asides(comparison: &Comparison) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (scenario, _, why) in &comparison.unmatched {
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, names)) => names.push(scenario),
            None => reasons.push((why, vec![scenario])),
        }
    }
    texts.extend(reasons.iter().map(|(why, names)| format!("not compared, {why}: {}", names.join(", "))));
    let unknown = comparison.unknown_limits.iter();
    texts.extend(unknown.map(|name| format!("--max-regress: no line has the metric {name}")));
    texts
}

/// Why a trial fails: its lines beyond their limits, in words.
pub fn failure(lines: &[Line], label: &str) -> Option<String> {
    let words = lines.iter().filter(|line| line.fails).map(|line| {
        let (change, interval) = (change(line).0, interval(line).0);
        let interval = if interval.is_empty() { interval } else { format!(" ({interval})") };
        let metric =
            format!("{}{}", line.metric, line.party.as_ref().map(|p| format!(" [{p}]")).unwrap_or_default());
        format!("{metric} {} by {change}{interval}", line.verdict.word(line.unit))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("beyond its limits against {label}: {}", words.join("; ")))
}
