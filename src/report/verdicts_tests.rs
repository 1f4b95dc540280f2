//! The table of verdicts: what stands in it, in which order, within the width.

use super::{Look, failure, verdicts};
use crate::compare::{Comparison, Learnt, Line, Rule, Size, Verdict};
use crate::stats::Estimate;
use crate::units::{Direction, Unit};

fn line(scenario: &str, verdict: Verdict, size: Size) -> Line {
    let is_time = matches!(size, Size::Estimated { .. });
    Line {
        suite: "s".into(),
        scenario: scenario.into(),
        mode: "walltime".into(),
        metric: if is_time { "wall_time" } else { "instructions" }.into(),
        party: None,
        unit: if is_time { Unit::Nanoseconds } else { Unit::Instructions },
        direction: Direction::LowerIsBetter,
        before: 1_000.0,
        after: 1_050.0,
        size,
        verdict,
        fails: false,
        usual: None,
        marks: Vec::new(),
        moved: Vec::new(),
    }
}

fn estimated() -> Size {
    let log_ratio = Estimate { mean: 1.05_f64.ln(), error: 0.005, n: 9, freedom: 8.0 };
    let remedy = "about 40 pairs".into();
    Size::Estimated { log_ratio, interval: (0.03, 0.07), p: 0.0003, adjusted_p: 0.0006, floor: 0.1, remedy }
}

fn comparison() -> Comparison {
    let slower = Line { fails: true, ..line("a::time", Verdict::Slower, estimated()) };
    let moved = vec![("grows".to_string(), 60), ("shrinks".to_string(), -10)];
    let count = Line {
        moved,
        marks: vec!["kernel: 1 before, 2 after".into()],
        ..line("a::count", Verdict::Slower, Size::Exact)
    };
    let learnt = Learnt { unusual: Some(0.032), runs: 14 };
    let slower = Line { usual: Some(learnt), ..slower };
    let unknown = line("a::noise", Verdict::NotKnown("about 40 pairs".into()), estimated());
    let same = line("a::same", Verdict::Same, estimated());
    Comparison {
        lines: vec![same, unknown, slower, count],
        unmatched: vec![("a::new".into(), "walltime".into(), "not there before".into())],
        unknown_limits: vec!["peek".into()],
    }
}

#[test]
fn the_verdict_comes_first_with_size_interval_and_rule() {
    let text = verdicts(&comparison(), "baseline main", &Rule::default(), Look { width: 110, color: false });
    let expected = "\
compared with baseline main
2 slower, 0 faster, 1 same, 1 not known, 1 beyond the limit, 1 not compared
";
    assert!(text.starts_with(expected), "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what:?} in {text}"));
    assert!(at("\nslower\n") < at("a::time") && at("a::time") < at("\nnot known\n"), "{text}");
    assert!(at("\nnot known\n") < at("\nsame\n"), "{text}");
    assert!(at("usual up to 3.20 % (14 runs)") < at("usual: changes from run to run"), "{text}");
    for part in [
        "+5.00 %",
        "+3.00 % to +7.00 %",
        "p 0.0006",
        "beyond the limit",
        "+50 (+5.00 %)",
        "+60 grows",
        "-10 shrinks",
        "FORCED, kernel: 1 before, 2 after",
        "would settle it: about 40 pairs",
        "not compared, not there before: a::new",
        "no line has the metric peek",
        "Holm",
        "±1 %",
    ] {
        at(part);
    }
}

#[test]
fn no_line_is_wider_than_asked() {
    for width in [20, 40, 60, 80, 120] {
        let text = verdicts(&comparison(), "baseline main", &Rule::default(), Look { width, color: false });
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!(widest <= width, "{width}: {widest}\n{text}");
        assert!(text.lines().all(|line| !line.trim().is_empty()), "{width}: an empty line in\n{text}");
    }
}

#[test]
fn many_that_are_the_same_are_counted() {
    let lines = vec![line("a::same", Verdict::Same, estimated()); 30];
    let many = Comparison { lines, ..Comparison::default() };
    let text = verdicts(&many, "x", &Rule::default(), Look { width: 100, color: false });
    assert!(text.contains("same: 30 lines") && !text.contains("a::same"), "{text}");
}

#[test]
fn a_failure_says_by_how_much() {
    let why = failure(&comparison().lines, "baseline main").expect("one fails");
    assert_eq!(
        why,
        "beyond its limits against baseline main: wall_time slower by +5.00 % (+3.00 % to +7.00 %)"
    );
    assert_eq!(failure(&[], "x"), None);
}

#[test]
fn a_reason_that_neighbours_share_is_said_once() {
    let unknown = |metric: &str, why: &str| Line {
        metric: metric.into(),
        ..line("a::op", Verdict::NotKnown(why.into()), Size::None(why.into()))
    };
    let lines = vec![unknown("op_p50", "one"), unknown("op_p90", "one"), unknown("op_p99", "two")];
    let all = Comparison { lines, ..Comparison::default() };
    let text = verdicts(&all, "x", &Rule::default(), Look { width: 100, color: false });
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what:?} in {text}"));
    assert_eq!(text.matches("one").count(), 1, "{text}");
    assert!(at("op_p90") < at("one") && at("one") < at("op_p99") && at("op_p99") < at("two"), "{text}");
}
