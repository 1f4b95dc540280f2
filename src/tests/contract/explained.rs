//! `wallgrind explain`: one trial side by side, measured where it must be, and
//! its flame graph.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bench::{Bench, Ran, ran};
use crate::fixture::NOPS;

pub fn tests() -> Vec<libtest_mimic::Trial> {
    crate::trials(
        "explained",
        &[
            ("a_trial_is_measured_once_explained_and_drawn", true, once),
            ("two_runs_show_what_moved", true, two_runs),
            ("a_stripped_executable_says_what_it_lacks", true, stripped),
            ("without_valgrind_there_is_a_time_and_the_way_out", false, without_valgrind),
            ("what_is_stored_is_enough_where_it_is_asked_for", false, stored),
            ("what_cannot_be_explained_is_said", false, refused),
        ],
    )
}

fn program() -> String {
    std::env::current_exe().expect("this executable").display().to_string()
}

/// The command; executables that it starts are the bench target. A variable of
/// the user's must not make theirs another kind of run.
fn wallgrind(bench: &Bench, argv: &str, env: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
    command.args(argv.split_whitespace()).current_dir(bench.dir()).env("WALLGRIND_OUT", bench.out());
    command.env(crate::fixture::ASK, "1").env("WALLGRIND_REGION", "difference").env("WALLGRIND_RUN", "smoke");
    command.env("WALLGRIND_TIME", "5ms").env("TMPDIR", bench.dir()).envs(env.iter().copied());
    ran(command.env("WALLGRIND_LOCK", bench.dir().join("lock")))
}

fn object(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The rows of a part of the JSON form.
fn rows<'a>(explained: &'a serde_json::Value, title: &str) -> &'a [serde_json::Value] {
    let parts = explained["parts"].as_array().expect("parts");
    let part = parts.iter().find(|part| part["title"].as_str().is_some_and(|t| t.starts_with(title)));
    part.and_then(|part| part["rows"].as_array()).unwrap_or_else(|| panic!("no {title} in {explained:#}"))
}

fn once() {
    let bench = Bench::new();
    let argv = format!("explain good::talk --program {} --format json", program());
    let first = wallgrind(&bench, &format!("{argv} --flamegraph a.svg"), &[]).exits(0).says("a.svg");
    assert_eq!(first.err.matches("measuring good::talk").count(), 3, "{}", first.err);
    let json = object(&first.out);
    for title in ["wall time", "counts", "caches", "system calls", "heap", "functions, by", "functions, with"]
    {
        let rows = rows(&json, title);
        assert!(!rows.is_empty(), "{title}");
        for row in rows {
            assert!(row["unit"].is_string() && row["better"] == "lower" && row["after"].is_number(), "{row}");
        }
    }
    let parties: Vec<_> = rows(&json, "counts").iter().map(|row| row["party"].clone()).collect();
    assert_eq!(parties, [serde_json::Value::Null, "one".into(), "two".into()]);
    // The wire between the parties' processes is not theirs.
    assert!(rows(&json, "system calls").iter().all(|row| row["after"] == 0.0), "{json:#}");
    let svg = fs::read_to_string(bench.dir().join("a.svg")).expect("a picture");
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("<title>one (") && svg.contains("::Side as "), "{svg}");
    for before_the_region in ["valgrind::serve", "Marked::between", "lang_start", "fixture::register"] {
        assert!(!svg.contains(before_the_region), "{before_the_region} is not of the region");
    }
    // What was measured is there, and is taken from there.
    let again = wallgrind(&bench, &argv, &[]).exits(0);
    assert!(!again.err.contains("measuring"), "{}", again.err);
    assert_eq!(object(&again.out), json);
    let nowhere = format!("{argv} --flamegraph no_such_folder/a.svg");
    wallgrind(&bench, &nowhere, &[]).exits(101).says("no_such_folder/a.svg cannot be written");
    let folded = files_below(&bench.out(), "folded");
    assert_eq!(folded.len(), 2);
    fs::write(&folded[0], "a;b 1\nrubbish").expect("written");
    wallgrind(&bench, &format!("{argv} --flamegraph b.svg"), &[])
        .exits(101)
        .says("is damaged")
        .says("line 2");
    assert_eq!(bench.leftovers(), ["a.svg"]);
}

fn files_below(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn two_runs() {
    let bench = Bench::new();
    let flags = "planted::nops --exact --bench --mode cachegrind --stacks --cache-sim";
    for (run, nops) in [("fewer", "3"), ("more", "8")] {
        bench.run_with(&format!("{flags} --run-id {run}"), &[(NOPS, nops)]).exits(0);
    }
    let argv = "explain planted::nops --run more --baseline fewer --flamegraph d.svg";
    let ran = wallgrind(&bench, argv, &[]).exits(0);
    let line = |end: &str| {
        let line = ran.out.lines().find(|line| line.ends_with(end));
        line.unwrap_or_else(|| panic!("no {end:?} in {}", ran.out)).to_string()
    };
    assert!(ran.out.contains("before: fewer; after: more"), "{}", ran.out);
    assert!(line("executed in user space").contains(" +5 "), "{}", ran.out);
    // The first function is the one that moved.
    let mut functions = ran.out.lines().skip_while(|line| !line.starts_with("functions, by themselves"));
    let first = functions.nth(2).unwrap_or_default();
    assert!(first.contains(" +5 ") && first.ends_with("nops"), "{}", ran.out);
    assert!(ran.out.contains("not known: what fewer does not hold"), "{}", ran.out);
    let svg = fs::read_to_string(bench.dir().join("d.svg")).expect("a picture");
    assert!(svg.contains("more than in fewer"), "{svg}");
    let frames = || svg.split("<title>").filter_map(|rest| rest.split("</title>").next());
    assert!(frames().any(|f| f.contains("fixture::nops") && f.contains("; +")), "{svg}");

    wallgrind(&bench, "explain planted::nops --run mroe", &[]).exits(101).says("did you mean more?");
    let refused = bench.run("planted::nops --bench --mode cachegrind --stacks --region difference");
    refused.exits(101).says("--stacks: only callgrind has them").says("--region toggle");
}

fn stripped() {
    let bench = Bench::new();
    let copy = bench.dir().join("copy");
    let strip = Command::new("strip").arg("-o").arg(&copy).arg(program()).output();
    if strip.is_ok_and(|output| output.status.success()) {
        wallgrind(&bench, "explain good::first --program copy --flamegraph s.svg", &[])
            .exits(101)
            .says("lost its symbols")
            .has_line("wall time, ns");
        assert_eq!(bench.leftovers(), ["copy"]);
    }
}

fn without_valgrind() {
    let bench = Bench::new();
    let argv = format!("explain good::first --program {}", program());
    let nowhere = bench.out().display().to_string();
    let env = [("PATH", nowhere.as_str())];
    let ran = wallgrind(&bench, &argv, &env).exits(101).says("2 parts of good::first could not be measured");
    let ran = ran.has_line("wall time, ns");
    assert_eq!(ran.out.matches("not known: ").count(), 2, "{}", ran.out);
    assert!(ran.out.contains("valgrind is not on the PATH: install it"), "{}", ran.out);
    let drawn = wallgrind(&bench, &format!("{argv} --flamegraph none.svg"), &env).exits(101);
    drawn.says("no stacks of calls of good::first").says("valgrind is not on the PATH");
    assert_eq!(bench.leftovers(), [] as [&str; 0]);
}

fn stored() {
    let bench = Bench::new();
    bench.run("good::first --bench --run-id only_times").exits(0);
    let ran = wallgrind(&bench, "explain good::first --stored", &[]).exits(0).has_line("wall time, ns");
    assert!(ran.out.contains("not known: heap use: no record"), "{}", ran.out);
    assert!(ran.out.contains("run only_times"), "{}", ran.out);
    assert!(!ran.err.contains("measuring"), "{}", ran.err);
    // A run keeps no executable that could be measured.
    let ran = wallgrind(&bench, "explain good::first --run only_times", &[]).exits(0);
    assert!(ran.out.contains("only a baseline keeps the executable"), "{}", ran.out);
    wallgrind(&bench, "explain good::first --stored --flamegraph -", &[])
        .exits(101)
        .says("there are no stacks of calls of good::first");
    wallgrind(&bench, "explain good::frist --stored", &[]).exits(101).says("did you mean good::first?");
}

fn refused() {
    let bench = Bench::new();
    let program = program();
    wallgrind(&bench, "explain good::first", &[]).exits(101).says("there are no records in");
    wallgrind(&bench, &format!("explain good::frist --program {program}"), &[])
        .exits(101)
        .says("has no trial good::frist")
        .says("did you mean good::first?");
    // A part of a name may be one of several.
    for (part, names) in [("talk", "good::talk"), ("good", "good::first, good::second, good::talk")] {
        wallgrind(&bench, &format!("explain {part} --program {program}"), &[])
            .exits(101)
            .says(&format!("did you mean {names}?"));
    }
    for command in ["explain", "annotate"] {
        wallgrind(&bench, &format!("{command} good::first some_run"), &[])
            .exits(101)
            .says("unexpected argument 'some_run'")
            .says("its run by '--run some_run'");
    }
    wallgrind(&bench, "explain a --program ./none", &[])
        .exits(101)
        .says("there is no executable or baseline");
    wallgrind(&bench, "explain a --program /bin/false", &[]).exits(101).says("/bin/false lists no trials");
    wallgrind(&bench, &format!("explain a --program {program} --run b"), &[])
        .exits(101)
        .says("cannot be used with");
    wallgrind(&bench, &format!("explain a --against {program} --baseline b"), &[])
        .exits(101)
        .says("cannot be used with");
    // The other build is looked for before this one is built.
    bench.run("good::first --bench --save-baseline main").exits(0);
    let ran = wallgrind(&bench, "explain good::first --against mian", &[]).exits(101);
    assert_eq!(ran.err, "error: there is no executable or baseline mian\n  hint: did you mean main?\n");
    wallgrind(&bench, "completions tcsh", &[]).exits(101).says("bash, elvish, fish");
    fs::write(bench.dir().join("file"), "").expect("written");
    wallgrind(&bench, "man file", &[]).exits(101).says("cannot be made");
    let pages = wallgrind(&bench, "man pages", &[]).exits(0).out;
    assert!(pages.contains(" pages in pages"), "{pages}");
    assert!(bench.dir().join("pages/wallgrind-explain.1").is_file());
    assert!(wallgrind(&bench, "man", &[]).exits(0).out.contains(".TH wallgrind 1"));
    assert!(wallgrind(&bench, "completions bash", &[]).exits(0).out.contains("_wallgrind()"));
}
