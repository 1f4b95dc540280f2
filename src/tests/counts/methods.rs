//! The ways to tell the region from the rest agree.

use anyhow::{Result, ensure};
use wallgrind::plan::{CacheGeometry, Mode, Region};

use crate::Test;
use crate::driver::{self, outcome, plan, total, totals};

pub const TESTS: &[Test] =
    &[("difference_toggle_and_requests_agree", agree), ("simulated_events_are_exact_and_add_up", simulated)];

fn agree() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut plan = plan(Mode::Cachegrind, folder.path().into());
    let names = ["toy::hash_seeds", "toy::two_parties"];
    let mut counts = Vec::new();
    // `Auto` is requests where Valgrind has them.
    for region in [Region::Difference, Region::Toggle, Region::Auto] {
        plan.valgrind.region = region;
        let mut outcomes = Vec::new();
        for (name, outcome) in names.iter().zip(driver::outcomes(&plan, &names)?) {
            outcomes.push(outcome.map_err(|failure| anyhow::anyhow!("{name}, {region:?}: {failure:?}"))?);
        }
        counts.push(outcomes);
    }
    let methods: Vec<&str> = counts.iter().map(|of| of[0].facts["method"].as_str()).collect();
    ensure!(methods[..2] == ["difference", "toggle"], "{methods:?}");
    for (other, method) in counts[1..].iter().zip(&methods[1..]) {
        for ((name, a), b) in names.iter().zip(&counts[0]).zip(other) {
            for ((series, a), (_, b)) in totals(a).into_iter().zip(totals(b)) {
                // Each tool and method finds the heap laid out a little differently.
                ensure!(a.abs_diff(b) * 20_000 <= a, "{name}, {series}: {a} by difference, {b} by {method}");
            }
        }
    }
    Ok(())
}

fn simulated() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut plan = plan(Mode::Cachegrind, folder.path().into());
    let level_1 = CacheGeometry { size: 32_768, ways: 8, line: 64 };
    plan.valgrind.cache_sim = Some([level_1, level_1, CacheGeometry { size: 8 << 20, ways: 16, line: 64 }]);
    plan.valgrind.branch_sim = true;
    let first = outcome(&plan, "toy::hash_seeds")?;
    ensure!(first == outcome(&plan, "toy::hash_seeds")?, "the second run differs from {first:?}");
    ensure!(first.facts["ll_size_ways_line_bytes"] == "8388608,16,64");
    let value = |name: &str| total(&first, name);
    let (hits_and_misses, ll) = (value("i1_accesses")? + value("d1_accesses")?, value("ll_accesses")?);
    ensure!(ll == value("i1_misses")? + value("d1_misses")?);
    let ram = value("ll_misses")?;
    ensure!(value("estimated_cycles")? == hits_and_misses - ll + 5 * (ll - ram) + 35 * ram);
    ensure!(value("branches")? > value("branch_mispredictions")?);
    Ok(())
}
