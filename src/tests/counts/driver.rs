//! Takes counts of toys, as the flow of a bench target would.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use wallgrind::measure::valgrind::Counter;
use wallgrind::measure::{Failure, Outcome};
use wallgrind::plan::{Action, Mode, Plan, Region, Selection, Valgrind, Walltime};

use crate::toys;

/// A plan with nothing special, whose files go to `out`.
pub fn plan(mode: Mode, out: PathBuf) -> Plan {
    Plan {
        action: Action::Measure,
        mode,
        selection: Selection::default(),
        shard: None,
        walltime: Walltime {
            time: Duration::from_secs(1),
            min_samples: 1,
            max_samples: 1,
            cpu: None,
            valgrind_features: false,
            seed: 0,
        },
        valgrind: Valgrind {
            region: Region::Auto,
            cache_sim: None,
            branch_sim: false,
            stacks: false,
            seeds: 1,
            repeat: 1,
            jobs: 2,
        },
        timeout: Duration::from_secs(60),
        isolate: false,
        fail_fast: false,
        shuffle: None,
        out,
        scratch: std::env::temp_dir(),
        run_id: "run".into(),
        attempt: 1,
        lock: None,
        test_time: None,
        compare: wallgrind::plan::Compare::default(),
    }
}

/// What each of the named toys gave.
pub fn outcomes(plan: &Plan, names: &[&str]) -> Result<Vec<std::result::Result<Outcome, Failure>>> {
    let scenarios = toys::scenarios();
    let selected: Vec<_> =
        names.iter().filter_map(|name| scenarios.iter().find(|s| s.id().as_str() == *name)).collect();
    anyhow::ensure!(selected.len() == names.len(), "a toy is missing among {names:?}");
    let mut counter = Counter::start(plan, &selected).map_err(|e| anyhow!(e.report()))?;
    Ok(selected.iter().map(|scenario| counter.measure(scenario)).collect())
}

/// What one toy gave, where it must give something.
pub fn outcome(plan: &Plan, name: &str) -> Result<Outcome> {
    let outcome = outcomes(plan, &[name])?.remove(0);
    outcome.map_err(|failure| anyhow!("{name}: {failure:?}"))
}

/// All totals of an outcome by metric and party.
pub fn totals(outcome: &Outcome) -> Vec<(String, u64)> {
    let name = |s: &wallgrind::samples::Series| {
        format!("{}{}", s.metric, s.party.as_ref().map(|p| format!(".{p}")).unwrap_or_default())
    };
    outcome.series.iter().flat_map(|s| s.samples.iter().map(move |sample| (name(s), sample.total))).collect()
}

/// The first total of a metric and party.
pub fn total(outcome: &Outcome, wanted: &str) -> Result<u64> {
    let found = totals(outcome).into_iter().find(|(name, _)| name == wanted);
    found.map(|(_, n)| n).ok_or_else(|| anyhow!("no series {wanted} in {:?}", totals(outcome)))
}
