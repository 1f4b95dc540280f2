//! Runs over many machines: each takes its shard, leaves what it was to do,
//! and `wallgrind merge` makes one run of them, or says why it cannot.

use std::collections::BTreeSet;
use std::fs;

use wallgrind::store::{RunDir, ShardManifest, Status};

use crate::bench::{Bench, Ran, statuses};
use crate::list::NAMES;
use crate::records::wallgrind;

crate::tests!(
    every_trial_is_listed_by_one_shard,
    a_bad_part_is_refused,
    shards_merge_into_the_whole_run,
    a_shard_without_trials_says_so_and_is_not_missed,
    what_is_missing_is_found_and_nothing_is_written,
    what_is_double_or_there_already_is_refused,
    what_was_measured_otherwise_is_found,
    damage_is_named_and_the_rest_can_be_merged,
    a_run_that_goes_on_in_a_fresh_process_keeps_its_shard,
    past_durations_divide,
    sixty_four_shards_are_merged_and_reported,
);

/// Runs a shard of the good trials into a run `sK`.
fn shard(bench: &Bench, k: usize, n: usize, more: &str) -> Ran {
    bench.run(&format!("good --bench --shard {k}/{n} --run-id s{k} {more}"))
}

fn every_trial_is_listed_by_one_shard() {
    let bench = Bench::new();
    let list = |argv: &str, k: usize, n: usize| -> Vec<String> {
        let out = bench.run(&format!("--list --format terse --shard {k}/{n} {argv}")).exits(0).out;
        out.lines().map(|line| line.trim_end_matches(": benchmark").to_string()).collect()
    };
    for n in [1, 3, 20] {
        let parts: Vec<Vec<String>> = (1..=n).map(|k| list("", k, n)).collect();
        let mut all = parts.concat();
        all.sort_unstable();
        let mut names = NAMES.map(str::to_string).to_vec();
        names.sort_unstable();
        assert_eq!(all, names, "of {n}");
        let ignored: Vec<String> = (1..=n).flat_map(|k| list("--ignored", k, n)).collect();
        assert_eq!(ignored, ["absent::moon"]);
    }
    let both: BTreeSet<String> = (1..=2).flat_map(|k| list("good --skip talk", k, 2)).collect();
    assert_eq!(both, BTreeSet::from(["good::first".into(), "good::second".into()]));
    assert_eq!(list("", 2, 3), list("", 2, 3));
    let env = bench.run_with("--list --format terse", &[("WALLGRIND_SHARD", "2/3")]).exits(0).out;
    assert_eq!(env.lines().count(), list("", 2, 3).len());
    assert!(!bench.out().exists(), "listing has left something behind");
}

fn a_bad_part_is_refused() {
    let bench = Bench::new();
    for bad in ["0/4", "5/4", "x", "1/0", "1", "/"] {
        for argv in ["--bench", "--list", ""] {
            let ran =
                bench.run(&format!("{argv} --shard {bad}")).exits(101).says(&format!("--shard: {bad:?}"));
            assert_eq!(ran.out, "", "{bad}");
        }
        bench.run_with("--bench", &[("WALLGRIND_SHARD", bad)]).exits(101).says("variable WALLGRIND_SHARD: ");
    }
    bench.run("--bench --shard-by main").exits(101).says("give --shard K/N as well");
    bench.run("--bench --shard 1/2 --shard-by nowhere").exits(101).says("nowhere");
    assert!(!bench.out().exists());
}

fn shards_merge_into_the_whole_run() {
    let bench = Bench::new();
    for k in 1..=3 {
        bench.run(&format!("good fails absent --bench --shard {k}/3 --run-id s{k}"));
    }
    let merged = wallgrind(&bench, "merge s1 s2 s3 --run-id all").exits(0);
    assert!(merged.out.starts_with("3 runs, 7 trials, 7 records in "), "{}", merged.out);
    let mut records = RunDir::read(&bench.out().join("all")).expect("the run");
    records.sort_by(|a, b| a.scenario.cmp(&b.scenario));
    let expected = [
        ("absent::moon", "ignored"),
        ("fails::check", "failed"),
        ("fails::measures_nothing", "failed"),
        ("fails::panic", "failed"),
        ("good::first", "ok"),
        ("good::second", "ok"),
        ("good::talk", "ok"),
    ];
    assert_eq!(statuses(&records), expected);
    let shards: BTreeSet<&str> = records.iter().map(|record| record.facts["shard"].as_str()).collect();
    assert_eq!(shards, BTreeSet::from(["1/3", "2/3", "3/3"]));
    for command in [
        "show all",
        "export json all -",
        "report all --html all.html --markdown -",
        "compare all s1 --no-fail",
    ] {
        let ran = wallgrind(&bench, command).exits(0);
        assert!(command.starts_with("compare") || ran.out.contains("good"), "{command}: {}", ran.out);
    }
    // A merged run is whole: it merges into itself, and divides the next.
    wallgrind(&bench, "merge all --run-id again").exits(0);
    let ran = bench.run("good --list --shard 1/2 --shard-by all").exits(0);
    assert_eq!(ran.err, "");
}

fn a_shard_without_trials_says_so_and_is_not_missed() {
    let bench = Bench::new();
    let said: Vec<String> = (1..=5).map(|k| shard(&bench, k, 5, "").exits(0).err).collect();
    let empty = |said: &&String| said.contains("has none of the 3 trials of contract");
    assert_eq!(said.iter().filter(empty).count(), 2);
    wallgrind(&bench, "merge s1 s2 s3 s4 s5 --run-id all").exits(0);
    // A filter that matches nothing makes no run, with a shard as without.
    bench.run("god --bench --shard 1/2 --run-id none").exits(0).says("did you mean good?");
    assert!(!bench.out().join("none").exists());
}

fn nothing_is_written(bench: &Bench, run: &str) {
    let left: Vec<String> = fs::read_dir(bench.out())
        .expect("runs")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name == run || name.starts_with(".unfinished"))
        .collect();
    assert_eq!(left, [""; 0]);
}

fn what_is_missing_is_found_and_nothing_is_written() {
    let bench = Bench::new();
    (1..=3).for_each(|k| drop(shard(&bench, k, 3, "").exits(0)));
    let without = wallgrind(&bench, "merge s1 s3 --run-id all").exits(101);
    without
        .says("error: shard 2 of 3 of contract (walltime) is missing")
        .says("--partial")
        .says("nothing was written");
    nothing_is_written(&bench, "all");
    let file = fs::read_dir(bench.out().join("s2")).expect("a run").flatten().find(|e| e.path().is_file());
    let path = file.expect("a record").path();
    let text = fs::read_to_string(&path).expect("a record");
    fs::remove_file(&path).expect("removed");
    wallgrind(&bench, "merge s1 s2 s3 --run-id all")
        .exits(101)
        .says("shard 2/3 of contract (walltime) in s2 lacks 1 of its 1 trials: good::");
    nothing_is_written(&bench, "all");
    let partial =
        wallgrind(&bench, "merge s1 s2 s3 --run-id part --partial").exits(0).says("warning: shard 2/3");
    assert!(partial.out.contains("2 trials"), "{}", partial.out);
    // What was missing is merged later.
    fs::write(&path, text).expect("back");
    wallgrind(&bench, "merge part s2 --run-id all")
        .exits(101)
        .says("shard 2/3 of contract (walltime) is in part and in s2");
    wallgrind(&bench, "merge s1 s2 s3 --run-id all").exits(0);
    wallgrind(&bench, "merge s1 s9").exits(101).says("there is no run s9");
    wallgrind(&bench, "merge").exits(101).says("<RUN>");
}

fn what_is_double_or_there_already_is_refused() {
    let bench = Bench::new();
    (1..=2).for_each(|k| drop(shard(&bench, k, 2, "").exits(0)));
    wallgrind(&bench, "merge s1 s1").exits(101).says("s1 is named twice");
    wallgrind(&bench, "merge s1 out/../out/s1").exits(101).says("are one folder");
    bench.run("good --bench --run-id whole").exits(0);
    let double = wallgrind(&bench, "merge s1 s2 whole --run-id all --force --partial").exits(101);
    double
        .says("error: good::first (contract, walltime) is in ")
        .says("warning: not run with --shard: whole")
        .says("nothing was written");
    nothing_is_written(&bench, "all");
    let before = RunDir::read(&bench.out().join("whole")).expect("a run");
    wallgrind(&bench, "merge s1 s2 --run-id whole").exits(101).says("already").says("--run-id");
    assert_eq!(RunDir::read(&bench.out().join("whole")).expect("a run"), before);
    wallgrind(&bench, "merge s1 s2 --run-id ../up").exits(101).says("cannot name a folder");
}

fn what_was_measured_otherwise_is_found() {
    let bench = Bench::new();
    (1..=2).for_each(|k| drop(shard(&bench, k, 2, "").exits(0)));
    let records = RunDir::read(&bench.out().join("s2")).expect("a run");
    fs::create_dir(bench.out().join("other")).expect("a folder");
    let other = RunDir::open(&bench.out(), "other").expect("a run");
    for mut record in records {
        record.identity.insert("rustc".into(), "rustc 9.9".into());
        other.write(&record).expect("written");
    }
    let shards = bench.out().join("other/shards");
    fs::rename(bench.out().join("s2/shards"), &shards).expect("moved");
    let refused = wallgrind(&bench, "merge s1 other --run-id all").exits(101);
    refused.says("error: toolchain: ").says("rustc 9.9 in other").says("--force");
    nothing_is_written(&bench, "all");
    wallgrind(&bench, "merge s1 other --run-id all --force").exits(0).says("warning: toolchain: ");
    // Another list of scenarios: what is missing cannot be told by name.
    bench.run("good --skip talk --bench --shard 2/2 --run-id less").exits(0);
    wallgrind(&bench, "merge s1 less --run-id less2")
        .exits(101)
        .says("contract (walltime) was divided from another list");
}

fn damage_is_named_and_the_rest_can_be_merged() {
    let bench = Bench::new();
    (1..=2).for_each(|k| drop(shard(&bench, k, 2, "").exits(0)));
    let folder = bench.out().join("s1");
    let file =
        fs::read_dir(&folder).expect("a run").flatten().map(|entry| entry.path()).find(|p| p.is_file());
    let file = file.expect("a record");
    let good = fs::read_to_string(&file).expect("a record");
    for (text, says) in [
        (good[..good.len() / 2].to_string(), "is not a whole record"),
        (good.replace("\"schema_version\":\"1.", "\"schema_version\":\"9."), "has schema 9."),
        (String::new(), "is not a whole record"),
    ] {
        fs::write(&file, text).expect("written");
        wallgrind(&bench, "merge s1 s2 --run-id all").exits(101).says(says).says("nothing was written");
        nothing_is_written(&bench, "all");
    }
    wallgrind(&bench, "merge s1 s2 --run-id rest --partial").exits(0).says("warning: ");
    let rest = RunDir::scan(&bench.out().join("rest")).expect("a run");
    assert_eq!((rest.records.len(), rest.faults.len()), (2, 0));
    fs::create_dir(bench.out().join("empty")).expect("a folder");
    wallgrind(&bench, "merge s2 empty --run-id all").exits(101).says("empty holds no records");
    let manifest =
        fs::read_dir(bench.out().join("s2/shards")).expect("it").flatten().next().expect("one").path();
    fs::write(manifest, "{").expect("written");
    wallgrind(&bench, "merge s2 --run-id all").exits(101).says("does not say what a shard was to do");
}

fn a_run_that_goes_on_in_a_fresh_process_keeps_its_shard() {
    let bench = Bench::new();
    for k in 1..=2 {
        let argv = format!("good hangs::for_ever --bench --timeout 5s --shard {k}/2 --run-id s{k}");
        bench.run(&argv);
    }
    wallgrind(&bench, "merge s1 s2 --run-id all").exits(0);
    let records = RunDir::read(&bench.out().join("all")).expect("a run");
    let timed_out = |status: &Status| matches!(status, Status::TimedOut(_));
    assert_eq!((records.len(), records.iter().filter(|r| timed_out(&r.status)).count()), (4, 1));
    assert!(records.iter().all(|record| record.facts.contains_key("shard")));
}

fn past_durations_divide() {
    let bench = Bench::new();
    bench.run("good --bench --run-id past").exits(0);
    let past = RunDir::read(&bench.out().join("past")).expect("a run");
    let weights = RunDir::open(&bench.out(), "weights").expect("a run");
    for mut record in past {
        record.elapsed_ns = if record.scenario == "good::second" { 1_000 } else { 500 };
        weights.write(&record).expect("written");
    }
    let of = |k: usize| {
        let argv = format!("good --list --format terse --shard {k}/2 --shard-by weights");
        bench.run(&argv).exits(0).out.lines().map(str::to_string).collect::<Vec<_>>()
    };
    let mut sizes = [of(1), of(2)];
    sizes.sort_by_key(Vec::len);
    assert_eq!(
        sizes,
        [vec!["good::second: benchmark"], vec!["good::first: benchmark", "good::talk: benchmark"]]
    );
    bench
        .run("good --list --shard 1/2 --shard-by weights --mode dhat")
        .exits(0)
        .says("holds no durations of contract in mode dhat");
}

/// What `.ci/shards` measures, small enough for every day: the outcome alone.
fn sixty_four_shards_are_merged_and_reported() {
    const TRIALS: usize = 640;
    let bench = Bench::new();
    bench.run("good::first --bench --run-id one").exits(0);
    let one = RunDir::read(&bench.out().join("one")).expect("a run").remove(0);
    let text = wallgrind::store::to_json(&one).expect("a record");
    let mut seen = BTreeSet::new();
    for k in 1..=64 {
        let argv = format!("many --list --format terse --shard {k}/64");
        let names = bench.run_with(&argv, &[(crate::fixture::MANY, &TRIALS.to_string())]).exits(0).out;
        let names: Vec<String> =
            names.lines().map(|line| line.trim_end_matches(": benchmark").into()).collect();
        assert_eq!(names.len(), TRIALS / 64);
        let folder = bench.out().join(format!("s{k}"));
        fs::create_dir(&folder).expect("a folder");
        for name in &names {
            let file = folder.join(format!("{}.json", name.replace("::", ".")));
            fs::write(file, text.replace("good::first", name)).expect("written");
        }
        seen.extend(names.iter().cloned());
        let names = ShardManifest::new(("run", "contract", "walltime"), (k, 64), names);
        names.write(&folder).expect("written");
    }
    assert_eq!(seen.len(), TRIALS);
    let runs: Vec<String> = (1..=64).map(|k| format!("s{k}")).collect();
    let merged = wallgrind(&bench, &format!("merge {} --run-id all", runs.join(" "))).exits(0);
    assert!(merged.out.starts_with("64 runs, 640 trials, 640 records in "), "{}", merged.out);
    let reported = wallgrind(&bench, "report all --html all.html").exits(0);
    assert_eq!(reported.out, "640 trials in all.html\n");
    let page = fs::read_to_string(bench.dir().join("all.html")).expect("a page");
    assert!(seen.iter().all(|name| page.contains(&name.replace("::", "::<wbr>"))));
    let without = format!("merge {} --run-id less", runs[..63].join(" "));
    wallgrind(&bench, &without).exits(101).says("shard 64 of 64 of contract (walltime) is missing");
}
