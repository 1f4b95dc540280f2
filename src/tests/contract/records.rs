//! Records: one for each trial that was measured, failed or was ignored;
//! joined across processes, never overwritten, none for a smoke run.

use std::process::Command;

use wallgrind::store::Status;

use crate::bench::{Bench, Ran, ran, statuses};

crate::tests!(
    every_trial_has_one_and_only_good_ones_have_numbers,
    smoke_runs_and_lists_write_none,
    fewer_processor_features_are_said_beside_every_number,
    processes_of_one_run_are_joined_and_retries_are_kept,
    the_command_lists_and_shows_runs,
    a_bad_file_hides_no_good_one,
    results_of_rustls_own_benchmark_come_in_and_go_out,
);

fn every_trial_has_one_and_only_good_ones_have_numbers() {
    let bench = Bench::new();
    bench.run("good fails absent --bench").exits(101);
    let records = bench.records();
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
    for record in &records {
        let ok = record.status == Status::Ok;
        assert_eq!(record.metrics.is_empty(), !ok, "{}", record.scenario);
        assert_eq!(
            (record.mode.as_str(), record.suite.as_str(), record.attempt),
            ("walltime", "contract", 1)
        );
        assert!(!record.started.is_empty());
        if ok {
            let samples = record.metrics[0].series.samples.len();
            assert!((2..=5).contains(&samples), "{samples} samples, --samples was 2..5");
        }
    }
    assert_eq!(records[1].status, Status::Failed("five is not four".into()));
    assert_eq!(records[5].params, [("sum".to_string(), "4".to_string())]);
}

fn fewer_processor_features_are_said_beside_every_number() {
    let bench = Bench::new();
    bench.run("good --bench --cpu-features valgrind").exits(0);
    let records = bench.records();
    assert_eq!(records.len(), 3);
    for record in &records {
        let said =
            record.notes.iter().any(|n| n.contains("in aws-lc-rs only") || n.contains("hides no feature"));
        assert!(said, "{}: {:?}", record.scenario, record.notes);
    }
    bench.run("good --bench --cpu-features many").exits(101).says("--cpu-features");
}

fn smoke_runs_and_lists_write_none() {
    let bench = Bench::new();
    bench.run("good").exits(0);
    bench.run("good --test --bench").exits(0);
    bench.run("--list").exits(0);
    assert!(!bench.out().exists(), "a run that measured nothing has made a folder");
    assert_eq!(bench.leftovers(), [] as [&str; 0]);
}

fn processes_of_one_run_are_joined_and_retries_are_kept() {
    let bench = Bench::new();
    let run = |name: &str, attempt: &str| {
        let env = [("NEXTEST_RUN_ID", "b0f5c0de-1"), ("NEXTEST_ATTEMPT", attempt)];
        bench.run_with(&format!("--exact {name} --nocapture --bench"), &env)
    };
    run("good::first", "1").exits(0);
    run("fails::check", "1").exits(101);
    run("fails::check", "2").exits(101);
    let records = bench.records();
    assert_eq!(
        statuses(&records),
        [("fails::check", "failed"), ("fails::check", "failed"), ("good::first", "ok")]
    );
    assert!(records.iter().all(|record| record.run_id == "b0f5c0de-1"));
    let mut attempts = [records[0].attempt, records[1].attempt];
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 2]);
}

fn the_command_lists_and_shows_runs() {
    let bench = Bench::new();
    let wallgrind = |argv: &str| wallgrind(&bench, argv);
    wallgrind("runs").exits(101).says("there are no records").says("cargo bench");
    bench.run("good fails --bench --run-id first_run").exits(101);
    let runs = wallgrind("runs").exits(0).out;
    assert!(runs.starts_with("first_run  ") && runs.contains("3 measured, 3 failed, 0 ignored"), "{runs}");
    for argv in ["show", "show first_run"] {
        let shown = wallgrind(argv).exits(0).out;
        assert!(shown.contains("first") && shown.contains("five is not four"), "{shown}");
    }
    wallgrind("show first_rum").exits(101).says("did you mean first_run?");
    wallgrind("shw").exits(101);
    wallgrind("annotate good::first").exits(101).says("--mode cachegrind");
    wallgrind("annotate good::frst").exits(101).says("did you mean good::first?");
    wallgrind("export rustls-ci first_run x").exits(101).says("has a name for");
    wallgrind("export other first_run x").exits(101).says("rustls-ci");
}

fn a_bad_file_hides_no_good_one() {
    let bench = Bench::new();
    bench.run("good::first --bench --run-id mixed").exits(0);
    let run = bench.out().join("mixed");
    std::fs::write(run.join("cut.json"), "{\"schema_version\":\"1.0\",\"run").expect("a file");
    std::fs::write(run.join("newer.json"), "{\"schema_version\":\"9.0\"}").expect("a file");
    let shown = wallgrind(&bench, "show mixed").exits(101).says("cut.json").says("newer.json");
    assert!(shown.out.contains("first"), "{}", shown.out);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
    command.args(["show", "mixed"]).env("WALLGRIND_OUT", bench.out()).stdout(full);
    let unwritten = command.output().expect("the command");
    assert_eq!(unwritten.status.code(), Some(101));
    assert!(String::from_utf8_lossy(&unwritten.stderr).contains("standard output cannot be written"));
    // Nothing of it may have a name there because it could not be read.
    for format in ["rustls-ci", "cloud-hypervisor"] {
        let argv = format!("export {format} mixed to");
        wallgrind(&bench, &argv).exits(101).says("cut.json").says("2 files of the run could not be read");
        assert!(!bench.dir().join("to").exists(), "{format} has left something");
    }
    wallgrind(&bench, "explain good::second --run mixed --stored").exits(101).says("cut.json");
    let listed = wallgrind(&bench, "runs").exits(101).says("cut.json");
    assert!(listed.out.contains("1 measured"), "{}", listed.out);
}

/// Runs the `wallgrind` command in the folder of a bench.
pub fn wallgrind(bench: &Bench, argv: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
    command.args(argv.split_whitespace()).current_dir(bench.dir()).env("WALLGRIND_OUT", bench.out());
    ran(command)
}

fn results_of_rustls_own_benchmark_come_in_and_go_out() {
    let bench = Bench::new();
    let from = bench.dir().join("theirs");
    std::fs::create_dir(&from).expect("a folder");
    let icounts =
        "handshake_no_resume_1.2_no_crypto_server,53800\nhandshake_no_resume_1.2_no_crypto_client,45500\n";
    std::fs::write(from.join("icounts.csv"), icounts).expect("a file");
    wallgrind(&bench, "import rustls-ci theirs --run-id old")
        .exits(0)
        .has_line(&format!("1 records in {}", bench.out().join("old").display()));
    let records = bench.records();
    assert_eq!(statuses(&records), [("tls::handshake_no_resume::no_crypto_1_2", "ok")]);
    wallgrind(&bench, "export rustls-ci old ours").exits(0);
    let written = std::fs::read_to_string(bench.dir().join("ours/icounts.csv")).expect("counts");
    assert_eq!(written, icounts);
    wallgrind(&bench, "import rustls-ci out").exits(101).says("icounts.csv");
}
