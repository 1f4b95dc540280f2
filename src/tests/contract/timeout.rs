//! `--timeout` really ends a trial, and the rest is one run still.

use std::fs::{File, TryLockError};

use wallgrind::store::Status;

use crate::bench::{Bench, statuses};
use crate::fixture::HOLD;

crate::tests!(
    a_trial_that_hangs_is_ended_and_the_rest_measured_in_one_stream,
    the_last_trial_may_hang_too,
    smoke_runs_are_guarded_as_well,
    it_really_ends_and_the_lock_is_kept_from_process_to_process,
    after_fail_fast_nothing_is_left,
);

/// Far longer than a trial of the fixture takes, however busy the machine.
const LIMIT: &str = "--timeout 5s";

fn a_trial_that_hangs_is_ended_and_the_rest_measured_in_one_stream() {
    let bench = Bench::new();
    let argv = format!(
        "hangs good absent fails::check {LIMIT} --format json --shuffle-seed 2 --logfile log --bench"
    );
    let ran = bench.run(&argv).exits(101);
    let events = ran.events();
    let kinds = |kind: &str| events.iter().filter(|e| e["type"] == kind).count();
    assert_eq!(kinds("suite"), 2, "one beginning and one end");
    let (first, last) = (&events[0], &events[events.len() - 1]);
    assert_eq!((&first["test_count"], &first["shuffle_seed"]), (&7.into(), &2.into()));
    let totals = ["passed", "failed", "ignored", "measured", "filtered_out"].map(|key| last[key].as_u64());
    assert_eq!(totals, [Some(0), Some(3), Some(1), Some(3), Some(7)]);
    assert!(last["exec_time"].as_f64().is_some_and(|s| s >= 10.0), "two limits of 5 s: {last}");
    let order = |out: &[serde_json::Value]| -> Vec<String> {
        let started = out.iter().filter(|e| e["type"] == "test" && e["event"] == "started");
        started.map(|e| e["name"].to_string()).collect()
    };
    let listed = bench.run("good absent fails::check --format json --shuffle-seed 2").events();
    assert_eq!(order(&events).len(), 7, "every trial, once");
    assert_eq!(order(&listed).len(), 5);
    let statuses_of = bench.records();
    let expected = [
        ("absent::moon", "ignored"),
        ("fails::check", "failed"),
        ("good::first", "ok"),
        ("good::second", "ok"),
        ("good::talk", "ok"),
        ("hangs::for_ever", "timed out"),
        ("hangs::with_a_child", "timed out"),
    ];
    assert_eq!(statuses(&statuses_of), expected);
    let Status::TimedOut(reason) = &statuses_of[5].status else { panic!("{:?}", statuses_of[5]) };
    assert!(reason.contains("--timeout"), "{reason}");
    let log = std::fs::read_to_string(bench.dir().join("log")).expect("the log");
    assert_eq!(log.lines().count(), 7, "{log}");
    let left = bench.leftovers();
    assert_eq!(left, ["log"], "scratch folders are left");
}

fn the_last_trial_may_hang_too() {
    let bench = Bench::new();
    let ran = bench.run(&format!("good::first hangs::for_ever {LIMIT} --bench")).exits(101);
    let ran = ran.has_line("test hangs::for_ever ... FAILED").says("Error: hangs::for_ever: timed out");
    assert!(ran.out.contains("0 passed; 1 failed; 0 ignored; 1 measured; 12 filtered out"), "{}", ran.out);
}

fn smoke_runs_are_guarded_as_well() {
    let bench = Bench::new();
    let argv = format!("hangs::with_a_child prints fails::check {LIMIT} --shuffle-seed 0");
    let ran = bench.run(&argv).exits(101).has_line("test prints::in_a_child ... ok");
    assert!(ran.out.contains("2 passed; 2 failed;"), "{}", ran.out);
    assert!(!ran.out.contains("by a child"), "{}", ran.out);
    assert!(!bench.out().exists());
}

fn it_really_ends_and_the_lock_is_kept_from_process_to_process() {
    let bench = Bench::new();
    // The second one begins to hang only when the first one has gone with its lock.
    let hold = bench.dir().join("hold");
    let env = [(HOLD, hold.to_str().expect("Unicode"))];
    let mut running = bench.start(&format!("hangs {LIMIT} --bench"), &env);
    running.wait_for("hangs::for_ever hangs");
    let lock = File::open(bench.dir().join("lock")).expect("the lock");
    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)));
    let process = running.child.id();
    running.wait_for("hangs::with_a_child hangs");
    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)), "the second process has no lock");
    assert_eq!(process, running.child.id());
    assert_eq!(running.end().0.code(), Some(101));
    lock.try_lock().expect("free after the run");
}

fn after_fail_fast_nothing_is_left() {
    let ran = Bench::new().run(&format!("hangs good {LIMIT} --shuffle-seed 0 --fail-fast"));
    let ran = ran.exits(101);
    assert!(ran.out.contains("1 failed;"), "{}", ran.out);
}
