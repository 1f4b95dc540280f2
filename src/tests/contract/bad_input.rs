//! Bad input: a clear message that names the thing and the way out, the right
//! exit code, and nothing lost of the other trials.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::bench::{Bench, Ran, ran, statuses};

crate::tests!(
    what_is_not_known_is_refused_with_a_way_out,
    a_filter_that_matches_nothing_says_so_and_succeeds,
    records_need_a_place,
    a_full_disk_fails_the_trial_and_nothing_else,
    a_log_file_needs_a_place,
    arguments_that_are_not_unicode_are_an_error,
    flags_of_our_own_use_are_refused_from_outside,
    help_goes_to_stdout_and_is_no_failure,
    a_lock_that_cannot_be_used_is_named,
);

fn what_is_not_known_is_refused_with_a_way_out() {
    let bench = Bench::new();
    let refused = |argv: &str, text: &str| {
        let ran = bench.run(&format!("{argv} --bench")).exits(101).says(text);
        assert_eq!(ran.out, "", "{argv}");
    };
    refused("--smaples 20", "--samples");
    refused("--mode cachegrid", "did you mean cachegrind?");
    refused("--samples 0", "--samples: \"0\" asks for no samples");
    refused("--time never", "--time: \"never\" is not a duration");
    refused("--format junit", "cargo nextest");
    refused("--format yaml", "pretty, terse, json");
    refused("--test-threads 0", "--test-threads 0");
    refused("--cpu 99999", "--cpu 99999");
    let env = |name: &str, value: &str, text: &str| {
        bench.run_with("--bench", &[(name, value)]).exits(101).says(&format!("variable {name}")).says(text);
    };
    env("WALLGRIND_SAMPLES", "0", "no samples");
    env("WALLGRIND_MODE", "sundial", "walltime, cachegrind, dhat");
    env("WALLGRIND_RUN", "fast", "smoke, measure");
    env("NEXTEST_RUN_ID", "../up", "cannot name a folder");
    let near = bench.run_with("good::first", &[("WALLGRIND_SAMPELS", "3")]).exits(0);
    near.says("did you mean WALLGRIND_SAMPLES?");
    assert!(!bench.out().exists());
}

fn a_filter_that_matches_nothing_says_so_and_succeeds() {
    let bench = Bench::new();
    let nothing = |argv: &str| bench.run(argv).exits(0).has_line("running 0 tests");
    nothing("god").says("no trial of contract matches `god`; did you mean good?");
    nothing("good::firt --bench").says("did you mean good::first?");
    nothing("good --exact").says("without --exact, 3 would");
    nothing("qqqq zzzz").says("no trial of contract matches `qqqq` or `zzzz`");
    let ran = bench.run("god --list --format terse").exits(0).says("did you mean good?");
    assert_eq!(ran.out, "");
    assert!(!bench.out().exists(), "an empty run has made a folder");
}

fn records_need_a_place() {
    let bench = Bench::new();
    let file = bench.dir().join("file");
    std::fs::write(&file, "").expect("a file");
    for out in ["file", "/proc/nowhere"] {
        let ran = bench.run(&format!("good --bench --out {out}")).exits(101).says(out);
        assert_eq!(ran.out, "", "nothing was measured");
    }
    // A smoke run writes none, and needs no place for them.
    bench.run("good --out file").exits(0);
}

/// The bench target, in a shell that lets no file grow: writing fails as on a
/// full disk, while folders and pipes work.
fn with_no_room(bench: &Bench, argv: &str) -> Ran {
    let inner = bench.command(argv);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
    command.arg(inner.get_program()).args(inner.get_args()).current_dir(bench.dir());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    ran(command)
}

fn a_full_disk_fails_the_trial_and_nothing_else() {
    let bench = Bench::new();
    let ran = with_no_room(&bench, "good --bench").exits(101);
    let ran = ran.says("Error: good::first: its record could not be written").says("good.first");
    assert!(ran.out.contains("0 passed; 3 failed; 0 ignored; 0 measured;"), "all were tried: {}", ran.out);
    assert_eq!(statuses(&bench.records()), [], "no half-written record is left");
}

fn a_log_file_needs_a_place() {
    let ran = Bench::new().run("good --logfile nowhere/log").exits(101);
    assert_eq!(ran.says("nowhere/log").out, "");
}

fn arguments_that_are_not_unicode_are_an_error() {
    let bench = Bench::new();
    let mut command = bench.command("--bench");
    command.arg(OsStr::from_bytes(b"\xff"));
    let ran = ran(command).exits(101);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

fn flags_of_our_own_use_are_refused_from_outside() {
    let bench = Bench::new();
    for argv in
        ["--wallgrind-resume 1", "--wallgrind-resume 99", "--wallgrind-resume x", "--wallgrind-trial x"]
    {
        let ran = bench.run(argv).exits(101).says("error: ");
        assert!(!ran.err.contains("panicked"), "{argv}: {}", ran.err);
    }
}

fn help_goes_to_stdout_and_is_no_failure() {
    for argv in ["-h", "--help", "--bench -h"] {
        let ran = Bench::new().run(argv).exits(0);
        assert!(ran.out.contains("--samples") && ran.err.is_empty(), "{ran:?}");
    }
}

fn a_lock_that_cannot_be_used_is_named() {
    let bench = Bench::new();
    bench.run("good --bench --lock nowhere/lock").exits(101).says("nowhere/lock").says("--lock");
}
