//! Registers the suite for a subject: the reference's scenarios at both sizes,
//! then what is beyond.
//!
//! Neighbours: `reference` and `beyond` have the cases, `run` carries them out.

use std::sync::Arc;

use super::case::{Case, Way};
use super::needs;
use super::ours::Ours;
use super::run::run;
use super::subject::Subject;
use super::{beyond, reference};
use crate::scenario::Suite;
use crate::units::Bytes;

/// What templates and copies of a run may take.
const SPACE: Bytes = Bytes(1 << 30);

/// Registers all block scenarios for our own engines.
pub fn register(suite: &mut Suite) {
    add_all(suite, "block", &(Arc::new(Ours) as Arc<dyn Subject>));
}

/// Registers all block scenarios for an engine of your own: `block::imago::qcow_read::n128`
/// is what `block::qcow_read::n128` is, measured over the subject that is called `imago`.
///
/// What the subject [does not support](Subject::supports) is listed as ignored, with its reason.
pub fn register_for(suite: &mut Suite, subject: impl Subject + 'static) {
    let prefix = format!("block::{}", subject.name());
    add_all(suite, &prefix, &(Arc::new(subject) as Arc<dyn Subject>));
}

fn add_all(suite: &mut Suite, prefix: &str, subject: &Arc<dyn Subject>) {
    suite.needs_scratch(SPACE);
    for (stem, n) in reference::STEMS.iter().flat_map(|stem| reference::SIZES.map(|n| (stem, n))) {
        if let Some(case) = reference::case(stem, n) {
            let of = reference::to_reference(&format!("block::{stem}::n{n}"));
            add(suite, format!("{prefix}::{stem}::n{n}"), subject, case, of.as_deref());
        }
    }
    for (name, case) in beyond::cases() {
        add(suite, format!("{prefix}::{name}"), subject, case, None);
    }
}

fn add(suite: &mut Suite, name: String, subject: &Arc<dyn Subject>, case: Case, of: Option<&str>) {
    let measured = (Arc::clone(subject), case.clone());
    let scenario = suite.bench(name, move |b| run(b, &*measured.0, &measured.1));
    let setting = case.setting;
    scenario
        .param("subject", subject.name())
        .param("format", if case.is_raw() { "raw" } else { "qcow2" })
        .param("engine", setting.io.name())
        .param("queue_depth", setting.depth)
        .param("page_cache", setting.cache.name())
        .param("operations", case.amount().0);
    if !case.is_raw() {
        scenario.param("cluster_bytes", case.recipe.cluster);
    }
    if case.flushes {
        scenario.param("ends_with", "flush");
    }
    if let Some(of) = of {
        scenario.param("reference", of);
    }
    if let Way::Threads(threads) = case.way {
        scenario.param("threads", threads);
    }
    if let Some(reason) = case.varies() {
        scenario.param("counts", "vary").counts_vary(reason);
    }
    needs::state(scenario, &case);
    let lacking = case.features().into_iter().find_map(|feature| subject.supports(&setting, feature).err());
    if let Some(reason) = lacking {
        scenario.lacks(format!("{}: {reason}", subject.name()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_valid_and_the_forty_are_among_them() {
        let mut suite = Suite::new();
        register(&mut suite);
        let scenarios = suite.finish().expect("a valid suite");
        let names: BTreeSet<&str> = scenarios.iter().map(|s| s.id().as_str()).collect();
        for (ours, _) in reference::reference_names() {
            assert!(names.contains(ours.as_str()), "{ours}");
        }
    }
}
