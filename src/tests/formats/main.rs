//! Records on disk when things go wrong: processes that are killed, disks that
//! are full, many writers at once; and files of every schema there has been.
//!
//! Neighbours: the unit tests of `store` cover single files. Children are this
//! same program, told by the environment to be one. `published` has what other
//! programs read.

mod published;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wallgrind::samples::{Sample, Series};
use wallgrind::stats::order_statistic_interval;
use wallgrind::store::{Metric, Record, RunDir, Status, read_record};
use wallgrind::units::{Direction, Unit};

/// The folder in which a child is to write; without it, it is no child.
const FOLDER: &str = "WALLGRIND_TEST_FOLDER";

fn record(scenario: &str, samples: u64) -> Record {
    let series = Series {
        metric: "wall_time".into(),
        party: None,
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        samples: (0..samples).map(|i| Sample { iterations: 10, total: 1_000 + i * 7919 % 101 }).collect(),
    };
    // Summing up is not what is tested; one of a few samples is as good.
    let few = Series { samples: series.samples[..4.min(series.samples.len())].into(), ..series.clone() };
    let summary = Metric::new(few, 1).expect("samples").summary;
    Record {
        run_id: "run".into(),
        suite: "formats".into(),
        started: "2026-01-01T00:00:00Z".into(),
        elapsed_ns: 1,
        metrics: vec![Metric { series, summary }],
        ..Record::new(scenario, "walltime")
    }
}

/// The folder to write to, if this process is a child.
fn childs_folder() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}

/// Not a test by itself: writes records until it is killed, and says so after each.
#[test]
fn child_that_writes_for_ever() {
    let Some(folder) = childs_folder() else { return };
    let dir = RunDir::open(&folder, "run").expect("a run folder");
    for i in 0u64.. {
        dir.write(&record(&format!("a::n{i}"), 20_000)).expect("written");
        // The harness of the test would keep the output of the print macros.
        writeln!(std::io::stdout(), "written").expect("the parent reads");
    }
}

#[test]
fn a_killed_run_leaves_whole_records_only() {
    for finished in [1, 2, 5, 9, 14] {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", "child_that_writes_for_ever", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("its stdout")).lines();
        let written = lines.map_while(Result::ok).filter(|line| line.ends_with("written"));
        assert_eq!(written.take(finished).count(), finished);
        child.kill().expect("killed");
        assert!(!child.wait().expect("its end").success());
        let found = RunDir::scan(&folder.path().join("run")).expect("a readable folder");
        assert!(found.faults.is_empty(), "{:?}", found.faults);
        assert!(found.records.len() >= finished, "{} of {finished}", found.records.len());
        assert!(found.records.iter().all(|r| r.metrics[0].series.samples.len() == 20_000));
    }
}

/// Not a test by itself: is killed by the second of its records, half-way.
#[test]
fn child_that_dies_in_the_middle_of_a_file() {
    let Some(folder) = childs_folder() else { return };
    let dir = RunDir::open(&folder, "run").expect("a run folder");
    dir.write(&record("a::small", 3)).expect("there is room for this one");
    let _ = dir.write(&record("a::large", 20_000));
    unreachable!("the signal of the limit was not deadly");
}

#[test]
fn a_process_that_dies_while_it_writes_leaves_what_was_finished() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    // A file that grows beyond 8 KiB is deadly: SIGXFSZ comes exactly there.
    let output = Command::new("sh")
        .args(["-c", r#"ulimit -c 0; ulimit -f 16; exec "$0" "$@""#])
        .arg(env::current_exe().expect("this program"))
        .args(["--exact", "child_that_dies_in_the_middle_of_a_file", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .expect("a child");
    let deadly = output.status.signal();
    assert_eq!(deadly, Some(libc::SIGXFSZ), "{}", String::from_utf8_lossy(&output.stderr));
    let run = folder.path().join("run");
    let left = fs::read_dir(&run).expect("the folder").flatten().map(|e| e.metadata().map_or(0, |m| m.len()));
    assert_eq!(left.filter(|bytes| *bytes == 8_192).count(), 1, "it did not die half-way");
    let found = RunDir::scan(&run).expect("a readable folder");
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    assert_eq!(found.records.iter().map(|r| &*r.scenario).collect::<Vec<_>>(), ["a::small"]);
}

/// Not a test by itself: runs where files can have 8 KiB at most.
#[test]
fn child_with_a_full_disk() {
    let Some(folder) = childs_folder() else { return };
    let dir = RunDir::open(&folder, "run").expect("a run folder");
    dir.write(&record("a::small", 3)).expect("there is room for this one");
    let error = dir.write(&record("a::large", 20_000)).expect_err("there is no room for this one");
    let report = error.report();
    assert!(report.contains("formats.a.large.walltime.1.json"), "{report}");
    assert!(report.contains("File too large") && report.contains("hint: make room"), "{report}");
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    // The limit acts like a full disk: the write fails. Its signal is ignored
    // by the shell and, by inheritance, by the child. 16 blocks of 512 bytes.
    let output = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 16; exec "$0" "$@""#])
        .arg(env::current_exe().expect("this program"))
        .args(["--exact", "child_with_a_full_disk", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .expect("a child");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    let names: Vec<_> = fs::read_dir(folder.path().join("run")).expect("the folder").flatten().collect();
    assert_eq!(names.len(), 1, "something was left behind: {names:?}");
    let records = RunDir::read(&folder.path().join("run")).expect("read");
    assert_eq!(records[0].scenario, "a::small");
}

#[test]
fn many_writers_of_one_trial_keep_all_their_records() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::thread::scope(|scope| {
        for writer in 0..8u64 {
            let folder = folder.path();
            scope.spawn(move || {
                let dir = RunDir::open(folder, "run").expect("a run folder");
                for _ in 0..5 {
                    dir.write(&record("a::same", writer + 1)).expect("written");
                }
            });
        }
    });
    let records = RunDir::read(&folder.path().join("run")).expect("read");
    let mut lengths: Vec<usize> = records.iter().map(|r| r.metrics[0].series.samples.len()).collect();
    lengths.sort_unstable();
    let expected: Vec<usize> = (1..=8).flat_map(|n| [n; 5]).collect();
    assert_eq!(lengths, expected);
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/results").join(name)
}

#[test]
fn schema_1_0_is_read_for_ever() {
    let record = read_record(&fixture("record-1.0.json")).expect("a record of schema 1.0");
    assert_eq!(record.scenario, "talk::ping_pong");
    assert_eq!(record.status, Status::Ok);
    assert_eq!(record.params, [("bytes".to_string(), "4096".to_string())]);
    let series: Vec<_> =
        record.metrics.iter().map(|m| (&*m.series.metric, m.series.party.as_deref())).collect();
    assert_eq!(series, [("wall_time", None), ("wall_time", Some("client")), ("wall_time", Some("server"))]);
    let whole = &record.metrics[0].series;
    assert_eq!((whole.unit, whole.direction), (Unit::Nanoseconds, Direction::LowerIsBetter));
    assert_eq!(record.facts["clock"], "CLOCK_MONOTONIC_RAW");
    for reason in ["failed", "timed_out", "ignored"] {
        let file = format!("record-1.0-{reason}.json");
        let record = read_record(&fixture(&file)).expect("a record of schema 1.0");
        assert_ne!(record.status, Status::Ok);
        assert!(record.metrics.is_empty());
    }
}

#[test]
fn schema_1_2_has_units_of_a_suites_own_and_rates() {
    let record = read_record(&fixture("record-1.2.json")).expect("a record of schema 1.2");
    let looked = &record.metrics[1].series;
    assert_eq!((looked.metric.as_str(), looked.unit), ("words_looked_at", Unit::named("words")));
    // What is stored is what comes of the headline.
    let text = std::fs::read_to_string(fixture("record-1.2.json")).expect("a file");
    let stored: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let (rate, stored) = (&record.rates()[0], &stored["throughput"][0]["rate"]);
    assert_eq!(stored["median"].as_f64(), Some(rate.median));
    assert_eq!((stored["unit"].as_str(), stored["better"].as_str()), (Some("bytes/s"), Some("higher")));
    let (low, high) = rate.median_ci.expect("an interval");
    assert!(low < rate.median && rate.median < high);
}

#[test]
fn schema_1_1_has_histograms_whose_quantiles_are_stored_beside_them() {
    let record = read_record(&fixture("record-1.1.json")).expect("a record of schema 1.1");
    assert_eq!((record.scenario.as_str(), &record.status), ("disk::read_4k", &Status::Ok));
    let named: Vec<_> = record.metrics.iter().map(|m| (&*m.series.metric, m.series.unit.symbol())).collect();
    let expected = [
        ("wall_time", "ns"),
        ("calls_made", "syscalls"),
        ("bytes_moved", "bytes"),
        ("calls_failed", "syscalls"),
        ("op_p50", "ns"),
        ("op_p90", "ns"),
        ("op_p99", "ns"),
        ("op_max", "ns"),
    ];
    assert_eq!(named, expected);
    assert_eq!(record.metrics[2].series.direction, Direction::HigherIsBetter);
    assert!(record.metrics[1..4].iter().all(|m| m.series.is_exact()));
    let [histogram] = record.histograms.as_slice() else { panic!("one histogram: {record:?}") };
    assert_eq!((histogram.metric.as_str(), histogram.digits), ("op_time", 3));
    assert_eq!(histogram.count().to_string(), record.facts["op_count"]);
    for (metric, share) in record.metrics[4..].iter().zip([0.5, 0.9, 0.99, 1.0]) {
        assert_eq!(metric.series.samples[0].total, histogram.quantile(share), "{}", metric.series.metric);
    }
    assert!(read_record(&fixture("record-1.0.json")).is_ok_and(|record| record.histograms.is_empty()));
}

#[test]
fn a_stored_summary_can_be_computed_from_the_stored_samples() {
    let record = read_record(&fixture("record-1.0.json")).expect("a record of schema 1.0");
    let seed = record.facts["bootstrap_seed"].parse().expect("a seed");
    for metric in &record.metrics {
        let again = Metric::new(metric.series.clone(), seed).expect("samples").summary;
        // The interval depends on the generator of random numbers, which may
        // be another one some day; an exact interval bounds it.
        let stored = wallgrind::stats::Summary { median_ci: again.median_ci, ..metric.summary.clone() };
        assert_eq!(stored, again);
        let mut values = metric.series.per_iteration();
        values.sort_by(f64::total_cmp);
        let (low, high) = order_statistic_interval(&values, 0.99).expect("enough samples");
        let (stored_low, stored_high) = metric.summary.median_ci;
        assert!(low <= stored_low && stored_low <= stored_high && stored_high <= high);
    }
}
