//! The table as text: what a reader of it sees, at several widths.

use super::*;
use crate::samples::{Sample, Series};
use crate::store::{Metric, Rate, Record, Status};
use crate::units::{Direction, Throughput, Unit};

const WIDE: Look = Look { width: 120, color: false };

fn record(mode: &str, scenario: &str, status: Status) -> Record {
    Record {
        run_id: "r".into(),
        suite: "tls".into(),
        status,
        started: "2026-01-01T00:00:00Z".into(),
        elapsed_ns: 1,
        ..Record::new(scenario, mode)
    }
}

fn metric(name: &str, unit: Unit, party: Option<&str>, totals: &[u64]) -> Metric {
    let series = Series {
        metric: name.into(),
        party: party.map(Into::into),
        unit,
        direction: Direction::LowerIsBetter,
        samples: totals.iter().map(|total| Sample { iterations: 10, total: *total }).collect(),
    };
    Metric::new(series, 1).expect("samples")
}

/// Ten iterations of `ns` each, seven times, 1 % around it.
fn timed(scenario: &str, ns: u64, client: u64) -> Record {
    let around = |ns: u64| -> Vec<u64> { [3, 0, 6, 1, 5, 2, 4].map(|i| ns * 10 * (997 + i) / 1000).into() };
    let mut record = record("walltime", scenario, Status::Ok);
    record.metrics.push(metric("wall_time", Unit::Nanoseconds, None, &around(ns)));
    if client > 0 {
        record.metrics.push(metric("wall_time", Unit::Nanoseconds, Some("client"), &around(client)));
        record.metrics.push(metric("wall_time", Unit::Nanoseconds, Some("server"), &around(ns - client)));
    }
    record
}

fn counted(scenario: &str, client: u64, server: u64, seeds: &str) -> Record {
    let mut record = record("cachegrind", scenario, Status::Ok);
    let of = |party, n: u64| metric("instructions", Unit::Instructions, party, &[n * 10]);
    record.metrics = vec![of(None, client + server), of(Some("client"), client), of(Some("server"), server)];
    record.facts = [("method", "difference"), ("seeds", seeds)].map(|(k, v)| (k.into(), v.into())).into();
    record
}

/// A run with a row of each kind.
fn run() -> Vec<Record> {
    let mut transfer = timed("tls::transfer::ring_aes128", 375_000, 180_000);
    transfer.throughput = vec![Throughput::Bytes(1 << 20)];
    transfer.facts.insert("cpu_migrations".into(), "2".into());
    transfer.notes.push("7 samples took 2.0s, beyond the budget of 500ms".into());
    let mut retried = timed("tls::handshake::ring_p256", 412_345, 300_000);
    retried.attempt = 2;
    vec![
        record("walltime", "tls::handshake::ring_p256", Status::Failed("the first attempt".into())),
        retried,
        timed("tls::handshake::no_crypto", 13_020, 6_000),
        transfer,
        record(
            "walltime",
            "tls::transfer::broken",
            Status::Failed("check:\n\x1b[31mtwo bytes\x1b[0m differ".into()),
        ),
        record("walltime", "tls::transfer::stuck", Status::TimedOut("no end after 60.5 s".into())),
        record(
            "walltime",
            "tls::transfer::absent",
            Status::Ignored("needs io_uring: not on this kernel".into()),
        ),
    ]
}

fn is(records: &[Record], look: Look, expected: &str) {
    let table = table(records, look);
    assert_eq!(table, expected, "\n{table}");
}

#[test]
fn a_wide_terminal_shows_all() {
    let expected = "\
wall time of one iteration: median ± the longer side of its 95 % interval; parties as shares of it; lower is better
(throughput: higher)
  scenario              median  client  server  throughput
tls::handshake
  ring_p256     412.3 ± 0.8 µs    73 %    27 %              attempt 2
  no_crypto    13.02 ± 0.03 µs    46 %    54 %
tls::transfer
  ring_aes128   375.0 ± 0.8 µs    48 %    52 %  2.60 GiB/s  2 migrations, [1]
  broken       failed: check: two bytes differ
  stuck        timed out: no end after 60.5 s
  absent       ignored: needs io_uring: not on this kernel
[1] 7 samples took 2.0s, beyond the budget of 500ms
";
    is(&run(), WIDE, expected);
}

#[test]
fn a_narrow_terminal_drops_columns_and_then_stacks_names() {
    let expected = "\
wall time of one iteration: median ±
the longer side of its 95 % interval;
parties as shares of it; lower is
better (throughput: higher)
  scenario              median
tls::handshake
  ring_p256     412.3 ± 0.8 µs
    attempt 2
  no_crypto    13.02 ± 0.03 µs
tls::transfer
  ring_aes128   375.0 ± 0.8 µs
    2 migrations, [1]
  broken
    failed: check: two bytes differ
  stuck
    timed out: no end after 60.5 s
  absent
    ignored: needs io_uring: not on
    this kernel
[1] 7 samples took 2.0s, beyond the
budget of 500ms
";
    is(&run(), Look { width: 38, color: false }, expected);
    let narrow = table(&run(), Look { width: 22, color: false });
    assert!(narrow.contains("  ring_aes128\n     375.0 ± 0.8 µs\n"), "{narrow}");
}

#[test]
fn counts_are_exact_where_there_is_room() {
    let mut varied = counted("tls::transfer::one", 500, 41, "1,2,3");
    varied.metrics[0] = metric("instructions", Unit::Instructions, None, &[5400, 5410, 5420]);
    varied.metrics.push(metric("estimated_cycles", Unit::Cycles, None, &[12_345]));
    let records = [counted("tls::handshake::ring_p256", 3_239_000, 1_216_123, "1"), varied];
    let expected = "\
cachegrind: instructions of one iteration; lower is better; method: difference
  scenario      client     server      total  est. cycles  seeds
tls::handshake
  ring_p256  3,239,000  1,216,123  4,455,123                   1
tls::transfer
  one              500         41        541        1,234  1,2,3  range 0.37 %
";
    is(&records, WIDE, expected);
    let expected = "\
cachegrind: instructions of one iteration;
lower is better; method: difference
  scenario    client   server    total
tls::handshake
  ring_p256  3.239 M  1.216 M  4.455 M
tls::transfer
  one            500       41      541
    range 0.37 %
";
    is(&records, Look { width: 42, color: false }, expected);
}

#[test]
fn memory_has_total_and_peak_of_each_party() {
    let of = |name, party, n: u64| metric(name, Unit::Bytes, party, &[n * 10]);
    let mut heap = record("dhat", "tls::one", Status::Ok);
    heap.metrics = vec![
        of("heap_total_bytes", None, 30_000),
        of("heap_total_bytes", Some("client"), 20_000),
        of("heap_total_bytes", Some("server"), 10_000),
        of("heap_peak_bytes", Some("client"), 2_000),
        of("heap_peak_bytes", Some("server"), 1_000),
    ];
    let expected = "\
dhat: heap total bytes, bytes of one iteration; lower is better
  scenario  client  server   total     peak bytes
tls
  one       20,000  10,000  30,000  2,000 / 1,000
";
    is(&[heap], WIDE, expected);
}

#[test]
fn colours_are_there_when_wanted_and_nowhere_else() {
    let color = table(&run(), Look { width: 120, color: true });
    assert!(color.contains("\x1b[1mtls::handshake\x1b[0m\n"), "{color}");
    assert!(color.contains("\x1b[31mfailed: check: two bytes differ\x1b[0m"), "{color}");
    let mut stripped = color;
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, table(&run(), WIDE));
}

#[test]
fn notes_of_all_rows_are_said_once() {
    let mut records = [timed("a::x", 100, 0), timed("a::y", 200, 0), timed("a::z", 300, 0)];
    for record in &mut records {
        record.notes.push("one for all".into());
    }
    records[1].notes.push("for one".into());
    let text = table(&records, WIDE);
    assert_eq!(text.matches("one for all").count(), 1, "{text}");
    assert!(text.ends_with("all rows: one for all\n[1] for one\n"), "{text}");
    assert_eq!(text.matches("[1]").count(), 2, "{text}");
}

#[test]
fn drift_outliers_and_preemptions_are_tagged_when_they_matter() {
    let mut drifting = timed("a::drifting", 100, 0);
    drifting.metrics =
        vec![metric("wall_time", Unit::Nanoseconds, None, &(0..40).map(|i| 1000 + i).collect::<Vec<_>>())];
    let mut spiky = timed("a::spiky", 100, 0);
    let spikes: Vec<u64> = (0..40).map(|i| if i % 13 == 5 { 9000 } else { 1000 + i * 7 % 11 }).collect();
    spiky.metrics = vec![metric("wall_time", Unit::Nanoseconds, None, &spikes)];
    spiky.facts.insert("context_switches_involuntary".into(), "40".into());
    let model = sections(&[drifting, spiky, timed("a::quiet", 100, 0)]);
    let tags: Vec<String> = model[0].groups[0].rows.iter().map(|row| row.tags.join(", ")).collect();
    assert_eq!(tags, ["drift +1.00", "3 outliers, 40 preemptions", ""]);
}

#[test]
fn shares_are_those_of_the_samples_and_add_up() {
    // The party that is interrupted changes: medians of the times are 10 and 10
    // of a whole of 40, and still each sample belongs to the two alone.
    let of = |party, totals: &[u64]| metric("wall_time", Unit::Nanoseconds, party, totals);
    let mut record = timed("a::b", 100, 0);
    record.metrics = vec![
        of(None, &[400, 400, 200, 400, 400]),
        of(Some("client"), &[100, 300, 100, 100, 300]),
        of(Some("server"), &[300, 100, 100, 300, 100]),
    ];
    let model = sections(&[record]);
    let figures = model[0].figures().next().expect("a row");
    assert_eq!(figures.shares, [0.5, 0.5]);
}

#[test]
fn a_debug_build_is_said_to_be_one() {
    let mut debug = timed("x", 100, 0);
    debug.identity.insert("debug_assertions".into(), "yes".into());
    assert!(table(&[debug], WIDE).contains("built with debug assertions"));
    assert!(!table(&[timed("x", 100, 0)], WIDE).contains("debug"));
}

#[test]
fn nothing_measured_is_nothing_shown_or_said() {
    assert_eq!(table(&[], WIDE), "");
    assert_eq!(table(&[record("smoke", "a::b", Status::Ok)], WIDE), "");
    let failed = [record("smoke", "a::b", Status::Failed("why".into()))];
    is(&failed, WIDE, "smoke: nothing was measured\na\n  b         failed: why\n");
}

#[test]
fn one_sample_has_no_interval_and_suites_are_told_apart() {
    let mut single = timed("a::b", 100, 0);
    single.metrics = vec![metric("wall_time", Unit::Nanoseconds, None, &[1234])];
    let mut other = single.clone();
    other.suite = "block".into();
    let text = table(&[single, other], WIDE);
    assert!(text.contains("  b         123.4 ns\n") && !text.contains("± 0"), "{text}");
    assert!(text.contains("a (tls)\n") && text.contains("a (block)\n"), "{text}");
}

#[test]
fn numbers_have_sensible_units() {
    use super::format::*;
    let times = [
        (0.25, "0.250 ns"),
        (999.94, "999.9 ns"),
        (999.96, "1.000 µs"),
        (12_345.0, "12.35 µs"),
        (5e6, "5.000 ms"),
        (2.5e9, "2.500 s"),
        (123_456e9, "123456 s"),
    ];
    for (ns, text) in times {
        assert_eq!(time(ns, None), text);
    }
    assert_eq!(time(412_345.0, Some(20.0)), "412.3 ± 0.02 µs");
    assert_eq!(time(412_345.0, Some(0.0)), "412.3 ± 0.0 µs");
    let counts = [(0.0, "0"), (7.5, "7.5"), (99.0, "99"), (1234.5, "1,234"), (1e6, "1,000,000")];
    for (n, text) in counts {
        assert_eq!(count(n), text);
    }
    for (n, text) in [(9_999.0, "9,999"), (10_000.0, "10.00 k"), (1_234_567.0, "1.235 M"), (5e12, "5.000 T")]
    {
        assert_eq!(short_count(n), text);
    }
    let each = |of, median| Rate { of, median, median_ci: None };
    for (per_second, text) in
        [(12.0, "12.0 B/s"), (1000.0, "0.98 KiB/s"), (1_048_576.0, "1.00 MiB/s"), (3e9, "2.79 GiB/s")]
    {
        assert_eq!(rate(&each(Throughput::Bytes(1), per_second)), text);
    }
    for (per_second, text) in [(12.0, "12.0/s"), (2_425.0, "2.42 k/s"), (3.3e6, "3.30 M/s")] {
        assert_eq!(rate(&each(Throughput::Elements(1), per_second)), text);
    }
    assert_eq!((percent(0.004), percent(0.0), percent(0.456)), ("0.4 %".into(), "0 %".into(), "46 %".into()));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut records = run();
    records.extend([counted("tls::handshake::aws_lc_rs_1_3_ecdsap256_chacha", 3_239_000, 1_216_000, "1")]);
    for width in 0..140 {
        for line in table(&records, Look { width, color: false }).lines() {
            assert!(line.chars().count() <= width.max(20), "{width}: {line:?}");
        }
    }
}

#[test]
fn nothing_is_lost_but_columns() {
    for width in [20, 30, 40, 60, 80] {
        let table = table(&run(), Look { width, color: false });
        let words: String = table.split_whitespace().collect();
        for text in [
            "412.3±",
            "13.02±",
            "375.0±",
            "twobytes",
            "noendafter60.5s",
            "needsio_uring",
            "ring_aes128",
            "2migrations",
        ] {
            assert!(words.contains(text), "{width}: no {text} in\n{table}");
        }
    }
}

/// A gauge whose values are the same for each iteration, or grow from sample to sample.
fn gauge(name: &str, unit: Unit, each: u64, step: u64) -> Metric {
    metric(name, unit, None, &[0, 1, 2, 3, 4, 5, 6].map(|i| 10 * (each + i * step)))
}

#[test]
fn gauges_and_times_of_operations_have_columns_unless_they_say_nothing() {
    let mut first = timed("block::read::n128", 150_000, 0);
    first.throughput = vec![Throughput::Elements(128), Throughput::Bytes(128 << 16)];
    first.metrics.extend([
        gauge("system_calls", Unit::SystemCalls, 129, 0),
        gauge("bytes_read", Unit::Bytes, 8_388_608, 0),
        gauge("retries", Unit::Events, 0, 0),
    ]);
    first.metrics[2].series.direction = Direction::HigherIsBetter;
    for (name, ns) in [("op_p50", 11_000), ("op_p90", 14_200), ("op_p99", 22_000), ("op_max", 951_000)] {
        first.metrics.push(metric(name, Unit::Nanoseconds, None, &[10 * ns]));
    }
    first.facts.insert("gauges".into(), "system_calls,bytes_read,retries".into());
    let mut second = timed("block::read::n256", 310_000, 0);
    second.metrics.push(gauge("system_calls", Unit::SystemCalls, 254, 1));
    second.facts.insert("gauges".into(), "system_calls".into());
    let records = [first, second];
    let expected = "\
wall time of one iteration: median ± the longer side of its 95 % interval; lower is better (throughput: higher)
in one iteration, the same in each sample where no ~ stands; lower is better: system calls (syscalls); higher is better:
bytes read (bytes)
  scenario          median           throughput  system calls  bytes read    op p50    op p90    op p99    op max
block::read
  n128      150.0 ± 0.3 µs  853 k/s, 52.1 GiB/s           129   8,388,608  11.00 µs  14.20 µs  22.00 µs  951.0 µs
  n256      310.0 ± 0.6 µs                               ~257
";
    is(&records, WIDE, expected);
    let expected = "\
wall time of one iteration: median ± the longer side of its
95 % interval; lower is better (throughput: higher)
in one iteration, the same in each sample where no ~ stands;
lower is better: system calls (syscalls); higher is better:
bytes read (bytes)
  scenario          median           throughput
block::read
  n128      150.0 ± 0.3 µs  853 k/s, 52.1 GiB/s
  n256      310.0 ± 0.6 µs
";
    is(&records, Look { width: 60, color: false }, expected);
}
