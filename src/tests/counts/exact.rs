//! Counts that are equal to the last digit, and changes that show exactly.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use wallgrind::measure::Outcome;
use wallgrind::measure::valgrind::Profile;
use wallgrind::plan::Mode;
use wallgrind::samples::Sample;
use wallgrind::units::Direction;

use crate::Test;
use crate::driver::{outcome, outcomes, plan, total, totals};
use crate::toys::PLANTED;

pub const TESTS: &[Test] = &[
    ("counts_do_not_depend_on_the_run_its_environment_or_what_runs_beside_it", repeats),
    ("a_planted_change_shows_as_its_cost_in_its_party_alone", planted),
    ("other_seeds_are_other_luck_and_the_same_seeds_are_not", seeds),
    ("functions_add_up_and_the_region_is_kept_as_a_profile", functions),
    ("heap_use_of_the_region_is_exact", heap),
    ("gauges_are_read_outside_of_what_is_counted", gauges),
];

const ALL: [&str; 6] = [
    "toy::hash_seeds",
    "toy::random_work",
    "toy::time_of_day",
    "toy::addresses",
    "toy::two_parties",
    "toy::prints",
];

fn scratch() -> Result<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_path_buf();
    Ok((folder, path))
}

/// The totals of all toys in a process of its own with more in its environment
/// and another working directory.
fn counted_elsewhere(out: &Path) -> Result<String> {
    let program = std::env::current_exe()?;
    let output = std::process::Command::new(program)
        .args(["--exact", "a_planted_change_shows_as_its_cost_in_its_party_alone", "-q"])
        .env("WALLGRIND_TEST_FILLER", "x".repeat(3_000))
        .env("WALLGRIND_TEST_TOTALS", out)
        .current_dir("/")
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(out).context("the totals of the other process")
}

fn repeats() -> Result<()> {
    let (_folder, out) = scratch()?;
    let one_at_a_time = {
        let mut plan = plan(Mode::Cachegrind, out.clone());
        plan.valgrind.jobs = 1;
        all(outcomes(&plan, &ALL)?)?
    };
    let mut plan = plan(Mode::Cachegrind, out.clone());
    (plan.valgrind.jobs, plan.valgrind.repeat) = (4, 3);
    let side_by_side = all(outcomes(&plan, &ALL)?)?;
    for ((name, alone), beside) in ALL.iter().zip(&one_at_a_time).zip(&side_by_side) {
        ensure!(
            beside.notes.iter().all(|note| !note.contains("not deterministic")),
            "{name}: {:?}",
            beside.notes
        );
        let repeated: Vec<_> = totals(alone).into_iter().flat_map(|t| [t.clone(), t.clone(), t]).collect();
        ensure!(totals(beside) == repeated, "{name}: {:?} and {:?}", totals(alone), totals(beside));
    }
    let here = format!("{:?}", totals(&one_at_a_time[4]));
    let elsewhere = counted_elsewhere(&out.join("totals"))?;
    ensure!(elsewhere == here, "{elsewhere} elsewhere, {here} here");
    Ok(())
}

fn all(outcomes: Vec<Result<Outcome, wallgrind::measure::Failure>>) -> Result<Vec<Outcome>> {
    outcomes.into_iter().map(|o| o.map_err(|failure| anyhow::anyhow!("{failure:?}"))).collect()
}

fn planted() -> Result<()> {
    let (_folder, out) = scratch()?;
    let found = all(outcomes(&plan(Mode::Cachegrind, out), &["toy::two_parties", "toy::planted"])?)?;
    if let Some(file) = std::env::var_os("WALLGRIND_TEST_TOTALS") {
        std::fs::write(file, format!("{:?}", totals(&found[0])))?;
    }
    for (series, more) in
        [("instructions", PLANTED), ("instructions.client", PLANTED), ("instructions.server", 0)]
    {
        let (before, after) = (total(&found[0], series)?, total(&found[1], series)?);
        ensure!(after == before + more, "{series}: {before}, then {after}, with {more} planted");
    }
    Ok(())
}

fn seeds() -> Result<()> {
    let (_folder, out) = scratch()?;
    let mut plan = plan(Mode::Cachegrind, out);
    plan.valgrind.seeds = 3;
    let (first, second) = (outcome(&plan, "toy::random_work")?, outcome(&plan, "toy::random_work")?);
    ensure!(first == second, "{first:?} and {second:?}");
    let samples: Vec<Sample> = first.series[0].samples.clone();
    ensure!(samples.len() == 3 && first.facts["seeds"] == "0,1,2", "{samples:?}");
    ensure!(
        samples[0] != samples[1] && samples[1] != samples[2],
        "one seed is as good as another: {samples:?}"
    );
    Ok(())
}

fn functions() -> Result<()> {
    let (_folder, out) = scratch()?;
    let outcome = outcome(&plan(Mode::Cachegrind, out.clone()), "toy::two_parties")?;
    for party in ["client", "server"] {
        let mark = format!("[{party}] ");
        let of_party = || outcome.functions.iter().filter(|(name, _)| name.starts_with(&mark));
        let (sum, count) =
            (of_party().map(|(_, n)| n).sum::<u64>(), total(&outcome, &format!("instructions.{party}"))?);
        ensure!(sum == count, "functions of the {party} add up to {sum}, not {count}");
        let file = out.join("run/valgrind/toy.two_parties").join(format!("cachegrind.{party}.out"));
        let profile = Profile::parse(&std::fs::read_to_string(&file)?).map_err(anyhow::Error::msg)?;
        let overhead: u64 = outcome.facts["region_overhead_instructions"].parse()?;
        ensure!(profile.totals == [count + overhead], "{:?} in {}", profile.totals, file.display());
    }
    ensure!(outcome.functions.iter().any(|(name, _)| name.contains("Chatter")), "{:?}", outcome.functions);
    Ok(())
}

fn heap() -> Result<()> {
    let (_folder, out) = scratch()?;
    let outcome = outcome(&plan(Mode::Dhat, out), "toy::heap")?;
    let expected = [
        ("heap_total_bytes", 4 * 5_000),
        ("heap_total_blocks", 4 * 2),
        ("heap_peak_bytes", 3 * 2_000 + 3_000),
        ("heap_peak_blocks", 4),
    ];
    for (series, wanted) in expected {
        let found = total(&outcome, series)?;
        ensure!(found == wanted, "{series}: {found}, not {wanted}");
    }
    // What the iterations leave, and the lists that hold their inputs and outputs.
    let held = total(&outcome, "heap_held_bytes")?;
    ensure!((8_000..9_000).contains(&held), "{held} bytes are held");
    Ok(())
}

fn gauges() -> Result<()> {
    let (_folder, out) = scratch()?;
    for mode in [Mode::Cachegrind, Mode::Dhat] {
        let mut plan = plan(mode, out.clone());
        plan.valgrind.repeat = 2;
        let found = all(outcomes(&plan, &["toy::gauged", "toy::ungauged"])?)?;
        let (with, without) = (&found[0], &found[1]);
        let headline = without.series[0].metric.as_str();
        ensure!(total(with, headline)? == total(without, headline)?, "reading a gauge is counted: {found:?}");
        for (metric, risen, unit) in [("spins", 15, "events"), ("rests", 0, "bytes")] {
            let series = with.series.iter().find(|s| s.metric == metric);
            let series = series.with_context(|| format!("no series {metric} in {with:?}"))?;
            let three = Sample { iterations: 3, total: risen };
            ensure!(series.samples == [three, three] && series.unit.symbol() == unit, "{series:?}");
            ensure!((series.direction == Direction::HigherIsBetter) == (metric == "rests"), "{series:?}");
        }
        ensure!(with.facts["gauges"] == "spins,rests" && with.facts["engine"] == "a toy", "{:?}", with.facts);
        ensure!(!without.facts.contains_key("gauges"), "{:?}", without.facts);
        ensure!(with.histograms.is_empty() && with.series.iter().all(|s| !s.metric.starts_with("op_")));
    }
    Ok(())
}
