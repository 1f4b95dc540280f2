//! The report of Cloud Hypervisor's `performance-metrics`: one JSON object
//! with the revision, the date, and a result for each of its block benchmarks.
//!
//! Its form was taken from `MetricsReport` and `PerformanceTestResult` in
//! `performance-metrics/src/main.rs` of that project (October 2026). Results
//! there are of a whole iteration, in microseconds, each sample one iteration;
//! ours are the samples of the record, each the mean of its iterations.
//!
//! Neighbours: `export` (rustls' formats), `cli::exchange` (the files).

use serde::{Deserialize, Serialize};

use crate::stats::mean;
use crate::store::{Record, Status};
use crate::units::Unit;

/// What its report says of the commit, as git does; empty where that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// `git describe --dirty`.
    pub human_readable: String,
    /// `git rev-parse HEAD`.
    pub revision: String,
    /// `git show -s --format=%cd`.
    pub commit_date: String,
}

/// Its report. Fields that it does not know are passed by when it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricsReport {
    /// `git describe --dirty`.
    pub git_human_readable: String,
    /// `git rev-parse HEAD`.
    pub git_revision: String,
    /// `git show -s --format=%cd`.
    pub git_commit_date: String,
    /// When it was measured, as `date` prints it.
    pub date: String,
    /// The results in the order of its list.
    pub results: Vec<MetricsResult>,
}

/// One result of its report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricsResult {
    /// Its name; the unit is the last part of it.
    pub name: String,
    /// Arithmetic mean of the samples.
    pub mean: f64,
    /// Standard deviation of the samples, as of a whole population.
    pub std_dev: f64,
    /// Greatest sample.
    pub max: f64,
    /// Least sample.
    pub min: f64,
    /// `PASSED`; older versions of the report do not have it.
    #[serde(default = "passed")]
    pub status: String,
}

fn passed() -> String {
    "PASSED".into()
}

/// Its report of some records, and why others are not in it. A trial that
/// failed is left out: the 0.0 that stands for it there would be taken for a time.
/// `names` are ours and its own of each benchmark, in the order of the report.
pub fn report(
    records: &[Record],
    names: &[(String, String)],
    revision: &Revision,
    date: &str,
) -> (MetricsReport, Vec<String>) {
    let mut left_out = Vec::new();
    let mut found: Vec<(usize, u32, MetricsResult)> = Vec::new();
    for record in records {
        match result(record, names) {
            Ok((at, result)) => {
                // The last attempt of a trial counts.
                match found.iter_mut().find(|(known, ..)| *known == at) {
                    Some(known) if record.attempt >= known.1 => *known = (at, record.attempt, result),
                    Some(_) => {}
                    None => found.push((at, record.attempt, result)),
                }
            }
            Err(why) => left_out.push(format!("{} ({}): {why}", record.scenario, record.mode)),
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    let report = MetricsReport {
        git_human_readable: revision.human_readable.clone(),
        git_revision: revision.revision.clone(),
        git_commit_date: revision.commit_date.clone(),
        date: date.to_string(),
        results: found.into_iter().map(|(_, _, result)| result).collect(),
    };
    (report, left_out)
}

/// The place of a record in the report, and what stands there.
fn result(record: &Record, names: &[(String, String)]) -> Result<(usize, MetricsResult), &'static str> {
    let at = names.iter().position(|(ours, _)| *ours == record.scenario);
    let at = at.ok_or("the reference has no such benchmark")?;
    if record.mode != "walltime" {
        return Err("the reference measures wall time only");
    }
    if record.status != Status::Ok {
        return Err("no numbers");
    }
    let whole = |m: &&crate::store::Metric| m.series.party.is_none() && m.series.unit == Unit::Nanoseconds;
    let metric = record.metrics.first().filter(whole).ok_or("no time of a whole iteration")?;
    let micros: Vec<f64> = metric.series.per_iteration().iter().map(|ns| ns / 1e3).collect();
    let mean = mean(&micros);
    let variance = micros.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / micros.len() as f64;
    let result = MetricsResult {
        name: names[at].1.clone(),
        mean,
        std_dev: variance.sqrt(),
        max: micros.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        min: micros.iter().copied().fold(f64::INFINITY, f64::min),
        status: passed(),
    };
    Ok((at, result))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::samples::{Sample, Series};
    use crate::store::Metric;
    use crate::units::Direction;

    /// Some names, in the order of the reference.
    fn names() -> Vec<(String, String)> {
        ["raw_aio_drain", "qcow_read", "qcow_write", "qcow_batch_read", "qcow_batch_write"]
            .iter()
            .flat_map(|stem| {
                [128, 256].map(|n| (format!("block::{stem}::n{n}"), format!("micro_block_{stem}_{n}_us")))
            })
            .collect()
    }

    fn record(scenario: &str, attempt: u32, samples: &[(u64, u64)]) -> Record {
        let series = Series {
            metric: "wall_time".into(),
            party: None,
            unit: Unit::Nanoseconds,
            direction: Direction::LowerIsBetter,
            samples: samples
                .iter()
                .map(|(iterations, total)| Sample { iterations: *iterations, total: *total })
                .collect(),
        };
        Record {
            run_id: "r".into(),
            suite: "block".into(),
            attempt,
            started: "2026-01-01T00:00:00Z".into(),
            elapsed_ns: 1,
            metrics: Metric::new(series, 1).into_iter().collect(),
            ..Record::new(scenario, "walltime")
        }
    }

    /// A report in the documented form, written by hand.
    const SAMPLE: &str = r#"{
  "git_human_readable": "v49.0-12-gabcdef0",
  "git_revision": "abcdef0123456789abcdef0123456789abcdef01",
  "git_commit_date": "Thu Oct 1 12:00:00 2026 +0000",
  "date": "Fri Oct  2 08:00:00 UTC 2026",
  "results": [
    {
      "name": "micro_block_raw_aio_drain_256_us",
      "mean": 2.0,
      "std_dev": 1.0,
      "max": 3.0,
      "min": 1.0,
      "status": "PASSED"
    },
    {
      "name": "micro_block_qcow_read_128_us",
      "mean": 1388.5,
      "std_dev": 0.0,
      "max": 1388.5,
      "min": 1388.5,
      "status": "PASSED"
    }
  ]
}"#;

    #[test]
    fn records_make_the_report_in_its_form_and_order() {
        let records = [
            record("block::qcow_read::n128", 1, &[(1, 1)]),
            record("block::qcow_read::n128", 2, &[(2, 2_777_000), (1, 1_388_500)]),
            record("block::raw_aio_drain::n256", 1, &[(1, 1_000), (2, 6_000)]),
        ];
        let revision = Revision {
            human_readable: "v49.0-12-gabcdef0".into(),
            revision: "abcdef0123456789abcdef0123456789abcdef01".into(),
            commit_date: "Thu Oct 1 12:00:00 2026 +0000".into(),
        };
        let (made, left_out) = report(&records, &names(), &revision, "Fri Oct  2 08:00:00 UTC 2026");
        assert_eq!(serde_json::to_string_pretty(&made).expect("text"), SAMPLE);
        assert_eq!(serde_json::from_str::<MetricsReport>(SAMPLE).expect("a report"), made);
        let older = SAMPLE.replace(",\n      \"status\": \"PASSED\"", "");
        assert_eq!(serde_json::from_str::<MetricsReport>(&older).expect("a report"), made);
        assert_eq!(left_out, [] as [&str; 0]);
    }

    #[test]
    fn what_has_no_time_there_is_left_out_with_the_reason() {
        let mut failed = record("block::qcow_write::n128", 1, &[]);
        failed.status = Status::Failed("EIO".into());
        let mut counted = record("block::qcow_write::n256", 1, &[(1, 5)]);
        counted.mode = "cachegrind".into();
        let other = record("block::qcow_open::n128", 1, &[(1, 5)]);
        let (made, left_out) = report(&[failed, counted, other], &names(), &Revision::default(), "");
        assert_eq!(made.results, []);
        assert_eq!(
            left_out,
            [
                "block::qcow_write::n128 (walltime): no numbers",
                "block::qcow_write::n256 (cachegrind): the reference measures wall time only",
                "block::qcow_open::n128 (walltime): the reference has no such benchmark",
            ]
        );
    }
}
