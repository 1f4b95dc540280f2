//! What is told on standard output in the three formats, and on standard
//! error besides.

use serde_json::Value;

use crate::bench::{Bench, Ran};

crate::tests!(
    what_cargo_and_its_clients_pass_means_what_they_expect,
    pretty_lines_are_what_parsers_take,
    terse_keeps_the_names_that_matter,
    json_ends_every_name_in_a_test_event,
    json_measures_in_bench_events,
    json_tells_failures_on_one_line_each,
    one_trial_at_a_time_whatever_is_asked_for,
    what_bodies_print_never_falls_between_events,
    failures_are_named_and_explained,
    a_seed_is_printed_and_gives_one_order,
    the_first_failure_ends_the_run,
    the_log_file_has_a_line_a_trial,
    times_are_reported_and_limits_are_kept,
    colors_are_for_terminals_or_on_request,
    ignored_trials_say_why_and_run_only_on_request,
    accepted_flags_in_any_order,
);

/// Median and deviation of a line as cargo-benchcmp parses it.
fn bench_line(line: &str) -> Option<(&str, u64, &str, u64)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... bench: ")?;
    let (value, deviation) = rest.strip_suffix(')')?.split_once(" (+/- ")?;
    let (median, unit) = value.split_once(' ')?;
    let number = |text: &str| text.replace(',', "").parse().ok();
    Some((name, number(median)?, unit, number(deviation)?))
}

fn names_of(ran: &Ran, event: &str) -> Vec<String> {
    let events = ran.events();
    let of = events.iter().filter(|e| e["type"] == "test" && e["event"] == event);
    of.map(|e| e["name"].as_str().expect("a name").to_string()).collect()
}

fn what_cargo_and_its_clients_pass_means_what_they_expect() {
    let bench = Bench::new();
    let result = |argv: &str| {
        let out = bench.run(argv).exits(0).out;
        let line = out.lines().find(|line| line.contains("test result") || line.contains("exec_time"));
        line.map(|line| line.split("finished").next().unwrap_or_default().to_string()).unwrap_or_default()
    };
    // cargo bench -- good::first --exact
    assert!(result("good::first --exact --bench").contains("0 passed; 0 failed; 0 ignored; 1 measured; 13"));
    // cargo test --benches, cargo bench -- --test
    assert!(result("good").contains("3 passed; 0 failed; 0 ignored; 0 measured; 11"));
    assert!(result("good --test --bench").contains("3 passed; 0 failed; 0 ignored; 0 measured; 11"));
    // nextest run, nextest bench
    assert!(result("--exact good::first --nocapture").contains("1 passed; 0 failed"));
    assert!(result("--exact good::first --nocapture --bench").contains("1 measured"));
    // rust-analyzer's lens and its explorer, IntelliJ
    assert!(result("good::first --exact --nocapture --bench").contains("1 measured"));
    assert!(result("good::first -Z unstable-options --format=json --nocapture").contains("\"passed\":1"));
    let intellij = "good::first --exact --format=json -Z unstable-options --show-output --bench";
    assert!(result(intellij).contains("\"measured\":1"));
}

fn pretty_lines_are_what_parsers_take() {
    let bench = Bench::new();
    let smoke = bench.run("good absent").exits(0);
    let smoke = smoke.has_line("running 4 tests").has_line("test good::talk ... ok");
    let smoke = smoke.has_line("test absent::moon ... ignored, needs the moon: it is out of reach");
    assert!(smoke.out.starts_with("\nrunning 4 tests\n"), "{}", smoke.out);
    assert!(
        smoke.out.contains("\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 10 filtered out; ")
    );
    let measured = bench.run("good --bench").exits(0);
    let lines: Vec<_> = measured.out.lines().filter_map(bench_line).collect();
    let told: Vec<_> = lines.iter().map(|(name, _, unit, _)| (*name, *unit)).collect();
    assert_eq!(told, [("good::first", "ns/iter"), ("good::second", "ns/iter"), ("good::talk", "ns/iter")]);
    assert!(lines.iter().all(|(_, median, ..)| *median > 0), "{lines:?}");
}

fn terse_keeps_the_names_that_matter() {
    let bench = Bench::new();
    for argv in ["good fails::check -q", "good fails::check --format terse"] {
        let ran = bench.run(argv).exits(101).has_line("...").has_line("fails::check --- FAILED");
        assert!(ran.out.contains("test result: FAILED. 3 passed; 1 failed"), "{}", ran.out);
    }
    let out = bench.run("good -q --bench").exits(0).out;
    assert_eq!(out.lines().filter_map(bench_line).count(), 3, "{out}");
}

fn json_ends_every_name_in_a_test_event() {
    let bench = Bench::new();
    let explorer = "--skip hangs --skip ends -Z unstable-options --format=json --nocapture";
    for env in [&[][..], &[("WALLGRIND_RUN", "measure")]] {
        let ran = bench.run_with(explorer, env).exits(101);
        let started = names_of(&ran, "started");
        let mut ended: Vec<String> =
            ["ok", "failed", "ignored"].iter().flat_map(|e| names_of(&ran, e)).collect();
        ended.sort_by_key(|name| started.iter().position(|other| other == name));
        assert_eq!(started, ended, "{env:?}");
        assert_eq!(started.len(), 10);
    }
}

fn json_measures_in_bench_events() {
    let ran = Bench::new().run("good --format json --bench").exits(0);
    let events = ran.events();
    let kinds: Vec<&str> = events.iter().map(|e| e["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["suite", "test", "bench", "test", "bench", "test", "bench", "suite"]);
    assert_eq!((&events[0]["event"], &events[0]["test_count"]), (&"started".into(), &3.into()));
    assert!(events[2]["median"].as_u64().is_some_and(|n| n > 0), "{}", events[2]);
    assert!(events[2]["deviation"].is_u64(), "{}", events[2]);
    assert_eq!(events[2]["unit"], "ns/iter");
    assert_eq!((&events[7]["event"], &events[7]["measured"]), (&"ok".into(), &3.into()));
}

fn json_tells_failures_on_one_line_each() {
    let ran = Bench::new().run("fails absent --format json").exits(101);
    let ended: Vec<Value> = ran.events().into_iter().filter(|e| e["event"] == "failed").collect();
    assert_eq!(ended.len(), 4, "three trials and the suite: {ended:?}");
    assert_eq!(ended[0]["stdout"], "Error: fails::check: five is not four\n");
    assert_eq!(ended[3]["type"], "suite");
    let ignored = ran.events().into_iter().find(|e| e["event"] == "ignored").expect("the moon");
    assert_eq!(ignored["message"], "needs the moon: it is out of reach");
    assert!(!ran.out.contains("/target/") && !ran.out.contains(" - "), "{}", ran.out);
}

fn one_trial_at_a_time_whatever_is_asked_for() {
    let ran =
        Bench::new().run_with("good prints --test-threads 8 --format json", &[("RUST_TEST_THREADS", "8")]);
    let events = ran.exits(0).events();
    let told: Vec<&str> = events.iter().map(|e| e["event"].as_str().expect("an event")).collect();
    let pairs = ["started", "ok"].repeat(5);
    assert_eq!(told, [&["started"][..], &pairs, &["ok"]].concat());
}

fn what_bodies_print_never_falls_between_events() {
    let bench = Bench::new();
    for argv in ["prints", "prints -q", "prints --format json", "prints --bench", "prints --isolate"] {
        let ran = bench.run(argv).exits(0).says("printed by a body").says("by a child");
        assert!(!ran.out.contains("by a"), "{argv}: {}", ran.out);
    }
}

fn failures_are_named_and_explained() {
    let ran = Bench::new().run("fails good::first").exits(101);
    let ran = ran.says("Error: fails::check: five is not four");
    let ran =
        ran.says("thread 'fails::panic'").says("Error: fails::panic: panicked: on purpose, in fails::panic");
    let ran = ran.has_line("---- fails::check stdout ----").has_line("Error: five is not four");
    let ran = ran.has_line("    fails::measures_nothing").has_line("test good::first ... ok");
    assert!(ran.out.contains("test result: FAILED. 1 passed; 3 failed;"), "{}", ran.out);
}

fn a_seed_is_printed_and_gives_one_order() {
    let bench = Bench::new();
    let order =
        |argv: &str| names_of(&bench.run(&format!("good prints --format json {argv}")).exits(0), "started");
    assert_eq!(order("--shuffle-seed 3"), order("--shuffle --shuffle-seed 3"));
    assert_ne!(order("--shuffle-seed 3"), order(""));
    let drawn = bench.run("good --shuffle").exits(0).out;
    let seed = drawn.split_once("(shuffle seed: ").and_then(|(_, rest)| rest.split_once(')'));
    assert!(seed.is_some_and(|(seed, _)| seed.parse::<u64>().is_ok()), "{drawn}");
    assert_eq!(bench.run("good --shuffle-seed 3 --format json").events()[0]["shuffle_seed"], 3);
}

fn the_first_failure_ends_the_run() {
    let ran = Bench::new().run("fails good::first --shuffle-seed 1 --fail-fast").exits(101);
    assert!(ran.out.contains("1 failed;"), "{}", ran.out);
    let ran = Bench::new().run("fails --fail-fast").exits(101).says("2 not run");
    assert_eq!(ran.out.matches("... FAILED").count(), 1, "{}", ran.out);
}

fn the_log_file_has_a_line_a_trial() {
    let bench = Bench::new();
    let argv = "good::first fails::check absent --logfile log";
    for _ in 0..2 {
        bench.run(argv).exits(101).has_line("test good::first ... ok");
        let log = std::fs::read_to_string(bench.dir().join("log")).expect("the log");
        let reason = "ignored, needs the moon: it is out of reach absent::moon";
        assert_eq!(log, format!("ok good::first\nfailed: five is not four fails::check\n{reason}\n"));
    }
}

fn times_are_reported_and_limits_are_kept() {
    let bench = Bench::new();
    let ran = bench.run("good::first --report-time -Z unstable-options").exits(0);
    assert!(
        ran.out.lines().any(|l| l.starts_with("test good::first ... ok <") && l.ends_with("s>")),
        "{}",
        ran.out
    );
    let events = bench.run("good::first --report-time --format json").exits(0).events();
    assert!(events[2]["exec_time"].as_f64().is_some_and(|s| s >= 0.0), "{}", events[2]);
    bench.run("good::first --ensure-time").exits(0);
    let none = [("RUST_TEST_TIME_INTEGRATION", "0,0")];
    bench.run_with("good::first --ensure-time", &none).exits(101).says("--ensure-time allows 0.000 s");
}

fn colors_are_for_terminals_or_on_request() {
    let bench = Bench::new();
    let colored =
        |argv: &str, env: &[(&str, &str)]| bench.run_with(argv, env).exits(0).out.contains("\x1b[32mok");
    assert!(!colored("good", &[]));
    assert!(colored("good --color always", &[]));
    assert!(colored("good --color always", &[("NO_COLOR", "1")]));
    assert!(!colored("good --color=never", &[]));
}

fn ignored_trials_say_why_and_run_only_on_request() {
    let bench = Bench::new();
    let reason = "needs the moon: it is out of reach";
    bench.run("absent good::first").exits(0).says(&format!("ignored: absent::moon: {reason}"));
    // Asked for, it cannot pass: it did not run.
    for flag in ["--ignored", "--include-ignored"] {
        let argv = format!("--exact absent::moon --nocapture {flag}");
        bench.run(&argv).exits(101).says(&format!("Error: absent::moon: {reason}"));
    }
}

fn accepted_flags_in_any_order() {
    let argv = "--nocapture good::first --no-capture --show-output -q --color never --test-threads 3 --bench \
                --exclude-should-panic --force-run-in-process --skip nothing --skip else -Z unstable-options \
                --report-time --include-ignored --exact good::second --bench --exact --shuffle --fail-fast";
    let ran = Bench::new().run(argv).exits(0);
    assert!(ran.out.contains("2 measured; 12 filtered out"), "{}", ran.out);
    let bench = Bench::new();
    let mut command = bench.command("--bench");
    command.arg("").args(["--list", "--format", "terse"]);
    assert_eq!(crate::bench::ran(command).exits(0).out.lines().count(), 14, "an empty filter matches all");
}
