//! Which record of one side belongs to which of the other.
//!
//! Neighbours: `settle` goes through the pairs.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::{Record, Status};

/// All records of one scenario and meter, on both sides, in their order.
#[derive(Clone, Debug, Default)]
pub struct Sides<'a> {
    /// Before; of several, each is of another process.
    pub before: Vec<&'a Record>,
    /// After.
    pub after: Vec<&'a Record>,
}

impl<'a> Sides<'a> {
    /// Those with numbers, on both sides.
    pub fn measured(&self) -> (Vec<&'a Record>, Vec<&'a Record>) {
        let good = |records: &[&'a Record]| {
            records.iter().copied().filter(|r| r.status == Status::Ok && !r.metrics.is_empty()).collect()
        };
        (good(&self.before), good(&self.after))
    }
}

/// Joins the records of two sides by suite, scenario and meter, in the order
/// of the names. The suite does not count where each side has only one: an
/// executable may have been renamed.
pub fn sides<'a>(before: &'a [Record], after: &'a [Record]) -> BTreeMap<(String, String, String), Sides<'a>> {
    let suites = |records: &'a [Record]| records.iter().map(|r| r.suite.as_str()).collect::<BTreeSet<_>>();
    let by_suite = suites(before).len() > 1 || suites(after).len() > 1;
    let key = |record: &Record| {
        let suite = if by_suite { record.suite.clone() } else { String::new() };
        (record.scenario.clone(), record.mode.clone(), suite)
    };
    let mut all: BTreeMap<_, Sides<'a>> = BTreeMap::new();
    for record in before {
        all.entry(key(record)).or_default().before.push(record);
    }
    for record in after {
        all.entry(key(record)).or_default().after.push(record);
    }
    all
}
