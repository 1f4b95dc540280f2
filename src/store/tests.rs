//! Records on disk and back: round trips, versions, damage, and names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::*;
use crate::error::Kind;
use crate::samples::{Histogram, Sample, Series};
use crate::units::{Direction, Throughput, Unit};

fn series(party: Option<&str>) -> Series {
    let samples = [(40, 4_100), (40, 4_000), (41, 4_333)];
    Series {
        metric: "wall_time".into(),
        party: party.map(Into::into),
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        samples: samples.map(|(iterations, total)| Sample { iterations, total }).into(),
    }
}

fn histogram() -> Histogram {
    Histogram {
        metric: "op_time".into(),
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        digits: 3,
        min: 90,
        max: 4_100,
        buckets: vec![(90, 2), (100, 7), (4_103, 1)],
    }
}

pub(super) fn record(scenario: &str, attempt: u32) -> Record {
    let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    };
    Record {
        run_id: "run-1".into(),
        suite: "mine".into(),
        scenario: scenario.into(),
        params: vec![("size".into(), "3".into()), ("algorithm".into(), "\"x\"\n".into())],
        mode: "walltime".into(),
        attempt,
        status: Status::Ok,
        started: "2026-01-02T03:04:05.5Z".into(),
        elapsed_ns: u64::MAX,
        metrics: [None, Some("client")].map(|p| Metric::new(series(p), 1).expect("samples")).into(),
        histograms: vec![histogram()],
        throughput: vec![Throughput::Bytes(1 << 20), Throughput::Elements(3)],
        facts: text(&[("clock_precision_ns", "10")]),
        notes: vec!["one note".into()],
        functions: vec![("main".into(), 12)],
        identity: text(&[("kernel", "6.0")]).into(),
    }
}

fn scratch() -> (tempfile::TempDir, RunDir) {
    let out = tempfile::tempdir().expect("a scratch folder");
    let dir = RunDir::open(out.path(), "run-1").expect("a run folder");
    (out, dir)
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    let (_out, dir) = scratch();
    let mut all = vec![record("a::b", 1)];
    for (i, status) in
        [Status::Failed("why".into()), Status::TimedOut("60 s".into()), Status::Ignored("needs x".into())]
            .into_iter()
            .enumerate()
    {
        let started = format!("2026-01-02T03:04:{:02}Z", 10 + i);
        let name = format!("a::c{i}");
        all.push(Record { status, started, metrics: Vec::new(), histograms: Vec::new(), ..record(&name, 1) });
    }
    for record in &all {
        dir.write(record).expect("written");
    }
    assert_eq!(RunDir::read(dir.path()).expect("read"), all);
}

#[test]
fn the_order_is_that_of_the_start_whatever_the_digits() {
    let (_out, dir) = scratch();
    // As text, `05.5Z` would come before `05Z`: the dot is less than the Z.
    for (name, started) in
        [("a", "2026-01-02T03:04:06Z"), ("b", "2026-01-02T03:04:05.5Z"), ("c", "2026-01-02T03:04:05Z")]
    {
        dir.write(&Record { started: started.into(), ..record(name, 1) }).expect("written");
    }
    let read = RunDir::read(dir.path()).expect("read");
    let names: Vec<&str> = read.iter().map(|r| r.scenario.as_str()).collect();
    assert_eq!(names, ["c", "b", "a"]);
}

#[test]
fn the_summary_on_disk_is_that_of_the_samples_on_disk() {
    let (_out, dir) = scratch();
    dir.write(&record("a", 1)).expect("written");
    for metric in &RunDir::read(dir.path()).expect("read")[0].metrics {
        assert_eq!(Metric::new(metric.series.clone(), 1).as_ref(), Some(metric));
    }
}

#[test]
fn attempts_and_repeats_never_overwrite() {
    let (_out, dir) = scratch();
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let write = |r: &Record| name(&dir.write(r).expect("written"));
    assert_eq!(write(&record("a::b", 1)).as_deref(), Some("mine.a.b.walltime.1.json"));
    assert_eq!(write(&record("a::b", 2)).as_deref(), Some("mine.a.b.walltime.2.json"));
    let failed = Record { status: Status::Failed("later".into()), ..record("a::b", 1) };
    assert_eq!(write(&failed).as_deref(), Some("mine.a.b.walltime.1-2.json"));
    assert_eq!(write(&failed).as_deref(), Some("mine.a.b.walltime.1-3.json"));
    let first = read_record(&dir.path().join("mine.a.b.walltime.1.json")).expect("still there");
    assert_eq!(first.status, Status::Ok);
    assert_eq!(RunDir::read(dir.path()).expect("read").len(), 4);
}

#[test]
fn long_names_are_cut_and_kept_apart() {
    let (_out, dir) = scratch();
    let long = "x".repeat(400);
    let paths = ["a", "b"].map(|last| dir.write(&record(&format!("{long}{last}"), 1)).expect("written"));
    assert_ne!(paths[0], paths[1]);
    let names = paths.map(|p| p.file_name().map_or(0, |n| n.len()));
    assert!(names.iter().all(|length| *length <= 205), "{names:?}");
    let odd = Record { suite: "../up /x".into(), ..record("a", 1) };
    let path = dir.write(&odd).expect("written");
    assert_eq!(path.parent(), Some(dir.path()));
}

#[test]
fn damage_is_named_and_the_others_are_read() {
    let (_out, dir) = scratch();
    dir.write(&record("good", 1)).expect("written");
    let whole = to_json(&record("cut", 1)).expect("text");
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).expect("written");
    put("cut.json", &whole.as_bytes()[..whole.len() / 2]);
    put("empty.json", b"");
    put("latin1.json", b"{\"\xff\"}");
    put("newer.json", b"{\"schema_version\":\"2.0\",\"what\":[]}");
    put("unit.json", whole.replace("\"ns\"", "\"par secs\"").as_bytes());
    put("zero.json", whole.replace("[40,4100]", "[0,4100]").as_bytes());
    put("lost.json", whole.replace("[100,7]", "[100,6]").as_bytes());
    put("order.json", whole.replace("[100,7]", "[80,7]").as_bytes());
    put("version.json", whole.replace("\"1.2\"", "\"one\"").as_bytes());
    put(".unfinished-x", b"{");
    put(".hidden.json", b"{");
    put("notes.txt", b"not a record");
    let found = RunDir::scan(dir.path()).expect("a readable folder");
    assert_eq!(found.records.len(), 1);
    let reports: Vec<String> = found.faults.iter().map(|fault| fault.report()).collect();
    let expected = [
        ("cut.json", "not a whole record"),
        ("empty.json", "not a whole record"),
        ("latin1.json", "not a whole record"),
        ("lost.json", "does not hold the 10 values it says"),
        ("newer.json", "has schema 2.0, and this wallgrind reads up to 1.x"),
        ("order.json", "histogram op_time is out of order"),
        ("unit.json", "the unit \"par secs\", which is none"),
        ("version.json", "no such schema version: \"one\""),
        ("zero.json", "a sample of 0 iterations"),
    ];
    assert_eq!(reports.len(), expected.len(), "{reports:#?}");
    for (report, (file, what)) in reports.iter().zip(expected) {
        assert!(report.contains(file) && report.contains(what) && report.contains("hint:"), "{report}");
    }
    assert!(RunDir::read(dir.path()).is_err_and(|e| e.kind() == Kind::Format));
}

#[test]
fn a_newer_minor_version_is_read_and_what_is_new_is_passed_by() {
    let text = to_json(&record("a", 1)).expect("text");
    let newer = text.replace("\"1.2\"", "\"1.7\"").replacen('{', "{\"colour\":\"blue\",", 1);
    assert_eq!(from_json("a.json", &newer).expect("read"), record("a", 1));
}

#[test]
fn a_folder_that_cannot_be_is_an_error_that_names_it() {
    let out = tempfile::tempdir().expect("a scratch folder");
    let file = out.path().join("file");
    fs::write(&file, "in the way").expect("written");
    let error = RunDir::open(&file, "run").expect_err("a file is no folder");
    assert_eq!(error.kind(), Kind::Io);
    let report = error.report();
    assert!(report.contains("file/run") && report.contains("--out"), "{report}");
    // Root may write to any folder, but nobody makes files under /proc.
    assert!(RunDir::open(Path::new("/proc"), "run").is_err_and(|e| e.report().contains("/proc/run")));
    for id in ["", ".", "..", "a/b", ".hidden", "a b", "ü"] {
        assert!(RunDir::open(out.path(), id).is_err_and(|e| e.kind() == Kind::Usage), "{id:?}");
    }
    assert!(RunDir::scan(&out.path().join("none")).is_err_and(|e| e.report().contains("none")));
}

#[test]
fn opening_leaves_nothing_behind() {
    let (_out, dir) = scratch();
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0);
    dir.write(&record("a", 1)).expect("written");
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1);
}
