//! The rows: what is known of a scenario, part by part, of one build or two.
//!
//! Neighbours: `evidence` is what they are made of, `text` writes them.

use super::evidence::Evidence;
use super::functions;
use crate::stats::{quantile, sorted};
use crate::store::{Metric, Record};
use crate::units::{Direction, Unit};

/// Percentiles of the samples of a wall time.
const PERCENTILES: [u8; 4] = [10, 90, 95, 99];

/// One number of a scenario, for one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is.
    pub(super) name: String,
    /// Whose it is; `None` for the whole.
    pub(super) party: Option<String>,
    pub(super) unit: Unit,
    pub(super) direction: Direction,
    pub(super) before: Option<f64>,
    pub(super) after: Option<f64>,
}

impl Row {
    /// What came on top; `None` where one side is not known.
    pub(super) fn difference(&self) -> Option<f64> {
        Some(self.after? - self.before?)
    }
}

/// Rows that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub title: String,
    pub rows: Vec<Row>,
    /// What a share is of; `None` where shares mean nothing.
    pub total: Option<f64>,
    /// Rows that were left out.
    pub more: usize,
}

impl Part {
    pub(super) fn of(title: &str, rows: Vec<Row>) -> Self {
        Self { title: title.into(), rows, total: None, more: 0 }
    }
}

/// All that is known of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    pub(super) trial: String,
    /// What the sides are called; the first only where two are compared.
    pub(super) labels: (Option<String>, String),
    pub(super) parts: Vec<Part>,
    /// What a reader should know, and what is not known.
    pub(super) notes: Vec<String>,
}

/// Puts what is known of `trial` side by side; `top` functions of each kind.
pub fn explain(trial: &str, before: Option<&Evidence>, after: &Evidence, top: usize) -> Explained {
    let sides = Sides { before, after };
    let mut parts = vec![
        Part::of("wall time", wall_time(&sides)),
        Part::of("counts", counts(&sides)),
        Part::of("caches and branches, simulated", caches(&sides)),
        Part::of("system calls, and what the body counts itself", gauges(&sides)),
        Part::of("heap", heap(&sides)),
        functions::by_themselves(before, after, top),
        functions::with_callees(before, after, top),
    ];
    parts.retain(|part| !part.rows.is_empty());
    let labels = (before.map(|side| side.label.clone()), after.label.clone());
    Explained { trial: trial.into(), labels, parts, notes: notes(&sides) }
}

struct Sides<'a> {
    before: Option<&'a Evidence>,
    after: &'a Evidence,
}

/// Which of the records of a side.
type Which = fn(&Evidence) -> Option<&Record>;

const TIME: Which = |side| side.time.as_ref();
const COUNTS: Which = |side| side.counts.as_ref();
const HEAP: Which = |side| side.heap.as_ref();

fn metric<'a>(record: &'a Record, name: &str, party: Option<&str>) -> Option<&'a Metric> {
    record.metrics.iter().find(|m| m.series.metric == name && m.series.party.as_deref() == party)
}

impl Sides<'_> {
    fn both(&self) -> impl Iterator<Item = &Evidence> {
        self.before.into_iter().chain([self.after])
    }

    /// The parties of a metric, in the order of the records.
    fn parties(&self, which: Which, name: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for record in self.both().filter_map(which) {
            let of_name = record.metrics.iter().filter(|m| m.series.metric == name);
            for party in of_name.filter_map(|m| m.series.party.clone()) {
                if !all.contains(&party) {
                    all.push(party);
                }
            }
        }
        all
    }

    /// A value of a metric; no row where neither side has it.
    fn row(
        &self,
        which: Which,
        (name, party): (&str, Option<&str>),
        title: &str,
        value: &dyn Fn(&Metric) -> f64,
    ) -> Option<Row> {
        let of = |side: &Evidence| which(side).and_then(|record| metric(record, name, party)).cloned();
        let (before, after) = (self.before.and_then(of), of(self.after));
        let series = &after.as_ref().or(before.as_ref())?.series;
        Some(Row {
            name: title.into(),
            party: party.map(str::to_string),
            unit: series.unit,
            direction: series.direction,
            before: before.as_ref().map(value),
            after: after.as_ref().map(value),
        })
    }

    /// The median of a metric: of the whole, then of each party.
    fn medians(&self, which: Which, name: &str, title: &str) -> Vec<Row> {
        let median = |metric: &Metric| metric.summary.median;
        let mut rows: Vec<Row> = self.row(which, (name, None), title, &median).into_iter().collect();
        for party in self.parties(which, name) {
            rows.extend(self.row(which, (name, Some(&party)), title, &median));
        }
        rows
    }
}

fn wall_time(sides: &Sides<'_>) -> Vec<Row> {
    let name = ("wall_time", None);
    let mut rows = sides.medians(TIME, "wall_time", "median");
    let ends = |metric: &Metric| metric.summary.median_ci;
    rows.extend(sides.row(TIME, name, "95 % interval of the median, from", &|m| ends(m).0));
    rows.extend(sides.row(TIME, name, "95 % interval of the median, to", &|m| ends(m).1));
    for p in PERCENTILES {
        let value = |m: &Metric| quantile(&sorted(&m.series.per_iteration()), f64::from(p) / 100.0);
        rows.extend(sides.row(TIME, name, &format!("percentile {p} of the samples"), &value));
    }
    for (metric, title) in [
        ("op_p50", "one operation, percentile 50"),
        ("op_p90", "one operation, percentile 90"),
        ("op_p99", "one operation, percentile 99"),
        ("op_max", "one operation, the slowest"),
    ] {
        rows.extend(sides.medians(TIME, metric, title));
    }
    rows
}

fn counts(sides: &Sides<'_>) -> Vec<Row> {
    sides.medians(COUNTS, "instructions", "executed in user space")
}

fn caches(sides: &Sides<'_>) -> Vec<Row> {
    [
        ("i1_misses", "misses, first level, instructions"),
        ("d1_misses", "misses, first level, data"),
        ("ll_misses", "misses, last level"),
        ("d1_accesses", "accesses to data"),
        ("branch_mispredictions", "branches, mispredicted"),
        ("branches", "branches"),
        ("estimated_cycles", "estimate"),
    ]
    .into_iter()
    .flat_map(|(metric, title)| sides.medians(COUNTS, metric, title))
    .collect()
}

/// The gauges of the body, and system calls as Valgrind saw them.
fn gauges(sides: &Sides<'_>) -> Vec<Row> {
    let mut rows = sides.medians(COUNTS, "system_calls_seen", "system calls seen by Valgrind");
    let mut known: Vec<String> = Vec::new();
    for which in [TIME, COUNTS] {
        let facts = sides.both().filter_map(which).filter_map(|record| record.facts.get("gauges"));
        let names: Vec<String> = facts.flat_map(|names| names.split(',')).map(str::to_string).collect();
        for name in names {
            if !known.contains(&name) {
                rows.extend(sides.medians(which, &name, &name));
                known.push(name);
            }
        }
    }
    rows
}

fn heap(sides: &Sides<'_>) -> Vec<Row> {
    [
        ("heap_total_blocks", "asked for"),
        ("heap_total_bytes", "asked for"),
        ("heap_peak_bytes", "at the peak, beyond the start"),
        ("heap_held_bytes", "still held at the end"),
    ]
    .into_iter()
    .flat_map(|(metric, title)| sides.medians(HEAP, metric, title))
    .collect()
}

/// What is to be said of one side.
fn notes_of(side: &Evidence) -> Vec<String> {
    let mut notes = side.sources();
    let tree = |record: &Record| {
        Some((record.identity.get("commit")?.clone(), record.identity.get("tree_dirty").cloned()))
    };
    let mut trees: Vec<_> = side.records().filter_map(tree).collect();
    trees.dedup();
    if trees.len() > 1 {
        notes.push("the parts are of different commits, or of one with and without changes".into());
    }
    let is_debug = |record: &Record| record.identity.get("debug_assertions").is_some_and(|on| on == "yes");
    if side.records().any(is_debug) {
        notes.push("built with debug assertions: this is not the code that is shipped".into());
    }
    let mut said: Vec<&String> = side.records().flat_map(|record| &record.notes).collect();
    said.dedup();
    notes.extend(said.into_iter().cloned());
    notes.extend(side.gaps.iter().map(|gap| format!("not known: {gap}")));
    notes
}

/// What is to be said; what holds for both sides once.
fn notes(sides: &Sides<'_>) -> Vec<String> {
    let after = notes_of(sides.after);
    let before = sides.before.map(notes_of).unwrap_or_default();
    let mut notes = Vec::new();
    let label = |side: Option<&Evidence>| side.map(|side| side.label.clone()).unwrap_or_default();
    for note in &before {
        let whose = if after.contains(note) { "both".into() } else { label(sides.before) };
        notes.push(format!("{whose}: {note}"));
    }
    let alone = after.iter().filter(|note| !before.contains(note));
    notes.extend(alone.map(|note| format!("{}: {note}", label(Some(sides.after)))));
    let same = |side: &Evidence| side.sources();
    if sides.before.is_some_and(|before| !same(before).is_empty() && same(before) == same(sides.after)) {
        notes.push("both sides are the same records, of one build: there is nothing between them".into());
    }
    if sides.before.is_some() {
        notes.push(
            "a difference of times between two processes is no verdict: cargo bench -- --against measures \
             both builds in turn"
                .into(),
        );
    }
    notes
}
