//! The loop of the wall-time meter under a scripted clock, counted exactly.

use std::time::Duration;

use super::clock::{ClockFacts, TurnClock};
use super::clock_sys::{Pinned, Usage, allowed_cpus};
use super::walltime_loop::{Limits, Loop, MOST_MEMORY, MOST_PREPARED, Pace, Taken, Yield};
use super::walltime_mock::{Call, Readings, Script, Scripted, World};
use crate::scenario::{Meter, Ops};

const MS: u64 = 1_000_000;

fn limits(budget_ms: u64, min_samples: usize, max_samples: usize) -> Limits {
    let budget = Duration::from_millis(budget_ms);
    Limits { budget, op_budget: budget / 4, shortest_ns: 40_000, min_samples, max_samples }
}

/// Runs a script whose clock costs nothing.
fn run(limits: Limits, script: &mut Script) -> Yield {
    let mut meter = Loop::new(script.world.clone(), limits);
    meter.measure(script).expect("the script does not fail");
    meter.into_yield()
}

#[test]
fn a_sample_is_as_long_as_the_clock_needs_and_samples_fill_the_budget() {
    // 3 µs a region and 1 µs of set-up; 14 iterations make 42 µs, a batch of
    // them 56 µs. Warm-up: 1, 2, 4, 8, 16 (48 µs, found), then 16 again until
    // 200 µs are used: 31 iterations are 124 µs, two more batches 252 µs.
    let mut script = Script { region_ns: 3_000, setup_ns: 1_000, ..Script::default() };
    let yielded = run(limits(1, 1, 1_000), &mut script);
    assert_eq!(script.runs()[..7], [1, 2, 4, 8, 16, 16, 16]);
    assert_eq!(yielded.warm_up_iterations, 63);
    assert_eq!(yielded.warm_up_ns, 252_000);
    assert_eq!(yielded.pace, Pace { iterations: 14, batches: 1 });
    // 748 µs are left: 13 samples end at 728 µs, the 14th begins in time.
    assert_eq!(yielded.samples.len(), 14);
    assert_eq!(yielded.samples[0], Taken { iterations: 14, region_ns: 42_000, marks: [0, 0] });
    assert_eq!(yielded.elapsed_ns, 252_000 + 14 * 56_000);
}

#[test]
fn every_batch_is_prepared_run_and_checked_in_turn() {
    let mut script = Script { region_ns: 30_000, check_ns: 500, ..Script::default() };
    run(limits(1, 1, 5), &mut script);
    for batch in script.calls.chunks(3) {
        let [Call::Prepare(prepared), Call::Run(ran), Call::Check] = batch else {
            panic!("not a batch: {batch:?}");
        };
        assert_eq!(prepared, ran);
    }
}

#[test]
fn at_most_so_many_samples_and_then_each_is_of_several_batches() {
    // 50 µs an iteration; 8 ms are left for 10 samples of 16 batches.
    let mut script = Script { region_ns: 50_000, ..Script::default() };
    let yielded = run(limits(10, 1, 10), &mut script);
    assert_eq!(yielded.warm_up_ns, 2 * MS);
    assert_eq!(yielded.pace, Pace { iterations: 1, batches: 16 });
    assert_eq!(yielded.samples.len(), 10);
    assert_eq!(yielded.samples[9], Taken { iterations: 16, region_ns: 800_000, marks: [0, 0] });
    assert_eq!(yielded.elapsed_ns, 10 * MS);
}

#[test]
fn few_samples_are_not_stretched_beyond_a_millisecond() {
    // 80 ms are left for 10 samples, and they take 10 ms.
    let mut script = Script { region_ns: 50_000, ..Script::default() };
    let yielded = run(limits(100, 1, 10), &mut script);
    assert_eq!(yielded.pace, Pace { iterations: 1, batches: 20 });
    assert_eq!((yielded.warm_up_ns, yielded.elapsed_ns), (20 * MS, 30 * MS));
}

#[test]
fn an_interruption_at_the_end_of_the_warm_up_does_not_shorten_the_rest() {
    // 2 ms of warm-up: 30 batches of 50 µs, and one that takes 550 µs. The
    // mean of them is 66 µs, so that 12 fit where 16 would.
    let mut script = Script { region_ns: 50_000, interrupted: Some((31, 500_000)), ..Script::default() };
    let yielded = run(limits(10, 1, 10), &mut script);
    assert_eq!(yielded.warm_up_ns, 2_050_000);
    assert_eq!(yielded.pace, Pace { iterations: 1, batches: 12 });
    assert_eq!(yielded.samples.len(), 10);
}

#[test]
fn a_slow_first_iteration_does_not_slow_the_pace() {
    // 104 µs, then 1, 2, 4, 8 and 16 iterations of 4 µs with their set-up, then
    // 28 times 16: 2.02 ms. A batch of 14 takes 56 µs, and 14 of those fit in 798 µs.
    let mut script =
        Script { region_ns: 3_000, setup_ns: 1_000, interrupted: Some((1, 100_000)), ..Script::default() };
    let yielded = run(limits(10, 1, 10), &mut script);
    assert_eq!(yielded.warm_up_ns, 2_020_000);
    assert_eq!(yielded.pace, Pace { iterations: 14, batches: 14 });
}

#[test]
fn at_least_so_many_samples_even_beyond_the_budget() {
    // One iteration takes twice the budget: one to warm up, then the least.
    let mut script = Script { region_ns: 2_000 * MS, ..Script::default() };
    let yielded = run(limits(1_000, 4, 100), &mut script);
    assert_eq!(script.runs(), [1, 1, 1, 1, 1]);
    assert_eq!(yielded.samples.len(), 4);
    assert_eq!((yielded.warm_up_iterations, yielded.elapsed_ns), (1, 10_000 * MS));
}

#[test]
fn a_dear_set_up_counts_towards_the_budget() {
    // 1 ms of set-up before a region of 50 µs: 10 ms hold 2 + 8 iterations, not 200.
    let mut script = Script { region_ns: 50_000, setup_ns: MS, ..Script::default() };
    let yielded = run(limits(10, 1, 1_000), &mut script);
    assert_eq!((yielded.warm_up_iterations, yielded.samples.len()), (2, 8));
    assert_eq!(yielded.samples[0].region_ns, 50_000);
}

#[test]
fn the_time_of_turns_goes_to_the_party_whose_turn_it_was() {
    // Three marks a nanosecond; 100 ns an iteration belong to neither party.
    let world = Scripted::new(World { marks_per_ns: 3, ..World::default() });
    let turns = vec![(0, 5_000), (1, 7_000), (0, 1_000), (1, 30_000)];
    let mut script = Script { world, turns, region_ns: 100, setup_ns: 9_000, ..Script::default() };
    let yielded = run(limits(5, 1, 7), &mut script);
    assert_eq!(yielded.pace, Pace { iterations: 1, batches: 10 });
    // Whoever had the last turn of an iteration has it until the next one's first.
    let sample = Taken { iterations: 10, region_ns: 431_000, marks: [3 * 60_000, 3 * 370_000] };
    assert_eq!(yielded.samples, [sample; 7]);
    assert_eq!(yielded.turns, 4 * 10 * 7);
    assert_eq!(yielded.ns_per_mark, 1.0 / 3.0);
}

#[test]
fn memory_bounds_a_batch_and_more_batches_make_the_sample_long() {
    // 8 MiB an iteration: 8 fit. 1 µs each: five batches make 40 µs.
    let mut script = Script { region_ns: 1_000, bytes: MOST_MEMORY / 8, ..Script::default() };
    let yielded = run(limits(1, 1, 100_000), &mut script);
    assert_eq!(script.runs()[..6], [1, 2, 4, 8, 16, 8]);
    assert!(yielded.bounded_by_memory);
    assert_eq!(yielded.pace, Pace { iterations: 8, batches: 5 });
    assert_eq!(yielded.samples[0].region_ns, 40_000);
}

#[test]
fn one_iteration_that_is_larger_than_the_memory_allowed_is_still_measured() {
    let mut script = Script { region_ns: 1_000, bytes: MOST_MEMORY * 3, ..Script::default() };
    let yielded = run(limits(1, 1, 100_000), &mut script);
    assert!(script.runs().iter().all(|n| *n == 1));
    assert_eq!(yielded.pace, Pace { iterations: 1, batches: 40 });
}

#[test]
fn a_body_that_takes_no_time_ends_too() {
    let world = Scripted::new(World { reading_ns: 10_000, step_ns: MS, ..World::default() });
    let mut script = Script { world, ..Script::default() };
    let yielded = run(limits(5, 3, 10), &mut script);
    assert_eq!(script.runs().iter().max(), Some(&MOST_PREPARED));
    assert!(yielded.samples.len() >= 3);
}

#[test]
fn the_kernel_is_asked_about_the_region_alone() {
    let usage = Usage { voluntary: 1, involuntary: 2, minor_faults: 3, major_faults: 4, cpu: 1 };
    let mut script = Script { region_ns: 50_000, usage, ..Script::default() };
    let yielded = run(limits(1, 1, 5), &mut script);
    let regions = 5 * yielded.pace.batches as u64;
    assert_eq!(
        yielded.usage,
        Usage {
            voluntary: regions,
            involuntary: 2 * regions,
            minor_faults: 3 * regions,
            major_faults: 4 * regions,
            cpu: 1
        }
    );
    // It moved in the warm-up, which is not counted, and then stayed.
    assert_eq!((yielded.migrations, yielded.migrations_between), (0, 0));
}

#[test]
fn gauges_are_read_around_each_batch_outside_of_the_clock() {
    // 50 µs an iteration, 7 µs a reading of the gauges, and 3 ms of set-up.
    let usage = Usage { voluntary: 2, ..Usage::default() };
    let mut script = Script { region_ns: 50_000, setup_ns: 3 * MS, usage, ..Script::default() };
    let mut meter = Loop::new(script.world.clone(), limits(100, 1, 4));
    meter.gauges(Box::new(Readings { world: script.world.clone(), reading_ns: 7_000 }));
    meter.measure(&mut script).expect("the script does not fail");
    let yielded = meter.into_yield();
    let names: Vec<&str> = yielded.gauges.iter().map(|gauge| gauge.metric.as_str()).collect();
    assert_eq!(names, ["waits", "time", "nothing"]);
    assert_eq!((yielded.samples.len(), yielded.risen.len()), (4, 4));
    for (sample, risen) in yielded.samples.iter().zip(&yielded.risen) {
        let batches = yielded.pace.batches as u64;
        assert_eq!(sample.region_ns, 50_000 * sample.iterations, "the clock saw the gauges");
        // The second reading is of the moment after it has taken its time.
        assert_eq!(*risen, [2 * batches, sample.region_ns + 7_000 * batches, 0]);
    }
}

#[test]
fn operations_are_timed_in_a_pass_of_their_own() {
    // 46 µs an iteration, 6 µs of which are operations; a reading takes 1 µs.
    let world = Scripted::new(World { reading_ns: 1_000, ..World::default() });
    let (ops, op_ns) = (Some(Ops::default()), vec![1_000, 2_000, 3_000]);
    let mut script = Script { world, region_ns: 40_000, ops, op_ns, ..Script::default() };
    let yielded = run(limits(10, 1, 5), &mut script);
    assert_eq!(yielded.samples[0].region_ns, 47_000 * yielded.samples[0].iterations, "a reading for stop");
    let times = yielded.op_times.expect("operations were marked");
    // 46 µs, and six readings in it, and five around it: 57 µs a batch, 2.5 ms.
    let batches = 2_500_000_u64.div_ceil(57_000);
    assert_eq!((times.iterations, times.count()), (batches, 3 * batches));
    let histogram = times.histogram().expect("times");
    // Each holds the reading that ended it.
    assert_eq!((histogram.min, histogram.max), (2_000, 4_000));
    // Four digits do not fit: a bucket holds two values from 2,048 on.
    assert_eq!(histogram.buckets, [(2_000, batches), (3_001, batches), (4_001, batches)]);
    assert!(format!("{:?}", script.ops).contains("on: false"), "the clock is off again");
}

#[test]
fn work_without_operations_has_no_such_pass() {
    let mut script = Script { region_ns: 50_000, ..Script::default() };
    let yielded = run(limits(10, 1, 5), &mut script);
    assert!(yielded.op_times.is_none());
}

#[test]
fn a_failure_ends_it_at_once() {
    let mut script = Script { region_ns: 50_000, fails_at: Some(3), ..Script::default() };
    let mut meter = Loop::new(script.world.clone(), limits(1_000, 10, 10));
    let error = meter.measure(&mut script).expect_err("the third run fails");
    assert_eq!(error.to_string(), "scripted failure");
    assert_eq!(script.runs(), [1, 1, 1]);
}

#[test]
fn the_facts_of_a_clock_are_its_step_and_its_cost() {
    // Each reading takes 30 ns, shown in steps of 10.
    let mut clock = Scripted::new(World { reading_ns: 30, step_ns: 10, ..World::default() });
    let facts = ClockFacts::of(&mut clock, TurnClock::Monotonic);
    assert_eq!((facts.precision_ns, facts.overhead_ns), (30.0, 30.0));
    assert_eq!(facts.shortest_sample_ns(), 30_000);
    // A coarse clock: most empty regions show nothing, some a step of 1 µs.
    let mut coarse = Scripted::new(World { reading_ns: 30, step_ns: 1_000, ..World::default() });
    let facts = ClockFacts::of(&mut coarse, TurnClock::Monotonic);
    assert_eq!((facts.precision_ns, facts.overhead_ns), (1_000.0, 0.0));
    assert_eq!(facts.shortest_sample_ns(), 1_000_000);
}

#[test]
fn pinning_holds_while_it_lives_and_is_undone() {
    let before = allowed_cpus().expect("an affinity");
    let pinned = Pinned::to(before[0]).expect("a CPU of this process");
    assert_eq!(allowed_cpus().expect("an affinity"), [before[0]]);
    drop(pinned);
    assert_eq!(allowed_cpus().expect("an affinity"), before);
    assert!(Pinned::to(usize::MAX).is_err());
    assert!(Pinned::to(1_000).is_err());
}
