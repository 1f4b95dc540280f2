//! Baselines that cannot be compared with: of another machine or architecture,
//! of a newer schema, half-written, with an executable that runs no longer;
//! and two runs that write one store at once. The message names the thing and
//! the way out, and nothing of the run is lost.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::bench::{Bench, ran};

crate::tests!(
    records_of_another_machine_or_architecture_are_not_compared_unless_forced,
    a_newer_or_half_written_baseline_is_named,
    a_kept_executable_that_runs_no_longer_is_named,
    two_runs_that_save_one_baseline_at_once_both_end_well,
    two_commands_that_add_to_one_history_at_once_lose_no_line,
);

/// A bench with a baseline, and the file of its record.
fn kept() -> (Bench, PathBuf) {
    let bench = Bench::new();
    bench.run("good::first --bench --run-id first --save-baseline main").exits(0);
    let folder = fs::read_dir(bench.out().join(".baselines/main")).expect("the baseline");
    let folder = folder.map(|entry| entry.expect("an entry").path()).find(|path| path.is_dir());
    let record =
        fs::read_dir(folder.expect("records")).expect("records").next().expect("one").expect("an entry");
    (bench, record.path())
}

/// Gives a fact in the text of a record another value.
fn with_fact(text: &str, key: &str, value: &str) -> String {
    let from = text.find(&format!("\"{key}\":\"")).expect("the fact") + key.len() + 4;
    let to = from + text[from..].find('"').expect("its end");
    format!("{}{value}{}", &text[..from], &text[to..])
}

fn records_of_another_machine_or_architecture_are_not_compared_unless_forced() {
    let (bench, file) = kept();
    let text = fs::read_to_string(&file).expect("read");
    let cases = [
        ("cpu_model", "Abacus 3000", "processor: Abacus 3000 before"),
        ("target", "z80", "target: z80 before"),
    ];
    for (n, (key, value, says)) in cases.into_iter().enumerate() {
        fs::write(&file, with_fact(&text, key, value)).expect("written");
        let argv = |n: usize| format!("good::first --bench --run-id r{n} --baseline main");
        let ran = bench.run(&argv(n)).exits(0).says("1 not known").says(says);
        ran.says("--force compares anyway");
        let forced = format!("{} --force --no-fail", argv(n + 10));
        bench.run(&forced).exits(0).says(&format!("FORCED, {says}"));
    }
}

fn a_newer_or_half_written_baseline_is_named() {
    let (bench, record) = kept();
    let baseline = bench.out().join(".baselines/main/contract.json");
    let run = |n: &str| bench.run(&format!("good::first --bench --run-id {n} --baseline main")).exits(101);
    for (file, half, newer) in
        [(&record, "cannot be understood", "schema"), (&baseline, "not a whole baseline", "has schema 9.0")]
    {
        let text = fs::read_to_string(file).expect("read");
        fs::write(file, &text[..text.len() / 2]).expect("written");
        let error = run("half").err;
        assert!(
            error.contains(file.file_name().expect("a name").to_str().expect("Unicode")),
            "{half}: {error}"
        );
        assert!(error.contains("hint:"), "{error}");
        fs::write(file, with_fact(&text, "schema_version", "9.0")).expect("written");
        run("newer").says(newer);
        fs::write(file, text).expect("written");
    }
    bench.run("good::first --bench --run-id good --baseline main --no-fail").exits(0);
}

fn a_kept_executable_that_runs_no_longer_is_named() {
    let (bench, _) = kept();
    // A program that was fine when it was kept, and whose loader has gone since.
    let broken = bench.dir().join("broken");
    fs::write(&broken, "#!/no/such/loader\n").expect("written");
    let store = wallgrind::store::Baselines::of(&bench.out());
    store.save(("old", "contract"), &broken, &[], &std::collections::BTreeMap::new()).expect("saved");
    let ran = bench.run("good::first --bench --run-id second --against old").exits(101);
    let ran = ran.says("baseline old").says("cannot be measured: it cannot be started").says("hint:");
    assert_eq!(ran.out, "");
}

fn two_runs_that_save_one_baseline_at_once_both_end_well() {
    let bench = Bench::new();
    let start = |name: &str| {
        // Without the lock that keeps runs from measuring at once.
        let argv =
            format!("{name} --exact --bench --run-id {} --save-baseline main", name.replace("::", "-"));
        let mut command = bench.command(&argv);
        command.env("WALLGRIND_LOCK", "none").stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the bench target")
    };
    let names = ["good::first", "good::second", "good::talk"];
    let mut children = names.map(start);
    for child in &mut children {
        assert!(child.wait().expect("the end").success());
    }
    let store = wallgrind::store::Baselines::of(&bench.out());
    let records = store.records(&store.kept("main", "contract").expect("kept")).expect("records");
    let mut found: Vec<&str> = records.iter().map(|record| record.scenario.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, names);
}

fn two_commands_that_add_to_one_history_at_once_lose_no_line() {
    let bench = Bench::new();
    let runs: Vec<String> = (0..4).map(|n| format!("run{n}")).collect();
    for run in &runs {
        bench.run(&format!("good --bench --run-id {run}")).exits(0);
    }
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
        command.args(arguments).current_dir(bench.dir()).env("WALLGRIND_OUT", bench.out());
        command
    };
    let start =
        |run: &String| command(&["history", "add", run]).stdout(Stdio::null()).spawn().expect("started");
    let mut children: Vec<_> = runs.iter().map(start).collect();
    for child in &mut children {
        assert!(child.wait().expect("the end").success());
    }
    let shown = ran(command(&["history", "show"])).exits(0).out;
    assert_eq!(shown.matches("wall_time ns: ").count(), 5, "{shown}");
    assert_eq!(shown.matches(" 4 runs, 10 are needed").count(), 5, "{shown}");
}
