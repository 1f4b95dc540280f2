//! The ways to tell the region from the rest agree.

use anyhow::{Result, ensure};
use wallgrind::plan::{CacheGeometry, Mode, Region};

use crate::Test;
use crate::driver::{outcome, outcomes, plan, total, totals};

pub const TESTS: &[Test] =
    &[("difference_and_toggle_agree", agree), ("simulated_events_are_exact_and_add_up", simulated)];

fn agree() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut plan = plan(Mode::Cachegrind, folder.path().into());
    plan.valgrind.region = Region::Difference;
    let names = ["toy::hash_seeds", "toy::two_parties"];
    let by_difference = outcomes(&plan, &names)?;
    plan.valgrind.region = Region::Toggle;
    let by_toggle = outcomes(&plan, &names)?;
    for ((name, a), b) in names.iter().zip(by_difference).zip(by_toggle) {
        let (a, b) = match (a, b) {
            (Ok(a), Ok(b)) => (a, b),
            other => anyhow::bail!("{name}: {other:?}"),
        };
        ensure!(a.facts["method"] == "difference" && b.facts["method"] == "toggle");
        for ((series, a), (_, b)) in totals(&a).into_iter().zip(totals(&b)) {
            // The tools lay the same heap out in other places: a few instructions of `memcpy`.
            ensure!(a.abs_diff(b) * 100_000 <= a, "{name}, {series}: {a} by difference, {b} by toggle");
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
