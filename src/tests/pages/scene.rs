//! Runs made by hand, with numbers that can be told in advance.
//!
//! Neighbours: the tests look for these numbers on the page.

use std::collections::BTreeMap;

use wallgrind::compare::{Comparison, Kinship, Rule, compare};
use wallgrind::report::{Against, Sources, entries, html};
use wallgrind::samples::{Histogram, Sample, Series};
use wallgrind::store::{Metric, Point, Record, Status};
use wallgrind::units::{Direction, Unit};

/// A trial without numbers.
pub fn bare(scenario: &str, mode: &str, status: Status) -> Record {
    Record {
        run_id: "run".into(),
        suite: "pages".into(),
        status,
        started: "2026-01-01T00:00:00Z".into(),
        elapsed_ns: 1_000_000,
        identity: BTreeMap::from([("commit".to_string(), "c0ffee".to_string())]).into(),
        ..Record::new(scenario, mode)
    }
}

pub fn metric(name: &str, unit: Unit, party: Option<&str>, totals: impl IntoIterator<Item = u64>) -> Metric {
    let series = Series {
        metric: name.into(),
        party: party.map(str::to_string),
        unit,
        direction: Direction::LowerIsBetter,
        samples: totals.into_iter().map(|total| Sample { iterations: 1, total }).collect(),
    };
    Metric::new(series, 1).expect("samples")
}

/// A time of `ns`, 41 samples within two per cent of it, and both parties.
pub fn timed(scenario: &str, ns: u64) -> Record {
    let around = |ns: u64| (0..41_u64).map(move |i| ns - ns / 50 + (i * 17 % 41) * ns / 1_000);
    let mut record = bare(scenario, "walltime", Status::Ok);
    record.metrics.push(metric("wall_time", Unit::Nanoseconds, None, around(ns)));
    record.metrics.push(metric("wall_time", Unit::Nanoseconds, Some("client"), around(ns / 4)));
    record.metrics.push(metric("wall_time", Unit::Nanoseconds, Some("server"), around(ns / 2)));
    record
}

/// A count, and the functions that it is in.
pub fn counted(scenario: &str, n: u64) -> Record {
    let mut record = bare(scenario, "cachegrind", Status::Ok);
    record.metrics.push(metric("instructions", Unit::Instructions, None, [n]));
    record.functions = vec![("hot_loop".into(), n - 100), ("cold_start".into(), 100)];
    record
}

/// Times of operations: most of 1 µs, some of 100 µs.
fn op_times(slow: u64) -> Histogram {
    Histogram {
        metric: "op_time".into(),
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        digits: 3,
        min: 1_000,
        max: slow,
        buckets: vec![(1_000, 985), (slow, 15)],
    }
}

/// Two runs: each verdict, each state, and two meters.
pub struct Scene {
    pub before: Vec<Record>,
    pub after: Vec<Record>,
    pub history: Vec<Vec<Point>>,
    pub rule: Rule,
}

impl Scene {
    pub fn new() -> Self {
        let mut disk = timed("disk::read", 200_000);
        disk.histograms.push(op_times(100_000));
        let mut disk_after = timed("disk::read", 500_000);
        disk_after.histograms.push(op_times(300_000));
        disk_after.identity.insert("commit".into(), "decade".into());
        let before = vec![
            disk,
            timed("net::send", 900_000),
            timed("net::receive", 10_000),
            counted("net::send", 5_000),
            counted("net::receive", 7_000),
            timed("old::gone", 1_000),
        ];
        let after = vec![
            bare("net::broken", "walltime", Status::Failed("check: two bytes differ".into())),
            bare("net::absent", "walltime", Status::Ignored("needs io_uring".into())),
            timed("net::send", 300_000),
            disk_after,
            timed("net::receive", 10_000),
            timed("net::added", 2_000),
            counted("net::send", 5_200),
            counted("net::receive", 7_000),
        ];
        let rule = Rule::default();
        Self { before, after, history: vec![main_line()], rule }
    }

    pub fn comparison(&self) -> Comparison {
        compare(&self.before, &self.after, Kinship::Stored, &self.rule)
    }

    /// The page of both runs.
    pub fn page(&self) -> String {
        let comparison = self.comparison();
        let against =
            Against { label: "main", records: &self.before, comparison: &comparison, rule: &self.rule };
        made(&Sources { run: "now", records: &self.after, against: Some(against), history: &self.history })
    }
}

fn made(sources: &Sources<'_>) -> String {
    html(sources, &entries(sources))
}

/// The page of one run.
pub fn page_of(records: &[Record]) -> String {
    made(&Sources { run: "now", records, against: None, history: &[] })
}

/// Twenty runs of `disk::read`, slower by half from the twelfth on.
fn main_line() -> Vec<Point> {
    let point = |i: u64| {
        let ns = if i < 12 { 200_000 } else { 300_000 } + i % 3;
        let text = format!(
            "{{\"history\":1,\"started\":\"2026-01-{:02}T00:00:00Z\",\"run_id\":\"r{i}\",\"commit\":\"abc{i}\",\
             \"suite\":\"pages\",\"scenario\":\"disk::read\",\"mode\":\"walltime\",\
             \"medians\":{{\"wall_time ns\":{ns}.0}}}}",
            i + 1
        );
        serde_json::from_str(&text).expect("a point")
    };
    (0..20).map(point).collect()
}
