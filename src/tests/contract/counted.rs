//! The contract under Valgrind: units, signals, and a machine without it.

use std::process::Command;

use wallgrind::store::Status;

use crate::bench::{Bench, statuses};

/// Whether this machine has no Valgrind, for tests of which that is only a part.
pub fn no_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_err()
}

pub fn tests() -> Vec<libtest_mimic::Trial> {
    let has_valgrind = !no_valgrind();
    let trial = |name: &str, needs_valgrind: bool, test: fn()| {
        let trial = libtest_mimic::Trial::test(format!("counted::{name}"), move || {
            test();
            Ok(())
        });
        // Listed as ignored where Valgrind is not installed.
        trial.with_ignored_flag(needs_valgrind && !has_valgrind)
    };
    vec![
        trial("counts_are_told_as_instructions", true, counts_are_told_as_instructions),
        trial("a_signal_ends_the_children", true, a_signal_ends_the_children),
        trial("without_valgrind_all_is_ignored_with_the_way_out", false, without_valgrind),
    ]
}

fn counts_are_told_as_instructions() {
    let bench = Bench::new();
    let argv = "good::first good::talk fails::check --mode cachegrind --bench";
    let ran = bench.run_with(argv, &[("WALLGRIND_TIMEOUT", "300s")]).exits(101);
    let lines: Vec<&str> = ran.out.lines().filter(|line| line.contains("... bench: ")).collect();
    assert_eq!(lines.len(), 2, "{}", ran.out);
    assert!(lines.iter().all(|line| line.contains(" instructions/iter (+/- 0)")), "{lines:?}");
    assert!(!ran.out.contains(" ns/iter"), "{}", ran.out);
    let records = bench.records();
    assert_eq!(statuses(&records)[1..], [("good::first", "ok"), ("good::talk", "ok")]);
    assert!(records.iter().all(|record| record.mode == "cachegrind"));
}

fn a_signal_ends_the_children() {
    let bench = Bench::new();
    let mut running = bench.start("good::first hangs --mode cachegrind --bench", &[]);
    // The first record is there, and children of the trials that hang are at work.
    let mut line = String::new();
    let out = running.child.stdout.as_mut().expect("standard output");
    while !line.contains("good::first ... bench") {
        let mut byte = [0];
        std::io::Read::read_exact(out, &mut byte).expect("more of standard output");
        line.push(char::from(byte[0]));
    }
    running.signal(15);
    let (status, out, err) = running.end();
    assert_eq!(status.code(), Some(143), "{out}{err}");
    assert_eq!(statuses(&bench.records()), [("good::first", "ok")]);
    let left: Vec<String> = bench.leftovers();
    assert_eq!(left, [] as [&str; 0]);
}

fn without_valgrind() {
    let bench = Bench::new();
    let nowhere = bench.out();
    let env = [("PATH", nowhere.to_str().expect("Unicode")), ("WALLGRIND_MODE", "cachegrind")];
    let ran = bench.run_with("good --bench", &env).exits(0).says("ignored: 3 trials").says("install");
    assert!(ran.out.contains("0 measured") && ran.out.contains("3 ignored"), "{}", ran.out);
    let ignored = |status: &Status| matches!(status, Status::Ignored(reason) if reason.contains("valgrind"));
    assert!(bench.records().iter().all(|record| ignored(&record.status)));
    let listed = bench.run_with("good --list --format terse --ignored", &env).exits(0).out;
    assert_eq!(listed.lines().count(), 3, "nextest learns of it from the list");
    bench.run_with("good", &env).exits(0).has_line("test good::first ... ok");
}
