//! What is exported, read by readers of those formats, and what is imported.

use super::criterion::{Amount, criterion};
use super::github_action::{Entry, github_action, import};
use super::*;
use crate::samples::{Sample, Series};
use crate::store::{Metric, Record, Status};
use crate::units::{Direction, Throughput, Unit};

/// A name and a reason that no format may trip over.
const HOSTILE: &str = "a,\"b\" <c> & 'd'\r\n=1+1 \u{1}]]> é";

fn metric(
    name: &str,
    unit: Unit,
    party: Option<&str>,
    direction: Direction,
    samples: &[(u64, u64)],
) -> Metric {
    let samples = samples.iter().map(|(iterations, total)| Sample { iterations: *iterations, total: *total });
    let party = party.map(str::to_string);
    let series = Series { metric: name.into(), party, unit, direction, samples: samples.collect() };
    Metric::new(series, 1).expect("samples")
}

fn bare(scenario: &str, mode: &str, status: Status) -> Record {
    Record {
        run_id: "r".into(),
        suite: "s".into(),
        status,
        started: "2026-01-02T03:04:05.5Z".into(),
        elapsed_ns: 1_234_567_890,
        ..Record::new(scenario, mode)
    }
}

/// Times of 10, 20, 30 and 60 ns, and a gauge that is better when it is greater.
fn timed(scenario: &str) -> Record {
    let mut record = bare(scenario, "walltime", Status::Ok);
    let samples = [(1, 10), (2, 40), (1, 30), (10, 600)];
    let lower = Direction::LowerIsBetter;
    record.metrics.push(metric("wall_time", Unit::Nanoseconds, None, lower, &samples));
    record.metrics.push(metric("wall_time", Unit::Nanoseconds, Some("client"), lower, &[(1, 5), (1, 7)]));
    record.metrics.push(metric("bytes_moved", Unit::Bytes, None, Direction::HigherIsBetter, &[(2, 8_192)]));
    record.throughput.push(Throughput::Bytes(4_096));
    record
}

fn counted(scenario: &str) -> Record {
    let mut record = bare(scenario, "cachegrind", Status::Ok);
    record.metrics.push(metric(
        "instructions",
        Unit::Instructions,
        None,
        Direction::LowerIsBetter,
        &[(1, 777)],
    ));
    record
}

fn run() -> Vec<Record> {
    vec![
        timed("a::x"),
        counted("a::x"),
        bare(HOSTILE, "walltime", Status::Failed(HOSTILE.into())),
        bare("a::late", "walltime", Status::TimedOut("no end".into())),
        bare("a::absent", "walltime", Status::Ignored("needs io_uring".into())),
    ]
}

#[test]
fn a_table_is_read_back_cell_by_cell() {
    let text = csv(&run()).expect("a table");
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let head: Vec<String> = reader.headers().expect("a head").iter().map(str::to_string).collect();
    assert_eq!(head, COLUMNS);
    let rows: Vec<::csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    let cell =
        |row: usize, column: &str| &rows[row][COLUMNS.iter().position(|c| *c == column).expect("a column")];
    assert_eq!(rows.len(), 8);
    let of = |row| ["metric", "party", "unit", "better", "samples", "median", "max"].map(|c| cell(row, c));
    assert_eq!(of(0), ["wall_time", "", "ns", "lower", "4", "25", "60"]);
    assert_eq!(of(1), ["wall_time", "client", "ns", "lower", "2", "6", "7"]);
    assert_eq!(of(2), ["bytes_moved", "", "bytes", "higher", "1", "4096", "4096"]);
    assert_eq!(of(3), ["bytes_per_second", "", "bytes/s", "higher", "4", "163840000000", ""]);
    // 4,096 bytes in 60 ns at worst, in 10 ns at best.
    let ends = ["ci95_low", "ci95_high"].map(|c| cell(3, c).parse::<f64>().expect("a number"));
    assert!(68e9 < ends[0] && ends[0] < 163.84e9 && 163.84e9 < ends[1] && ends[1] < 410e9, "{ends:?}");
    assert_eq!(of(4), ["instructions", "", "instructions", "lower", "1", "777", "777"]);
    assert_eq!(
        ["scenario", "status", "reason", "median"].map(|c| cell(5, c)),
        [HOSTILE, "failed", HOSTILE, ""]
    );
}

#[test]
fn texts_in_a_table_are_exact_also_where_they_begin_like_a_formula() {
    for reason in ["=1+1", "+1", "-1 is not 2", "@x", "'quoted"] {
        let text = csv(&[bare("a::x", "walltime", Status::Failed(reason.into()))]).expect("a table");
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let row = reader.records().next().expect("a row").expect("a row");
        assert_eq!(&row[COLUMNS.iter().position(|c| *c == "reason").expect("a column")], reason);
    }
}

#[test]
fn a_junit_report_says_what_failed_and_what_was_ignored() {
    let mut run = run();
    run.push(timed("b::another"));
    let text = junit(&run);
    let xml = roxmltree::Document::parse(&text).expect("XML");
    let suite =
        xml.descendants().find(|node| node.attribute("name") == Some("s (walltime)")).expect("a suite");
    let of = |name| suite.attribute(name).expect("an attribute");
    assert_eq!(["tests", "failures", "errors", "skipped"].map(of), ["5", "1", "1", "1"]);
    assert_eq!((of("time"), of("timestamp")), ("6.173", "2026-01-02T03:04:05"));
    let outcome = |name: &str| xml.descendants().find(|node| node.has_tag_name(name)).expect("an outcome");
    // Control characters have no place in XML; the rest is as it was.
    let clean = "a,\"b\" <c> & 'd' =1+1 ]]> é";
    let failed = outcome("failure");
    assert_eq!((failed.attribute("message"), failed.text()), (Some(clean), Some(clean)));
    assert_eq!(failed.parent().and_then(|case| case.attribute("name")), Some(clean));
    assert_eq!(outcome("error").attribute("message"), Some("no end"));
    assert_eq!(outcome("skipped").attribute("message"), Some("needs io_uring"));
    let property = outcome("property");
    assert_eq!(
        (property.attribute("name"), property.attribute("value")),
        (Some("wall_time (ns)"), Some("25"))
    );
    let case = xml.descendants().find(|node| node.has_tag_name("testcase")).expect("a case");
    assert_eq!(
        ["name", "classname", "time"].map(|a| case.attribute(a)),
        [Some("x"), Some("a"), Some("1.235")]
    );
    let suites: Vec<_> = xml.descendants().filter(|node| node.has_tag_name("testsuite")).collect();
    assert_eq!(suites.len(), 2);
}

/// What Bencher's reference says of its format, as a schema.
const BENCHER: &str = r#"{
  "type": "object",
  "additionalProperties": {
    "type": "object",
    "propertyNames": { "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$" },
    "additionalProperties": {
      "type": "object",
      "required": ["value"],
      "properties": {
        "value": { "type": "number" },
        "lower_value": { "type": "number" },
        "upper_value": { "type": "number" }
      },
      "additionalProperties": false
    }
  }
}"#;

#[test]
fn bencher_gets_both_meters_of_a_benchmark() {
    let all = bencher(&run());
    let value = serde_json::to_value(&all).expect("JSON");
    let schema = jsonschema::validator_for(&serde_json::from_str(BENCHER).expect("JSON")).expect("a schema");
    assert!(schema.is_valid(&value), "{value}");
    assert_eq!(all.len(), 1, "what has no numbers is not there");
    let of = &all["a::x"];
    let measures: Vec<&str> = of.keys().map(String::as_str).collect();
    assert_eq!(measures, ["bytes-moved", "bytes-per-second", "client-latency", "instructions", "latency"]);
    assert_eq!((of["latency"].value, of["instructions"].value), (25.0, 777.0));
    let (low, high) =
        (of["latency"].lower_value.expect("an end"), of["latency"].upper_value.expect("an end"));
    assert!(low < 25.0 && 25.0 < high);
    assert_eq!(of["instructions"].lower_value, None, "one sample has no interval");
}

#[test]
fn a_list_for_github_action_benchmark_comes_back() {
    let (smaller, bigger) =
        (github_action(&run(), Direction::LowerIsBetter), github_action(&run(), Direction::HigherIsBetter));
    let named = |list: &[Entry]| -> Vec<(String, String, f64)> {
        list.iter().map(|e| (e.name.clone(), e.unit.clone(), e.value)).collect()
    };
    let entry = |name: &str, unit: &str, value: f64| (name.to_string(), unit.to_string(), value);
    let expected = [
        entry("a::x", "ns", 25.0),
        entry("a::x [client]", "ns", 6.0),
        entry("a::x instructions", "instructions", 777.0),
    ];
    assert_eq!(named(&smaller), expected);
    assert_eq!(
        named(&bigger),
        [
            entry("a::x bytes_moved", "bytes", 4_096.0),
            entry("a::x bytes_per_second", "bytes/s", 163_840_000_000.0),
        ]
    );
    let text = serde_json::to_string(&smaller).expect("JSON");
    let records = import(&text, Direction::LowerIsBetter, "again", "2026-01-01T00:00:00Z").expect("records");
    assert_eq!(named(&github_action(&records, Direction::LowerIsBetter)).len(), 3);
    let median = |i: usize| records[i].metrics[0].summary.median;
    assert_eq!([median(0), median(1), median(2)], [25.0, 6.0, 777.0]);
    let units = records.iter().map(|r| r.metrics[0].series.unit).collect::<Vec<_>>();
    assert_eq!(units, [Unit::Nanoseconds, Unit::Nanoseconds, Unit::Instructions]);
}

#[test]
fn the_last_run_of_its_data_file_is_read() {
    let data = r#"window.BENCHMARK_DATA = {
      "lastUpdate": 1700000100000, "repoUrl": "https://example.com",
      "entries": {
        "Rust": [
          {"commit": {"id": "aaaa"}, "date": 1700000100000, "tool": "cargo",
           "benches": [{"name": "fib/20", "value": 37174.25, "range": "± 7527", "unit": "ns/iter"}]},
          {"commit": {"id": "bbbb"}, "date": 1700000000000, "tool": "cargo", "benches": []}
        ],
        "Node": [
          {"commit": {"id": "cccc"}, "date": 1700000100000, "tool": "benchmarkjs",
           "benches": [{"name": "fib(10)", "value": 1431759, "range": "±0.74%", "unit": "ops/sec", "extra": "93 samples"},
                       {"name": "slow", "value": 1.5, "unit": "ms"}]}
        ]
      }
    };
    "#;
    let records = import(data, Direction::LowerIsBetter, "r", "2026-01-01T00:00:00Z").expect("records");
    let seen: Vec<_> = records
        .iter()
        .map(|r| {
            (&*r.suite, &*r.scenario, &*r.mode, r.metrics[0].series.direction, r.metrics[0].summary.median)
        })
        .collect();
    let (lower, higher) = (Direction::LowerIsBetter, Direction::HigherIsBetter);
    let expected = [
        ("Node", "fib(10)", "imported", higher, 1_431_759.0),
        ("Node", "slow", "walltime", higher, 1_500_000.0),
        ("Rust", "fib/20", "walltime", lower, 37_174.25),
    ];
    assert_eq!(seen, expected);
    assert_eq!(records[2].identity["commit"], "aaaa");
    assert_eq!(records[2].started, "2023-11-14T22:15:00Z");
    assert_eq!(records[0].facts["foreign_unit"], "ops/sec");
}

#[test]
fn what_is_no_such_file_is_named() {
    let refused =
        |text: &str| import(text, Direction::LowerIsBetter, "r", "now").expect_err("refused").report();
    for text in ["", "{}", "[1]", "window.BENCHMARK_DATA = 7", r#"[{"name":"a","unit":"ns"}]"#] {
        assert!(refused(text).contains("no file of github-action-benchmark"), "{text}");
    }
    assert!(refused(r#"[{"name":"a","unit":"ns","value":-1}]"#).contains("\"a\": -1 ns is no amount"));
    assert!(refused(r#"[{"name":"a","unit":"s","value":1e300}]"#).contains("is no amount"));
}

#[test]
fn criterion_gets_the_samples_of_one_iteration() {
    let mut records = run();
    records.push(timed("a:?x"));
    records.push(timed("a//x"));
    let (all, left_out) = criterion(&records);
    let directories: Vec<&str> = all.iter().map(|one| one.directory.as_str()).collect();
    assert_eq!(directories, ["a__x", "a__x_2", "a__x_3"]);
    assert_eq!(left_out.len(), 4, "a count is no time: {left_out:?}");
    let (benchmark, estimates) = (&all[0].benchmark, &all[0].estimates);
    assert_eq!((benchmark.group_id.as_str(), benchmark.function_id.as_deref()), ("a", Some("x")));
    assert_eq!((benchmark.full_id.as_str(), benchmark.throughput), ("a::x", Some(Amount::Bytes(4_096))));
    // Of 10, 20, 30, 60: the mean is 30, the deviation of a sample 21.602.
    let points = [&estimates.mean, &estimates.median, &estimates.std_dev, &estimates.median_abs_dev]
        .map(|estimate| estimate.point_estimate);
    let expected = [30.0, 25.0, (1_400.0_f64 / 3.0).sqrt(), 10.0 * 1.4826];
    assert!(points.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{points:?}");
    let mean = estimates.mean;
    let (low, high) = (mean.confidence_interval.lower_bound, mean.confidence_interval.upper_bound);
    assert!((10.0..30.0).contains(&low) && (30.0..60.0).contains(&high), "{mean:?}");
    // The error of a mean of four: the deviation over the root of four, about.
    assert!((mean.standard_error / (350.0_f64 / 4.0).sqrt() - 1.0).abs() < 0.15, "{mean:?}");
}
