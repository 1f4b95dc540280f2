//! The ways to tell the region from the rest agree.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use wallgrind::plan::{CacheGeometry, Mode, Region};

use crate::Test;
use crate::driver::{self, outcome, plan, total, totals};

pub const TESTS: &[Test] = &[
    ("difference_toggle_and_requests_agree", agree),
    ("simulated_events_are_exact_and_add_up", simulated),
    ("stacks_of_calls_add_up_to_the_region", stacks),
];

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

/// Lines of a folded file: stack and instructions.
fn folded(file: &Path) -> Result<Vec<(String, u64)>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.map(|(stack, n)| Ok((stack.to_string(), n.parse()?))).collect()
}

fn stacks() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut plan = plan(Mode::Cachegrind, folder.path().into());
    (plan.valgrind.region, plan.valgrind.stacks) = (Region::Toggle, true);
    let files = [
        ("toy::two_parties", "instructions.client", "toy.two_parties/callgrind.client.folded"),
        ("toy::two_parties", "instructions.server", "toy.two_parties/callgrind.server.folded"),
        ("toy::recursion", "instructions", "toy.recursion/callgrind.folded"),
    ];
    for (name, series, file) in files {
        let outcome = outcome(&plan, name)?;
        let stacks = folded(&folder.path().join("run/valgrind").join(file))?;
        let (sum, counted) = (stacks.iter().map(|(_, n)| n).sum::<u64>(), total(&outcome, series)?);
        // The count is without what an empty region takes: some calls, in a build without optimisation.
        ensure!(counted <= sum && sum <= counted + 200, "{name}: {sum} in stacks, {counted} counted");
        let foreign =
            |s: &str| s.contains("::serve") || s.contains("Marked::between") || s.contains("lang_start");
        let outside = stacks.iter().find(|(stack, _)| foreign(stack));
        ensure!(outside.is_none(), "{name}: {outside:?} is not of the region");
        ensure!(
            outcome.functions.iter().all(|(f, _)| f.matches('\'').count() < 3),
            "{:?}",
            outcome.functions
        );
    }
    // Each stack is bounded, however deep a recursion goes, and says that it was cut.
    let stacks = folded(&folder.path().join("run/valgrind/toy.recursion/callgrind.folded"))?;
    let deepest = stacks.iter().map(|(stack, _)| stack.matches(';').count()).max().unwrap_or(0);
    ensure!((240..=252).contains(&deepest), "{deepest} calls deep");
    ensure!(stacks.iter().any(|(stack, _)| stack.starts_with("(deeper);")), "none was cut");
    let printed = outcome(&plan, "toy::prints")?;
    ensure!(total(&printed, "system_calls_seen")? == 1, "one write: {:?}", totals(&printed));
    Ok(())
}
