//! The table at the end of a run: records in, text out.
//!
//! Neighbours: `model` decides what is shown, `grid` makes it fit, and
//! `cli::term` writes it.

use super::format::{percent, rate, time, value};
use super::grid::{Cell, Column, Line, Span, Style, indented, lay_out, wrap};
use super::model::{Figures, Further, Row, Section, State, sections};
use crate::store::Record;
use crate::units::{Direction, Unit};

/// How the terminal wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether colours are wanted.
    pub color: bool,
}

/// Renders the table of a run. Empty when no record has anything to show:
/// trials that passed a smoke run have no numbers.
///
/// A width below 20 columns is taken as 20.
pub fn table(records: &[Record], look: Look) -> String {
    let mut text = String::new();
    for (i, section) in sections(records).iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        for line in render(section, look.width) {
            write_line(&mut text, &line, look.color);
        }
    }
    text
}

fn render(section: &Section, width: usize) -> Vec<Vec<Span>> {
    let columns = columns(section);
    let notes = Notes::of(section);
    let mut lines = Vec::new();
    for group in &section.groups {
        if !group.prefix.is_empty() {
            lines.push(Line::Group(group.prefix.clone()));
        }
        lines.extend(group.rows.iter().map(|row| line(row, &columns, &notes)));
    }
    let mut out: Vec<Vec<Span>> = Vec::new();
    for text in legend(section) {
        out.extend(wrap(&text, width).into_iter().map(|line| vec![(Style::Faint, line)]));
    }
    if section.debug_build {
        let text = "built with debug assertions: this is not the code that is shipped";
        out.extend(wrap(text, width).into_iter().map(|line| vec![(Style::Warning, line)]));
    }
    out.extend(lay_out(&columns.iter().map(|c| c.head.clone()).collect::<Vec<_>>(), &lines, width));
    out.extend(notes.lines(width));
    out
}

/// A column, and what a row has in it: in full, and short.
struct Field {
    head: Column,
    cell: Box<dyn Fn(&Figures) -> Cell>,
}

fn field(title: &str, goes: u8, cell: impl Fn(&Figures) -> Cell + 'static) -> Field {
    Field { head: Column { title: title.into(), goes }, cell: Box::new(cell) }
}

fn same(text: String) -> Cell {
    (text.clone(), text)
}

fn columns(section: &Section) -> Vec<Field> {
    match &section.headline {
        None => Vec::new(),
        Some((_, Unit::Nanoseconds, _)) => time_columns(section),
        Some((_, unit, _)) => count_columns(section, *unit),
    }
}

fn time_columns(section: &Section) -> Vec<Field> {
    let mut all = vec![field("median", 0, |f| same(time(f.median, f.half_interval)))];
    let share = |f: &Figures, at: usize| {
        f.shares.get(at).filter(|share| share.is_finite()).map_or_else(String::new, |share| percent(*share))
    };
    all.extend(party_columns(section, move |f, at| same(share(f, at))));
    let rates = |f: &Figures| f.rates.iter().map(rate).collect::<Vec<_>>().join(", ");
    all.push(field("throughput", 2, move |f| same(rates(f))));
    all.extend(further_columns(section));
    all
}

fn count_columns(section: &Section, unit: Unit) -> Vec<Field> {
    let both = move |v: f64| (value(v, unit, false), value(v, unit, true));
    let part = move |f: &Figures, at: usize| f.parties.get(at).map_or_else(Default::default, |p| both(p.1));
    let mut all: Vec<Field> = party_columns(section, part);
    all.push(field("total", 0, move |f| both(f.median)));
    all.extend(further_columns(section));
    if constant(section, |f| f.method.clone()).is_none() {
        all.push(field("method", 4, |f| same(f.method.clone().unwrap_or_default())));
    }
    if constant(section, |f| f.seeds.clone()).is_none() {
        all.push(field("seeds", 5, |f| same(f.seeds.clone().unwrap_or_default())));
    }
    all
}

/// A column for each of the two parties, or one for both with their names
/// where rows have parties of other names.
fn party_columns(section: &Section, cell: impl Fn(&Figures, usize) -> Cell + Clone + 'static) -> Vec<Field> {
    if let Some((first, second)) = &section.parties {
        let other = cell.clone();
        return vec![field(first, 1, move |f| cell(f, 0)), field(second, 1, move |f| other(f, 1))];
    }
    let named = move |f: &Figures| {
        let cells: Vec<_> = (0..f.parties.len()).map(|at| (&f.parties[at].0, cell(f, at))).collect();
        let join = |pick: fn(&Cell) -> &String| {
            let texts = cells.iter().map(|(name, both)| format!("{name} {}", pick(both)));
            texts.collect::<Vec<_>>().join(", ")
        };
        (join(|both| &both.0), join(|both| &both.1))
    };
    vec![field("parties", 1, named)]
}

/// When the columns of gauges go.
const GAUGES_GO: u8 = 3;

/// Columns beside the headline, in the order in which rows have them. One that
/// is 0 in all rows says nothing.
fn further_columns(section: &Section) -> Vec<Field> {
    let mut columns: Vec<(String, u8)> = Vec::new();
    // Gauges stay longest; of the others, those that stand last go first.
    let mut others = GAUGES_GO;
    for further in section.figures().flat_map(|f| &f.further) {
        let shown = further.values.iter().any(|v| *v != 0.0);
        if shown && columns.iter().all(|(title, _)| *title != further.title) {
            let goes = if further.gauge { GAUGES_GO } else { others };
            others = others.saturating_add(u8::from(!further.gauge));
            columns.push((further.title.clone(), goes));
        }
    }
    let column = |(title, goes): (String, u8)| field(&title.clone(), goes, move |f| further(f, &title));
    columns.into_iter().map(column).collect()
}

/// The values of a further metric; `~` where samples differ of what could be exact.
fn further(figures: &Figures, title: &str) -> Cell {
    let Some(further) = figures.further.iter().find(|f| f.title == title) else {
        return Default::default();
    };
    let mark = if further.gauge && !further.exact { "~" } else { "" };
    let one = |v: &f64, short| format!("{mark}{}", value(*v, further.unit, short));
    let join = |short| further.values.iter().map(|v| one(v, short)).collect::<Vec<_>>().join(" / ");
    (join(false), join(true))
}

/// What the gauges of the rows are, their units, and which way they are better.
fn gauges(section: &Section) -> Option<String> {
    let shown = |f: &&Further| f.gauge && f.values.iter().any(|v| *v != 0.0);
    let all: Vec<&Further> = section.figures().flat_map(|f| &f.further).filter(shown).collect();
    let of = |direction: Direction| {
        let mut named: Vec<String> = Vec::new();
        for gauge in all.iter().filter(|gauge| gauge.direction == direction) {
            let text = format!("{} ({})", gauge.title, gauge.unit);
            if !named.contains(&text) {
                named.push(text);
            }
        }
        (!named.is_empty()).then(|| format!("{}: {}", better(direction), named.join(", ")))
    };
    let both = [Direction::LowerIsBetter, Direction::HigherIsBetter].map(of);
    let differ = if all.iter().all(|gauge| gauge.exact) { "" } else { " where no ~ stands" };
    let texts: Vec<String> = both.into_iter().flatten().collect();
    (!texts.is_empty())
        .then(|| format!("in one iteration, the same in each sample{differ}; {}", texts.join("; ")))
}

fn better(direction: Direction) -> &'static str {
    match direction {
        Direction::LowerIsBetter => "lower is better",
        Direction::HigherIsBetter => "higher is better",
    }
}

/// A fact that is the same in all rows that have numbers.
fn constant(section: &Section, of: impl Fn(&Figures) -> Option<String>) -> Option<String> {
    let mut all = section.figures().map(of);
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// What the numbers are, their unit, and which way they are better.
fn legend(section: &Section) -> Vec<String> {
    let mut lines = vec![headline(section)];
    lines.extend(gauges(section));
    lines
}

fn headline(section: &Section) -> String {
    let Some((metric, unit, direction)) = &section.headline else {
        return format!("{}: nothing was measured", section.mode);
    };
    let better = better(*direction);
    if *unit == Unit::Nanoseconds {
        let parties =
            if section.figures().any(|f| !f.parties.is_empty()) { "; parties as shares of it" } else { "" };
        let what = metric.replace('_', " ");
        let rates = if section.figures().any(|f| !f.rates.is_empty()) { " (throughput: higher)" } else { "" };
        return format!(
            "{what} of one iteration: median ± the longer side of its 95 % interval{parties}; {better}{rates}"
        );
    }
    let what = if metric == unit.symbol() {
        metric.clone()
    } else {
        format!("{}, {unit}", metric.replace('_', " "))
    };
    let mut text = format!("{}: {what} of one iteration; {better}", section.mode);
    if let Some(method) = constant(section, |f| f.method.clone()) {
        text.push_str(&format!("; method: {method}"));
    }
    if let Some(seeds) = constant(section, |f| f.seeds.clone()) {
        text.push_str(&format!("; seeds: {seeds}"));
    }
    text
}

fn line(row: &Row, columns: &[Field], notes: &Notes) -> Line {
    let name = plain(&row.name);
    match &row.state {
        State::Measured(figures) => {
            let mut aside = row.tags.clone();
            aside.extend(row.notes.iter().filter_map(|note| notes.mark(note)));
            let cells = columns.iter().map(|column| (column.cell)(figures)).collect();
            Line::Row { name, cells, aside: aside.join(", ") }
        }
        State::Unmeasured(word, reason) => {
            let style = if *word == "ignored" { Style::Warning } else { Style::Failure };
            let tags: String = row.tags.iter().map(|tag| format!(" ({tag})")).collect();
            Line::Text { name, style, text: format!("{word}{tags}: {}", plain(reason)) }
        }
    }
}

/// One line without colours and control characters: a reason can hold anything.
pub(super) fn plain(text: &str) -> String {
    let mut clean = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\x1b' && characters.next_if_eq(&'[').is_some() {
            // A control sequence ends with a byte from @ to ~ (ECMA-48).
            characters.by_ref().find(|c| ('@'..='~').contains(c));
        } else {
            clean.push(if c.is_control() { ' ' } else { c });
        }
    }
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Notes below the table, each once: those that all rows bear first, then the
/// others, numbered.
struct Notes {
    of_all: Vec<String>,
    numbered: Vec<String>,
}

impl Notes {
    fn of(section: &Section) -> Self {
        let rows: Vec<&Row> = section.groups.iter().flat_map(|group| &group.rows).collect();
        let measured = section.figures().count();
        let mut texts: Vec<(String, usize)> = Vec::new();
        for text in rows.iter().flat_map(|row| &row.notes).map(|note| plain(note)) {
            match texts.iter_mut().find(|(known, _)| *known == text) {
                Some((_, times)) => *times += 1,
                None => texts.push((text, 1)),
            }
        }
        let (of_all, numbered): (Vec<_>, Vec<_>) =
            texts.into_iter().partition(|(_, times)| *times == measured && measured > 1);
        let names = |texts: Vec<(String, usize)>| texts.into_iter().map(|(text, _)| text).collect();
        Self { of_all: names(of_all), numbered: names(numbered) }
    }

    /// The mark of a note, for the row that bears it.
    fn mark(&self, note: &str) -> Option<String> {
        let text = plain(note);
        let at = self.numbered.iter().position(|known| *known == text)?;
        Some(format!("[{}]", at + 1))
    }

    fn lines(&self, width: usize) -> Vec<Vec<Span>> {
        let all = self.of_all.iter().map(|text| format!("all rows: {text}"));
        let marked = self.numbered.iter().enumerate().map(|(i, text)| format!("[{}] {text}", i + 1));
        all.chain(marked)
            .flat_map(|note| indented(&note, 0, width))
            .map(|l| vec![(Style::Faint, l)])
            .collect()
    }
}

pub(super) fn write_line(text: &mut String, line: &[Span], color: bool) {
    for (style, span) in line {
        match (color, code(*style)) {
            (true, Some(code)) => text.push_str(&format!("\x1b[{code}m{span}\x1b[0m")),
            _ => text.push_str(span),
        }
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

/// The colour of a style (ECMA-48, select graphic rendition).
fn code(style: Style) -> Option<&'static str> {
    match style {
        Style::Plain => None,
        Style::Heading => Some("1"),
        Style::Faint => Some("2"),
        Style::Warning => Some("33"),
        Style::Failure => Some("31"),
    }
}
