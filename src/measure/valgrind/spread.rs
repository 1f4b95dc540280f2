//! Counts that are not equal although they should be: where, by how much, and
//! what the likely cause is.
//!
//! Neighbours: `outcome` puts it in the notes, `doctor --determinism` prints it.

use crate::units::grouped;
use std::collections::BTreeMap;

use super::outcome::Taken;
use super::readings::Reading;
use crate::scenario::Counts;

/// Functions that are named.
const NAMED: usize = 3;

/// Notes on what differs between repetitions with one seed, and between seeds.
pub(super) fn notes(taken: &Taken<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, party) in taken.subject.party_names().into_iter().enumerate() {
        let whose = party.map(|p| format!("{p}: ")).unwrap_or_default();
        if let Some(text) = repetitions(taken, index) {
            notes.push(match &taken.subject.counts {
                Counts::Exact => format!("{whose}not deterministic: {text}"),
                Counts::Vary(reason) => format!("{whose}varies, as stated ({reason}): {text}"),
            });
        }
    }
    notes
}

/// What differs between the repetitions of one seed for a party.
fn repetitions(taken: &Taken<'_>, party: usize) -> Option<String> {
    let mut by_seed: BTreeMap<u32, Vec<&Reading>> = BTreeMap::new();
    for (seed, run) in taken.runs {
        by_seed.entry(*seed).or_default().extend(run.get(party));
    }
    by_seed.values().find_map(|readings| {
        let values: Vec<u64> = readings.iter().map(|r| headline(r)).collect();
        let (min, max) = (*values.iter().min()?, *values.iter().max()?);
        let others = readings.iter().any(|r| r.events != readings[0].events || r.heap != readings[0].heap);
        if !others {
            return gauges(readings);
        }
        let text = format!("{} to {} in {} runs", grouped(min), grouped(max), values.len());
        let functions = differing(readings);
        if functions.is_empty() {
            return Some(text);
        }
        let named: Vec<String> =
            functions.iter().take(NAMED).map(|(name, by)| format!("{name} (by {})", grouped(*by))).collect();
        Some(format!("{text}; differs in {}{}", named.join(", "), cause(&functions)))
    })
}

/// The first gauge whose numbers are not the same in all readings.
fn gauges(readings: &[&Reading]) -> Option<String> {
    readings.first()?.gauges.iter().find_map(|gauge| {
        let values = || readings.iter().map(|r| r.risen(&gauge.metric));
        let (min, max) = (values().min()?, values().max()?);
        let (runs, metric) = (readings.len(), &gauge.metric);
        (min < max).then(|| format!("{metric} {} to {} in {runs} runs", grouped(min), grouped(max)))
    })
}

fn headline(reading: &Reading) -> u64 {
    reading.heap.map_or_else(|| reading.count("Ir"), |heap| heap.total.bytes)
}

/// Functions with unequal counts, those that differ most first.
fn differing(readings: &[&Reading]) -> Vec<(String, u64)> {
    let mut ranges: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for reading in readings {
        for (name, n) in &reading.functions {
            ranges.entry(name).or_default().push(*n);
        }
    }
    let mut differing: Vec<(String, u64)> = ranges
        .into_iter()
        .filter_map(|(name, counts)| {
            let min = if counts.len() < readings.len() { 0 } else { *counts.iter().min()? };
            let by = counts.iter().max()? - min;
            (by > 0).then(|| (name.to_string(), by))
        })
        .collect();
    differing.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    differing
}

/// Words in the names of functions that point to a source of chance.
const CAUSES: [(&[&str], &str); 6] = [
    (&["rdrand", "rdseed"], "the processor's random numbers, which cannot be replaced"),
    (&["jent_", "jitter"], "CPU-jitter entropy (for aws-lc: build with AWS_LC_SYS_NO_JITTER_ENTROPY=1)"),
    (&["hashbrown", "hash_map", "SipHash", "sip::"], "a hash table whose seed or pointers differ"),
    (&["sched_yield", "spin_loop", "futex", "park"], "threads that wait for each other"),
    (&["fmt::num", "_itoa", "strtol"], "numbers in decimal, such as a process id or a time"),
    (&["memcpy", "memmove", "memset", "strlen"], "alignment or length of data, such as paths"),
];

fn cause(functions: &[(String, u64)]) -> String {
    let found = CAUSES
        .iter()
        .find(|(words, _)| functions.iter().any(|(name, _)| words.iter().any(|word| name.contains(word))));
    found.map(|(_, cause)| format!("; likely cause: {cause}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_function_that_differs_and_a_cause() {
        let reading = |n| Reading {
            events: vec![("Ir".into(), 1000 + n)],
            functions: vec![("same".into(), 1000), ("hashbrown::map::insert".into(), n)],
            ..Reading::default()
        };
        let (a, b) = (reading(10), reading(14));
        let found = differing(&[&a, &b, &a]);
        assert_eq!(found, [("hashbrown::map::insert".to_string(), 4)]);
        assert!(cause(&found).contains("hash table"));
        assert_eq!(differing(&[&a, &a]), []);
    }

    #[test]
    fn a_gauge_that_is_not_the_same_each_time_is_named() {
        let reading = |metric: &str, total| {
            let (metric, unit) = (metric.to_string(), "syscalls".to_string());
            let risen = super::super::protocol::Risen { metric, unit, higher_is_better: false, total };
            Reading { gauges: vec![risen], ..Reading::default() }
        };
        let (a, b) = (reading("calls", 1_129), reading("calls", 1_131));
        assert_eq!(gauges(&[&a, &b, &a]).as_deref(), Some("calls 1,129 to 1,131 in 3 runs"));
        assert_eq!(gauges(&[&a, &a]), None);
        assert_eq!(gauges(&[&a, &reading("other", 5)]).as_deref(), Some("calls 0 to 1,129 in 2 runs"));
        assert_eq!(gauges(&[]), None);
    }
}
