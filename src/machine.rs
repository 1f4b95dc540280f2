//! What a result depends on.
use std::collections::BTreeMap;

/// Facts of this machine, toolchain, commit and program, gathered once a run.
/// Keys that hold numbers carry the unit.
pub fn identity() -> BTreeMap<String, String> {
    BTreeMap::new()
}
