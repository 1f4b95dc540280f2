//! The clients themselves: cargo and nextest, over a package whose only bench
//! target becomes the fixture. It is made here, so that it has no dependency
//! and is built in a moment.

use std::fs;
use std::process::Command;

use crate::bench::{Bench, Ran, ran, statuses};
use crate::fixture;

/// The package's bench target: it becomes this executable, with its arguments.
const MAIN: &str = r#"
use std::os::unix::process::CommandExt;
fn main() {
    let exe = std::env::var_os("CONTRACT_EXE").expect("the executable");
    panic!("{}", std::process::Command::new(exe).args(std::env::args_os().skip(1)).exec());
}
"#;

const MANIFEST: &str = r#"
[package]
name = "package"
version = "0.0.0"
edition = "2024"
[lib]
path = "lib.rs"
bench = false
[[bench]]
name = "contract"
path = "main.rs"
harness = false
[profile.bench]
opt-level = 0
[workspace]
"#;

pub fn tests() -> Vec<libtest_mimic::Trial> {
    let has_nextest = Command::new(cargo()).args(["nextest", "--version"]).output();
    let has_nextest = has_nextest.is_ok_and(|output| output.status.success());
    let trial = |name: &str, needs_nextest: bool, test: fn()| {
        let trial = libtest_mimic::Trial::test(format!("clients::{name}"), move || {
            test();
            Ok(())
        });
        // Listed as ignored where cargo-nextest is not installed.
        trial.with_ignored_flag(needs_nextest && !has_nextest)
    };
    vec![
        trial("cargo_measures_tests_and_lists", false, cargo_measures_tests_and_lists),
        trial("one_cargo_bench_is_one_run", false, one_cargo_bench_is_one_run),
        trial("nextest_lists_every_trial", true, nextest_lists_every_trial),
        trial("nextest_runs_each_in_a_process", true, nextest_runs_each_in_a_process),
        trial("nextest_measures_into_one_run", true, nextest_measures_into_one_run),
        trial("nextest_runs_a_shard_in_either_way", true, nextest_runs_a_shard_in_either_way),
        trial("nextest_shows_why_a_trial_failed", true, nextest_shows_why_a_trial_failed),
        trial("nextest_ends_a_trial_that_is_slow", true, nextest_ends_a_trial_that_is_slow),
    ]
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// A place with the package in it.
struct Package(Bench);

impl Package {
    fn new() -> Self {
        let bench = Bench::new();
        let write = |name: &str, text: &str| fs::write(bench.dir().join(name), text).expect("a file");
        write("Cargo.toml", MANIFEST);
        write("main.rs", MAIN);
        write("lib.rs", "");
        Self(bench)
    }

    fn command(&self, argv: &str) -> Command {
        let mut command = self.0.command("");
        let exe = command.get_program().to_owned();
        let mut cargo = Command::new(cargo());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => cargo.env(name, value),
                None => cargo.env_remove(name),
            };
        }
        command = cargo;
        command.args(argv.split_whitespace()).current_dir(self.0.dir());
        command.env("CARGO_TARGET_DIR", self.0.dir().join("target")).env("CONTRACT_EXE", exe);
        command.env(fixture::ASK, "1").env("NEXTEST_EXPERIMENTAL_BENCHMARKS", "1");
        command
    }

    fn run(&self, argv: &str) -> Ran {
        ran(self.command(argv))
    }
}

fn cargo_measures_tests_and_lists() {
    let package = Package::new();
    package.run("bench -- good --samples 2..3").exits(0).has_line("running 3 tests");
    assert_eq!(package.0.records().len(), 3);
    let listed = package.run("bench -- good --list --format terse").exits(0).out;
    assert_eq!(listed, "good::first: benchmark\ngood::second: benchmark\ngood::talk: benchmark\n");
    let ran = package.run("bench -- good::first --exact --nocapture").exits(0);
    assert!(ran.out.contains("1 measured; 13 filtered out"), "{}", ran.out);
    package.run("bench -- good --test").exits(0).has_line("test good::talk ... ok");
    package.run("test --benches -- good").exits(0).has_line("test good::talk ... ok");
    assert_eq!(package.run("test --bench contract -- fails").code, Some(101));
    let explorer =
        "test --bench contract --no-fail-fast -- good -Z unstable-options --format=json --nocapture";
    assert_eq!(package.run(explorer).exits(0).events().len(), 8);
}

fn one_cargo_bench_is_one_run() {
    let package = Package::new();
    let second = "[[bench]]\nname = \"second\"\npath = \"main.rs\"\nharness = false\n";
    fs::write(package.0.dir().join("Cargo.toml"), format!("{MANIFEST}{second}")).expect("a file");
    package.run("bench -- good::first").exits(0);
    let records = package.0.records();
    assert_eq!(statuses(&records), [("good::first", "ok"), ("good::first", "ok")], "of two bench targets");
    let run = |_| records[0].run_id.clone();
    assert_eq!(records.iter().map(|record| record.run_id.clone()).collect::<Vec<_>>(), [(); 2].map(run));
    package.run("bench --bench second -- good::first").exits(0);
    assert_eq!(fs::read_dir(package.0.out()).expect("runs").count(), 2, "another cargo is another run");
}

fn nextest_lists_every_trial() {
    let ran = Package::new().run("nextest list --benches --message-format json").exits(0);
    let list: serde_json::Value = serde_json::from_str(&ran.out).expect("a list");
    let cases = &list["rust-suites"]["package::bench/contract"]["testcases"];
    let cases = cases.as_object().expect("test cases");
    let mut expected = crate::list::NAMES;
    expected.sort_unstable();
    assert_eq!(cases.keys().collect::<Vec<_>>(), expected);
    for (name, case) in cases {
        assert_eq!(
            (&case["kind"], &case["ignored"]),
            (&"bench".into(), &(name == "absent::moon").into()),
            "{name}"
        );
    }
}

fn nextest_runs_each_in_a_process() {
    let package = Package::new();
    package.run("nextest run --benches good prints absent").exits(0).says("5 tests run: 5 passed, 9 skipped");
    assert!(!package.0.out().exists(), "a smoke run writes no records");
    // What this machine lacks cannot pass when it is asked for.
    let ran = package.run("nextest run --benches absent --run-ignored all");
    assert_ne!(ran.code, Some(0));
    ran.says("needs the moon");
}

fn nextest_measures_into_one_run() {
    let package = Package::new();
    package.run("nextest bench good").exits(0).says("3 benchmarks run: 3 passed");
    let records = package.0.records();
    assert_eq!(statuses(&records), [("good::first", "ok"), ("good::second", "ok"), ("good::talk", "ok")]);
}

fn nextest_runs_a_shard_in_either_way() {
    // By ours, which divides the list; the process of each trial takes what it is given.
    let names = |k: usize| {
        let package = Package::new();
        let mut command = package.command("nextest bench good prints");
        let ran = ran(command.env("WALLGRIND_SHARD", format!("{k}/2")));
        ran.exits(0).says("passed");
        package.0.records().into_iter().map(|record| record.scenario).collect::<Vec<_>>()
    };
    let mut both = [names(1), names(2)].concat();
    both.sort_unstable();
    let expected = ["good::first", "good::second", "good::talk", "prints::here", "prints::in_a_child"];
    assert_eq!(both, expected);
    // By its own.
    let package = Package::new();
    for k in 1..=2 {
        package.run(&format!("nextest bench good prints --partition count:{k}/2")).exits(0);
    }
    let mut runs: Vec<String> = fs::read_dir(package.0.out())
        .expect("runs")
        .map(|e| e.expect("one").path().display().to_string())
        .collect();
    runs.sort_unstable();
    let merged =
        crate::records::wallgrind(&package.0, &format!("merge {} --run-id all", runs.join(" "))).exits(0);
    assert!(merged.out.starts_with("2 runs, 5 trials, 5 records"), "{}", merged.out);
    merged.says("warning: not run with --shard: ");
}

fn nextest_shows_why_a_trial_failed() {
    let package = Package::new();
    let ran = package.run("nextest run --benches fails --no-fail-fast --retries 1");
    assert_ne!(ran.code, Some(0));
    ran.says("Error: fails::check: five is not four").says("on purpose, in fails::panic");
}

fn nextest_ends_a_trial_that_is_slow() {
    let package = Package::new();
    let config = "[profile.default]\nslow-timeout = { period = \"3s\", terminate-after = 1 }\n";
    fs::create_dir(package.0.dir().join(".config")).expect("a folder");
    fs::write(package.0.dir().join(".config/nextest.toml"), config).expect("a file");
    let ran = package.run("nextest run --benches hangs::with_a_child good --no-fail-fast");
    assert_ne!(ran.code, Some(0));
    ran.says("3 passed").says("1 timed out").says("ended by SIGTERM");
}
