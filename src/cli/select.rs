//! Which trials are taken, and in which order.
//!
//! The rule for one filter is libtest-mimic's; libtest takes several filters,
//! so a trial is taken when the rule holds for one of them.
//!
//! Neighbours: `flow` lists or runs what is selected.

use libtest_mimic::{Arguments, Trial};

use super::shards::Division;
use crate::plan::{Ignored, Selection};
use crate::scenario::Scenario;

/// The trials that were taken.
#[derive(Debug, Default)]
pub struct Selected<'a> {
    /// In the order of the run, each with the reason why this machine cannot run it.
    pub trials: Vec<(&'a Scenario, Option<String>)>,
    /// How many were left out.
    pub filtered_out: usize,
}

/// Applies filters, skips, `--shard` and `--ignored`. `missing` says what the
/// machine lacks for a scenario; it is asked only about those whose names
/// match and that are this shard's.
pub fn select<'a>(
    scenarios: &'a [Scenario],
    selection: &Selection,
    division: Option<&Division>,
    missing: impl Fn(&Scenario) -> Option<String>,
) -> Selected<'a> {
    let rules = rules(selection);
    let trials: Vec<_> = named(scenarios, selection)
        .into_iter()
        .filter(|scenario| division.is_none_or(|division| division.takes(scenario.id().as_str())))
        .map(|scenario| (scenario, missing(scenario)))
        .filter(|(scenario, missing)| is_taken(&rules, scenario, missing.is_some()))
        .collect();
    Selected { filtered_out: scenarios.len() - trials.len(), trials }
}

/// The scenarios whose names are taken, before a need is probed.
pub fn named<'a>(scenarios: &'a [Scenario], selection: &Selection) -> Vec<&'a Scenario> {
    let rules = rules(selection);
    // As if ignored: names alone.
    scenarios.iter().filter(|scenario| is_taken(&rules, scenario, true)).collect()
}

fn is_taken(rules: &[Arguments], scenario: &Scenario, ignored: bool) -> bool {
    let trial = Trial::bench(scenario.id().as_str(), |_| Ok(None)).with_ignored_flag(ignored);
    rules.iter().any(|rule| !rule.is_filtered_out(&trial))
}

/// One set of arguments for each filter, or one without a filter.
fn rules(selection: &Selection) -> Vec<Arguments> {
    let rule = |filter: Option<String>| Arguments {
        filter,
        skip: selection.skip.clone(),
        exact: selection.exact,
        ignored: selection.ignored == Ignored::Only,
        include_ignored: selection.ignored == Ignored::Include,
        ..Arguments::default()
    };
    match selection.filters.as_slice() {
        [] => vec![rule(None)],
        filters => filters.iter().map(|filter| rule(Some(filter.clone()))).collect(),
    }
}

impl Selected<'_> {
    /// Puts the trials in the random order of `seed`.
    pub fn shuffle(&mut self, seed: u64) {
        fastrand::Rng::with_seed(seed).shuffle(&mut self.trials);
    }

    /// The names, in the order of the run.
    pub fn names(&self) -> Vec<&str> {
        self.trials.iter().map(|(scenario, _)| scenario.id().as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Suite;

    fn taken(selection: &Selection) -> (Vec<String>, usize) {
        let mut suite = Suite::new();
        for name in ["a::one", "a::two", "b::one", "b::six"] {
            suite.bench(name, |b| b.iter(|| 1));
        }
        let scenarios = suite.finish().expect("valid names");
        let missing = |s: &Scenario| s.id().as_str().ends_with("two").then(|| "no two".to_string());
        let selected = select(&scenarios, selection, None, missing);
        (selected.names().into_iter().map(str::to_string).collect(), selected.filtered_out)
    }

    fn some(filters: &[&str], skip: &[&str], exact: bool, ignored: Ignored) -> (Vec<String>, usize) {
        let owned = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
        taken(&Selection { filters: owned(filters), skip: owned(skip), exact, ignored })
    }

    #[test]
    fn several_filters_take_what_matches_one_of_them() {
        assert_eq!(some(&[], &[], false, Ignored::Skip).0.len(), 4);
        assert_eq!(some(&["one", "six"], &[], false, Ignored::Skip).0, ["a::one", "b::one", "b::six"]);
        assert_eq!(some(&["one", "six"], &["a::"], false, Ignored::Skip).0, ["b::one", "b::six"]);
        assert_eq!(some(&["", "none"], &[], false, Ignored::Skip).0.len(), 4);
        assert_eq!(some(&["one"], &[], true, Ignored::Skip), (vec![], 4));
        assert_eq!(some(&["a::one", "b::six"], &["b::six"], true, Ignored::Skip).0, ["a::one"]);
    }

    #[test]
    fn ignored_takes_only_what_this_machine_lacks_something_for() {
        assert_eq!(some(&[], &[], false, Ignored::Only), (vec!["a::two".to_string()], 3));
        assert_eq!(some(&["one"], &[], false, Ignored::Only).0.len(), 0);
        assert_eq!(some(&[], &[], false, Ignored::Include).0.len(), 4);
    }

    #[test]
    fn a_seed_gives_one_order() {
        let mut suite = Suite::new();
        for n in 10..30 {
            suite.bench(format!("t{n}"), |b| b.iter(|| 1));
        }
        let scenarios = suite.finish().expect("valid names");
        let order = |seed| {
            let mut selected = select(&scenarios, &Selection::default(), None, |_| None);
            selected.shuffle(seed);
            selected.names().join(" ")
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
    }
}
