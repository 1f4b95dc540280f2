//! Rows, text and flame graph of made-up records.
//!
//! Neighbours: `contract` tests the command on a real bench target.

use super::{Evidence, Stacks, explain, flame_graph};
use crate::report::exchange::{Import, import};
use crate::samples::{Sample, Series};
use crate::store::{Metric, Record};
use crate::units::{Direction, Unit};

fn record(mode: &str) -> Record {
    let files = Import { icounts: Some("x_client,1\n"), run_id: "r1", ..Import::default() };
    let mut record = import(&files, &|_| Some("a::x".into())).expect("a valid file").remove(0);
    record.mode = mode.into();
    record.metrics.clear();
    record
}

fn metric(name: &str, party: Option<&str>, unit: Unit, totals: &[u64]) -> Metric {
    let samples = totals.iter().map(|total| Sample { iterations: 2, total: *total }).collect();
    let party = party.map(str::to_string);
    let series = Series { metric: name.into(), party, unit, direction: Direction::LowerIsBetter, samples };
    Metric::new(series, 0).expect("samples")
}

/// A build whose function `g` takes `g` instructions in two iterations.
fn build(label: &str, g: u64) -> Evidence {
    let mut time = record("walltime");
    time.metrics.push(metric("wall_time", None, Unit::Nanoseconds, &[2_000, 2_200, 2_400, 9_000, 2_100]));
    let mut counts = record("cachegrind");
    counts.metrics.push(metric("instructions", None, Unit::Instructions, &[1_000 + g]));
    counts.metrics.push(metric("instructions", Some("client"), Unit::Instructions, &[1_000 + g]));
    counts.metrics.push(metric("d1_misses", None, Unit::Events, &[8]));
    counts.metrics.push(metric("system_calls", None, Unit::SystemCalls, &[6]));
    counts.facts.extend([("gauges", "system_calls"), ("iterations", "2")].map(|(k, v)| (k.into(), v.into())));
    counts.functions = vec![("[client] f".into(), 1_000), ("[client] g".into(), g)];
    let stacks = Stacks::parse(&format!("run;f 600\nrun;f;h;f 400\nrun;<g as A>::g {g}\n")).expect("stacks");
    Evidence {
        label: label.into(),
        time: Some(time),
        counts: Some(counts),
        stacks: vec![(Some("client".into()), stacks)],
        gaps: vec!["heap use: valgrind is not there".into()],
        ..Evidence::default()
    }
}

#[test]
fn what_holds_for_both_sides_is_said_once() {
    let text = explain("a::x", Some(&build("old", 50)), &build("new", 60), 2).text();
    assert!(text.contains("both: not known: heap use: valgrind is not there\n"), "{text}");
    assert_eq!(text.matches("valgrind is not there").count(), 1, "{text}");
    assert!(text.contains("both sides are the same records"), "{text}");
    let mut other = build("new", 60);
    other.gaps = vec!["heap use: it took too long".into()];
    other.counts.iter_mut().for_each(|counts| {
        counts.run_id = "another".into();
        counts.identity.insert("tree_dirty".into(), "yes".into());
        counts.identity.insert("commit".into(), "c0ffee".into());
    });
    other.time.iter_mut().for_each(|time| drop(time.identity.insert("commit".into(), "c0ffee".into())));
    let text = explain("a::x", Some(&build("old", 50)), &other, 2).text();
    for line in [
        "old: not known: heap use: valgrind is not there",
        "new: not known: heap use: it took too long",
        "new: the parts are of different commits, or of one with and without changes",
    ] {
        assert!(text.contains(&format!("{line}\n")), "no {line:?} in {text}");
    }
    assert!(!text.contains("both sides are"), "{text}");
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn has(text: &str, wanted: &[&str]) {
    let lines = lines(text);
    for line in wanted {
        assert!(lines.iter().any(|l| l == line), "{line:?} is missing in\n{text}");
    }
}

#[test]
fn one_build_has_its_numbers_of_one_iteration_and_shares() {
    let text = explain("a::x", None, &build("now", 50), 2).text();
    has(
        &text,
        &[
            "wall time, ns",
            "1.100 µs median",
            "4.368 µs percentile 99 of the samples",
            "counts, instructions",
            "525 executed in user space",
            "525 executed in user space, client",
            "4 misses, first level, data",
            "3 system_calls",
            "500 95 % [client] f",
            "25 5 % [client] g",
            // With callees, a recursion once.
            "525 100 % [client] run",
            "(2 more)",
            "now: not known: heap use: valgrind is not there",
        ],
    );
}

#[test]
fn two_builds_have_a_difference_and_what_moved_most_stands_first() {
    let explained = explain("a::x", Some(&build("old", 50)), &build("new", 90), 1);
    let text = explained.text();
    has(
        &text,
        &[
            "before: old; after: new",
            "525 545 +20 +3.81 % executed in user space",
            "1.100 µs 1.100 µs 0.000 ns median",
            "25 45 +20 +80.0 % [client] g",
            "(1 more)",
        ],
    );
    assert!(text.contains("is no verdict"), "{text}");
    let json = explained.json();
    let row = &json["parts"][1]["rows"][0];
    assert_eq!((&row["unit"], &row["better"]), (&"instructions".into(), &"lower".into()), "{row}");
    assert_eq!((&row["before"], &row["after"]), (&525.0.into(), &545.0.into()), "{row}");
}

#[test]
fn what_one_side_lacks_is_a_dash_and_what_came_or_went_is_said() {
    let mut old = build("old", 50);
    old.time = None;
    if let Some(counts) = &mut old.counts {
        counts.functions = vec![("[client] f".into(), 1_000), ("[client] gone".into(), 8)];
    }
    let text = explain("a::x", Some(&old), &build("new", 50), 9).text();
    has(&text, &["- 1.100 µs median", "0 25 +25 new [client] g", "4 0 -4 gone [client] gone"]);
}

/// A side without counts, or without stacks, has no functions: not functions at nothing.
#[test]
fn what_was_not_counted_is_not_nothing() {
    let mut old = build("old", 50);
    old.stacks.clear();
    let text = explain("a::x", Some(&old), &build("new", 50), 9).text();
    has(&text, &["- 525 [client] run", "500 500 0 [client] f"]);
    old.counts = None;
    let text = explain("a::x", Some(&old), &build("new", 50), 9).text();
    has(&text, &["- 525 [client] run", "- 500 [client] f"]);
}

#[test]
fn folded_stacks_that_are_damaged_name_their_line() {
    for text in ["a;b 5\nno number\n", "a;b 5\na;b -3\n", "a 1\nb"] {
        let error = Stacks::parse(text).expect_err(text);
        assert!(error.report().contains("line 2"), "{}", error.report());
    }
}

#[cfg(feature = "flamegraph")]
#[test]
fn a_flame_graph_has_each_frame_and_of_two_builds_what_moved() {
    let svg = |before, g| {
        String::from_utf8(flame_graph("a::x", before, &build("new", g)).expect("a picture")).expect("text")
    };
    let one = svg(None, 50);
    assert!(one.contains("<title>client (1,050 instructions, 100.00%)</title>"), "{one}");
    assert!(one.contains("&lt;g as A&gt;::g (50 instructions, 4.76%)"), "{one}");
    assert_eq!(one, svg(None, 50), "the same input gives the same picture");
    let old = build("old", 50);
    let two = svg(Some(&old), 90);
    assert!(two.contains("more than in old") && two.contains("&lt;g as A&gt;::g (90 instructions, 8.26%; +"));
    let mut slower = build("old", 50);
    // Twice as many iterations of the same work.
    if let Some(counts) = &mut slower.counts {
        counts.facts.insert("iterations".into(), "4".into());
    }
    slower.stacks[0].1 = Stacks::parse("run;f 1200\nrun;f;h;f 800\nrun;<g as A>::g 100\n").expect("stacks");
    assert!(svg(Some(&slower), 50).contains("&lt;g as A&gt;::g (50 instructions, 4.76%; 0.00%)"));
}

#[test]
fn without_stacks_there_is_no_flame_graph() {
    let mut none = build("new", 50);
    none.stacks.clear();
    let error = flame_graph("a::x", None, &none).expect_err("nothing to draw");
    let text = error.report();
    assert!(text.contains("no stacks of calls of a::x in new: heap use"), "{text}");
    assert!(text.contains("--stacks"), "{text}");
    none.stacks.push((None, Stacks::default()));
    assert!(flame_graph("a::x", None, &none).is_err(), "nor where a region executes nothing");
}
