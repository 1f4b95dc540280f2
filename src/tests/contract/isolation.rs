//! `--isolate`: a process for each trial, killed with its group; and what
//! becomes of a body that ends its process.

use std::fs::File;

use wallgrind::store::{Record, Status};

use crate::bench::{Bench, statuses};
use crate::fixture::HOLD;

crate::tests!(
    results_come_from_processes_of_their_own,
    a_body_that_ends_its_process_fails_alone,
    without_isolation_an_exit_is_no_success,
    a_trial_that_hangs_is_killed_with_its_group,
    children_die_with_their_parent,
    leftovers_of_a_trial_go_with_it,
);

fn results_come_from_processes_of_their_own() {
    let bench = Bench::new();
    let ran = bench.run("good fails absent --bench --isolate --format json").exits(101);
    let last = ran.events().pop().expect("events");
    assert_eq!((&last["measured"], &last["failed"], &last["ignored"]), (&3.into(), &3.into(), &1.into()));
    let records = bench.records();
    let talk = records.iter().find(|record| record.scenario == "good::talk").expect("a record");
    let parties: Vec<_> = talk.metrics.iter().filter_map(|metric| metric.series.party.clone()).collect();
    assert_eq!(parties, ["one", "two"]);
    let panicked = records.iter().find(|record| record.scenario == "fails::panic").expect("a record");
    assert_eq!(panicked.status, Status::Failed("panicked: on purpose, in fails::panic".into()));
    ran.says("thread 'fails::panic'");
}

fn a_body_that_ends_its_process_fails_alone() {
    let bench = Bench::new();
    let ran = bench.run("ends good --isolate --bench").exits(101);
    let ran = ran.says("ends::by_abort: the trial's process was ended by SIGABRT before it gave a result");
    let ran = ran.says("ends::by_exit: the trial's process exited with 0 before it gave a result");
    assert!(ran.out.contains("0 passed; 2 failed; 0 ignored; 3 measured;"), "{}", ran.out);
    assert_eq!(statuses(&bench.records())[..2], [("ends::by_abort", "failed"), ("ends::by_exit", "failed")]);
}

fn without_isolation_an_exit_is_no_success() {
    // In the order of registration the one that ends the process is the last.
    for order in ["", "--shuffle-seed 1", "--shuffle-seed 2"] {
        let bench = Bench::new();
        let ran = bench.run(&format!("good ends::by_exit {order} --bench")).exits(101);
        let ran = ran.says("ends::by_exit: the body called exit");
        assert!(ran.out.contains("0 passed; 1 failed; 0 ignored; 3 measured;"), "{order}: {}", ran.out);
        assert_eq!(bench.leftovers(), [] as [&str; 0], "{order}");
        let failed = |record: &&Record| record.scenario == "ends::by_exit" && record.metrics.is_empty();
        assert_eq!(bench.records().iter().filter(failed).count(), 1, "{order}");
        assert_eq!(bench.records().len(), 4, "{order}");
    }
}

fn a_trial_that_hangs_is_killed_with_its_group() {
    let bench = Bench::new();
    // Its grandchild holds standard error: this ends only when it is killed.
    let ran = bench.run("hangs::with_a_child good::first --isolate --timeout 5s --shuffle-seed 3 --bench");
    let ran = ran.exits(101).says("Error: hangs::with_a_child: timed out");
    assert!(ran.out.contains("1 failed; 0 ignored; 1 measured;"), "{}", ran.out);
    assert_eq!(statuses(&bench.records()), [("good::first", "ok"), ("hangs::with_a_child", "timed out")]);
}

fn children_die_with_their_parent() {
    let bench = Bench::new();
    let hold = bench.dir().join("hold");
    let env = [(HOLD, hold.to_str().expect("Unicode"))];
    for signal in [9, 15] {
        let mut running = bench.start("hangs::for_ever --isolate", &env);
        running.wait_for("hangs::for_ever hangs");
        running.signal(signal);
        // The lock is free when the child has gone, and not before.
        File::open(&hold).expect("the file").lock().expect("a lock");
        let code = running.child.wait().expect("the end").code();
        assert_eq!(code, (signal == 15).then_some(143));
    }
}

fn leftovers_of_a_trial_go_with_it() {
    let bench = Bench::new();
    bench.run("scratch --isolate").exits(0).says("fixture: scratch in");
    assert_eq!(bench.leftovers(), [] as [&str; 0]);
}
