//! The report as a comment on a pull request: what got slower first, the rest
//! folded, and never longer than a comment can be.
//!
//! Neighbours: `entries` has the trials in their order; `html` is the long form.

use std::fmt::Write as _;

use super::entries::{Class, Entry, Sources, totals};
use super::format::{rate, time, value};
use super::html::{Headline, with_unit};
use super::model::{Figures, State};
use super::terminal::plain;
use super::verdicts::{change, interval, words};
use crate::compare::Line;
use crate::units::{Unit, grouped};

/// The longest body of a comment on GitHub, in characters. Counted here in
/// bytes, of which there are never fewer.
pub const MOST: usize = 65_536;

/// What is kept free for the last words.
const FOOT: usize = 400;

/// The first line, by which a workflow finds the comment that it is to change.
const MARK: &str = "<!-- wallgrind report -->\n";

/// Longer texts than this are cut within a cell.
const CELL: usize = 300;

/// The report; `entries` are those of its sources. No table is cut within a
/// row, and none without saying so.
pub fn markdown(sources: &Sources<'_>, entries: &[Entry<'_>]) -> String {
    let compares = sources.against.is_some();
    let mut page = Page { text: head(sources, entries), left_out: 0 };
    let open = [Class::Failed, Class::Slower, Class::Faster];
    for (class, n) in totals(entries) {
        let of: Vec<&Entry<'_>> = entries.iter().filter(|entry| entry.class == class).collect();
        let title = format!("{} {} {}", class.sign(), grouped(n as u64), class.word());
        page.section(&title, !open.contains(&class), &of, compares);
    }
    page.fold("How verdicts are given", &rule(sources));
    page.fold("What the numbers depend on", &identity(sources));
    if page.left_out > 0 {
        let left_out = grouped(page.left_out as u64);
        let _ = writeln!(
            page.text,
            "{left_out} more trials are in the whole report: a comment has room for no more."
        );
    }
    page.text
}

struct Page {
    text: String,
    left_out: usize,
}

impl Page {
    fn room(&self) -> usize {
        (MOST - FOOT).saturating_sub(self.text.len())
    }

    /// A table of trials, as far as there is room for whole rows.
    fn section(&mut self, title: &str, folded: bool, entries: &[&Entry<'_>], compares: bool) {
        let (before, after) = if folded {
            (format!("<details><summary>{title}</summary>\n\n"), "\n</details>\n\n")
        } else {
            (format!("**{title}**\n\n"), "\n")
        };
        let columns = if compares {
            "| | scenario | change | interval | before | after |\n|---|---|---:|---:|---:|---:|\n"
        } else {
            "| | scenario | median | samples |\n|---|---|---:|---:|\n"
        };
        let frame = before.len() + columns.len() + after.len();
        let mut rows = String::new();
        let mut shown = 0;
        for entry in entries {
            let row = row(entry, compares);
            if frame + rows.len() + row.len() > self.room() {
                break;
            }
            rows.push_str(&row);
            shown += 1;
        }
        self.left_out += entries.len() - shown;
        if shown > 0 {
            self.text.push_str(&before);
            self.text.push_str(columns);
            self.text.push_str(&rows);
            self.text.push_str(after);
        }
    }

    /// A folded text, if there is room for all of it.
    fn fold(&mut self, title: &str, text: &str) {
        let all = format!("<details><summary>{title}</summary>\n\n{text}\n</details>\n\n");
        if !text.is_empty() && all.len() <= self.room() {
            self.text.push_str(&all);
        }
    }
}

fn head(sources: &Sources<'_>, entries: &[Entry<'_>]) -> String {
    let all: Vec<String> = totals(entries)
        .into_iter()
        .map(|(class, n)| format!("{} {} {}", class.sign(), grouped(n as u64), class.word()))
        .collect();
    let mut text = format!("{MARK}### Benchmarks: {}\n\nRun {}", all.join(", "), code(sources.run));
    if let Some(against) = &sources.against {
        let _ = write!(text, ", compared with {}", code(against.label));
    }
    let fails = entries.iter().filter(|entry| entry.fails()).count();
    if fails > 0 {
        let _ = write!(text, ". **{} beyond the limit**", grouped(fails as u64));
    }
    text + ".\n\n"
}

fn row(entry: &Entry<'_>, compares: bool) -> String {
    let mut name = code(entry.scenario);
    let word = entry.deciding().filter(|line| Some(line.metric.as_str()) != headline_metric(entry));
    if let Some(line) = word {
        let party = line.party.as_ref().map(|party| format!(" [{party}]")).unwrap_or_default();
        let _ = write!(name, " {}", code(&format!("{}{party}", line.metric)));
    }
    if entry.mode != "walltime" {
        let _ = write!(name, " ({})", inline(entry.mode));
    }
    for line in entry.lines.iter().filter(|line| !line.moved.is_empty()) {
        let moved = line.moved.iter().map(|(function, by)| format!("{by:+} {}", code(&cut(function))));
        let _ = write!(name, "<br>{}", moved.collect::<Vec<_>>().join("<br>"));
    }
    if let Some(reason) = entry.reason() {
        let _ = write!(name, "<br>{}", inline(&cut(&reason)));
    }
    let limit = if entry.fails() { " **beyond its limit**" } else { "" };
    let verdict = format!("{} {}{limit}", entry.class.sign(), entry.word());
    if !compares {
        let (median, samples) = measured(entry);
        return format!("| {verdict} | {name} | {median} | {samples} |\n");
    }
    let line = entry.deciding();
    let of = |v: f64| line.filter(|_| v.is_finite()).map(|line| with_unit(v, line.unit)).unwrap_or_default();
    format!(
        "| {verdict} | {name} | {} | {} | {} | {} |\n",
        line.map(|line| change(line).0).unwrap_or_default(),
        line.map(|line| interval(line).0).unwrap_or_default(),
        of(line.map_or(f64::NAN, |line| line.before)),
        of(line.map_or(f64::NAN, |line| line.after)) + &rates_behind(entry, line),
    )
}

fn headline_metric<'a>(entry: &Entry<'a>) -> Option<&'a str> {
    Headline::of(entry).shown().map(|metric| metric.series.metric.as_str())
}

/// What is done in a second now, where the time of the whole decides.
fn rates_behind(entry: &Entry<'_>, line: Option<&Line>) -> String {
    let is_whole =
        |line: &&Line| line.party.is_none() && Some(line.metric.as_str()) == headline_metric(entry);
    match entry.row.as_ref().map(|row| &row.state) {
        Some(State::Measured(figures)) if line.filter(is_whole).is_some() => rates(figures),
        _ => String::new(),
    }
}

fn rates(figures: &Figures) -> String {
    figures.rates.iter().map(|each| format!("<br>{}", rate(each))).collect()
}

/// The median with its interval, and of how many samples.
fn measured(entry: &Entry<'_>) -> (String, String) {
    let Some(State::Measured(figures)) = entry.row.as_ref().map(|row| &row.state) else {
        return Default::default();
    };
    let unit = Headline::of(entry).shown().map(|metric| metric.series.unit);
    let median = match unit {
        Some(Unit::Nanoseconds) => time(figures.median, figures.half_interval) + &rates(figures),
        Some(unit) => with_unit(figures.median, unit),
        None => value(figures.median, Unit::Ratio, false),
    };
    (median, grouped(figures.samples as u64))
}

fn rule(sources: &Sources<'_>) -> String {
    let texts = sources.against.map(|against| words(against.comparison, against.rule)).unwrap_or_default();
    texts.iter().map(|text| format!("{}\n\n", inline(text))).collect()
}

/// The identity of the run's first record.
fn identity(sources: &Sources<'_>) -> String {
    let Some(record) = sources.records.first().filter(|record| !record.identity.is_empty()) else {
        return String::new();
    };
    let rows = record.identity.iter().map(|(key, v)| format!("| {} | {} |\n", inline(key), inline(&cut(v))));
    format!("| | |\n|---|---|\n{}", rows.collect::<String>())
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(CELL) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// A name as it is, in a fixed width: in a `code` element nobody is mentioned
/// and nothing is linked.
fn code(name: &str) -> String {
    format!("<code>{}</code>", inline(name))
}

/// A text that holds no markup, in a cell or elsewhere: whatever could be
/// markup is written by its number.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = plain(text);
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let within = |c: char| c.is_ascii_alphanumeric();
        let inner = c == '_' && within(before) && characters.peek().copied().is_some_and(within);
        let harmless = c.is_alphanumeric() || inner || " ,%±µ".contains(c) || is_colon(c, characters.peek());
        match harmless {
            true => out.push(c),
            false => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
        }
        before = c;
    }
    out
}

/// A colon that begins no address.
fn is_colon(c: char, next: Option<&char>) -> bool {
    c == ':' && next.is_none_or(|next| *next != '/')
}
