//! `--save-baseline`, `--baseline` and `--against`: what is kept, what fails,
//! and what becomes of another build that is not what it should be.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wallgrind::compare::Turns;
use wallgrind::store::{Baselines, RunDir, Status, make_layouts};

use crate::bench::{Bench, Ran, ran, statuses};
use crate::fixture::{HOLD, NOPS, PLANTED};

pub fn tests() -> Vec<libtest_mimic::Trial> {
    crate::trials(
        "compared",
        &[
            (
                "a_baseline_is_kept_compared_with_and_deleted",
                false,
                a_baseline_is_kept_compared_with_and_deleted,
            ),
            ("a_name_that_is_not_known_has_near_ones", false, a_name_that_is_not_known_has_near_ones),
            ("times_under_other_conditions_are_not_compared", false, times_under_other_conditions),
            ("counts_under_other_conditions_are_not_compared", true, counts_under_other_conditions),
            (
                "one_more_instruction_than_in_the_baseline_fails_the_trial",
                true,
                one_more_instruction_than_in_the_baseline_fails_the_trial,
            ),
            (
                "counts_of_another_build_are_taken_in_the_same_run",
                true,
                counts_of_another_build_are_taken_in_the_same_run,
            ),
            (
                "one_planted_instruction_is_called_by_counts",
                true,
                one_planted_instruction_is_called_by_counts,
            ),
            ("what_is_usual_in_a_history_does_not_fail", true, what_is_usual_in_a_history_does_not_fail),
            ("another_build_is_measured_in_turn", false, another_build_is_measured_in_turn),
            ("layouts_are_drawn_where_both_builds_have_some", false, layouts_are_drawn),
            (
                "a_trial_that_got_much_slower_fails_where_clients_see_it",
                false,
                a_trial_that_got_much_slower_fails_where_clients_see_it,
            ),
            ("a_failure_says_in_which_build", false, a_failure_says_in_which_build),
            ("what_is_no_bench_is_refused", false, what_is_no_bench_is_refused),
            (
                "a_trial_of_this_build_alone_is_measured_alone",
                false,
                a_trial_of_this_build_alone_is_measured_alone,
            ),
            (
                "processes_in_turn_end_with_a_time_out_and_with_their_parent",
                false,
                processes_in_turn_end_with_a_time_out_and_with_their_parent,
            ),
        ],
    )
}

/// This executable, which is the bench target.
fn program() -> String {
    std::env::current_exe().expect("this executable").display().to_string()
}

/// The bench target with a share of work planted, whatever the environment says.
fn planted(bench: &Bench, units: u32) -> PathBuf {
    with(bench, PLANTED, units)
}

fn with(bench: &Bench, variable: &str, value: u32) -> PathBuf {
    let path = bench.dir().join(format!("{variable}-{value}"));
    fs::write(&path, format!("#!/bin/sh\n{variable}={value} exec '{}' \"$@\"\n", program()))
        .expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

fn command(bench: &Bench, argv: &str) -> Ran {
    crate::records::wallgrind(bench, argv)
}

fn a_baseline_is_kept_compared_with_and_deleted() {
    let bench = Bench::new();
    bench.run("good --bench --run-id first --save-baseline main").exits(0).says("kept as baseline main");
    let again = bench.run("good --bench --run-id second --baseline main --no-fail").exits(0);
    let again = again.says("compared with baseline main").says("times: slower or faster when significant");
    assert!(again.out.contains("3 measured;"), "{}", again.out);
    let listed = command(&bench, "baselines").exits(0).out;
    assert!(listed.contains("main  contract  saved ") && listed.contains("3 records"), "{listed}");
    command(&bench, "baselines show main").exits(0);
    let compared = command(&bench, "compare main second --no-fail").exits(0).out;
    assert!(compared.contains("compared with main\n"), "{compared}");
    command(&bench, "compare first second --no-fail").exits(0);
    command(&bench, "compare first sceond").exits(101).says("did you mean second?");
    // Runs of the main line, each once.
    assert!(command(&bench, "history add first --dir hist").exits(0).out.starts_with("3 lines added"));
    assert!(command(&bench, "history add first --dir hist").exits(0).out.starts_with("0 lines added"));
    let shown = command(&bench, "history show --dir hist good::talk").exits(0).out;
    assert!(shown.starts_with("good::talk (walltime)\n") && shown.contains("10 are needed"), "{shown}");
    assert!(shown.contains(" last, 1 runs, 10 are needed") && !shown.contains("e0"), "{shown}");
    command(&bench, "history show --dir hist good::talc").exits(101).says("did you mean good::talk?");
    command(&bench, "history show --dir none").exits(101).says("the history none cannot be used");
    // The hidden folder of baselines is no run.
    assert_eq!(command(&bench, "runs").exits(0).out.lines().count(), 2);
    command(&bench, "baselines delete mian").exits(101).says("did you mean main?");
    let deleted = command(&bench, "baselines delete main").exits(0).out;
    assert!(deleted.contains("bytes freed"), "{deleted}");
    bench.run("good --bench --baseline main").exits(101).says("there is no baseline main");
}

/// What a comparison says of two runs, without line breaks.
fn said_of(bench: &Bench, before: &str, after: &str) -> String {
    let said = command(bench, &format!("compare {before} {after} --no-fail")).exits(0).out;
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn times_under_other_conditions() {
    let bench = Bench::new();
    let run = |id: &str, flags: &str| {
        bench.run(&format!("good::first --bench --run-id {id} {flags}")).exits(0);
        RunDir::read(&bench.out().join(id)).expect("a run").remove(0).identity
    };
    let here = run("plain", "");
    run("capped", "--cpu-features valgrind");
    let said = said_of(&bench, "plain", "capped");
    assert!(said.contains("not comparable: processor features: native before, valgrind after"), "{said}");
    let folder = std::path::Path::new("/dev/shm");
    if folder.is_dir() && here["scratch_file_system"] != "tmpfs" {
        run("elsewhere", "--scratch-dir /dev/shm");
        let said = said_of(&bench, "plain", "elsewhere");
        let expected = format!("file system: {} before, tmpfs after", here["scratch_file_system"]);
        assert!(said.contains(&expected), "no {expected:?} in {said}");
    }
}

fn counts_under_other_conditions() {
    let bench = Bench::new();
    for (id, caches) in
        [("large", "32768,8,64:32768,8,64:8388608,16,64"), ("small", "32768,8,64:16384,8,64:8388608,16,64")]
    {
        let argv = format!("good::first --bench --mode cachegrind --cache-sim={caches} --run-id {id}");
        bench.run(&argv).exits(0);
    }
    let said = said_of(&bench, "large", "small");
    let expected = "simulated caches (D1): 32768,8,64 before, 16384,8,64 after";
    assert!(said.contains(&format!("not comparable: {expected}")), "{said}");
    // Another processor, on which code takes other paths.
    let other = RunDir::open(&bench.out(), "other").expect("a run");
    for mut record in RunDir::read(&bench.out().join("large")).expect("a run") {
        assert!(record.facts.insert("cpu_features_seen".into(), "none".into()).is_some());
        other.write(&record).expect("written");
    }
    let said = said_of(&bench, "large", "other");
    assert!(said.contains("not comparable: processor features: "), "{said}");
}

fn a_name_that_is_not_known_has_near_ones() {
    let bench = Bench::new();
    bench.run("good::first --bench --baseline main").exits(101).says("--save-baseline keeps one");
    bench.run("good::first --bench --save-baseline main").exits(0);
    bench.run("good::first --bench --baseline mian").exits(101).says("did you mean main?");
    bench.run("good::first --bench --against mian").exits(101).says("did you mean main?");
    bench.run("good::first --bench --against ./mian").exits(101).says("there is no executable ./mian");
    bench.run("good::first --bench --baseline main --against main").exits(101).says("two ways to compare");
    bench.run("fails::check --bench --save-baseline other").exits(101).says("nothing was measured");
}

fn one_more_instruction_than_in_the_baseline_fails_the_trial() {
    let bench = Bench::new();
    let counts = "good::second --bench --mode cachegrind";
    bench.run(&format!("{counts} --run-id first --save-baseline main")).exits(0);
    bench.run(&format!("{counts} --run-id second --baseline main")).exits(0).says("1 same");
    // What is stored gets one instruction less.
    let store = Baselines::of(&bench.out());
    let kept = store.kept("main", "contract").expect("kept");
    let n = store.records(&kept).expect("records")[0].metrics[0].series.samples[0].total;
    let folder = bench.out().join(".baselines/main").join(format!("contract-{}", &kept.executable[..16]));
    let file = fs::read_dir(folder).expect("a folder").next().expect("a record").expect("an entry").path();
    let text = fs::read_to_string(&file).expect("read");
    fs::write(&file, text.replace(&n.to_string(), &(n - 1).to_string())).expect("written");
    let ran = bench.run(&format!("{counts} --run-id third --baseline main")).exits(101);
    let ran = ran
        .says("Error: good::second: beyond its limits against baseline main")
        .says("instructions slower by +1 (");
    assert!(ran.out.contains("1 failed; 0 ignored; 0 measured;"), "{}", ran.out);
    bench
        .run(&format!("{counts} --run-id fourth --baseline main --no-fail"))
        .exits(0)
        .says("1 beyond the limit");
    bench.run(&format!("{counts} --run-id fifth --baseline main --max-regress ir=1")).exits(0);
    command(&bench, "compare main third").exits(101).says("third is beyond its limits");
    // The numbers of a trial that failed by its verdict alone are on disk.
    let third = wallgrind::store::RunDir::read(&bench.out().join("third")).expect("records");
    assert_eq!((third[0].status.clone(), third[0].metrics.len()), (Status::Ok, 1));
}

fn one_planted_instruction_is_called_by_counts() {
    let bench = Bench::new();
    let none = with(&bench, NOPS, 0);
    let argv = format!("planted::nops --bench --mode cachegrind --against {}", none.display());
    // With as much as the other side there is no difference.
    bench.run_with(&format!("{argv} --run-id none"), &[(NOPS, "0")]).exits(0).says("1 same");
    for more in ["1", "2", "15"] {
        let ran = bench.run_with(&format!("{argv} --run-id by{more}"), &[(NOPS, more)]);
        #[cfg(target_arch = "x86_64")]
        ran.exits(101).says(&format!("instructions slower by +{more} ("));
        #[cfg(not(target_arch = "x86_64"))]
        ran.exits(101).says("instructions slower by +");
        let run = wallgrind::store::RunDir::read(&bench.out().join(format!("by{more}"))).expect("records");
        assert_eq!(run[0].facts.get("variable.CONTRACT_NOPS").map(String::as_str), Some(more));
    }
}

fn what_is_usual_in_a_history_does_not_fail() {
    let bench = Bench::new();
    let counts = "good::second --bench --mode cachegrind";
    bench.run(&format!("{counts} --run-id first --save-baseline main")).exits(0);
    let record = wallgrind::store::RunDir::read(&bench.out().join("first")).expect("records").remove(0);
    let n = record.metrics[0].series.samples[0].total;
    // Twelve runs that go up and down by 2 %.
    let hist = bench.dir().join("hist");
    for (day, share) in [1.0, 1.02].into_iter().cycle().take(12).enumerate() {
        let mut record = record.clone();
        (record.run_id, record.started) = (format!("r{day}"), format!("2026-01-{:02}T00:00:00Z", day + 1));
        record.metrics[0].summary.median = n as f64 * share;
        wallgrind::store::add_to_history(&hist, &[record]).expect("added");
    }
    // The baseline gets a little less than there is: a change within what is usual.
    let store = Baselines::of(&bench.out());
    let kept = store.kept("main", "contract").expect("kept");
    let folder = bench.out().join(".baselines/main").join(format!("contract-{}", &kept.executable[..16]));
    let file = fs::read_dir(folder).expect("a folder").next().expect("a record").expect("an entry").path();
    let text = fs::read_to_string(&file).expect("read");
    let changed = |less: u64| fs::write(&file, text.replace(&n.to_string(), &(n - less).to_string()));
    changed(1).expect("written");
    let again = |id: &str| bench.run(&format!("{counts} --run-id {id} --baseline main --history hist"));
    again("second").exits(0).says("usual up to 2.").says("(12 runs)").says("1 slower");
    bench.run(&format!("{counts} --run-id third --baseline main")).exits(101);
    command(&bench, "compare main second --history hist").exits(0);
    command(&bench, "compare main second").exits(101);
    changed(n / 10).expect("written");
    again("fourth").exits(101).says("beyond its limits");
    let none = bench.run(&format!("{counts} --run-id fifth --baseline main --history none")).exits(101);
    none.says("the history none cannot be used");
}

fn counts_of_another_build_are_taken_in_the_same_run() {
    let bench = Bench::new();
    let argv = format!("good::second good::talk --bench --mode cachegrind --against {}", program());
    let ran = bench.run(&argv).exits(0);
    // One line for the body without parties, three for the other.
    ran.says("\n0 slower, 0 faster, 4 same, 0 not known\n");
}

fn another_build_is_measured_in_turn() {
    let bench = Bench::new();
    let ran = bench.run(&format!("good --bench --against {} --no-fail", program())).exits(0);
    assert!(ran.out.contains("3 measured;"), "{}", ran.out);
    ran.says("compared with ")
        .says("sequential")
        .says("p ")
        .says("good::talk [one]")
        .says("good::talk [two]");
    for record in bench.records() {
        let turns = Turns::of(&record).expect("it was measured in turn");
        assert!(turns.log_ratios.len() >= 5, "{turns:?}");
        let name = |m: &wallgrind::store::Metric| {
            format!("{} {}", m.series.party.as_deref().unwrap_or("whole"), m.series.metric)
        };
        let names: Vec<String> = record.metrics.iter().map(name).collect();
        let parts: &[&str] =
            if record.scenario == "good::talk" { &["whole", "one", "two"] } else { &["whole"] };
        let expected: Vec<String> = parts
            .iter()
            .flat_map(|part| [format!("{part} wall_time"), format!("{part} wall_time_baseline")])
            .collect();
        assert_eq!(names, expected);
    }
    assert_eq!(bench.leftovers(), [] as [&str; 0]);
}

/// A copy of this executable whose `count` layouts write down that they are used.
fn laid_out(bench: &Bench, name: &str, count: u32) -> PathBuf {
    let (program, log) = (bench.dir().join(name), bench.dir().join("log"));
    fs::copy(std::env::current_exe().expect("this executable"), &program).expect("copied");
    let script = |number, path: &Path| {
        let text = format!("echo {name} {number} >> {}\nexec {} \"$@\"\n", log.display(), program.display());
        fs::write(path, format!("#!/bin/sh\n{text}"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
    };
    make_layouts(&program, count, script).expect("made");
    program
}

fn layouts_are_drawn() {
    let bench = Bench::new();
    let (other, this) = (laid_out(&bench, "other", 9), laid_out(&bench, "this", 8));
    let start = |argv: &str| {
        let settings = bench.command(&format!("good::first --bench {argv}"));
        let mut command = Command::new(&this);
        command.args(settings.get_args()).current_dir(bench.dir()).stdin(Stdio::null());
        command.envs(settings.get_envs().filter_map(|(name, value)| Some((name, value?))));
        ran(command).exits(0)
    };
    let run = |other: &Path, id: &str| {
        let ran = start(&format!("--no-fail --run-id {id} --against {}", other.display()));
        let record = RunDir::read(&bench.out().join(id)).expect("records").remove(0);
        let drawn = fs::read_to_string(bench.dir().join("log")).unwrap_or_default();
        let _ = fs::remove_file(bench.dir().join("log"));
        (ran, record.facts["layouts"].clone(), record.facts["pairs"].clone(), drawn)
    };
    let (ran, layouts, pairs, drawn) = run(&other, "first");
    ran.says(", each in 8 layouts");
    assert_eq!((layouts.as_str(), pairs.as_str()), ("8", "5"));
    let mut lines: Vec<&str> = drawn.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!((lines.len(), drawn.lines().count()), (10, 10), "a layout twice: {drawn}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("this ")).count(), 5, "{drawn}");
    // One side's alone would be the luck of the other: then both are as they were linked.
    let (_, layouts, _, drawn) = run(Path::new(&program()), "second");
    assert_eq!((layouts.as_str(), drawn.as_str()), ("1", ""));
    // A baseline keeps them.
    start("--run-id third --save-baseline main");
    let (ran, layouts, ..) = run(Path::new("main"), "fourth");
    ran.says("compared with baseline main").says(", each in 8 layouts");
    assert_eq!(layouts, "8");
}

fn a_trial_that_got_much_slower_fails_where_clients_see_it() {
    let bench = Bench::new();
    let other = planted(&bench, 1);
    // Fifty times the work: a coin's level, so that no load of the machine decides.
    let level = ("WALLGRIND_LEVEL", "50%");
    let argv = format!("planted::spin --bench --format json --against {}", other.display());
    let ran = bench.run_with(&argv, &[(PLANTED, "50"), level]).exits(101);
    let failed = ran.events().into_iter().find(|event| event["event"] == "failed").expect("an event");
    assert_eq!((&failed["type"], &failed["name"]), (&"test".into(), &"planted::spin".into()));
    assert!(failed["stdout"].as_str().expect("a text").contains("wall_time slower by +"), "{failed}");
    let argv = format!("planted::spin --bench --run-id second --against {}", other.display());
    bench
        .run_with(&argv, &[(PLANTED, "50"), level, ("WALLGRIND_NO_FAIL", "yes")])
        .exits(0)
        .says("beyond the limit");
    // The other way round it got faster, which never fails.
    let other = planted(&bench, 50);
    let argv = format!("planted::spin --bench --run-id third --against {}", other.display());
    bench.run_with(&argv, &[(PLANTED, "1"), level]).exits(0).says("\nfaster\n");
}

fn a_failure_says_in_which_build() {
    let bench = Bench::new();
    let ran = bench
        .run(&format!("fails::check fails::panic good::first --bench --no-fail --against {}", program()));
    let ran =
        ran.exits(101).says("Error: fails::check: in ").says("five is not four").says("panicked: on purpose");
    assert!(ran.out.contains("2 failed; 0 ignored; 1 measured;"), "{}", ran.out);
    let failed = statuses(&bench.records()).iter().filter(|(_, status)| *status == "failed").count();
    assert_eq!(failed, 2);
}

fn what_is_no_bench_is_refused() {
    let bench = Bench::new();
    bench.run("good::first --bench --against /bin/false").exits(101).says("/bin/false cannot be measured");
    let rubbish = bench.dir().join("rubbish");
    fs::write(&rubbish, "\x7fELF of another machine").expect("written");
    let argv = format!("good::first --bench --against {}", rubbish.display());
    bench.run(&argv).exits(101).says("it cannot be started");
    fs::set_permissions(&rubbish, fs::Permissions::from_mode(0o755)).expect("executable");
    bench.run(&argv).exits(101).says("cannot be measured");
    // One that lists what it does not run.
    let liar = bench.dir().join("liar");
    fs::write(&liar, "#!/bin/sh\ncase $1 in --list) echo 'good::first: benchmark';; *) echo hello;; esac\n")
        .expect("written");
    fs::set_permissions(&liar, fs::Permissions::from_mode(0o755)).expect("executable");
    let ran = bench.run(&format!("good::first --bench --against {}", liar.display())).exits(101);
    ran.says("in the build it is compared with: it said \"hello\", which is not understood");
}

fn a_trial_of_this_build_alone_is_measured_alone() {
    let bench = Bench::new();
    let other = bench.dir().join("other");
    let text = format!(
        "#!/bin/sh\ncase $1 in --list) echo 'old::one: benchmark';; *) exec '{}' \"$@\";; esac\n",
        program()
    );
    fs::write(&other, text).expect("written");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("executable");
    let ran = bench.run(&format!("good::first --bench --against {}", other.display())).exits(0);
    ran.says("not there before: good::first").says("not there now: old::one").says("2 not compared");
    assert!(Turns::of(&bench.records()[0]).is_none());
}

fn processes_in_turn_end_with_a_time_out_and_with_their_parent() {
    let bench = Bench::new();
    let argv = format!("hangs::for_ever --bench --against {}", program());
    let ran = bench.run(&format!("{argv} good::first --no-fail --timeout 3s")).exits(101);
    assert!(ran.out.contains("1 failed; 0 ignored; 1 measured;"), "{}", ran.out);
    ran.says("Error: hangs::for_ever: timed out");
    let hold = bench.dir().join("hold");
    let env = [(HOLD, hold.to_str().expect("Unicode"))];
    for signal in [9, 15] {
        let mut running = bench.start(&argv, &env);
        running.wait_for("hangs::for_ever hangs");
        running.signal(signal);
        // The lock is free when the child has gone, and not before.
        File::open(&hold).expect("the file").lock().expect("a lock");
        let code = running.child.wait().expect("the end").code();
        assert_eq!(code, (signal == 15).then_some(143));
    }
}
