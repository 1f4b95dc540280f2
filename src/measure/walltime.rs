//! The wall-time meter: loops in this process and thread.
//!
//! Neighbours: `walltime_loop` takes the samples, `clock` is read by it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock::{ClockFacts, Native};
use super::clock_sys::{Pinned, allowed_cpus};
use super::op_times::{self, FEW, OpTimes};
use super::outcome::{Failure, Outcome};
use super::walltime_loop::{Limits, Loop, MOST_MEMORY, Yield};
use crate::plan;
use crate::samples::{Histogram, Sample, Series};
use crate::scenario::{Bencher, Gauge, Scenario};
use crate::units::{Direction, Unit};

/// Fewer samples than this have no 95 % interval of the median: even their
/// whole range covers it with less.
const FEW_SAMPLES: usize = 6;

/// The pass that times operations has this part of the budget, on top of it.
const OP_SHARE: u32 = 4;

/// The share of the median time of an operation from which on the clock is said to show in it.
const VISIBLE: f64 = 0.05;

/// Measures one scenario in this thread: warm-up (a fifth of the budget), then
/// samples until the budget is used, with at least `min_samples` (even beyond
/// the budget) and at most `max_samples`. A panic of the body goes through.
///
/// An iteration of a scenario with one party includes taking its input and
/// keeping its result, about a nanosecond where both are empty.
///
/// The first series is the time of the whole region, in nanoseconds; for a
/// scenario with two parties, one for the turns of each follows. What lies
/// between the parties' turns and the whole is the driver between them. Then
/// come the gauges of the body, and the times of its operations, which are
/// taken in a pass behind the samples, with a quarter of the budget on top.
///
/// # Errors
/// The body, its set-up or its check failed, or the thread cannot be pinned.
pub fn walltime(
    scenario: &Scenario,
    settings: &plan::Walltime,
    clock: &ClockFacts,
) -> Result<Outcome, Failure> {
    let _pinned = settings.cpu.map(pin).transpose()?;
    let min_samples = settings.min_samples.max(1);
    let limits = Limits {
        budget: settings.time,
        op_budget: settings.time / OP_SHARE,
        shortest_ns: clock.shortest_sample_ns(),
        min_samples,
        max_samples: settings.max_samples.max(min_samples),
    };
    let mut meter = Loop::new(Native::new(clock.turn_clock), limits);
    let mut bencher = Bencher::new(&mut meter);
    scenario.run(&mut bencher).map_err(|error| Failure::from_error(&error))?;
    let throughput = bencher.throughput_stated().to_vec();
    let stated = bencher.facts_stated().clone();
    let taken = meter.into_yield();
    let mut facts = facts(&taken, clock, settings);
    let parties = party_series(&taken, scenario.party_names());
    if !parties.is_empty() {
        turn_facts(&mut facts, &taken, clock);
    }
    let mut series = vec![whole_series(&taken)];
    series.extend(parties);
    series.extend(gauge_series(&taken));
    let histogram = taken.op_times.as_ref().and_then(OpTimes::histogram);
    series.extend(histogram.iter().flat_map(op_times::series));
    op_facts(&mut facts, &taken, clock, &limits);
    let mut notes = notes(&taken, scenario, &limits);
    notes.extend(histogram.as_ref().and_then(|histogram| clock_shows(histogram, clock)));
    if settings.valgrind_features {
        let cap = super::valgrind::cap_features();
        notes.push(cap.map_or_else(|| "valgrind hides no feature of this processor".into(), |cap| cap.note));
    }
    let histograms = histogram.into_iter().collect();
    let mut outcome = Outcome { series, histograms, throughput, facts, notes, functions: Vec::new() };
    outcome.name_gauges(&taken.gauges.iter().map(|gauge| gauge.metric.as_str()).collect::<Vec<_>>());
    outcome.add_facts(&stated);
    Ok(outcome)
}

pub(super) fn pin(cpu: usize) -> Result<Pinned, Failure> {
    Pinned::to(cpu).map_err(|error| {
        let allowed = allowed_cpus().unwrap_or_default();
        let allowed: Vec<String> = allowed.iter().map(usize::to_string).collect();
        Failure::Failed(format!(
            "cannot pin to CPU {cpu}: {error}; this process may use CPU {}",
            allowed.join(", ")
        ))
    })
}

fn wall_time(party: Option<&str>, samples: Vec<Sample>) -> Series {
    Series {
        metric: "wall_time".into(),
        party: party.map(Into::into),
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        samples,
    }
}

fn whole_series(taken: &Yield) -> Series {
    let samples = taken.samples.iter();
    wall_time(None, samples.map(|s| Sample { iterations: s.iterations, total: s.region_ns }).collect())
}

/// One series for each party, if the scenario has two and they took turns.
fn party_series(taken: &Yield, names: &[String]) -> Vec<Series> {
    if taken.turns == 0 {
        return Vec::new();
    }
    let of = |(party, name): (usize, &String)| {
        let ns = |marks: u64| (marks as f64 * taken.ns_per_mark).round() as u64;
        let samples = taken.samples.iter();
        let samples = samples.map(|s| Sample { iterations: s.iterations, total: ns(s.marks[party]) });
        wall_time(Some(name), samples.collect())
    };
    names.iter().enumerate().take(2).map(of).collect()
}

/// One series for each gauge: by how much it rose in each sample.
fn gauge_series(taken: &Yield) -> Vec<Series> {
    let of = |(at, gauge): (usize, &Gauge)| {
        let pairs = taken.samples.iter().zip(&taken.risen);
        Series {
            metric: gauge.metric.clone(),
            party: None,
            unit: gauge.unit,
            direction: gauge.direction,
            samples: pairs.map(|(s, risen)| Sample { iterations: s.iterations, total: risen[at] }).collect(),
        }
    };
    taken.gauges.iter().enumerate().map(of).collect()
}

fn facts(taken: &Yield, clock: &ClockFacts, settings: &plan::Walltime) -> BTreeMap<String, String> {
    let pinned = settings.cpu.map_or_else(|| "no".into(), |cpu| cpu.to_string());
    let features = if settings.valgrind_features { "valgrind" } else { "native" };
    let usage = taken.usage;
    [
        ("method", "loops in this process".into()),
        ("clock", ClockFacts::SOURCE.into()),
        ("clock_precision_ns", format!("{}", clock.precision_ns)),
        ("clock_overhead_ns", format!("{}", clock.overhead_ns)),
        ("clock_overhead_subtracted", "no".into()),
        ("budget_ns", settings.time.as_nanos().to_string()),
        ("elapsed_ns", taken.elapsed_ns.to_string()),
        ("warm_up_ns", taken.warm_up_ns.to_string()),
        ("warm_up_iterations", taken.warm_up_iterations.to_string()),
        ("iterations_per_batch", taken.pace.iterations.to_string()),
        ("batches_per_sample", taken.pace.batches.to_string()),
        ("bootstrap_seed", settings.seed.to_string()),
        ("cpu_pinned", pinned),
        ("cpu_features", features.into()),
        ("cpu_last", usage.cpu.to_string()),
        ("cpu_migrations", taken.migrations.to_string()),
        ("cpu_migrations_outside_region", taken.migrations_between.to_string()),
        ("context_switches_involuntary", usage.involuntary.to_string()),
        ("context_switches_voluntary", usage.voluntary.to_string()),
        ("page_faults_minor", usage.minor_faults.to_string()),
        ("page_faults_major", usage.major_faults.to_string()),
    ]
    .map(|(key, value): (&str, String)| (key.to_string(), value))
    .into()
}

/// What telling the parties apart costs: it is part of the whole, and half of
/// each change of turn falls to the party before, half to the one after.
fn turn_facts(facts: &mut BTreeMap<String, String>, taken: &Yield, clock: &ClockFacts) {
    let iterations: u64 = taken.samples.iter().map(|s| s.iterations).sum();
    let region: u64 = taken.samples.iter().map(|s| s.region_ns).sum();
    let turns = taken.turns as f64;
    let share = turns * clock.turn_overhead_ns / (region as f64).max(1.0);
    facts.insert("turn_clock".into(), clock.turn_clock.name().into());
    facts.insert("turn_overhead_ns".into(), format!("{:.1}", clock.turn_overhead_ns));
    facts.insert("turns_per_iteration".into(), format!("{:.1}", turns / (iterations as f64).max(1.0)));
    facts.insert("turn_overhead_percent_of_whole".into(), format!("{:.3}", 100.0 * share));
}

/// How the times of operations were taken. Each of them includes one reading
/// of the clock, and that of a queued one also the readings of those that
/// began or ended meanwhile.
fn op_facts(facts: &mut BTreeMap<String, String>, taken: &Yield, clock: &ClockFacts, limits: &Limits) {
    let Some(times) = &taken.op_times else { return };
    let all = [
        ("op_clock", ClockFacts::SOURCE.into()),
        ("op_clock_overhead_ns", format!("{}", clock.overhead_ns)),
        ("op_clock_overhead_subtracted", "no".into()),
        ("op_count", times.count().to_string()),
        ("op_iterations", times.iterations.to_string()),
        ("op_budget_ns", limits.op_budget.as_nanos().to_string()),
        ("op_elapsed_ns", times.elapsed_ns.to_string()),
    ];
    facts.extend(all.map(|(key, value): (&str, String)| (key.to_string(), value)));
}

/// Says that the clock is a visible part of the times of operations.
fn clock_shows(histogram: &Histogram, clock: &ClockFacts) -> Option<String> {
    let ns = clock.overhead_ns;
    // No times but the clock's: rows with the same note then share it.
    (ns > VISIBLE * histogram.quantile(0.5) as f64).then(|| {
        format!(
            "operations are so short that the reading of the clock in each ({ns} ns) shows in their times"
        )
    })
}

/// Says that the least number of samples took the time; a run that was merely
/// interrupted, with samples to spare, is not meant.
fn beyond_budget(samples: usize, elapsed: Duration, limits: &Limits) -> Option<String> {
    // No times but the budget: rows with the same note then share it.
    let budget = limits.budget;
    (samples <= limits.min_samples && elapsed > budget.mul_f64(1.25)).then(|| {
        format!("{samples} samples, the least that was asked for, took longer than the budget of {budget:?}")
    })
}

fn notes(taken: &Yield, scenario: &Scenario, limits: &Limits) -> Vec<String> {
    let mut notes = Vec::new();
    let (samples, elapsed) = (taken.samples.len(), Duration::from_nanos(taken.elapsed_ns));
    notes.extend(beyond_budget(samples, elapsed, limits));
    if samples < FEW_SAMPLES {
        notes.push(format!("{samples} samples are too few for a 95 % interval"));
    }
    if taken.bounded_by_memory {
        let mib = MOST_MEMORY >> 20;
        let n = taken.pace.iterations;
        notes.push(format!("batches of {n} iterations, so that their inputs stay within {mib} MiB"));
    }
    let short = taken.samples.iter().filter(|s| s.region_ns < limits.shortest_ns).count();
    if short * 2 > samples {
        let least = limits.shortest_ns;
        notes
            .push(format!("samples are shorter than the {least} ns that the clock of this machine asks for"));
    }
    if let Some(times) = taken.op_times.as_ref().filter(|times| times.count() < FEW) {
        let n = times.count();
        notes.push(format!("{n} operations were timed one by one: too few for a 99th percentile"));
    }
    if scenario.party_names().len() == 2 && taken.turns == 0 {
        notes.push("parties are stated, but the body is no pair: no time for each of them".into());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_shows_in_operations_that_are_not_much_longer() {
        let mut clock = ClockFacts::measure();
        clock.overhead_ns = 40.0;
        let shown = |ns| {
            let histogram = Histogram {
                metric: "op_time".into(),
                unit: Unit::Nanoseconds,
                direction: Direction::LowerIsBetter,
                digits: 3,
                min: ns,
                max: ns,
                buckets: vec![(ns, 1)],
            };
            clock_shows(&histogram, &clock)
        };
        assert!(shown(799).is_some_and(|note| note.contains("(40 ns)")));
        assert_eq!(shown(800), None);
    }

    #[test]
    fn only_the_least_number_of_samples_excuses_an_overrun_of_the_budget() {
        let budget = Duration::from_millis(100);
        let limits = Limits { budget, op_budget: budget, shortest_ns: 1, min_samples: 10, max_samples: 99 };
        let said = |samples, ms| beyond_budget(samples, Duration::from_millis(ms), &limits).is_some();
        assert!(said(10, 126));
        assert!(!said(10, 124), "a quarter more is tolerated");
        assert!(!said(11, 500), "it was interrupted: there were samples to spare");
    }
}
