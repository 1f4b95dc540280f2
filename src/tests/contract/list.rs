//! `--list`: exact, cheap, without side effects, and safe when two run at once.

use std::process::Stdio;

use crate::bench::{Bench, ran};

crate::tests!(
    terse_is_names_and_nothing_else,
    ignored_lists_only_what_this_machine_lacks_something_for,
    filters_hold_for_lists_too,
    two_at_once_say_the_same_and_leave_nothing,
    pretty_has_totals_and_json_is_json,
    a_held_lock_and_a_closed_stdout_are_no_matter,
);

/// All trials of the fixture, in the order of registration.
pub const NAMES: [&str; 14] = [
    "good::first",
    "good::second",
    "good::talk",
    "prints::here",
    "prints::in_a_child",
    "fails::check",
    "fails::panic",
    "fails::measures_nothing",
    "hangs::for_ever",
    "hangs::with_a_child",
    "ends::by_exit",
    "ends::by_abort",
    "scratch::left_behind",
    "absent::moon",
];

fn terse(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name}: benchmark\n")).collect()
}

fn terse_is_names_and_nothing_else() {
    for argv in
        ["--list --format terse", "--format=terse --list --bench", "--list -q", "--test --list -q --bench"]
    {
        let ran = Bench::new().run(argv).exits(0);
        assert_eq!((ran.out, ran.err), (terse(&NAMES), String::new()), "{argv}");
    }
}

fn ignored_lists_only_what_this_machine_lacks_something_for() {
    let bench = Bench::new();
    let list = |argv: &str| bench.run(argv).exits(0);
    assert_eq!(list("--list --format terse --ignored").out, terse(&["absent::moon"]));
    let none = list("good --list --format terse --ignored");
    assert_eq!((none.out, none.err), (String::new(), String::new()));
    assert_eq!(list("--list --format terse --include-ignored").out, terse(&NAMES));
}

fn filters_hold_for_lists_too() {
    let bench = Bench::new();
    let list = |argv: &str| bench.run(&format!("{argv} --list --format terse")).exits(0).out;
    assert_eq!(list("good absent --skip talk"), terse(&["good::first", "good::second", "absent::moon"]));
    assert_eq!(list("--exact good::first good"), terse(&["good::first"]));
}

fn two_at_once_say_the_same_and_leave_nothing() {
    let bench = Bench::new();
    for _ in 0..5 {
        let start = |argv: &str| {
            bench
                .command(argv)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the bench target")
        };
        let both = [start("--list --format terse"), start("--list --format terse --ignored")];
        let texts = both.map(|child| {
            let output = child.wait_with_output().expect("its output");
            assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
            String::from_utf8(output.stdout).expect("Unicode")
        });
        assert_eq!(texts, [terse(&NAMES), terse(&["absent::moon"])]);
    }
    let left = std::fs::read_dir(bench.dir()).expect("the folder").count();
    assert_eq!(left, 0, "listing has left something behind");
}

fn pretty_has_totals_and_json_is_json() {
    let bench = Bench::new();
    let pretty = bench.run("--list").exits(0).out;
    assert!(pretty.ends_with("absent::moon: benchmark\n\n0 tests, 14 benchmarks\n"), "{pretty}");
    let events = bench.run("--list --format json -Z unstable-options").exits(0).events();
    assert_eq!(events.len(), NAMES.len() + 2);
    assert_eq!(events[14]["name"], "absent::moon");
    assert_eq!((&events[14]["ignore"], &events[1]["ignore"]), (&true.into(), &false.into()));
    assert_eq!(events[15]["benchmarks"], 14);
}

fn a_held_lock_and_a_closed_stdout_are_no_matter() {
    let bench = Bench::new();
    let lock = std::fs::File::create(bench.dir().join("lock")).expect("a file");
    lock.lock().expect("a lock");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = bench.command("--list --format terse");
    command.stdout(writer).stderr(Stdio::piped());
    let child = command.spawn().expect("the bench target");
    let output = child.wait_with_output().expect("its end");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    ran(bench.command("--list")).exits(0);
}
