//! `wallgrind doctor`: what a machine is, and an executable against itself.

use std::fs;
use std::process::Command;

use crate::bench::{Bench, Ran, ran};

crate::tests!(
    a_machine_is_described_in_words_and_as_an_object,
    an_executable_against_itself_says_how_small_a_change_is_seen,
    what_cannot_be_tested_is_said,
);

fn program() -> String {
    std::env::current_exe().expect("this executable").display().to_string()
}

/// The command; executables that it starts are the bench target. A variable of
/// the user's must not make theirs another kind of run.
fn wallgrind(bench: &Bench, argv: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
    command.args(argv.split_whitespace()).current_dir(bench.dir()).env("WALLGRIND_OUT", bench.out());
    command.env(crate::fixture::ASK, "1").env("WALLGRIND_BASELINE", "main").env("WALLGRIND_RUN", "smoke");
    ran(command.env("WALLGRIND_LOCK", bench.dir().join("lock")))
}

fn object(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn a_machine_is_described_in_words_and_as_an_object() {
    let bench = Bench::new();
    let text = wallgrind(&bench, "doctor").exits(0).out;
    let json = object(&wallgrind(&bench, "doctor --format json").exits(0).out);
    let checks = json["checks"].as_array().expect("checks");
    assert_eq!(checks.len(), 13);
    for check in checks {
        let name = check["name"].as_str().expect("a name");
        assert!(text.contains(name), "no {name} in {text}");
        assert!(["good", "mind", "unknown"].contains(&check["state"].as_str().expect("a state")), "{check}");
        assert!(check["means"].as_str().is_some_and(|means| !means.is_empty()), "{check}");
    }
    assert!(json["identity"]["kernel"].is_string() && json["against_itself"].is_null(), "{json}");
    assert!(text.contains("how small a change can be seen here?"), "{text}");
}

fn an_executable_against_itself_says_how_small_a_change_is_seen() {
    let bench = Bench::new();
    let argv = format!("doctor --program {} good::first fails::check --time 200ms", program());
    let text = wallgrind(&bench, &argv).exits(0).out;
    assert!(text.contains("  good::first  ") && text.contains("seen in 0.2 s"), "{text}");
    assert!(text.contains("not tested: in ") && text.contains("five is not four"), "{text}");
    let json =
        object(&wallgrind(&bench, &format!("{argv} --format json --margin 2% --change 5%")).exits(0).out);
    let itself = &json["against_itself"];
    assert_eq!((&itself["margin_share"], &itself["change_share"]), (&0.02.into(), &0.05.into()));
    let seen = &itself["scenarios"][0];
    assert_eq!(seen["scenario"], "good::first");
    assert!(seen["pairs"].as_u64().is_some_and(|n| n >= 5), "{seen}");
    // Never below the margin, which is asked for besides.
    assert!(seen["smallest_seen_share"].as_f64().is_some_and(|share| share > 0.02), "{seen}");
    assert_eq!(itself["left_out"][0]["scenario"], "fails::check");
}

fn what_cannot_be_tested_is_said() {
    let bench = Bench::new();
    wallgrind(&bench, "doctor --program ./none").exits(101).says("there is no executable ./none");
    wallgrind(&bench, &format!("doctor --program {} no_such_name", program()))
        .exits(101)
        .says("no scenario was tested");
    let rubbish = bench.dir().join("rubbish");
    fs::write(&rubbish, "no program").expect("written");
    wallgrind(&bench, &format!("doctor --program {} x", rubbish.display()))
        .exits(101)
        .says("cannot be started");
    wallgrind(&bench, "doctor --program /bin/false x").exits(101).says("/bin/false failed");
    wallgrind(&bench, "doctor --change 200%").exits(101).says("is not a share");
}
