//! Which functions a change of the instruction count is in.
//!
//! Neighbours: `settle` asks for it where counts moved.

use std::collections::BTreeMap;

use crate::store::Record;

/// The functions whose counts moved most, with the difference; the most moved first.
pub fn moved(before: &Record, after: &Record, most: usize) -> Vec<(String, i64)> {
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    for (name, n) in &before.functions {
        *by_name.entry(name).or_default() -= signed(*n);
    }
    for (name, n) in &after.functions {
        *by_name.entry(name).or_default() += signed(*n);
    }
    let mut moved: Vec<(String, i64)> =
        by_name.into_iter().filter(|(_, n)| *n != 0).map(|(name, n)| (name.to_string(), n)).collect();
    // Stable: equal moves stay in the order of their names.
    moved.sort_by_key(|(_, n)| std::cmp::Reverse(n.unsigned_abs()));
    moved.truncate(most);
    moved
}
