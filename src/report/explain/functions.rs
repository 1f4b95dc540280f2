//! The rows of functions: by themselves, and with all that they call.
//!
//! Neighbours: `parts` asks; `evidence` has the counts.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::parts::{Part, Row};
use crate::units::{Direction, Unit};

/// Values by name, for one iteration.
type Values = BTreeMap<String, f64>;

/// The functions by themselves, from the record.
pub(super) fn by_themselves(before: Option<&Evidence>, after: &Evidence, top: usize) -> Part {
    let of = |side: &Evidence| -> Option<Values> {
        let once = side.iterations() as f64;
        let functions = &side.counts.as_ref()?.functions;
        Some(functions.iter().map(|(name, n)| (name.clone(), *n as f64 / once)).collect())
    };
    let mut part = part("functions, by themselves", before.and_then(of), of(after), top);
    part.total = total(after);
    part
}

/// The functions with what they call, from stacks.
pub(super) fn with_callees(before: Option<&Evidence>, after: &Evidence, top: usize) -> Part {
    let of = |side: &Evidence| -> Option<Values> {
        if side.stacks.is_empty() {
            return None;
        }
        let once = side.iterations() as f64;
        let mut values = Values::new();
        for (party, stacks) in &side.stacks {
            for (function, n) in stacks.functions_with_callees() {
                let name =
                    party.as_ref().map_or_else(|| function.to_string(), |p| format!("[{p}] {function}"));
                values.insert(name, n as f64 / once);
            }
        }
        Some(values)
    };
    let mut part = part("functions, with all that they call", before.and_then(of), of(after), top);
    part.total = total(after);
    part
}

/// Instructions of one iteration in all.
fn total(side: &Evidence) -> Option<f64> {
    let metrics = side.counts.iter().flat_map(|record| &record.metrics);
    let mut whole = metrics.filter(|m| m.series.metric == "instructions" && m.series.party.is_none());
    whole.next().map(|metric| metric.summary.median)
}

/// The first `top`: those that moved most, or where nothing moved (or there is
/// one side) the largest. A side that is not known has no values, not zeroes.
fn part(title: &str, before: Option<Values>, after: Option<Values>, top: usize) -> Part {
    let mut rows: Vec<Row> = Vec::new();
    let mut names: Vec<&String> = before.iter().chain(&after).flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    for name in names {
        let value = |of: &Option<Values>| of.as_ref().map(|of| of.get(name).copied().unwrap_or(0.0));
        rows.push(Row {
            name: name.clone(),
            party: None,
            unit: Unit::Instructions,
            direction: Direction::LowerIsBetter,
            before: value(&before),
            after: value(&after),
        });
    }
    let size = |row: &Row| row.before.unwrap_or(0.0).max(row.after.unwrap_or(0.0));
    let moved = |row: &Row| row.difference().map_or(0.0, f64::abs);
    rows.sort_by(|a, b| {
        moved(b).total_cmp(&moved(a)).then(size(b).total_cmp(&size(a))).then(a.name.cmp(&b.name))
    });
    let more = rows.len().saturating_sub(top);
    rows.truncate(top);
    Part { more, ..Part::of(title, rows) }
}
