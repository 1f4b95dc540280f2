//! Whether two records can be compared at all: what they depend on besides
//! the code under test must be the same.
//!
//! Neighbours: `settle` refuses what differs, or marks it when forced.

use std::collections::BTreeSet;

use crate::store::Record;

/// How the two records came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// At two times, perhaps on two machines: from stored records.
    Stored,
    /// In turn, in one run: the machine is the same.
    InTurn,
}

/// What the machine does to a time, by key of the identity, and what it is called.
pub(super) const MACHINE: [(&str, &str); 9] = [
    ("cpu_model", "processor"),
    ("cpus_online_count", "number of processors"),
    ("machine_kind", "machine"),
    ("kernel", "kernel"),
    ("governor", "governor"),
    ("turbo", "turbo"),
    ("smt", "SMT"),
    ("glibc_tunables", "GLIBC_TUNABLES"),
    // Where bodies had their files; whether one had any is not known.
    ("scratch_file_system", "file system"),
];

/// What the build does to any number.
pub(super) const BUILD: [(&str, &str); 11] = [
    ("target", "target"),
    ("rustc", "toolchain"),
    ("profile", "profile"),
    ("opt_level", "optimisation"),
    ("rustflags", "RUSTFLAGS"),
    ("target_features", "target features"),
    ("features", "features"),
    ("wallgrind_features", "features of wallgrind"),
    ("debug_assertions", "debug assertions"),
    ("panic", "panic strategy"),
    ("profile_settings", "settings of the profile (such as lto)"),
];

/// The value of what could not be found out.
pub(super) const UNKNOWN: &str = "unknown";

/// What the meter does, by key of the facts.
pub(super) const METER: [(&str, &str); 10] = [
    ("method", "method"),
    ("seeds", "seeds"),
    ("i1_size_ways_line_bytes", "simulated caches (I1)"),
    ("d1_size_ways_line_bytes", "simulated caches (D1)"),
    ("ll_size_ways_line_bytes", "simulated caches (LL)"),
    ("clock", "clock"),
    // Of times what was asked for, of counts what Valgrind shows: code takes other paths.
    ("cpu_features", "processor features"),
    ("cpu_features_seen", "processor features"),
    ("file_system", "file system"),
    ("cpu_pinned", "pinning"),
];

/// What differs between two records and should not, in words. A fact that one
/// side does not have (an older record) is no difference; nor is one of the
/// build that one side does not know (an executable that was moved).
pub fn differences(before: &Record, after: &Record, kinship: Kinship) -> Vec<String> {
    let mut all = Vec::new();
    if before.params != after.params {
        let (was, is) = (params(before), params(after));
        all.push(format!("scenario: parameters {was} before, {is} after"));
    }
    let is_time = before.mode == "walltime";
    if is_time && kinship == Kinship::Stored {
        all.extend(differing(&MACHINE, |key| (before.identity.get(key), after.identity.get(key))));
    }
    let known =
        |record: &'_ Record, key: &str| record.identity.get(key).filter(|value| *value != UNKNOWN).cloned();
    all.extend(differing(&BUILD, |key| (known(before, key), known(after, key))));
    if kinship == Kinship::Stored {
        all.extend(differing(&METER, |key| (before.facts.get(key), after.facts.get(key))));
    }
    // The file system of a body's own files is that of all of them, mostly.
    let mut said = BTreeSet::new();
    all.retain(|difference| said.insert(difference.clone()));
    all
}

fn differing<T: PartialEq + std::fmt::Display>(
    keys: &[(&str, &str)],
    of: impl Fn(&str) -> (Option<T>, Option<T>),
) -> Vec<String> {
    let differs = |(key, name): &(&str, &str)| match of(key) {
        (Some(was), Some(is)) if was != is => Some(format!("{name}: {was} before, {is} after")),
        _ => None,
    };
    keys.iter().filter_map(differs).collect()
}

/// The parameters with their hash (FNV-1a), which is what is compared.
fn params(record: &Record) -> String {
    let text: String = record.params.iter().map(|(key, value)| format!("{key}={value} ")).collect();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{{{}}} (hash {hash:016x})", text.trim_end())
}
