//! From records to rows: the one place where it is decided what a report
//! shows of a record. Renderers only choose the form.
//!
//! Neighbours: `terminal` renders it; `store` has the records.

use std::collections::BTreeMap;

use super::format::times;
use crate::samples::Series;
use crate::stats::{median, sorted};
use crate::store::{Metric, Rate, Record, Status};
use crate::units::{Direction, Unit};

/// Drift is shown from this correlation (either way) and below this p value.
const DRIFT: (f64, f64) = (0.3, 0.01);

/// Outliers and preemptions are shown from this share of the samples.
const NOTABLE: f64 = 0.05;

/// Metrics that have a column of their own beside the headline, and its title.
const FURTHER: [(&str, &str); 6] = [
    ("estimated_cycles", "est. cycles"),
    ("heap_peak_bytes", "peak bytes"),
    ("op_p50", "op p50"),
    ("op_p90", "op p90"),
    ("op_p99", "op p99"),
    ("op_max", "op max"),
];

/// The fact that names the gauges of a body, with commas between them.
const GAUGES: &str = "gauges";

/// All records of one meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The meter.
    pub mode: String,
    /// Name, unit and direction of the headline metric, if anything was measured.
    pub headline: Option<(String, Unit, Direction)>,
    /// The names of the two parties, where all rows that have parties agree.
    pub parties: Option<(String, String)>,
    /// Groups in the order of their first row.
    pub groups: Vec<Group>,
    /// Whether a row was measured with debug assertions.
    pub debug_build: bool,
}

/// Rows under one prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The prefix without its last `::`; empty for names of one segment.
    pub prefix: String,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The last segment of its name.
    pub name: String,
    /// What became of it.
    pub state: State,
    /// What to know before trusting it, in a word or two: drift, outliers, migrations.
    pub tags: Vec<String>,
    /// The same at length, from the meter.
    pub notes: Vec<String>,
}

/// What became of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// There are numbers.
    Measured(Box<Figures>),
    /// There are none, for a reason: `failed`, `timed out` or `ignored`.
    Unmeasured(&'static str, String),
}

/// The numbers of one trial, for one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Median of the headline.
    pub median: f64,
    /// Half the width of its 95 % interval (the longer half); `None` with one sample.
    pub half_interval: Option<f64>,
    /// Least and greatest value.
    pub range: (f64, f64),
    /// Number of samples.
    pub samples: usize,
    /// Name and median of each party.
    pub parties: Vec<(String, f64)>,
    /// The share of each party in the whole, 0 to 1: the median of the shares
    /// in each sample. Medians of the times themselves need not add up.
    pub shares: Vec<f64>,
    /// What it gets done in a second, where the headline is a time.
    pub rates: Vec<Rate>,
    /// How the region was told apart, where that is not always the same way.
    pub method: Option<String>,
    /// Seeds of the repeatable world.
    pub seeds: Option<String>,
    /// Further columns.
    pub further: Vec<Further>,
}

/// A metric beside the headline.
#[derive(Clone, Debug, PartialEq)]
pub struct Further {
    /// The title of its column.
    pub title: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way it is better.
    pub direction: Direction,
    /// Its medians: of the whole, else of each party.
    pub values: Vec<f64>,
    /// Whether all samples agree to the last digit.
    pub exact: bool,
    /// Whether it is a gauge of the body.
    pub gauge: bool,
}

/// The sections of a report, one for each meter, in the order of the records.
/// Of a trial that was repeated, the last attempt counts. Trials that passed
/// without being measured have no row.
pub fn sections(records: &[Record]) -> Vec<Section> {
    let last = last_attempts(records);
    let several_suites = last.iter().any(|record| record.suite != last[0].suite);
    let mut sections: Vec<Section> = Vec::new();
    for record in last {
        let Some(row) = row(record) else { continue };
        let at = sections.iter().position(|s| s.mode == record.mode).unwrap_or(sections.len());
        if at == sections.len() {
            sections.push(Section::new(&record.mode));
        }
        sections[at].add(record, row, several_suites);
    }
    for section in &mut sections {
        section.parties = common_parties(section);
    }
    sections
}

/// Of each trial the last attempt, in the order of the records.
pub(super) fn last_attempts(records: &[Record]) -> Vec<&Record> {
    let key = |record: &Record| (record.suite.clone(), record.scenario.clone(), record.mode.clone());
    let mut last: BTreeMap<_, (u32, usize)> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        let known = last.entry(key(record)).or_default();
        *known = (*known).max((record.attempt, at));
    }
    let mut places: Vec<usize> = last.into_values().map(|(_, at)| at).collect();
    places.sort_unstable();
    places.into_iter().map(|at| &records[at]).collect()
}

impl Section {
    fn new(mode: &str) -> Self {
        Self { mode: mode.into(), headline: None, parties: None, groups: Vec::new(), debug_build: false }
    }

    fn add(&mut self, record: &Record, row: Row, several_suites: bool) {
        if let (None, Some(Metric { series, .. })) = (&self.headline, record.metrics.first()) {
            self.headline = Some((series.metric.clone(), series.unit, series.direction));
        }
        let measured = matches!(row.state, State::Measured(_));
        self.debug_build |= measured && record.identity.get("debug_assertions").is_some_and(|v| v == "yes");
        let prefix = record.scenario.rsplit_once("::").map_or("", |(prefix, _)| prefix);
        let prefix = match (several_suites, prefix) {
            (false, _) => prefix.to_string(),
            (true, "") => format!("({})", record.suite),
            (true, _) => format!("{prefix} ({})", record.suite),
        };
        match self.groups.iter_mut().find(|group| group.prefix == prefix) {
            Some(group) => group.rows.push(row),
            None => self.groups.push(Group { prefix, rows: vec![row] }),
        }
    }

    /// The numbers of all rows that have any.
    pub fn figures(&self) -> impl Iterator<Item = &Figures> {
        self.groups.iter().flat_map(|group| &group.rows).filter_map(|row| match &row.state {
            State::Measured(figures) => Some(&**figures),
            State::Unmeasured(..) => None,
        })
    }
}

fn common_parties(section: &Section) -> Option<(String, String)> {
    let mut pairs = section.figures().filter(|f| f.parties.len() == 2);
    let of = |f: &Figures| (f.parties[0].0.clone(), f.parties[1].0.clone());
    let first = of(pairs.next()?);
    pairs.all(|f| of(f) == first).then_some(first)
}

/// The row of a record; `None` for one that passed without being measured.
pub(super) fn row(record: &Record) -> Option<Row> {
    let state = match &record.status {
        Status::Ok => State::Measured(Box::new(figures(record)?)),
        Status::Failed(reason) => State::Unmeasured("failed", reason.clone()),
        Status::TimedOut(reason) => {
            // The words before it say so already.
            let reason = reason.strip_prefix("timed out: ").unwrap_or(reason);
            State::Unmeasured("timed out", reason.to_string())
        }
        Status::Ignored(reason) => State::Unmeasured("ignored", reason.clone()),
    };
    let name = record.scenario.rsplit("::").next().unwrap_or_default().to_string();
    Some(Row { name, state, tags: tags(record), notes: record.notes.clone() })
}

fn figures(record: &Record) -> Option<Figures> {
    let headline = record.metrics.first()?;
    let summary = &headline.summary;
    let samples = headline.series.samples.len();
    let (low, high) = summary.median_ci;
    let half = (summary.median - low).max(high - summary.median);
    let fact = |key: &str| record.facts.get(key).cloned();
    Some(Figures {
        median: summary.median,
        half_interval: (samples > 1).then_some(half),
        range: (summary.min, summary.max),
        samples,
        parties: of_parties(record, &headline.series.metric),
        shares: shares(record, headline),
        rates: record.rates(),
        method: fact("method"),
        seeds: fact("seeds"),
        further: all_further(record),
    })
}

/// Name and median of the parties of a metric.
fn of_parties(record: &Record, metric: &str) -> Vec<(String, f64)> {
    let of = record.metrics.iter().filter(|m| m.series.metric == metric);
    of.filter_map(|m| Some((m.series.party.clone()?, m.summary.median))).collect()
}

/// The median share of each party in the samples of the headline.
fn shares(record: &Record, headline: &Metric) -> Vec<f64> {
    let whole = &headline.series;
    let of_party = |m: &&Metric| m.series.metric == whole.metric && m.series.party.is_some();
    let share = |m: &Metric| {
        let pairs = m.series.samples.iter().zip(&whole.samples).filter(|(_, whole)| whole.total > 0);
        let shares: Vec<f64> = pairs.map(|(part, whole)| part.total as f64 / whole.total as f64).collect();
        median(&sorted(&shares))
    };
    record.metrics.iter().filter(of_party).map(share).collect()
}

/// The gauges first: the meters' own give way when there is no room.
fn all_further(record: &Record) -> Vec<Further> {
    let named = record.facts.get(GAUGES).map_or("", String::as_str);
    let gauges = named.split(',').filter(|name| !name.is_empty());
    let gauges = gauges.filter_map(|name| further(record, name, &name.replace('_', " "), true));
    let others = FURTHER.iter().filter_map(|(metric, title)| further(record, metric, title, false));
    gauges.chain(others).collect()
}

fn further(record: &Record, metric: &str, title: &str, gauge: bool) -> Option<Further> {
    // A headline is not shown twice.
    let mut of = record.metrics.iter().skip(1).filter(|m| m.series.metric == metric);
    let first = of.next()?;
    let values = match first.series.party {
        None => vec![first.summary.median],
        Some(_) => of_parties(record, metric).into_iter().map(|(_, median)| median).collect(),
    };
    let exact = first.series.is_exact() && of.all(|m| m.series.is_exact());
    let Series { unit, direction, .. } = first.series;
    Some(Further { title: title.to_string(), unit, direction, values, exact, gauge })
}

/// The tags of a record, in order of weight.
fn tags(record: &Record) -> Vec<String> {
    let mut tags = Vec::new();
    if record.attempt > 1 {
        tags.push(format!("attempt {}", record.attempt));
    }
    let Some(Metric { series, summary }) = record.metrics.first() else { return tags };
    let samples = series.samples.len() as f64;
    let fact = |key: &str| record.facts.get(key).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
    if series.unit != Unit::Nanoseconds {
        if summary.max > summary.min && summary.median > 0.0 {
            let range = 100.0 * (summary.max - summary.min) / summary.median;
            tags.push(format!("range {range:.2} %"));
        }
        return tags;
    }
    let (rho, p) = summary.drift;
    if rho.abs() >= DRIFT.0 && p < DRIFT.1 {
        tags.push(format!("drift {rho:+.2}"));
    }
    if summary.outliers as f64 >= NOTABLE * samples && summary.outliers > 0 {
        tags.push(times(summary.outliers, "outlier"));
    }
    let migrations = fact("cpu_migrations") + fact("cpu_migrations_outside_region");
    if migrations > 0 {
        tags.push(times(migrations, "migration"));
    }
    let preempted = fact("context_switches_involuntary");
    if preempted as f64 >= NOTABLE * samples && preempted > 0 {
        tags.push(times(preempted, "preemption"));
    }
    tags
}
