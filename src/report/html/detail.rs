//! What lies behind a row: plots and tables of one trial, as data for the
//! page's script.
//!
//! Neighbours: `page` puts it into the file, a line a trial; `plot` draws.

use std::collections::BTreeMap;

use crate::compare::{BASELINE_SUFFIX, Line, Size, Verdict, moved};
use crate::report::entries::Entry;
use crate::report::format::{count, rate, signed_count, signed_percent, times, value};
use crate::report::plot::{self, Interval, Plot, Side};
use crate::report::verdicts::{change, interval, p_value};
use crate::samples::Histogram;
use crate::stats::change_points;
use crate::store::{Metric, Rate, Record};
use crate::units::{Unit, grouped};

/// Functions that are listed, most moved or largest first.
const FUNCTIONS: usize = 20;

/// Changes of a history are called at this share of false ones in a series without any.
const LEVEL: f64 = 0.01;

/// What lies behind a row.
#[derive(Debug, Default)]
pub struct Detail {
    /// What to know first.
    pub notes: Vec<String>,
    /// Plots, in their order.
    pub plots: Vec<Plot>,
    /// Tables, in their order.
    pub tables: Vec<Table>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// What it is.
    pub caption: String,
    /// Titles of the columns.
    pub head: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// The rows that are marked.
    pub marked: Vec<usize>,
    /// Whether it is shown only when asked for.
    pub folded: bool,
}

impl Table {
    fn new(caption: &str, head: &[&str], folded: bool) -> Self {
        let head = head.iter().map(|title| (*title).to_string()).collect();
        Self { caption: caption.into(), head, folded, ..Self::default() }
    }
}

/// Both sides of the headline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headline<'a> {
    /// The other side; of a trial measured in turn, the other build.
    pub before: Option<&'a Metric>,
    /// This side.
    pub after: Option<&'a Metric>,
}

impl<'a> Headline<'a> {
    /// That of a trial.
    pub fn of(entry: &Entry<'a>) -> Self {
        let Some(after) = entry.after.and_then(|record| record.metrics.first()) else {
            return Self { before: entry.before.and_then(|record| record.metrics.first()), after: None };
        };
        Self { before: twin(entry, after), after: Some(after) }
    }

    /// The one whose name and unit are shown.
    pub fn shown(&self) -> Option<&'a Metric> {
        self.after.or(self.before)
    }

    /// The values of both sides, for plots.
    pub fn values(&self) -> Vec<(&'static str, Vec<f64>)> {
        let both = [("before", self.before), ("after", self.after)];
        both.into_iter().filter_map(|(class, m)| Some((class, m?.series.per_iteration()))).collect()
    }
}

/// The metric of the other side that belongs to one of this.
fn twin<'a>(entry: &Entry<'a>, metric: &Metric) -> Option<&'a Metric> {
    let in_turn = format!("{}{BASELINE_SUFFIX}", metric.series.metric);
    let find = |record: &'a Record, name: &str| {
        record.metrics.iter().find(|m| {
            m.series.metric == name
                && m.series.party == metric.series.party
                && m.series.unit == metric.series.unit
        })
    };
    let of_this = entry.after.and_then(|record| find(record, &in_turn));
    of_this.or_else(|| entry.before.and_then(|record| find(record, &metric.series.metric)))
}

/// The sides as plots take them.
pub fn sides<'a>(values: &'a [(&'static str, Vec<f64>)]) -> Vec<Side<'a>> {
    values.iter().map(|(class, values)| Side { class, values }).collect()
}

/// Everything behind the row of a trial; plots have up to about `points` points.
pub fn detail(entry: &Entry<'_>, margin: f64, points: usize) -> Detail {
    let headline = Headline::of(entry);
    let mut detail = Detail { notes: notes(entry), ..Detail::default() };
    if let Some(metric) = headline.shown() {
        let what = metric.series.metric.replace('_', " ");
        let what = (what.as_str(), metric.series.unit);
        let values = headline.values();
        let sides = sides(&values);
        let mut add = |plot: Option<Plot>| detail.plots.extend(plot);
        add(changes(&entry.lines, margin));
        add(plot::over_time(&sides, what, points));
        add(plot::densities(&sides, what, (points / 2).max(16)));
        add(plot::cumulative(&sides, what, (points / 2).max(16)));
        add(parties(entry, metric));
        add(latencies(entry, (points / 2).max(24)));
    }
    let (plot, table) = history(entry, headline.shown());
    detail.plots.extend(plot);
    detail.tables.push(metrics(entry));
    detail.tables.extend(percentiles(entry));
    detail.tables.extend(functions(entry));
    detail.tables.extend(table);
    detail.tables.extend(facts(entry));
    detail.tables.retain(|table| !table.rows.is_empty());
    detail
}

fn notes(entry: &Entry<'_>) -> Vec<String> {
    let mut notes: Vec<String> = entry.reason().into_iter().collect();
    notes.extend(entry.lines.iter().flat_map(|line| &line.marks).map(|mark| format!("forced: {mark}")));
    notes.dedup();
    notes.extend(entry.row.iter().flat_map(|row| row.tags.iter().chain(&row.notes)).cloned());
    notes
}

fn changes(lines: &[&Line], margin: f64) -> Option<Plot> {
    let row = |line: &&Line| {
        let Size::Estimated { interval, .. } = line.size else { return None };
        Some((name(line), Interval { change: line.change()?, interval, margin }))
    };
    plot::interval(&lines.iter().filter_map(row).collect::<Vec<_>>())
}

fn name(line: &Line) -> String {
    let party = line.party.as_ref().map(|party| format!(" [{party}]")).unwrap_or_default();
    format!("{}{party}", line.metric.replace('_', " "))
}

fn parties(entry: &Entry<'_>, headline: &Metric) -> Option<Plot> {
    let series = &headline.series;
    let of = |record: &Record| -> Vec<(String, f64)> {
        let same = record.metrics.iter().filter(|m| m.series.metric == series.metric);
        same.filter_map(|m| Some((m.series.party.clone()?, m.summary.median))).collect()
    };
    let (before, after) = (entry.before.map(of).unwrap_or_default(), entry.after.map(of).unwrap_or_default());
    let mut rows: Vec<plot::Bars> = Vec::new();
    for (class, side) in [("before", before), ("after", after)] {
        for (party, median) in side {
            match rows.iter_mut().find(|(known, _)| *known == party) {
                Some((_, values)) => values.push((class, median)),
                None => rows.push((party, vec![(class, median)])),
            }
        }
    }
    plot::bars("By party", &rows, (&series.metric.replace('_', " "), series.unit))
}

fn histograms<'a>(entry: &Entry<'a>) -> Vec<(&'static str, &'a Histogram)> {
    let of = |record: Option<&'a Record>| record.and_then(|record| record.histograms.first());
    let both = [("before", of(entry.before)), ("after", of(entry.after))];
    both.into_iter().filter_map(|(class, histogram)| Some((class, histogram?))).collect()
}

fn latencies(entry: &Entry<'_>, points: usize) -> Option<Plot> {
    plot::latencies(&histograms(entry), points)
}

fn percentiles(entry: &Entry<'_>) -> Option<Table> {
    let sides = histograms(entry);
    let mut head = vec!["share of operations"];
    head.extend(sides.iter().map(|(class, _)| *class));
    let mut table = Table::new("Latency of one operation: no longer than", &head, false);
    let shares =
        [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %"), (1.0, "all")];
    for (p, text) in shares {
        let cell =
            |(_, histogram): &(&str, &Histogram)| value(histogram.quantile(p) as f64, histogram.unit, false);
        table.rows.push([text.to_string()].into_iter().chain(sides.iter().map(cell)).collect());
    }
    let counts = sides.iter().map(|(_, histogram)| grouped(histogram.count()));
    table.rows.push(["operations".to_string()].into_iter().chain(counts).collect());
    (!sides.is_empty()).then_some(table)
}

fn metrics(entry: &Entry<'_>) -> Table {
    let head = [
        "metric",
        "before",
        "after",
        "change",
        "interval",
        "verdict",
        "samples",
        "95 % interval",
        "range",
        "MAD",
        "outliers",
        "better",
    ];
    let mut table = Table::new("All metrics, for one iteration", &head, false);
    let Some(record) = entry.after.or(entry.before) else { return table };
    for metric in record.metrics.iter().filter(|m| !m.series.metric.ends_with(BASELINE_SUFFIX)) {
        let line = entry
            .lines
            .iter()
            .find(|line| line.metric == metric.series.metric && line.party == metric.series.party);
        if line.is_some_and(|line| !matches!(line.verdict, Verdict::Same)) {
            table.marked.push(table.rows.len());
        }
        let twin = if entry.after.is_some() { twin(entry, metric) } else { Some(metric) };
        let after = entry.after.is_some().then_some(metric);
        table.rows.push(metric_row(metric, twin, after, line.copied()));
    }
    table.rows.extend(record.rates().iter().map(|rate| rate_row(entry, record, rate)));
    table
}

fn metric_row(
    shown: &Metric,
    before: Option<&Metric>,
    after: Option<&Metric>,
    line: Option<&Line>,
) -> Vec<String> {
    let (series, summary) = (&shown.series, &shown.summary);
    let party = series.party.as_ref().map(|party| format!(" [{party}]")).unwrap_or_default();
    let text = |v: f64| value(v, series.unit, false);
    let of = |metric: Option<&Metric>| {
        metric.map(|m| with_unit(m.summary.median, series.unit)).unwrap_or_default()
    };
    // One sample has no spread.
    let spread = |text: String| if series.samples.len() > 1 { text } else { String::new() };
    let verdict = line.map(|line| {
        let fails = if line.fails { ", beyond its limit" } else { "" };
        let p = match line.size {
            Size::Estimated { adjusted_p, .. } => format!(", p {}", p_value(adjusted_p)),
            _ => String::new(),
        };
        format!("{}{p}{fails}", line.verdict.word(line.unit))
    });
    vec![
        format!("{}{party}", series.metric),
        of(before),
        of(after),
        line.map(|line| change(line).0).unwrap_or_default(),
        line.map(|line| interval(line).0).unwrap_or_default(),
        verdict.unwrap_or_default(),
        grouped(series.samples.len() as u64),
        spread(format!("{} to {}", text(summary.median_ci.0), text(summary.median_ci.1))),
        spread(format!("{} to {}", text(summary.min), text(summary.max))),
        spread(text(summary.mad)),
        spread(grouped(summary.outliers)),
        series.direction.word().to_string(),
    ]
}

/// What is done in a second. The verdict is that of the time it comes from.
fn rate_row(entry: &Entry<'_>, record: &Record, shown: &Rate) -> Vec<String> {
    let headline = Headline::of(entry);
    let text = |median: f64| rate(&Rate { median, ..*shown });
    let of = |metric: Option<&Metric>| {
        let median = metric.map(|m| m.summary.median).filter(|ns| *ns > 0.0);
        median.map(|ns| text(shown.of.per_second(ns))).unwrap_or_default()
    };
    // Of another amount of work it would be another rate.
    let same_work = entry.before.is_none_or(|before| before.throughput == record.throughput);
    let mut row = vec![
        shown.of.rate_name().to_string(),
        of(headline.before.filter(|_| same_work)),
        of(headline.after),
        String::new(),
        String::new(),
        String::new(),
        grouped(record.metrics.first().map_or(0, |m| m.series.samples.len()) as u64),
        shown.median_ci.map(|(low, high)| format!("{} to {}", text(low), text(high))).unwrap_or_default(),
    ];
    row.extend([String::new(), String::new(), String::new(), "higher".into()]);
    row
}

/// A value with its unit, also where that is not a time.
pub fn with_unit(v: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds | Unit::Ratio => value(v, unit, false),
        _ => format!("{} {unit}", value(v, unit, false)),
    }
}

fn functions(entry: &Entry<'_>) -> Option<Table> {
    let after = entry.after.filter(|record| !record.functions.is_empty())?;
    let iterations = after.facts.get("iterations").and_then(|n| n.parse().ok()).unwrap_or(1);
    let iterations = times(iterations, "iteration");
    let Some(before) = entry.before.filter(|record| !record.functions.is_empty()) else {
        let total: u64 = after.functions.iter().map(|(_, n)| n).sum();
        let caption = format!("Functions with the most instructions, of {iterations}");
        let mut table = Table::new(&caption, &["function", "instructions", "share"], true);
        for (function, n) in after.functions.iter().take(FUNCTIONS) {
            let share = format!("{:.1} %", 100.0 * *n as f64 / total.max(1) as f64);
            table.rows.push(vec![function.clone(), grouped(*n), share]);
        }
        return Some(table);
    };
    let caption = format!("Functions whose instructions moved, of {iterations}");
    let mut table = Table::new(&caption, &["function", "before", "after", "change"], false);
    let index = |record: &Record| -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        record.functions.iter().for_each(|(name, n)| *all.entry(name.clone()).or_insert(0) += n);
        all
    };
    let (was, is) = (index(before), index(after));
    let text = |side: &BTreeMap<String, u64>, name: &str| side.get(name).map_or("0".into(), |n| grouped(*n));
    for (function, by) in moved(before, after, FUNCTIONS) {
        let (was, is) = (text(&was, &function), text(&is, &function));
        table.rows.push(vec![function, was, is, signed_count(by as f64)]);
    }
    Some(table)
}

fn history(entry: &Entry<'_>, headline: Option<&Metric>) -> (Option<Plot>, Option<Table>) {
    let Some(series) = headline.map(|metric| &metric.series) else { return (None, None) };
    let key = format!("{} {}", series.metric, series.unit);
    let points = entry.history.iter().filter_map(|point| Some((point, *point.medians.get(&key)?)));
    let (points, values): (Vec<_>, Vec<f64>) = points.unzip();
    let changes = change_points(&values, LEVEL, 0);
    let what = series.metric.replace('_', " ");
    let plot = plot::history(&values, &changes, (&what, series.unit));
    let mut table = Table::new("When the level changed", &["run of", "commit", "change"], false);
    for (i, at) in changes.iter().enumerate() {
        let from = if i == 0 { 0 } else { changes[i - 1] };
        let to = changes.get(i + 1).copied().unwrap_or(values.len());
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let share = mean(&values[*at..to]) / mean(&values[from..*at]) - 1.0;
        let commit = points[*at].commit.chars().take(12).collect();
        table.rows.push(vec![points[*at].started.clone(), commit, signed_percent(share)]);
    }
    (plot, Some(table))
}

fn facts(entry: &Entry<'_>) -> Option<Table> {
    let of = |record: Option<&Record>| record.map(|record| record.facts.clone()).unwrap_or_default();
    let mut table = two_sides("How it was measured", &of(entry.before), &of(entry.after));
    if let Some(record) = entry.after.or(entry.before) {
        let seconds = format!("{} s", count(record.elapsed_ns as f64 / 1e9));
        let of_run =
            [("started", record.started.clone()), ("took", seconds), ("suite", record.suite.clone())];
        let params = record.params.iter().map(|(key, v)| (format!("parameter {key}"), v.clone()));
        let more = of_run.into_iter().map(|(key, v)| (key.to_string(), v)).chain(params);
        table.rows.extend(more.map(|(key, v)| vec![key, String::new(), v]));
    }
    table.folded = true;
    Some(table)
}

/// What both sides depend on, what differs first and marked.
pub fn identity(entry: &Entry<'_>) -> Table {
    let of = |record: Option<&Record>| record.map(|record| record.identity.clone()).unwrap_or_default();
    two_sides("Identity of both sides", &of(entry.before), &of(entry.after))
}

/// A table of two maps; where both have a key and it differs, the row is
/// marked and stands first. With one side only nothing differs.
fn two_sides(caption: &str, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Table {
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    let differs = |key: &&String| matches!((before.get(*key), after.get(*key)), (Some(b), Some(a)) if a != b);
    let (first, rest): (Vec<&String>, Vec<&String>) = keys.into_iter().partition(differs);
    let mut table = Table::new(caption, &["", "before", "after"], true);
    table.marked = (0..first.len()).collect();
    let text = |side: &BTreeMap<String, String>, key: &str| side.get(key).cloned().unwrap_or_default();
    for key in first.into_iter().chain(rest) {
        table.rows.push(vec![key.clone(), text(before, key), text(after, key)]);
    }
    if !table.marked.is_empty() {
        table.caption = format!("{caption}: {} differ", table.marked.len());
    }
    table
}
