//! What the wall-time meter hands on, with the real clock and bodies that are
//! over at once. Nothing here depends on how long anything takes.

use std::time::Duration;

use super::{ClockFacts, Failure, Outcome, walltime};
use crate::plan;
use crate::scenario::{Bencher, Gauge, Gauges, Ops, Party, Pipe, Scenario, Suite, Turn};
use crate::units::{Bytes, Direction, Elements, Throughput, Unit};

fn settings(min_samples: usize, max_samples: usize) -> plan::Walltime {
    plan::Walltime {
        time: Duration::from_millis(1),
        min_samples,
        max_samples,
        cpu: None,
        valgrind_features: false,
        seed: 3,
    }
}

fn scenario(
    body: impl Fn(&mut Bencher<'_>) -> anyhow::Result<()> + Send + Sync + 'static,
    pair: bool,
) -> Scenario {
    let mut suite = Suite::new();
    let scenario = suite.bench("a::b", body);
    if pair {
        scenario.parties("left", "right");
    }
    suite.finish().expect("one valid scenario").remove(0)
}

fn measure(scenario: &Scenario, settings: &plan::Walltime) -> Result<Outcome, Failure> {
    walltime(scenario, settings, &ClockFacts::measure())
}

/// Sends a byte, or takes one.
struct OneByte(bool);

impl Party for OneByte {
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> anyhow::Result<Turn> {
        if self.0 {
            to_send.push(b"x");
            return Ok(Turn::Done);
        }
        received.consume(1);
        Ok(Turn::Done)
    }

    fn check(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

fn one_byte(b: &mut Bencher<'_>) -> anyhow::Result<()> {
    b.pair(|| Ok(OneByte(true)), || Ok(OneByte(false)))
}

#[test]
fn one_party_gives_one_series_with_unit_and_direction() {
    let body = |b: &mut Bencher<'_>| {
        b.throughput(Bytes(5));
        b.throughput(Elements(2));
        b.iter(|| 1 + 1)
    };
    let outcome = measure(&scenario(body, false), &settings(8, 8)).expect("measured");
    let [series] = &outcome.series[..] else { panic!("{} series", outcome.series.len()) };
    assert_eq!((series.metric.as_str(), &series.party), ("wall_time", &None));
    assert_eq!((series.unit, series.direction), (Unit::Nanoseconds, Direction::LowerIsBetter));
    assert_eq!(series.samples.len(), 8);
    assert!(series.samples.iter().all(|s| s.iterations > 1));
    assert_eq!(outcome.throughput, [Throughput::Bytes(5), Throughput::Elements(2)]);
    for key in ["clock_precision_ns", "clock_overhead_ns", "iterations_per_batch", "cpu_migrations"] {
        assert!(outcome.facts[key].parse::<f64>().is_ok(), "{key}: {}", outcome.facts[key]);
    }
    assert_eq!((&*outcome.facts["bootstrap_seed"], &*outcome.facts["cpu_pinned"]), ("3", "no"));
    assert!(!outcome.facts.contains_key("turn_overhead_ns"));
}

#[test]
fn two_parties_give_two_series_more() {
    let outcome = measure(&scenario(one_byte, true), &settings(8, 8)).expect("measured");
    let parties: Vec<_> = outcome.series.iter().map(|s| s.party.as_deref()).collect();
    assert_eq!(parties, [None, Some("left"), Some("right")]);
    for at in 0..8 {
        let [whole, left, right] = [0, 1, 2].map(|i| outcome.series[i].samples[at]);
        assert_eq!([left.iterations, right.iterations], [whole.iterations; 2]);
        assert!(left.total > 0 && right.total > 0);
    }
    assert_eq!(outcome.facts["turns_per_iteration"], "2.0");
    assert!(outcome.facts["turn_overhead_ns"].parse::<f64>().is_ok_and(|ns| ns > 0.0));
}

#[test]
fn parties_that_are_stated_and_not_there_are_noted() {
    let outcome = measure(&scenario(|b| b.iter(|| 1), true), &settings(8, 8)).expect("measured");
    assert_eq!(outcome.series.len(), 1);
    assert!(outcome.notes.iter().any(|note| note.contains("the body is no pair")), "{:?}", outcome.notes);
    // A pair that is not stated to be one is measured as a whole.
    let outcome = measure(&scenario(one_byte, false), &settings(8, 8)).expect("measured");
    assert_eq!(outcome.series.len(), 1);
}

#[test]
fn too_few_samples_are_noted_and_none_is_one() {
    let few = measure(&scenario(|b| b.iter(|| 1), false), &settings(2, 2)).expect("measured");
    assert!(few.notes.iter().any(|note| note.starts_with("2 samples are too few")), "{:?}", few.notes);
    let none = measure(&scenario(|b| b.iter(|| 1), false), &settings(0, 0)).expect("measured");
    assert_eq!(none.series[0].samples.len(), 1);
}

#[test]
fn failures_of_set_up_check_and_placement_say_what_failed() {
    let reason = |scenario: &Scenario, settings: &plan::Walltime| match measure(scenario, settings) {
        Err(Failure::Failed(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let dear = scenario(|b| b.iter_with_setup(|| anyhow::bail!("no input"), |(): ()| ()), false);
    assert_eq!(reason(&dear, &settings(1, 1)), "no input");
    let wrong = scenario(|b| b.iter_checked(|| 3, |n| anyhow::bail!("{n} is wrong")), false);
    assert_eq!(reason(&wrong, &settings(1, 1)), "3 is wrong");
    let idle = scenario(|_| Ok(()), false);
    assert!(reason(&idle, &settings(1, 1)).contains("measured nothing"));
    let nowhere = plan::Walltime { cpu: Some(1_000), ..settings(1, 1) };
    let text = reason(&scenario(|b| b.iter(|| 1), false), &nowhere);
    assert!(text.starts_with("cannot pin to CPU 1000: ") && text.contains("may use CPU "), "{text}");
}

#[test]
fn a_pinned_run_stays_where_it_is_and_says_where() {
    let cpu = super::clock_sys::allowed_cpus().expect("an affinity")[0];
    let pinned = plan::Walltime { cpu: Some(cpu), ..settings(8, 8) };
    let outcome = measure(&scenario(|b| b.iter(|| 1), false), &pinned).expect("measured");
    assert_eq!(outcome.facts["cpu_pinned"], cpu.to_string());
    assert_eq!(outcome.facts["cpu_last"], cpu.to_string());
    assert_eq!(outcome.facts["cpu_migrations"], "0");
    assert_eq!(outcome.facts["cpu_migrations_outside_region"], "0");
}

/// Reads a counter of the test.
struct Counted(std::rc::Rc<std::cell::Cell<u64>>);

impl Gauges for Counted {
    fn names(&self) -> Vec<Gauge> {
        vec![Gauge::lower("calls", Unit::SystemCalls), Gauge::higher("hits", Unit::Events)]
    }

    fn read(&mut self, out: &mut Vec<u64>) {
        out.extend([3 * self.0.get(), 7]);
    }
}

#[test]
fn gauges_facts_and_operations_stand_behind_the_time() {
    let scenario = scenario(
        |b| {
            let count = std::rc::Rc::new(std::cell::Cell::new(0));
            b.gauges(Counted(count.clone()));
            b.fact("engine", "none");
            b.fact("clock", "sundial");
            b.iter_ops(
                || Ok(()),
                |(), ops: &mut Ops| {
                    count.set(count.get() + 1);
                    ops.start(1);
                    ops.op(|| std::hint::black_box(1));
                    ops.done(1);
                },
                |()| Ok(()),
            )
        },
        false,
    );
    let outcome = measure(&scenario, &settings(4, 4)).expect("it does not fail");
    let names: Vec<&str> = outcome.series.iter().map(|s| s.metric.as_str()).collect();
    assert_eq!(names, ["wall_time", "calls", "hits", "op_p50", "op_p90", "op_p99", "op_max"]);
    let calls = &outcome.series[1];
    assert_eq!((calls.unit, calls.direction), (Unit::SystemCalls, Direction::LowerIsBetter));
    assert!(calls.is_exact() && calls.samples.len() == 4);
    assert!(calls.samples.iter().all(|s| s.total == 3 * s.iterations), "{calls:?}");
    assert!(outcome.series[2].samples.iter().all(|s| s.total == 0));
    assert_eq!(outcome.series[2].direction, Direction::HigherIsBetter);
    let histogram = &outcome.histograms[0];
    assert_eq!(histogram.metric, "op_time");
    let iterations: u64 = outcome.facts["op_iterations"].parse().expect("a number");
    assert_eq!(histogram.count(), 2 * iterations);
    for (series, p) in outcome.series[3..].iter().zip([0.5, 0.9, 0.99, 1.0]) {
        assert_eq!(series.samples[0].total, histogram.quantile(p), "{}", series.metric);
    }
    assert_eq!((outcome.facts["gauges"].as_str(), outcome.facts["engine"].as_str()), ("calls,hits", "none"));
    assert_eq!(outcome.facts["clock"], "CLOCK_MONOTONIC_RAW");
    assert!(outcome.notes.iter().any(|note| note.contains("the body's fact clock")), "{:?}", outcome.notes);
}

#[test]
fn a_gauge_that_falls_and_an_operation_without_end_fail_the_trial() {
    struct Falls(u64);
    impl Gauges for Falls {
        fn names(&self) -> Vec<Gauge> {
            vec![Gauge::lower("luck", Unit::Events)]
        }

        fn read(&mut self, out: &mut Vec<u64>) {
            self.0 -= 1;
            out.push(self.0);
        }
    }
    let falls = scenario(
        |b| {
            b.gauges(Falls(u64::MAX));
            b.iter(|| 1)
        },
        false,
    );
    let endless = scenario(|b| b.iter_ops(|| Ok(()), |(), ops| ops.start(0), |()| Ok(())), false);
    for (scenario, why) in [(falls, "gauges only go up"), (endless, "started in an iteration and never done")]
    {
        let failure = measure(&scenario, &settings(1, 1)).expect_err("it fails");
        assert!(failure.reason().contains(why), "{failure:?}");
        let failure = crate::measure::smoke(&scenario).expect_err("a smoke run sees it, too");
        assert!(failure.reason().contains(why), "{failure:?}");
    }
}
