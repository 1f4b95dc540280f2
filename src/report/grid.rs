//! A table that fits a given width: first numbers become short, then columns
//! go, then names get lines of their own. No line is ever wider than asked.
//!
//! Neighbours: `terminal` decides what is in it and in which order columns go.

/// The narrowest width that is kept to; there is no reading below it.
pub(super) const NARROWEST: usize = 20;

/// What a text is, for colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    #[default]
    Plain,
    Heading,
    Faint,
    Warning,
    Failure,
}

/// One column; columns with a larger `goes` are dropped first, those with 0 stay.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub title: String,
    pub goes: u8,
}

/// The text of a cell: in full, and short.
pub(super) type Cell = (String, String);

/// One line or more of a table.
#[derive(Clone, Debug)]
pub(super) enum Line {
    /// A line across the table, under which rows belong.
    Group(String),
    /// A name, its cells (long and short form), and what to know about them.
    Row { name: String, cells: Vec<Cell>, aside: String },
    /// A name, and text instead of cells.
    Text { name: String, style: Style, text: String },
}

/// Text with its style, before colour.
pub(super) type Span = (Style, String);

/// How the table was made to fit.
struct Fit {
    short: bool,
    /// Columns that are shown.
    shown: Vec<usize>,
    widths: Vec<usize>,
    name: usize,
    /// Names on lines of their own.
    stacked: bool,
    /// Asides on lines of their own.
    below: bool,
}

const INDENT: usize = 2;
const GAP: usize = 2;

/// Lays the lines out in `width` columns, under a line of titles.
pub(super) fn lay_out(columns: &[Column], lines: &[Line], width: usize) -> Vec<Vec<Span>> {
    let width = width.max(NARROWEST);
    let fit = fit(columns, lines, width);
    let mut out = Vec::new();
    if lines.iter().any(|line| matches!(line, Line::Row { .. })) {
        out.extend(titles(columns, &fit, width));
    }
    for line in lines {
        match line {
            Line::Group(name) => out.extend(wrap(name, width).into_iter().map(|l| vec![(Style::Heading, l)])),
            Line::Row { name, cells, aside } => out.extend(row(name, cells, aside, &fit, width)),
            Line::Text { name, style, text } => out.extend(text_row(name, *style, text, &fit, width)),
        }
    }
    out
}

/// Finds the richest form that fits.
fn fit(columns: &[Column], lines: &[Line], width: usize) -> Fit {
    let mut order: Vec<u8> = columns.iter().map(|c| c.goes).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    order.dedup();
    let mut limits = vec![u8::MAX];
    limits.extend(order.iter().copied().filter(|goes| *goes > 0));
    let stages = [(false, false, false), (false, true, false), (true, true, false)];
    for (short, below, stacked) in stages {
        let fit = measure(columns, lines, u8::MAX, short, below, stacked);
        if fit.total(lines) <= width {
            return fit;
        }
    }
    for stacked in [false, true] {
        for limit in &limits {
            let fit = measure(columns, lines, *limit, true, true, stacked);
            if fit.total(lines) <= width {
                return fit;
            }
        }
    }
    measure(columns, lines, 1, true, true, true)
}

/// The widths that columns and names take in one form; columns that go at
/// `limit` or above are gone.
fn measure(columns: &[Column], lines: &[Line], limit: u8, short: bool, below: bool, stacked: bool) -> Fit {
    let rows = || {
        lines.iter().filter_map(|line| match line {
            Line::Row { name, cells, .. } => Some((name, cells)),
            _ => None,
        })
    };
    let used = |at: usize| rows().any(|(_, cells)| !cells[at].0.is_empty());
    let shown: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].goes < limit && used(*at)).collect();
    let width = |at: &usize| {
        let cells = rows().map(|(_, cells)| length(pick(&cells[*at], short))).max().unwrap_or(0);
        cells.max(length(&columns[*at].title))
    };
    let name = if stacked { 0 } else { rows().map(|(name, _)| length(name)).max().unwrap_or(0).max(8) };
    let widths = shown.iter().map(width).collect();
    Fit { short, shown, widths, name, stacked, below }
}

impl Fit {
    fn total(&self, lines: &[Line]) -> usize {
        let aside = |line: &Line| match line {
            Line::Row { aside, .. } if !aside.is_empty() => GAP + length(aside),
            _ => 0,
        };
        let asides = if self.below { 0 } else { lines.iter().map(aside).max().unwrap_or(0) };
        INDENT + self.name + self.widths.iter().map(|w| GAP + w).sum::<usize>() + asides
    }

    /// Cells, aligned to the right of their columns.
    fn cells<'a>(&self, texts: impl Fn(usize) -> &'a str) -> String {
        let mut line = String::new();
        for (at, width) in self.shown.iter().zip(&self.widths) {
            let text = texts(*at);
            line.push_str(&" ".repeat(GAP + width.saturating_sub(length(text))));
            line.push_str(text);
        }
        line
    }
}

fn titles(columns: &[Column], fit: &Fit, width: usize) -> Vec<Vec<Span>> {
    let first = if fit.stacked { String::new() } else { pad("scenario", fit.name) };
    let line = format!("{}{first}{}", " ".repeat(INDENT), fit.cells(|at| &columns[at].title));
    wrap(line.trim_end(), width).into_iter().map(|line| vec![(Style::Faint, line)]).collect()
}

fn row(name: &str, cells: &[Cell], aside: &str, fit: &Fit, width: usize) -> Vec<Vec<Span>> {
    let values = fit.cells(|at| pick(&cells[at], fit.short));
    let indent = " ".repeat(INDENT);
    let mut out: Vec<Vec<Span>> = Vec::new();
    if fit.stacked {
        out.extend(indented(name, INDENT, width).into_iter().map(|line| vec![(Style::Plain, line)]));
        let line = format!("{indent}{values}");
        out.extend(wrap(&line, width).into_iter().map(|line| vec![(Style::Plain, line)]));
    } else {
        out.push(vec![(Style::Plain, format!("{indent}{}{values}", pad(name, fit.name)))]);
    }
    if aside.is_empty() {
        return out;
    }
    if fit.below {
        let lines = indented(aside, 2 * INDENT, width);
        out.extend(lines.into_iter().map(|line| vec![(Style::Warning, line)]));
    } else if let Some(last) = out.last_mut() {
        last.push((Style::Warning, format!("{}{aside}", " ".repeat(GAP))));
    }
    out
}

/// A row without numbers: name and text in one line if they fit, else the
/// text below the name.
fn text_row(name: &str, style: Style, text: &str, fit: &Fit, width: usize) -> Vec<Vec<Span>> {
    let indent = " ".repeat(INDENT);
    let name_width = fit.name.max(length(name));
    if !fit.stacked && INDENT + name_width + GAP + length(text) <= width {
        let name = format!("{indent}{}{}", pad(name, name_width), " ".repeat(GAP));
        return vec![vec![(Style::Plain, name), (style, text.to_string())]];
    }
    // Text below a row has no name, and no line for it.
    let names = if name.is_empty() { Vec::new() } else { indented(name, INDENT, width) };
    let names = names.into_iter().map(|line| vec![(Style::Plain, line)]);
    names.chain(indented(text, 2 * INDENT, width).into_iter().map(|line| vec![(style, line)])).collect()
}

fn pick(cell: &Cell, short: bool) -> &str {
    if short { &cell.1 } else { &cell.0 }
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(length(text))))
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// `text` in lines that begin with `indent` spaces.
pub(super) fn indented(text: &str, indent: usize, width: usize) -> Vec<String> {
    let room = width.max(NARROWEST) - indent;
    wrap(text, room).into_iter().map(|line| format!("{}{line}", " ".repeat(indent))).collect()
}

/// Breaks `text` between words, and words that are longer than a line
/// anywhere. Spaces at its beginning stay.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut room = width;
    for (i, word) in text.split(' ').enumerate() {
        let gap = usize::from(i > 0);
        let mut left: Vec<char> = word.chars().collect();
        if gap + left.len() <= room {
            push(&mut lines, gap, &left);
            room -= gap + left.len();
            continue;
        }
        if room < width {
            lines.push(String::new());
        }
        while left.len() > width {
            let rest = left.split_off(width);
            push(&mut lines, 0, &left);
            lines.push(String::new());
            left = rest;
        }
        push(&mut lines, 0, &left);
        room = width - left.len();
    }
    lines
}

fn push(lines: &mut [String], gap: usize, word: &[char]) {
    if let Some(line) = lines.last_mut() {
        line.extend(std::iter::repeat_n(' ', gap));
        line.extend(word);
    }
}
