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

pub(super) fn add(suite: &mut Suite, name: String, subject: &Arc<dyn Subject>, case: Case, of: Option<&str>) {
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
    let varies = case.varies().map(str::to_owned).or_else(|| subject.counts_vary(&setting));
    if let Some(reason) = varies {
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
    use crate::families::block::subject::{Disk, Feature, Setting};
    use crate::scenario::Scenario;
    use std::collections::BTreeSet;
    use std::path::Path;

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

    /// Ours are marked where threads take turns; others' with queues as well, where they do not say better.
    #[test]
    fn counts_vary_with_threads_and_with_queues_of_others() {
        struct Other;
        impl Subject for Other {
            fn name(&self) -> &str {
                "other"
            }

            fn supports(&self, _: &Setting, _: Feature) -> Result<(), String> {
                Ok(())
            }

            fn open(&self, _: &Path, _: &Setting) -> anyhow::Result<Box<dyn Disk>> {
                anyhow::bail!("nothing is opened here")
            }
        }
        let mut suite = Suite::new();
        register(&mut suite);
        register_for(&mut suite, Other);
        let all = suite.finish().expect("a valid suite");
        let param =
            |s: &Scenario, key: &str| s.params_stated().iter().find(|p| p.0 == key).map(|p| p.1.clone());
        for scenario in &all {
            let threads = param(scenario, "threads").is_some();
            let queue = param(scenario, "engine").as_deref() != Some("sync");
            let other = param(scenario, "subject").as_deref() == Some("other");
            let marked = param(scenario, "counts").is_some();
            assert_eq!(marked, threads || (other && queue), "{}", scenario.id());
        }
        assert_eq!(all.iter().filter(|s| param(s, "threads").is_some()).count(), 12);
    }
}
