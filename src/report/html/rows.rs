//! The rows of the page's table, as HTML.
//!
//! Neighbours: `page` has the table around them, `detail` what lies behind.

use std::fmt::Write as _;

use super::detail::{Headline, sides, with_unit};
use super::text::escaped;
use crate::report::entries::{Class, Entry};
use crate::report::format::{rate, time};
use crate::report::model::{Figures, State};
use crate::report::plot::{HEIGHT, WIDTH, small};
use crate::report::verdicts::{change, interval};
use crate::units::Unit;

/// Rows that are shown at first; the script shows more.
pub const SHOWN: usize = 300;

/// The titles of the columns, the key by which the script sorts, and a class.
pub fn columns(compares: bool) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut all =
        vec![("verdict", "class", "verdict"), ("scenario", "name", "name"), ("meter", "mode", "wide")];
    if compares {
        all.extend([
            ("before", "", "number wide"),
            ("after", "value", "number"),
            ("change", "change", "number"),
        ]);
        all.push(("interval", "", "number wide"));
    } else {
        all[0] = ("state", "class", "verdict");
        all.extend([("median", "value", "number"), ("a second", "", "number wide")]);
    }
    all.push(("distribution", "", "drawing"));
    all
}

/// The row of a trial; `points` for its small distribution.
pub fn row(at: usize, entry: &Entry<'_>, compares: bool, points: usize) -> String {
    let mut html = String::from("<tr");
    if at >= SHOWN {
        html.push_str(" hidden");
    }
    let class = Class::ALL.iter().position(|class| *class == entry.class).unwrap_or_default();
    let _ = write!(html, " data-class=\"{class}\"");
    let headline = Headline::of(entry);
    if let Some(metric) = headline.shown() {
        let _ = write!(html, " data-value=\"{}\"", metric.summary.median);
    }
    if let Some(share) = entry.deciding().and_then(|line| line.change()) {
        let _ = write!(html, " data-change=\"{share}\"");
    }
    html.push('>');
    let limit = if entry.fails() { " <span class=\"limit\">beyond its limit</span>" } else { "" };
    let verdict = format!("<span aria-hidden=\"true\">{}</span> {}{limit}", entry.class.sign(), entry.word());
    cell(&mut html, &format!("verdict c{class}"), &verdict);
    let _ = write!(
        html,
        "<th scope=\"row\"><button type=\"button\" aria-expanded=\"false\"><bdi>{}</bdi></button>{}</th>",
        // Names break where their parts do.
        escaped(entry.scenario).replace("::", "::<wbr>"),
        aside(entry)
    );
    cell(&mut html, "wide", &escaped(entry.mode));
    if compares {
        compared(&mut html, entry, &headline);
    } else {
        let figures = figures(entry);
        cell(&mut html, "number", &escaped(&figures.map(|f| median(f, &headline)).unwrap_or_default()));
        let rates = figures.map(|f| f.rates.iter().map(rate).collect::<Vec<_>>().join(", "));
        cell(&mut html, "number wide", &escaped(&rates.unwrap_or_default()));
    }
    cell(&mut html, "drawing", &drawing(&headline, points));
    html.push_str("</tr>\n");
    html
}

fn cell(html: &mut String, class: &str, inside: &str) {
    let _ = write!(html, "<td class=\"{class}\">{inside}</td>");
}

fn figures<'a>(entry: &'a Entry<'_>) -> Option<&'a Figures> {
    match entry.row.as_ref().map(|row| &row.state) {
        Some(State::Measured(figures)) => Some(figures),
        _ => None,
    }
}

/// The cells of a comparison: the headline's values, and the change that decides.
fn compared(html: &mut String, entry: &Entry<'_>, headline: &Headline<'_>) {
    let before = headline.before.map(|m| with_unit(m.summary.median, m.series.unit)).unwrap_or_default();
    cell(html, "number wide", &escaped(&before));
    let after = figures(entry).map(|f| median(f, headline)).unwrap_or_default();
    cell(html, "number", &escaped(&after));
    let line = entry.deciding();
    let mut text = line.map(|line| escaped(&change(line).0)).unwrap_or_default();
    let is_headline = |metric: &str| headline.shown().is_some_and(|m| m.series.metric == metric);
    if let Some(line) = line.filter(|line| line.party.is_some() || !is_headline(&line.metric)) {
        let party = line.party.as_ref().map(|party| format!(" [{party}]")).unwrap_or_default();
        let _ = write!(text, " <small>{}</small>", escaped(&format!("{}{party}", line.metric)));
    }
    cell(html, "number", &text);
    cell(html, "number wide", &escaped(&line.map(|line| interval(line).0).unwrap_or_default()));
}

/// The median with its interval where it is a time, and its unit in any case.
fn median(figures: &Figures, headline: &Headline<'_>) -> String {
    match headline.shown().map(|metric| metric.series.unit) {
        Some(Unit::Nanoseconds) => time(figures.median, figures.half_interval),
        Some(unit) => with_unit(figures.median, unit),
        None => String::new(),
    }
}

/// What to know of a row before it is opened.
fn aside(entry: &Entry<'_>) -> String {
    let mut words: Vec<String> = entry.row.iter().flat_map(|row| row.tags.clone()).collect();
    if matches!(entry.class, Class::Failed | Class::Ignored | Class::NotCompared | Class::Gone) {
        words.extend(entry.reason());
    }
    if words.is_empty() {
        return String::new();
    }
    format!(" <small><bdi>{}</bdi></small>", escaped(&words.join(", ")))
}

/// The small distribution. What it shows stands in the other cells as numbers.
fn drawing(headline: &Headline<'_>, points: usize) -> String {
    let values = headline.values();
    let layers = small(&sides(&values), points);
    if layers.is_empty() {
        return String::new();
    }
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    for layer in layers {
        let _ = write!(svg, "<path class=\"{}\" d=\"{}\"/>", layer.0, layer.1);
    }
    svg + "</svg>"
}
