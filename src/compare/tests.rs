//! Verdicts from made records: what is called, what is refused, what fails.

use std::collections::BTreeMap;

use super::*;
use crate::samples::{Sample, Series};
use crate::stats::Look;
use crate::store::{Metric, Record, Status};
use crate::units::{Direction, Unit};

fn metric(name: &str, unit: Unit, totals: &[u64]) -> Metric {
    let series = Series {
        metric: name.into(),
        party: None,
        unit,
        direction: Direction::LowerIsBetter,
        samples: totals.iter().map(|total| Sample { iterations: 1, total: *total }).collect(),
    };
    Metric::new(series, 1).expect("samples")
}

fn record(scenario: &str, mode: &str, metrics: Vec<Metric>) -> Record {
    Record {
        run_id: "run".into(),
        suite: "s".into(),
        started: "2026-01-01T00:00:00Z".into(),
        elapsed_ns: 1_000_000_000,
        metrics,
        ..Record::new(scenario, mode)
    }
}

pub(super) fn counted(scenario: &str, n: u64) -> Record {
    record(scenario, "cachegrind", vec![metric("instructions", Unit::Instructions, &[n])])
}

pub(super) fn timed(scenario: &str, ns: u64) -> Record {
    record(scenario, "walltime", vec![metric("wall_time", Unit::Nanoseconds, &[ns - 1, ns, ns + 1])])
}

/// A record in turn: each pair's ratio is a per mille more than 1,000.
fn turned(scenario: &str, per_mille: &[i64]) -> Record {
    let after: Vec<u64> = per_mille.iter().map(|p| (1_000_000 + 1_000 * p) as u64).collect();
    let mut record = record(
        scenario,
        "walltime",
        vec![
            metric("wall_time", Unit::Nanoseconds, &after),
            metric("wall_time_baseline", Unit::Nanoseconds, &vec![1_000_000; after.len()]),
        ],
    );
    let looks = [Look { n: 5.0, share: 0.25 }, Look { n: after.len() as f64, share: 1.0 }];
    record.facts.insert("steps_per_pair".into(), "1".into());
    record.facts.insert("looks".into(), Turns::looks_in_words(&looks));
    record
}

fn words(comparison: &Comparison) -> Vec<&'static str> {
    comparison.lines.iter().map(|line| line.verdict.word(line.unit)).collect()
}

fn with(limits: &str) -> Rule {
    Rule { limits: Limits::parse(limits).expect("limits"), ..Rule::default() }
}

fn counts(before: u64, after: u64, rule: &Rule) -> Line {
    compare(&[counted("a", before)], &[counted("a", after)], Kinship::Stored, rule).lines.remove(0)
}

#[test]
fn a_single_instruction_is_called_and_only_what_is_worse_fails() {
    let rule = Rule::default();
    assert_eq!(
        (counts(1_000, 1_001, &rule).verdict, counts(1_000, 1_001, &rule).fails),
        (Verdict::Slower, true)
    );
    assert_eq!(
        (counts(1_000, 999, &rule).verdict, counts(1_000, 999, &rule).fails),
        (Verdict::Faster, false)
    );
    assert_eq!(counts(1_000, 1_000, &rule).verdict, Verdict::Same);
}

#[test]
fn limits_allow_what_they_say_and_not_more() {
    assert!(!counts(1_000, 1_001, &with("ir=0.1%")).fails);
    assert!(counts(1_000, 1_002, &with("ir=0.1%")).fails);
    assert!(!counts(1_000, 1_005, &with("5")).fails);
    assert!(counts(1_000, 1_006, &with("5,wall=2%")).fails);
    assert!(counts(1_000, 1_001, &with("peak_bytes=50%")).fails);
    for bad in ["", "x", "-1", "ir=", "=1", "IR=1", "ir=1%%", "nan", "inf"] {
        assert!(Limits::parse(bad).is_err(), "{bad:?} was taken");
    }
    let comparison = compare(&[counted("a", 1)], &[counted("a", 1)], Kinship::Stored, &with("peek=1"));
    assert_eq!(comparison.unknown_limits, ["peek"]);
}

#[test]
fn a_zero_baseline_has_no_share_and_still_fails() {
    let line = counts(0, 3, &with("ir=50%"));
    assert_eq!((line.change(), line.worse_by(), line.fails), (None, 3.0, true));
    assert_eq!(counts(0, 0, &Rule::default()).verdict, Verdict::Same);
}

#[test]
fn what_is_on_one_side_only_is_said() {
    let mut failed = counted("c", 1);
    (failed.status, failed.metrics) = (Status::Failed("why".into()), Vec::new());
    let before = [counted("a", 1), counted("c", 1)];
    let after = [counted("b", 1), failed];
    let comparison = compare(&before, &after, Kinship::Stored, &Rule::default());
    assert!(comparison.lines.is_empty());
    let reasons: Vec<_> = comparison.unmatched.iter().map(|(name, _, why)| (&**name, &**why)).collect();
    assert_eq!(reasons, [("a", "not there now"), ("b", "not there before"), ("c", "failed now: why")]);
}

#[test]
fn pairs_call_a_planted_change_the_same_and_noise_what_they_are() {
    let shifted = |by: i64| [3, -2, 1, 0, -1, 2, -3, 1, 0, -1].map(|noise| noise + by);
    let call = |per_mille: &[i64]| {
        let line = compare(&[], &[turned("a", per_mille)], Kinship::InTurn, &Rule::default()).lines.remove(0);
        (line.verdict.word(line.unit), line.fails)
    };
    assert_eq!(call(&shifted(0)), ("same", false));
    assert_eq!(call(&shifted(20)), ("slower", true));
    assert_eq!(call(&shifted(-20)), ("faster", false));
    // Significant, and within the margin.
    assert_eq!(call(&shifted(5)), ("same", false));
    let noise = [80, -60, 40, -90, 100, -20, 60, -70, 90, -50];
    assert_eq!(call(&noise), ("not known", false));
    // Beyond the margin, and not beyond the limit.
    let line =
        |rule: &Rule| compare(&[], &[turned("a", &shifted(20))], Kinship::InTurn, rule).lines.remove(0);
    assert!(!line(&with("wall=3%")).fails);
    let Verdict::NotKnown(remedy) =
        compare(&[], &[turned("a", &noise)], Kinship::InTurn, &Rule::default()).lines.remove(0).verdict
    else {
        panic!("it is known")
    };
    assert!(remedy.contains("pairs") && remedy.contains("--time"), "{remedy}");
}

#[test]
fn each_party_of_a_pair_of_builds_gets_a_verdict_of_its_own() {
    let noise = [3, -2, 1, 0, -1, 2, -3, 1, 0, -1];
    let mut record = turned("a", &noise.map(|n| n + 20));
    for (party, by) in [("client", 0), ("server", 40)] {
        for mut metric in turned("a", &noise.map(|n| n + by)).metrics {
            metric.series.party = Some(party.into());
            record.metrics.push(metric);
        }
    }
    let lines = compare(&[], &[record.clone()], Kinship::InTurn, &Rule::default()).lines;
    let found: Vec<_> =
        lines.iter().map(|line| (line.party.as_deref(), line.verdict.word(line.unit), line.fails)).collect();
    let server = (Some("server"), "slower", true);
    assert_eq!(found, [(None, "slower", true), (Some("client"), "same", false), server]);
    // A party without a twin is left out, one without time is not known.
    record.metrics.retain(|m| m.series.party.as_deref() != Some("client") || m.series.metric == "wall_time");
    for metric in record.metrics.iter_mut().filter(|m| m.series.party.is_some()) {
        metric.series.samples.iter_mut().for_each(|sample| sample.total = 0);
    }
    let lines = compare(&[], &[record], Kinship::InTurn, &Rule::default()).lines;
    assert_eq!(lines.len(), 2);
    assert!(matches!(&lines[1].verdict, Verdict::NotKnown(why) if why.contains("a time of zero")));
}

#[test]
fn the_clock_sets_a_floor() {
    let mut coarse = turned("a", &[20; 10]);
    coarse.facts.insert("clock_precision_ns".into(), "30000".into());
    let comparison = compare(&[], &[coarse], Kinship::InTurn, &Rule::default());
    assert_eq!(words(&comparison), ["not known"]);
}

#[test]
fn many_tests_need_more_and_one_alone_counts_for_all() {
    // p of about 0.0025 for one alone.
    let weak = [30, 5, 35, 20, 45, 15, 30, -5, 40, 25, 20, 10];
    let one = compare(&[], &[turned("a", &weak)], Kinship::InTurn, &Rule::default());
    let Size::Estimated { p, .. } = one.lines[0].size else { panic!("an estimate") };
    assert!(p > 0.001 && p < 0.01, "{p}");
    assert_eq!(words(&one), ["slower"]);
    let names: Vec<String> = (10..30).map(|n| format!("n{n}")).collect();
    let noise = [1, -1, 2, -2, 0, 1, -1, 2, -2, 0];
    let mut all: Vec<Record> = names.iter().map(|name| turned(name, &noise)).collect();
    all.push(turned("a", &weak));
    let holm = compare(&[], &all, Kinship::InTurn, &Rule::default());
    assert!(!words(&holm).contains(&"slower"));
    let alone = |family| judge_alone(&[], &turned("a", &weak), Kinship::InTurn, &Rule::default(), family);
    assert_eq!(alone(1)[0].verdict, Verdict::Slower);
    assert!(matches!(alone(20)[0].verdict, Verdict::NotKnown(_)));
}

#[test]
fn one_stored_process_a_side_calls_only_what_no_luck_explains() {
    let call = |before: &[u64], after: &[u64]| {
        let records = |all: &[u64]| all.iter().map(|ns| timed("a", *ns)).collect::<Vec<_>>();
        let comparison = compare(&records(before), &records(after), Kinship::Stored, &Rule::default());
        words(&comparison)[0]
    };
    assert_eq!(call(&[10_000], &[11_500]), "not known");
    assert_eq!(call(&[10_000], &[20_000]), "slower");
    assert_eq!(call(&[20_000], &[10_000]), "faster");
    // Several processes say themselves how far they are apart.
    assert_eq!(call(&[10_000, 10_010, 9_990, 10_005], &[10_300, 10_290, 10_310, 10_305]), "slower");
    assert_eq!(call(&[10_000, 10_010, 9_990, 10_005], &[10_002, 10_000, 9_999, 10_004]), "same");
    assert_eq!(call(&[10_000, 12_000, 9_000], &[10_300, 12_500, 9_200]), "not known");
}

#[test]
fn a_time_known_as_one_value_a_process_gets_no_verdict_and_fails_nothing() {
    // Percentiles of single operations, and system calls beside them.
    let of = |op: u64, calls: u64| {
        let mut record = timed("a", 10_000);
        record.metrics.push(metric("op_p99", Unit::Nanoseconds, &[op]));
        record.metrics.push(metric("system_calls", Unit::SystemCalls, &[calls]));
        record
    };
    let judge = |before: &[Record], after: &[Record], rule: &Rule| -> BTreeMap<String, Line> {
        let lines = compare(before, after, Kinship::Stored, rule).lines;
        lines.into_iter().map(|line| (line.metric.clone(), line)).collect()
    };
    for rule in [Rule::default(), with("op_p99=1%")] {
        let lines = judge(&[of(1_000, 5)], &[of(50_000, 6)], &rule);
        let op = &lines["op_p99"];
        assert_eq!((op.before, op.after, op.fails), (1_000.0, 50_000.0, false));
        assert!(
            matches!(&op.verdict, Verdict::NotKnown(why) if why.contains("one value") && why.contains("--against")),
            "{op:?}"
        );
        // Amounts stay exact.
        assert_eq!((&lines["system_calls"].verdict, lines["system_calls"].fails), (&Verdict::Slower, true));
    }
    // A run with one value on the other side only is no better.
    let mut many = of(1_000, 5);
    many.metrics[1] = metric("op_p99", Unit::Nanoseconds, &[999, 1_000, 1_001]);
    let lines = judge(&[many], &[of(50_000, 5)], &Rule::default());
    assert!(matches!(lines["op_p99"].verdict, Verdict::NotKnown(_)));
    // Three processes a side say themselves how far they are apart.
    let three = |op: u64| [of(op, 5), of(op + 1, 5), of(op + 2, 5)];
    let lines = judge(&three(1_000), &three(50_000), &Rule::default());
    assert_eq!(lines["op_p99"].verdict, Verdict::Slower);
}

#[test]
fn another_machine_another_method_and_other_parameters_are_refused_unless_forced() {
    let cases: [fn(&mut Record); 12] = [
        |r| drop(r.identity.insert("kernel".into(), "6.2".into())),
        |r| drop(r.identity.insert("scratch_file_system".into(), "ext4".into())),
        |r| drop(r.identity.insert("governor".into(), "powersave".into())),
        |r| drop(r.identity.insert("rustc".into(), "rustc 1.99".into())),
        |r| drop(r.identity.insert("features".into(), "ring, aws-lc-rs".into())),
        |r| drop(r.identity.insert("wallgrind_features".into(), "graviola".into())),
        |r| drop(r.identity.insert("profile_settings".into(), "00ff".into())),
        |r| drop(r.facts.insert("method".into(), "toggle".into())),
        |r| drop(r.facts.insert("file_system".into(), "ext4".into())),
        |r| drop(r.facts.insert("cpu_features".into(), "valgrind".into())),
        |r| drop(r.facts.insert("d1_size_ways_line_bytes".into(), "1,1,1".into())),
        |r| r.params.push(("size".into(), "2".into())),
    ];
    let mut before = timed("a", 10_000);
    let identity = [
        ("kernel", "6.1"),
        ("governor", "performance"),
        ("scratch_file_system", "tmpfs"),
        ("rustc", "rustc 1.95"),
        ("features", "ring"),
        ("wallgrind_features", "ring"),
        ("profile_settings", "00aa"),
    ];
    for (key, value) in identity {
        before.identity.insert(key.into(), value.into());
    }
    let facts = [
        ("method", "difference"),
        ("file_system", "tmpfs"),
        ("cpu_features", "native"),
        ("d1_size_ways_line_bytes", "2,2,2"),
    ];
    for (key, value) in facts {
        before.facts.insert(key.into(), value.into());
    }
    for change in cases {
        let mut after = Record { metrics: timed("a", 30_000).metrics, ..before.clone() };
        change(&mut after);
        let judge = |rule: &Rule| {
            let pair = (std::slice::from_ref(&before), std::slice::from_ref(&after));
            compare(pair.0, pair.1, Kinship::Stored, rule).lines.remove(0)
        };
        let refused = judge(&Rule::default());
        assert!(matches!(&refused.verdict, Verdict::NotKnown(why) if why.starts_with("not comparable: ")));
        let forced = judge(&Rule { force: true, ..Rule::default() });
        assert_eq!((forced.verdict, forced.marks.len()), (Verdict::Slower, 1));
    }
    // One difference is said once, wherever it was found.
    let mut other = before.clone();
    other.identity.insert("scratch_file_system".into(), "ext4".into());
    other.facts.insert("file_system".into(), "ext4".into());
    assert_eq!(differences(&before, &other, Kinship::Stored), ["file system: tmpfs before, ext4 after"]);
    // What the machine is does nothing to a count, and what one side does not know is no difference.
    let mut elsewhere = counted("a", 5);
    elsewhere.identity.insert("kernel".into(), "6.2".into());
    let mut here = counted("a", 5);
    here.identity.insert("kernel".into(), "6.1".into());
    assert_eq!(words(&compare(&[here], &[elsewhere.clone()], Kinship::Stored, &Rule::default())), ["same"]);
    assert_eq!(
        words(&compare(&[counted("a", 5)], &[elsewhere], Kinship::Stored, &Rule::default())),
        ["same"]
    );
    // An executable that was moved does not know its features; that is no difference.
    let features = |value: &str| {
        let mut record = counted("a", 5);
        record.identity.insert("features".into(), value.into());
        record
    };
    let judge = |a: &str, b: &str| {
        words(&compare(&[features(a)], &[features(b)], Kinship::InTurn, &Rule::default()))[0]
    };
    assert_eq!((judge("unknown", "ring"), judge("none", "ring")), ("same", "not known"));
}

#[test]
fn functions_that_moved_most_are_named() {
    let with = |n: u64, functions: &[(&str, u64)]| Record {
        functions: functions.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
        ..counted("a", n)
    };
    let before = with(100, &[("same", 50), ("gone", 30), ("grows", 20)]);
    let after = with(160, &[("same", 50), ("grows", 100), ("new", 10)]);
    let line = compare(&[before], &[after], Kinship::Stored, &Rule::default()).lines.remove(0);
    let expected = [("grows".to_string(), 80), ("gone".to_string(), -30), ("new".to_string(), 10)];
    assert_eq!(line.moved, expected);
}

#[test]
fn seeds_that_disagree_are_not_known() {
    let of =
        |totals: &[u64]| record("a", "cachegrind", vec![metric("instructions", Unit::Instructions, totals)]);
    let judge = |before: &[u64], after: &[u64]| {
        words(&compare(&[of(before)], &[of(after)], Kinship::Stored, &Rule::default()))[0]
    };
    assert_eq!(judge(&[10, 20, 30], &[11, 21, 31]), "slower");
    assert_eq!(judge(&[10, 20, 30], &[11, 19, 31]), "not known");
    assert_eq!(judge(&[10, 20, 30], &[10, 20, 30]), "same");
}

#[test]
fn records_that_do_not_fit_together_are_no_turns() {
    let good = turned("a", &[0; 8]);
    assert!(Turns::of(&good).is_some());
    for (key, value) in
        [("steps_per_pair", "0"), ("looks", "9@1"), ("looks", "x"), ("looks", "8@2"), ("steps_per_pair", "3")]
    {
        let mut bad = good.clone();
        bad.facts.insert(key.into(), value.into());
        assert_eq!(Turns::of(&bad), None, "{key} {value}");
    }
}

#[test]
fn suites_count_only_where_there_are_several() {
    let of = |suite: &str, n: u64| Record { suite: suite.into(), ..counted("a", n) };
    let judge = |before: &[Record], after: &[Record]| {
        words(&compare(before, after, Kinship::Stored, &Rule::default())).len()
    };
    // An executable that was renamed.
    assert_eq!(judge(&[of("old", 1)], &[of("new", 1)]), 1);
    assert_eq!(judge(&[of("x", 1), of("y", 2)], &[of("x", 1), of("y", 2)]), 2);
    assert_eq!(judge(&[of("x", 1), of("y", 2)], &[of("z", 1)]), 0);
}

#[test]
fn pairs_of_the_same_layouts_are_one_draw() {
    let turns = |log_ratios: Vec<f64>, layouts| Turns { log_ratios, looks: Vec::new(), layouts };
    let luck = [0.03, -0.02, 0.01, 0.00, -0.03, 0.02, -0.01, 0.04];
    let once = turns(luck.to_vec(), 8).estimate(8).expect("an estimate");
    // Again and again, nothing more is known; and a part of a round counts by its layouts.
    let often = turns(luck.repeat(5), 8);
    assert_eq!(often.estimate(40), Some(once));
    assert_eq!(often.estimate(7), turns(luck[..7].to_vec(), 1).estimate(7));
    let alone = turns(luck.repeat(5), 1).estimate(40).expect("an estimate");
    assert!(alone.error < once.error / 2.0, "{alone:?} {once:?}");
}

#[test]
fn a_record_says_in_how_many_layouts_it_was_measured() {
    let mut record = turned("a", &[20, -20, 20, -20, 20, -20, 20, -20, 20, -20, 20, -20, 20, -20, 20, -20]);
    let of = |record: &Record| Turns::of(record).map(|turns| turns.layouts);
    assert_eq!(of(&record), Some(1));
    record.facts.insert("layouts".into(), "8".into());
    assert_eq!(of(&record), Some(8));
    let remedy = |record: &Record| match judge_alone(&[], record, Kinship::InTurn, &Rule::default(), 1)
        .remove(0)
        .verdict
    {
        Verdict::NotKnown(remedy) => remedy,
        other => panic!("{other:?}"),
    };
    assert!(remedy(&record).contains(" pairs of as many layouts (--layouts="), "{}", remedy(&record));
    record.facts.insert("layouts".into(), "many".into());
    assert_eq!(of(&record), None);
}
