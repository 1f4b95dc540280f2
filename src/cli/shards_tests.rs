//! Tests of `shards`: every scenario is in one shard, every machine comes to
//! the same, and no shard has much more to do than another.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::*;
use crate::cli::{Args, Env, resolve, select};
use crate::scenario::Suite;

fn scenarios(names: &[String]) -> Vec<Scenario> {
    let mut suite = Suite::new();
    for name in names {
        suite.bench(name.as_str(), |b| b.iter(|| 1));
    }
    suite.finish().expect("valid names")
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("g{}::s{i:05}", i % 7)).collect()
}

fn plan(out: &Path, argv: &str) -> Plan {
    let words = ["exe".into(), "--out".into(), out.into()];
    let words: Vec<OsString> = words.into_iter().chain(argv.split_whitespace().map(OsString::from)).collect();
    let args = Args::parse_from_iter(words).expect("arguments");
    resolve(&args, &Env::default(), Path::new("/x/y")).expect("a plan").plan
}

fn divided(scenarios: &[Scenario], out: &Path, argv: &str) -> Division {
    divide(scenarios, &plan(out, argv), "s").expect("durations").expect("a shard")
}

/// A run whose trials took so long.
fn run(out: &Path, name: &str, took: &[(&str, u64)]) -> PathBuf {
    let folder = out.join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (scenario, ns) in took {
        let text = format!(
            "{{\"schema_version\":\"1.1\",\"suite\":\"s\",\"scenario\":\"{scenario}\",\"mode\":\"walltime\",\
             \"elapsed_ns\":{ns}}}"
        );
        std::fs::write(folder.join(format!("{}.json", scenario.replace("::", "."))), text).expect("written");
    }
    folder
}

#[test]
fn every_scenario_is_in_exactly_one_shard_whatever_the_filter() {
    let out = tempfile::tempdir().expect("a folder");
    let names = names(50);
    let scenarios = scenarios(&names);
    for filter in ["", "g3", "g1 g2 --skip s00001", "--exact g0::s00007"] {
        let whole: BTreeSet<String> = select(&scenarios, &plan(out.path(), filter).selection, None, |_| None)
            .names()
            .into_iter()
            .map(str::to_string)
            .collect();
        for of in [1, 2, 7, 64] {
            let mut seen: BTreeSet<String> = BTreeSet::new();
            let mut sizes = Vec::new();
            for number in 1..=of {
                let argv = format!("{filter} --shard {number}/{of}");
                let division = divided(&scenarios, out.path(), &argv);
                let selected =
                    select(&scenarios, &plan(out.path(), &argv).selection, Some(&division), |_| None);
                sizes.push(selected.trials.len());
                for name in selected.names() {
                    assert!(seen.insert(name.to_string()), "{name} is in two shards of {of}");
                }
            }
            assert_eq!(seen, whole, "{filter} of {of}");
            let (least, most) = (sizes.iter().min().expect("one"), sizes.iter().max().expect("one"));
            assert!(most - least <= 1, "{sizes:?}");
        }
    }
}

#[test]
fn what_a_machine_lacks_and_where_a_scenario_is_registered_are_no_matter() {
    let out = tempfile::tempdir().expect("a folder");
    let mut names = names(50);
    let one = divided(&scenarios(&names), out.path(), "--shard 2/5");
    names.reverse();
    let other = divided(&scenarios(&names), out.path(), "--shard 2/5 --ignored");
    assert_eq!((one.ours, one.plan, one.list), (other.ours, other.plan, other.list));
    let lacks = |scenario: &Scenario| scenario.id().as_str().starts_with("g3").then(|| "no".to_string());
    let (all, mut total) = (scenarios(&names), 0);
    for number in 1..=5 {
        let argv = format!("--shard {number}/5 --ignored");
        let division = divided(&all, out.path(), &argv);
        total += select(&all, &plan(out.path(), &argv).selection, Some(&division), lacks).trials.len();
    }
    assert_eq!(total, names.iter().filter(|name| name.starts_with("g3")).count());
}

#[test]
fn shards_are_weighed_by_what_trials_took() {
    let out = tempfile::tempdir().expect("a folder");
    let took = [("g::a", 100), ("g::b", 60), ("g::c", 40), ("g::d", 30), ("g::e", 30)];
    run(out.path(), "before", &took);
    let names: Vec<String> = took.iter().map(|(name, _)| (*name).to_string()).collect();
    let scenarios = scenarios(&names);
    let load = |number: usize, by: &str| -> u64 {
        let division = divided(&scenarios, out.path(), &format!("--shard {number}/2 {by}"));
        took.iter().filter(|(name, _)| division.takes(name)).map(|(_, ns)| ns).sum()
    };
    let mut loads = [load(1, "--shard-by before"), load(2, "--shard-by before")];
    loads.sort_unstable();
    assert_eq!(loads, [130, 130]);
    assert_ne!(load(1, ""), 130, "without durations all weigh the same");
    // A folder by its path divides as the run in it.
    let path = out.path().join("before").display().to_string();
    let by_path = divided(&scenarios, out.path(), &format!("--shard 1/2 --shard-by {path}"));
    assert_eq!(by_path.plan, divided(&scenarios, out.path(), "--shard 1/2 --shard-by before").plan);
}

#[test]
fn a_scenario_that_is_new_weighs_as_much_as_the_middle_one() {
    let took = BTreeMap::from([("a".to_string(), 10), ("b".to_string(), 50), ("c".to_string(), 90)]);
    let shards = partition(&["new", "a", "b", "c"], &took, 2, 0);
    let load = |shard: usize| -> u64 {
        let weights = [50, 10, 50, 90];
        shards.iter().zip(weights).filter(|(at, _)| **at == shard).map(|(_, weight)| weight).sum()
    };
    assert_eq!((load(0), load(1)), (100, 100));
}

#[test]
fn the_latest_run_is_not_this_one_nor_a_shard_of_another() {
    let out = tempfile::tempdir().expect("a folder");
    let scenarios = scenarios(&["g::a".into(), "g::b".into()]);
    let by = |argv: &str| {
        divided(&scenarios, out.path(), &format!("--run-id now --shard 1/2 --shard-by latest{argv}"))
    };
    let none = by("");
    assert!(none.warnings[0].contains("holds no durations of s in mode walltime"), "{:?}", none.warnings);
    run(out.path(), "now", &[("g::a", 1), ("g::b", 9)]);
    assert_eq!(by("").warnings.len(), 1, "of this run only");
    let earlier = run(out.path(), "earlier", &[("g::a", 1), ("g::b", 9)]);
    assert_eq!((by("").by.as_deref(), by("").warnings.len()), (Some("earlier"), 0));
    let manifest = |shard| ShardManifest::new(("earlier", "s", "walltime"), (shard, 2), Vec::new());
    manifest(1).write(&earlier).expect("written");
    assert_eq!(by("").warnings.len(), 1, "half of a run");
    manifest(2).write(&earlier).expect("written");
    assert_eq!(by("").warnings.len(), 0, "all of it, merged");
    assert_eq!(by(" --mode cachegrind").warnings.len(), 1, "times of another meter");
}

#[test]
fn durations_that_cannot_be_read_are_an_error() {
    let out = tempfile::tempdir().expect("a folder");
    let folder = run(out.path(), "before", &[("g::a", 1)]);
    let scenarios = scenarios(&["g::a".into()]);
    let refused = |by: &str| {
        let plan = plan(out.path(), &format!("--shard 1/2 --shard-by {by}"));
        divide(&scenarios, &plan, "s").expect_err("refused").report()
    };
    assert!(refused("befor").contains("did you mean before?"));
    std::fs::write(folder.join("g.a.json"), "{").expect("written");
    assert!(refused("before").contains("g.a.json is not a whole record"));
}

#[test]
fn what_is_left_over_falls_to_other_shards_for_other_bench_targets() {
    let all: BTreeSet<usize> = ["tls", "block", "harness"].iter().map(|suite| first_of(suite, 64)).collect();
    assert_eq!(all.len(), 3);
    for of in 1..20 {
        let first = first_of("block", of);
        assert_eq!(partition(&["only"], &BTreeMap::new(), of, first), [first]);
    }
}

#[test]
fn twenty_thousand_scenarios_are_in_sixty_four_shards_of_even_weight() {
    let names = names(20_000);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let took: BTreeMap<String, u64> = names
        .iter()
        .enumerate()
        .map(|(i, name)| ((*name).to_string(), 1 + (i as u64 * 7919) % 10_000))
        .collect();
    let mut loads = [0_u64; 64];
    for (name, shard) in names.iter().zip(partition(&names, &took, 64, 5)) {
        loads[shard] += took[*name];
    }
    let (least, most) = (loads.iter().min().expect("one"), loads.iter().max().expect("one"));
    assert!(most - least < 100, "{least} to {most} of 1,562,656 each");
}
