//! From readings to an outcome: series with units, facts, notes.
//!
//! Neighbours: `counter` takes the readings; `spread` says what differs.

use std::collections::{BTreeMap, BTreeSet};

use super::canary::Canary;
use super::counter::Subject;
use super::features;
use super::protocol::Risen;
use super::readings::{Reading, SYSTEM_CALLS};
use super::settings::Settings;
use super::spread;
use super::stacks;
use crate::measure::Outcome;
use crate::plan::Mode;
use crate::samples::{Sample, Series};
use crate::units::{Direction, Throughput, Unit};

/// All that was taken of a scenario.
pub(super) struct Taken<'a> {
    pub subject: &'a Subject,
    pub settings: &'a Settings,
    pub valgrind: &'a str,
    pub canary: &'a Canary,
    pub native: &'a [String],
    pub repeat: u32,
    /// Seed and readings of all parties, for each run.
    pub runs: &'a [(u32, Vec<Reading>)],
}

/// Makes the outcome of a scenario.
pub(super) fn build(taken: &Taken<'_>) -> Outcome {
    let mut series = match taken.settings.mode {
        Mode::Dhat => heap_series(taken),
        _ => count_series(taken),
    };
    let gauges = gauges(taken);
    series.extend(gauges.iter().flat_map(|metric| of_all_parties(taken, metric, true)));
    let mut outcome = Outcome { series, facts: facts(taken), notes: notes(taken), ..Outcome::default() };
    if let Some((_, first)) = taken.runs.first() {
        for reading in first.iter().take(1) {
            outcome.throughput.extend(reading.bytes.iter().map(|n| Throughput::Bytes(*n)));
            outcome.throughput.extend(reading.elements.iter().map(|n| Throughput::Elements(*n)));
        }
        outcome.functions = functions(taken.subject, first);
        outcome.name_gauges(&gauges.iter().map(|metric| metric.name).collect::<Vec<_>>());
        outcome.add_facts(&stated(taken.subject, first));
    }
    outcome
}

/// Functions of all parties, largest first; with two parties, each name begins
/// with its party in brackets.
fn functions(subject: &Subject, readings: &[Reading]) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for (party, reading) in subject.party_names().into_iter().zip(readings) {
        all.extend(reading.functions.iter().map(|(name, n)| match party {
            Some(party) => (format!("[{party}] {name}"), *n),
            None => (name.clone(), *n),
        }));
    }
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    all
}

/// What the bodies have stated; where the parties differ, both.
fn stated(subject: &Subject, readings: &[Reading]) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for (party, reading) in subject.party_names().into_iter().zip(readings) {
        for (key, value) in &reading.facts {
            let known = all.entry(key.clone()).or_insert_with(|| value.clone());
            if known != value {
                known.push_str(&format!("; {}: {value}", party.unwrap_or_default()));
            }
        }
    }
    all
}

/// One metric that is computed from a party's reading.
struct Metric<'a> {
    name: &'a str,
    unit: Unit,
    direction: Direction,
    /// Of one iteration, whatever the number of iterations.
    once: bool,
    value: Box<dyn Fn(&Reading) -> u64 + 'a>,
}

/// The gauges of the bodies, in the order in which the first run gave them.
fn gauges<'a>(taken: &Taken<'a>) -> Vec<Metric<'a>> {
    let mut all: Vec<&'a Risen> = Vec::new();
    for risen in taken.runs.iter().take(1).flat_map(|(_, run)| run).flat_map(|reading| &reading.gauges) {
        if all.iter().all(|known| known.metric != risen.metric) {
            all.push(risen);
        }
    }
    all.into_iter().filter_map(gauge).collect()
}

fn gauge(risen: &Risen) -> Option<Metric<'_>> {
    let name = risen.metric.as_str();
    let direction = if risen.higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
    // Both sides are of one executable, so that there is no unit the other does not know.
    let unit = Unit::from_symbol(&risen.unit)?;
    Some(Metric { name, unit, direction, once: false, value: Box::new(move |r| r.risen(name)) })
}

fn count_series(taken: &Taken<'_>) -> Vec<Series> {
    let mut metrics = vec![count("instructions", Unit::Instructions, |r| r.count("Ir"))];
    if taken.settings.cache_sim.is_some() {
        metrics.extend([
            count("estimated_cycles", Unit::Cycles, estimated_cycles),
            count("i1_accesses", Unit::Events, |r| r.count("Ir")),
            count("i1_misses", Unit::Events, |r| r.count("I1mr")),
            count("d1_accesses", Unit::Events, |r| r.count("Dr") + r.count("Dw")),
            count("d1_misses", Unit::Events, |r| r.count("D1mr") + r.count("D1mw")),
            count("ll_accesses", Unit::Events, level_1_misses),
            count("ll_misses", Unit::Events, last_level_misses),
        ]);
    }
    let has_branches =
        taken.runs.iter().flat_map(|(_, run)| run).flat_map(|r| &r.events).any(|e| e.0 == "Bc");
    if has_branches {
        metrics.extend([
            count("branches", Unit::Events, |r| r.count("Bc") + r.count("Bi")),
            count("branch_mispredictions", Unit::Events, |r| r.count("Bcm") + r.count("Bim")),
        ]);
    }
    if taken.settings.stacks {
        // Not the name of a gauge that a body may have: those are its own counters.
        metrics.push(count("system_calls_seen", Unit::SystemCalls, |r| r.count(SYSTEM_CALLS)));
    }
    metrics.iter().flat_map(|metric| of_all_parties(taken, metric, true)).collect()
}

fn count(name: &'static str, unit: Unit, value: fn(&Reading) -> u64) -> Metric<'static> {
    Metric { name, unit, direction: Direction::LowerIsBetter, once: false, value: Box::new(value) }
}

// Names of events: chapter "Cachegrind" of the Valgrind manual; callgrind's are `DLmr` and so on as well.
fn level_1_misses(r: &Reading) -> u64 {
    r.count("I1mr") + r.count("D1mr") + r.count("D1mw")
}

fn last_level_misses(r: &Reading) -> u64 {
    r.count("ILmr") + r.count("DLmr") + r.count("DLmw")
}

/// One cycle for a hit in a first-level cache, 5 in the last level, 35 in
/// memory: the usual estimate over Valgrind's simulation (Nethercote's thesis
/// has its origin), no prediction for any processor.
fn estimated_cycles(r: &Reading) -> u64 {
    let accesses = r.count("Ir") + r.count("Dr") + r.count("Dw");
    let ram = last_level_misses(r);
    let last_level = level_1_misses(r).saturating_sub(ram);
    accesses.saturating_sub(level_1_misses(r)) + 5 * last_level + 35 * ram
}

fn heap_series(taken: &Taken<'_>) -> Vec<Series> {
    macro_rules! heap {
        ($name:literal, $unit:ident, $once:literal, $which:ident . $what:ident) => {
            Metric {
                name: $name,
                unit: Unit::$unit,
                direction: Direction::LowerIsBetter,
                once: $once,
                value: Box::new(|r| r.heap.unwrap_or_default().$which.$what),
            }
        };
    }
    let mut series = Vec::new();
    for metric in [
        heap!("heap_total_bytes", Bytes, false, total.bytes),
        heap!("heap_total_blocks", Blocks, false, total.blocks),
        heap!("heap_held_bytes", Bytes, false, held.bytes),
        heap!("heap_held_blocks", Blocks, false, held.blocks),
    ] {
        series.extend(of_all_parties(taken, &metric, true));
    }
    // Peaks of two processes are not reached at one time: there is no sum.
    for metric in [
        heap!("heap_peak_bytes", Bytes, true, peak.bytes),
        heap!("heap_peak_blocks", Blocks, true, peak.blocks),
        heap!("heap_start_bytes", Bytes, true, start.bytes),
        heap!("heap_start_blocks", Blocks, true, start.blocks),
    ] {
        series.extend(of_all_parties(taken, &metric, false));
    }
    series
}

/// The series of both parties together (where that makes sense), then of each.
fn of_all_parties(taken: &Taken<'_>, metric: &Metric<'_>, with_sum: bool) -> Vec<Series> {
    let parties = taken.subject.party_names();
    let iterations = if metric.once { 1 } else { taken.subject.iterations as u64 };
    let series = |party: Option<&str>, total: &dyn Fn(&[Reading]) -> u64| Series {
        metric: metric.name.to_string(),
        party: party.map(str::to_string),
        unit: metric.unit,
        direction: metric.direction,
        samples: taken.runs.iter().map(|(_, run)| Sample { iterations, total: total(run) }).collect(),
    };
    let mut all = Vec::new();
    if with_sum || parties.len() == 1 {
        all.push(series(None, &|run| run.iter().map(|reading| (metric.value)(reading)).sum()));
    }
    if parties.len() > 1 {
        for (index, party) in parties.into_iter().enumerate() {
            all.push(series(party, &|run| run.get(index).map_or(0, |reading| (metric.value)(reading))));
        }
    }
    all
}

fn facts(taken: &Taken<'_>) -> BTreeMap<String, String> {
    let settings = taken.settings;
    let seeds: BTreeSet<u32> = taken.runs.iter().map(|(seed, _)| *seed).collect();
    let seeds: Vec<String> = seeds.iter().map(u32::to_string).collect();
    let first = taken.runs.first().and_then(|(_, run)| run.first());
    let seen = first.map(|r| r.features.join(" ")).unwrap_or_default();
    let off = first.is_some_and(|r| r.randomisation_off);
    let mut facts = vec![
        ("method", settings.method.name().to_string()),
        ("tool", settings.tool.to_string()),
        ("valgrind", taken.valgrind.trim_start_matches("valgrind-").to_string()),
        ("seeds", seeds.join(",")),
        ("repeat", taken.repeat.to_string()),
        ("warm_iterations", settings.warm.to_string()),
        ("iterations", taken.subject.iterations.to_string()),
        ("canary", taken.canary.text.clone()),
        ("address_randomisation", if off { "off" } else { "on" }.to_string()),
        ("cpu_features_native", taken.native.join(" ")),
        ("cpu_features_seen", seen),
    ];
    if settings.mode != Mode::Dhat {
        facts.push(("region_overhead_instructions", taken.canary.overhead.to_string()));
    }
    if settings.stacks {
        facts.push(("stack_depth_calls", stacks::DEEPEST.to_string()));
    }
    if let Some(caches) = settings.cache_sim {
        for (key, c) in ["i1_size_ways_line_bytes", "d1_size_ways_line_bytes", "ll_size_ways_line_bytes"]
            .into_iter()
            .zip(caches)
        {
            facts.push((key, format!("{},{},{}", c.size, c.ways, c.line)));
        }
    }
    facts.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

fn notes(taken: &Taken<'_>) -> Vec<String> {
    let mut notes = spread::notes(taken);
    let Some(first) = taken.runs.first().and_then(|(_, run)| run.first()) else { return notes };
    let hidden = features::hidden(taken.native, &first.features);
    if !hidden.is_empty() {
        notes.push(format!(
            "valgrind hides {} of this processor: code that uses them natively takes other paths here",
            hidden.join(", ")
        ));
    }
    if !first.randomisation_off {
        notes.push("address randomisation could not be switched off (personality is forbidden here)".into());
    }
    notes
}
