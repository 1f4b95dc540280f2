//! The page around the rows: what it is about, the filter, the table, the data
//! behind the rows, and the script that draws it.
//!
//! Neighbours: `rows` and `detail` make what is in it; `page.css` and
//! `page.js` stand beside this file.

use std::fmt::Write as _;

use super::data::Data;
use super::detail::{detail, identity};
use super::rows::{SHOWN, columns, row};
use super::text::escaped;
use crate::compare::Rule;
use crate::report::entries::{Class, Entry, Sources, totals};
use crate::report::verdicts::words;
use crate::units::grouped;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Points of all plots of a side together: what keeps a page of ten thousand
/// rows at a size that a browser opens at once.
const POINTS: usize = 400_000;

/// Fewest and most points of one plot.
const OF_A_PLOT: (usize, usize) = (32, 400);

/// The report as one file; `entries` are those of its sources.
pub fn html(sources: &Sources<'_>, entries: &[Entry<'_>]) -> String {
    let compares = sources.against.is_some();
    let points = (POINTS / entries.len().max(1)).clamp(OF_A_PLOT.0, OF_A_PLOT.1);
    let mut page = head(sources);
    page.push_str(&summary(sources, entries));
    page.push_str(&controls(entries));
    table(entries, compares, points, &mut page);
    page.push_str("<script type=\"application/json\" id=\"data\">\n");
    let mut page = data(sources, entries, points, page);
    let _ = write!(page, "</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    page
}

/// Nothing may be loaded or sent: the policy says so to the browser as well.
fn head(sources: &Sources<'_>) -> String {
    let run = escaped(sources.run);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{run} – wallgrind</title>\n\
         <style>\n{STYLE}</style>\n\
         <noscript><style>tr[hidden] {{ display: table-row }} .script {{ display: none }}</style></noscript>\n\
         </head>\n<body>\n<a class=\"skip\" href=\"#table\">To the table</a>\n\
         <header>\n<h1>Benchmark report</h1>\n"
    )
}

/// What was run, against what, and how it came out.
fn summary(sources: &Sources<'_>, entries: &[Entry<'_>]) -> String {
    let mut html = format!("<p>Run <b><bdi>{}</bdi></b>", escaped(sources.run));
    if let Some(against) = &sources.against {
        let _ = write!(html, ", compared with <b><bdi>{}</bdi></b>", escaped(against.label));
    }
    if let Some(started) = sources.records.iter().map(|record| record.started.as_str()).min() {
        let seconds = started.split('.').next().unwrap_or(started).trim_end_matches('Z');
        let _ = write!(html, ". Begun {} UTC", escaped(&seconds.replace('T', " ")));
    }
    let _ = writeln!(html, ". {} trials.</p>", grouped(entries.len() as u64));
    html.push_str("<ul class=\"totals\">");
    for (class, n) in totals(entries) {
        let at = position(class);
        let _ = write!(
            html,
            "<li class=\"c{at}\"><span aria-hidden=\"true\">{}</span> <b>{}</b> {}</li>",
            class.sign(),
            grouped(n as u64),
            class.word()
        );
    }
    let fails = entries.iter().filter(|entry| entry.fails()).count();
    if fails > 0 {
        let _ = write!(html, "<li class=\"limit\"><b>{}</b> beyond the limit</li>", grouped(fails as u64));
    }
    html.push_str("</ul>\n");
    if let Some(against) = &sources.against {
        html.push_str("<details><summary>How verdicts are given</summary>");
        for text in words(against.comparison, against.rule) {
            let _ = write!(html, "<p>{}</p>", escaped(&text));
        }
        html.push_str("</details>\n<p class=\"legend\"><span class=\"key before\"></span> before ");
        html.push_str("<span class=\"key after\"></span> after</p>\n");
    }
    html.push_str(
        "<noscript><p>Plots, filter and order need the script of this page.</p></noscript>\n</header>\n",
    );
    html
}

fn position(class: Class) -> usize {
    Class::ALL.iter().position(|known| *known == class).unwrap_or_default()
}

fn controls(entries: &[Entry<'_>]) -> String {
    let mut html = String::from(
        "<main>\n<form class=\"script\" id=\"controls\" role=\"search\" aria-label=\"Filter the table\">\n\
         <label>Names with <input type=\"search\" id=\"words\" autocomplete=\"off\" spellcheck=\"false\"></label>\n",
    );
    let mut modes: Vec<&str> = entries.iter().map(|entry| entry.mode).collect();
    modes.sort_unstable();
    modes.dedup();
    if modes.len() > 1 {
        html.push_str("<label>Meter <select id=\"mode\"><option value=\"\">all</option>");
        for mode in modes {
            let _ = write!(html, "<option>{}</option>", escaped(mode));
        }
        html.push_str("</select></label>\n");
    }
    html.push_str("<fieldset><legend>Show</legend>");
    for (class, _) in totals(entries) {
        let at = position(class);
        let _ = write!(
            html,
            "<label><input type=\"checkbox\" name=\"class\" value=\"{at}\" data-word=\"{0}\" checked> {0}</label> ",
            class.word()
        );
    }
    html.push_str("</fieldset>\n<button type=\"reset\">Reset</button>\n</form>\n");
    html.push_str("<p class=\"script\" id=\"count\" role=\"status\"></p>\n");
    html
}

fn table(entries: &[Entry<'_>], compares: bool, points: usize, html: &mut String) {
    html.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Trials\">\n<table id=\"table\">\n\
         <caption>One row a trial; its name opens plots and all numbers</caption>\n<thead><tr>",
    );
    for (title, key, class) in columns(compares) {
        let _ = match key {
            "" => write!(html, "<th scope=\"col\" class=\"{class}\">{title}</th>"),
            _ => write!(
                html,
                "<th scope=\"col\" class=\"{class}\" data-key=\"{key}\"><button type=\"button\">{title}</button></th>"
            ),
        };
    }
    html.push_str("</tr></thead>\n<tbody id=\"rows\">\n");
    // A few pixels wide: more points are not to be seen.
    let small = (points / 2).clamp(16, 48);
    for (at, entry) in entries.iter().enumerate() {
        html.push_str(&row(at, entry, compares, small));
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
    let _ = writeln!(
        html,
        "<p class=\"script\"><button type=\"button\" id=\"more\" data-step=\"{SHOWN}\" hidden>Show more</button></p>\n</main>"
    );
}

/// The page with a line of JSON for each row, in their order.
fn data(sources: &Sources<'_>, entries: &[Entry<'_>], points: usize, page: String) -> String {
    let margin = sources.against.map_or_else(|| Rule::default().margin, |against| against.rule.margin);
    let mut data = Data::after(page);
    for entry in entries {
        let identity = identity(entry);
        data.add(&detail(entry, margin, points), (!identity.rows.is_empty()).then_some(identity));
    }
    data.page()
}
