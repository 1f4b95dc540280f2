//! Numbers that bodies add: gauges, facts and the times of operations, in
//! records and in the table, under every meter.
//!
//! Neighbours: `more` has the bodies.

use wallgrind::store::{Record, Status};
use wallgrind::units::Direction;

use crate::bench::Bench;
use crate::more;
use crate::records::wallgrind;

pub fn tests() -> Vec<libtest_mimic::Trial> {
    crate::trials(
        "numbers",
        &[
            ("gauges_and_operations_are_metrics_in_wall_time", false, in_wall_time),
            ("gauges_are_metrics_under_valgrind_and_operations_are_not", true, under_valgrind),
            ("a_run_goes_out_as_cloud_hypervisors_report", false, report),
            ("wrong_gauges_and_operations_fail_their_trial", false, wrong_ones),
            ("what_a_machine_lacks_is_ignored_with_the_reason", false, needs),
        ],
    )
}

const MORE: [(&str, &str); 1] = [(more::ASK, "1")];

/// The totals of a metric for one iteration, which must all be whole and equal.
fn each(record: &Record, metric: &str) -> u64 {
    let series = record.metrics.iter().map(|m| &m.series).find(|s| s.metric == metric);
    let series = series.unwrap_or_else(|| panic!("no {metric} in {record:?}"));
    assert!(series.is_exact(), "{series:?}");
    series.samples[0].total / series.samples[0].iterations
}

fn gauges_are_right(record: &Record) {
    assert_eq!(each(record, "calls_made"), 3);
    assert_eq!(each(record, "bytes_moved"), 3 * 4_096);
    assert_eq!(each(record, "calls_failed"), 0);
    let moved = record.metrics.iter().find(|m| m.series.metric == "bytes_moved").expect("a metric");
    assert_eq!(moved.series.direction, Direction::HigherIsBetter);
    assert_eq!(moved.series.unit.symbol(), "bytes");
    assert_eq!(record.facts["engine"], "none");
    assert_eq!(record.facts["gauges"], "calls_made,bytes_moved,calls_failed");
}

fn in_wall_time() {
    for isolate in ["", "--isolate"] {
        let bench = Bench::new();
        let ran = bench.run_with(&format!("more::gauged --bench {isolate}"), &MORE).exits(0);
        let ran = ran.says("calls made").says("bytes moved").says("throughput: higher");
        assert!(!ran.err.contains("calls failed"), "what is always 0 has a column: {}", ran.err);
        let record = bench.records().remove(0);
        gauges_are_right(&record);
        let histogram = &record.histograms[0];
        let iterations: u64 = record.facts["op_iterations"].parse().expect("a number");
        assert_eq!(
            (histogram.count(), record.facts["op_count"].as_str()),
            (3 * iterations, &*(3 * iterations).to_string())
        );
        let shares = [("op_p50", 0.5), ("op_p90", 0.9), ("op_p99", 0.99), ("op_max", 1.0)];
        for (metric, share) in shares {
            assert_eq!(each(&record, metric), histogram.quantile(share), "{metric}");
        }
        assert!(record.facts.contains_key("op_clock_overhead_ns"), "{:?}", record.facts);
        for key in ["scratch_file_system", "scratch_device"] {
            assert!(record.identity.contains_key(key), "{:?}", record.identity);
        }
    }
}

fn under_valgrind() {
    let bench = Bench::new();
    let ran = bench.run_with("more::gauged --mode cachegrind --bench --timeout 300s", &MORE).exits(0);
    ran.says("calls made");
    let record = bench.records().remove(0);
    gauges_are_right(&record);
    assert!(record.histograms.is_empty());
    assert!(record.metrics.iter().all(|m| !m.series.metric.starts_with("op_")), "{record:?}");
}

fn report() {
    let bench = Bench::new();
    bench.run_with("block:: more::gauged --bench --run-id one", &MORE).exits(0);
    let export = |file: &str| wallgrind(&bench, &format!("export cloud-hypervisor one {file}"));
    let ran = export("report.json").exits(0).has_line("1 results in report.json");
    ran.says("left out: more::gauged (walltime): the reference has no such benchmark");
    let text = std::fs::read_to_string(bench.dir().join("report.json")).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let keys: Vec<&String> = report.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["git_human_readable", "git_revision", "git_commit_date", "date", "results"]);
    assert_eq!(report["results"][0]["name"], "micro_block_qcow_read_128_us");
    let record = bench.records().remove(0);
    assert_eq!(record.scenario, "block::qcow_read::n128");
    let mean = report["results"][0]["mean"].as_f64().expect("a number");
    assert!((mean - record.metrics[0].summary.mean / 1e3).abs() < 1e-9, "{mean} µs: {record:?}");
    assert_eq!(report["git_revision"].as_str(), record.identity.get("commit").map(String::as_str));
    let year = &record.started[..4];
    assert!(report["date"].as_str().is_some_and(|date| date.ends_with(&format!("UTC {year}"))), "{report}");
    assert_eq!(export("-").exits(0).out, text);
    bench.run_with("block:: --bench --save-baseline kept --run-id three --out kept", &MORE).exits(0);
    wallgrind(&bench, "--out kept export cloud-hypervisor kept kept.json")
        .exits(0)
        .has_line("1 results in kept.json");
    export("no/such/folder.json").exits(101).says("no/such/folder.json cannot be written");
    bench.run_with("more::gauged --bench --run-id two --out other", &MORE).exits(0);
    let none = wallgrind(&bench, "--out other export cloud-hypervisor two x.json");
    none.exits(101).says("holds nothing that Cloud Hypervisor's benchmark has a name for");
}

fn wrong_ones() {
    for smoke in ["", "--bench"] {
        let bench = Bench::new();
        let argv = format!("more::gauge_falls more::two_gauges more::op_without_end {smoke}");
        let ran = bench.run_with(&argv, &MORE).exits(101);
        let ran = ran.says("more::gauge_falls: the gauge luck went from");
        let ran = ran.says("more::two_gauges_of_a_name: two gauges are called calls_made");
        ran.says("more::op_without_end: 1 operations were started in an iteration and never done");
    }
}

fn needs() {
    let reason = "needs io_uring: io_uring_setup: Operation not permitted";
    let bench = Bench::new();
    let listed = bench.run_with("more::no_ring --list --format terse --ignored", &MORE).exits(0).out;
    assert_eq!(listed, "more::no_ring: benchmark\n");
    let found = bench.run_with("more::no_ring --list --format json", &MORE).exits(0).events();
    assert_eq!((&found[1]["ignore"], &found[1]["ignore_message"]), (&true.into(), &reason.into()));
    bench
        .run_with("more::no_ring --bench", &MORE)
        .exits(0)
        .has_line(&format!("test more::no_ring ... ignored, {reason}"));
    assert_eq!(bench.records()[0].status, Status::Ignored(reason.into()));
    bench.run_with("more::no_ring --ignored --exact", &MORE).exits(101).says(reason);
}
