//! Signals, the lock between processes, streams that are closed or full, and
//! a run that is killed.

use std::fs::{self, File, TryLockError};
use std::process::Stdio;

use crate::bench::{Bench, statuses};
use crate::fixture::HOLD;

crate::tests!(
    a_signal_keeps_what_was_recorded,
    a_second_signal_ends_it_at_once,
    a_killed_run_leaves_whole_records,
    scratch_goes_with_the_run_however_it_ends,
    a_closed_stdout_loses_no_record,
    both_streams_may_be_closed,
    a_full_stdout_is_said_and_loses_no_record,
    measuring_waits_for_the_lock,
    a_wait_for_the_lock_can_be_ended,
    smoke_runs_wait_for_nobody,
);

fn a_signal_keeps_what_was_recorded() {
    for (signal, code, isolate) in [(15, 143, ""), (2, 130, ""), (1, 129, ""), (15, 143, "--isolate")] {
        let bench = Bench::new();
        let mut running = bench.start(&format!("good::first hangs::with_a_child --bench {isolate}"), &[]);
        running.wait_for("hangs::with_a_child hangs");
        running.signal(signal);
        // The grandchild holds standard error: this ends only when it is gone.
        let (status, out, err) = running.end();
        assert_eq!(status.code(), Some(code), "{err}");
        assert!(err.contains("after 1 of 2 trials; their records are in"), "{err}");
        assert!(out.contains("test good::first ... bench: ") && !out.contains("test result"), "{out}");
        assert_eq!(statuses(&bench.records()), [("good::first", "ok")]);
        assert_eq!(bench.leftovers(), [] as [&str; 0]);
    }
}

fn a_second_signal_ends_it_at_once() {
    let bench = Bench::new();
    let mut running = bench.start("hangs::for_ever", &[]);
    running.wait_for("hangs::for_ever hangs");
    // Stopped, it gets both at once when it goes on.
    for signal in [19, 15, 2, 18] {
        running.signal(signal);
    }
    let code = running.end().0.code();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
}

fn a_killed_run_leaves_whole_records() {
    let bench = Bench::new();
    let mut running = bench.start("good hangs::for_ever --bench", &[]);
    running.wait_for("hangs::for_ever hangs");
    running.signal(9);
    let (status, ..) = running.end();
    assert_eq!(status.code(), None);
    let expected = [("good::first", "ok"), ("good::second", "ok"), ("good::talk", "ok")];
    assert_eq!(statuses(&bench.records()), expected);
    File::open(bench.dir().join("lock")).expect("the lock").try_lock().expect("free after the run");
}

fn scratch_goes_with_the_run_however_it_ends() {
    let bench = Bench::new();
    bench.run("scratch").exits(0).says("fixture: scratch in");
    assert_eq!(bench.leftovers(), [] as [&str; 0]);
    let mut running = bench.start("scratch", &[("CONTRACT_HANG", "1")]);
    running.wait_for("scratch::left_behind hangs");
    running.signal(9);
    drop(running.end());
    let left = bench.leftovers();
    assert_eq!(left.len(), 1, "a killed run cannot clean up: {left:?}");
    // The next run does: nobody holds its lock any more.
    bench.run("good::first").exits(0);
    assert_eq!(bench.leftovers(), [] as [&str; 0]);
}

fn a_closed_stdout_loses_no_record() {
    for format in ["pretty", "terse", "json"] {
        let bench = Bench::new();
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = bench.command(&format!("good prints --format {format} --bench"));
        let output = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("the bench target");
        let output = output.wait_with_output().expect("its end");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(!err.contains("panicked"), "{err}");
        assert_eq!(bench.records().len(), 5);
    }
}

fn both_streams_may_be_closed() {
    let bench = Bench::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = bench.command("good prints fails --bench");
    let both = writer.try_clone().expect("a second end");
    let status = command.stdout(writer).stderr(both).status().expect("the bench target");
    assert_eq!(status.code(), Some(101));
    let oks = statuses(&bench.records()).into_iter().filter(|(_, status)| *status == "ok").count();
    assert_eq!(oks, 5, "a body that prints must not panic");
}

fn a_full_stdout_is_said_and_loses_no_record() {
    let bench = Bench::new();
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut command = bench.command("good --bench");
    let output = command.stdout(full).stderr(Stdio::piped()).spawn().expect("the bench target");
    let output = output.wait_with_output().expect("its end");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{err}");
    assert!(err.contains("error: standard output could not be written"), "{err}");
    assert_eq!(bench.records().len(), 3);
}

fn held_lock(bench: &Bench) -> File {
    let lock = File::create(bench.dir().join("lock")).expect("a file");
    lock.lock().expect("a lock");
    lock
}

fn measuring_waits_for_the_lock() {
    let bench = Bench::new();
    let lock = held_lock(&bench);
    let hold = bench.dir().join("hold");
    let env = [(HOLD, hold.to_str().expect("Unicode"))];
    let mut running = bench.start("good::first hangs::for_ever --bench", &env);
    let said = running.wait_for("waiting for another run that measures");
    assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
    assert!(!hold.exists(), "a trial has begun without the lock");
    lock.unlock().expect("unlock");
    running.wait_for("hangs::for_ever hangs");
    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)), "it measures without the lock");
    let mut second = bench.start("good::first --bench", &[]);
    second.wait_for("waiting for another run that measures");
    running.signal(15);
    assert_eq!(running.end().0.code(), Some(143));
    assert_eq!(second.end().0.code(), Some(0));
    bench.run("good::first --bench --lock none").exits(0);
}

fn a_wait_for_the_lock_can_be_ended() {
    let bench = Bench::new();
    let _lock = held_lock(&bench);
    let mut running = bench.start("good::first --bench", &[]);
    running.wait_for("waiting for another run that measures");
    running.signal(15);
    let (status, out, _) = running.end();
    assert_eq!((status.code(), out.as_str()), (Some(143), ""));
    let left: Vec<_> = fs::read_dir(bench.dir()).expect("the folder").collect();
    assert_eq!(left.len(), 2, "the lock and an empty run: {left:?}");
}

fn smoke_runs_wait_for_nobody() {
    let bench = Bench::new();
    let _lock = held_lock(&bench);
    bench.run("good").exits(0);
    bench.run("good --bench --lock none").exits(0);
}
