//! Tests of `resolve`: each flag, its variable, and which of them wins.

use std::ffi::OsString;

use super::*;

fn request(argv: &str, env: &[(&str, &str)]) -> std::result::Result<Request, String> {
    let words = std::iter::once("exe").chain(argv.split_whitespace()).map(Into::into);
    let args = Args::parse_from_iter(words).map_err(|error| error.to_string())?;
    let env = env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    resolve(&args, &env, Path::new("/x/y")).map_err(|error| error.report())
}

fn plan(argv: &str, env: &[(&str, &str)]) -> Plan {
    request(argv, env).unwrap_or_else(|error| panic!("{argv}: {error}")).plan
}

fn refused(argv: &str, env: &[(&str, &str)]) -> String {
    request(argv, env).map(|_| ()).expect_err(argv)
}

#[test]
fn cargo_and_its_clients_decide_between_smoke_measure_and_list() {
    assert_eq!(plan("--bench", &[]).action, Action::Measure);
    assert_eq!(plan("handshake --exact --bench", &[]).action, Action::Measure);
    assert_eq!(plan("", &[]).action, Action::Smoke);
    assert_eq!(plan("--test --bench", &[]).action, Action::Smoke);
    assert_eq!(plan("--test", &[]).action, Action::Smoke);
    assert_eq!(plan("--list --format terse --ignored", &[]).action, Action::List);
    assert_eq!(plan("--bench", &[("WALLGRIND_RUN", "smoke")]).action, Action::Smoke);
    assert_eq!(plan("", &[("WALLGRIND_RUN", "measure")]).action, Action::Measure);
    assert_eq!(plan("--list", &[("WALLGRIND_RUN", "measure")]).action, Action::List);
}

#[test]
fn every_flag_of_the_contract_is_accepted_in_any_order_and_twice() {
    let all = "--bench --test --list --format pretty --format=json -Z unstable-options \
               -Zunstable-options --exact one two --skip a --skip=b --ignored --include-ignored --nocapture \
               --no-capture --show-output -q --color always --color=never --test-threads 3 --test-threads=1 \
               --logfile x --shuffle --shuffle-seed 4 --report-time --ensure-time --fail-fast \
               --exclude-should-panic --force-run-in-process";
    let twice = format!("{all} {all}");
    let reversed = "three --bench --fail-fast --skip a four --exact --format json five --bench";
    for argv in [all, &twice, reversed] {
        request(argv, &[]).unwrap_or_else(|error| panic!("{argv}: {error}"));
    }
    let selection = plan(&twice, &[]).selection;
    assert_eq!(selection.filters, ["one", "two", "one", "two"]);
    assert_eq!(selection.skip, ["a", "b", "a", "b"]);
    assert_eq!(plan(reversed, &[]).selection.filters, ["three", "four", "five"]);
}

#[test]
fn a_flag_that_means_nothing_in_its_mode_is_said() {
    let said = |argv: &str, env: &[(&str, &str)]| request(argv, env).expect(argv).warnings.join(" ");
    let values = "--samples 5 --cpu-features native --seeds 2 --jobs 1 --region auto --margin 1% --max-regress 1% \
                  --many bh --level 1% --cache-sim --branch-sim --stacks --repeat 2 --isolate --time 1s --no-fail --force \
                  --history h";
    let idle = |mode: &str| -> Vec<String> {
        let said = request(&format!("--bench {mode} {values}"), &[]).expect("a plan").warnings;
        said.iter().filter_map(|text| Some(text.split_whitespace().nth(1)?.to_string())).collect()
    };
    let counting = ["--region", "--cache-sim", "--branch-sim", "--stacks", "--seeds", "--repeat", "--jobs"];
    let comparing = ["--margin", "--level", "--many", "--max-regress", "--history", "--no-fail", "--force"];
    assert_eq!(idle(""), [&counting[..], &comparing].concat());
    assert_eq!(idle("--baseline x"), counting);
    assert_eq!(idle("--against x"), [&["--samples", "--isolate"], &counting[..]].concat());
    let timing = ["--time", "--samples", "--isolate", "--cpu-features"];
    let of_times = ["--margin", "--level", "--many"];
    assert_eq!(idle("--mode cachegrind --baseline x"), [&timing[..], &of_times].concat());
    assert_eq!(idle("--mode dhat --baseline x"), [&timing[..], &counting[..4], &of_times].concat());
    assert!(said("--bench --seeds 2", &[]).contains("it is for --mode cachegrind and dhat"));
    // Variables are set once for runs of all kinds, and clients pass flags to all of theirs.
    assert_eq!(said("--bench", &[("WALLGRIND_SEEDS", "2"), ("WALLGRIND_MARGIN", "2%")]), "");
    assert_eq!(said("--seeds 2 --margin 1%", &[]), "");
}

#[test]
fn an_empty_filter_is_a_filter() {
    let argv = ["exe", "", "--bench"].map(OsString::from);
    let args = Args::parse_from_iter(argv).expect("an empty filter");
    assert_eq!(args.filters, [""]);
}

/// Each measuring flag, a value for the flag, and another for its variable.
const TWINS: [(&str, &str, &str); 28] = [
    ("mode", "cachegrind", "dhat"),
    ("time", "2s", "3s"),
    ("samples", "5..6", "7..8"),
    ("timeout", "4s", "5s"),
    ("isolate", "yes", "no"),
    ("cpu", "1", "0"),
    ("cpu-features", "valgrind", "native"),
    ("seed", "3", "4"),
    ("region", "toggle", "difference"),
    ("cache-sim", "yes", "no"),
    ("branch-sim", "yes", "no"),
    ("stacks", "yes", "no"),
    ("seeds", "3", "4"),
    ("repeat", "5", "6"),
    ("jobs", "7", "8"),
    ("out", "/one", "/two"),
    ("scratch-dir", "/one", "/two"),
    ("lock", "none", "/lock"),
    ("save-baseline", "one", "two"),
    ("baseline", "one", "two"),
    ("against", "one", "/two"),
    ("margin", "2%", "3%"),
    ("level", "0.1%", "5%"),
    ("many", "holm", "bh"),
    ("max-regress", "ir=1%", "2%"),
    ("history", "h", "i"),
    ("no-fail", "yes", "no"),
    ("force", "yes", "no"),
];

#[test]
fn each_measuring_flag_has_a_variable_and_beats_it() {
    for (flag, typed, set) in TWINS {
        let variable = twin(flag);
        // The identifier of a run is random: fixed here, to compare whole plans.
        let of = |argv: String, value: &str| plan(&format!("--run-id x {argv}"), &[(&variable, value)]);
        let flag_alone = of(format!("--{flag}={typed}"), "");
        let variable_alone = of(String::new(), typed);
        let both = of(format!("--{flag}={typed}"), set);
        let other = of(String::new(), set);
        assert_eq!(flag_alone, variable_alone, "--{flag} and {variable} differ");
        assert_eq!(flag_alone, both, "{variable} beats --{flag}");
        assert_ne!(flag_alone, other, "{variable} is not read");
    }
    let tested: Vec<String> = TWINS.iter().map(|(flag, ..)| twin(flag)).collect();
    for known in known_variables() {
        let elsewhere = [
            "WALLGRIND_RUN",
            "WALLGRIND_RUN_ID",
            "WALLGRIND_SHUFFLE_SEED",
            "WALLGRIND_SHARD",
            "WALLGRIND_SHARD_BY",
            LAYOUTS,
            LINKER,
        ];
        assert!(tested.contains(&known) || elsewhere.contains(&known.as_str()), "{known} has no test");
    }
}

#[test]
fn a_part_of_the_trials_is_asked_for_by_flag_or_variable() {
    let shard = |argv: &str, env: &[(&str, &str)]| plan(argv, env).shard.map(|shard| shard.to_string());
    let quarter = [("WALLGRIND_SHARD", "1/4")];
    assert_eq!(shard("", &[]), None);
    assert_eq!(shard("--shard 3/4", &[]).as_deref(), Some("3/4"));
    assert_eq!(shard("--bench", &quarter).as_deref(), Some("1/4"));
    assert_eq!(shard("--shard 2/2", &quarter).as_deref(), Some("2/2"));
    let by = plan("--shard 1/2 --shard-by main", &[("WALLGRIND_SHARD_BY", "other")]).shard.expect("a part");
    assert_eq!(by.by.as_deref(), Some("main"));
    // A variable that is set for all runs is not refused where no part is asked for.
    assert_eq!(shard("", &[("WALLGRIND_SHARD_BY", "main")]), None);
    assert!(refused("--shard-by main", &[]).contains("--shard K/N"));
    for bad in ["0/4", "5/4", "x"] {
        assert!(refused("--shard", &[]).contains("--shard"));
        assert!(refused(&format!("--shard {bad}"), &[]).starts_with(&format!("error: --shard: {bad:?}")));
        assert!(refused("", &[("WALLGRIND_SHARD", bad)]).contains("variable WALLGRIND_SHARD: "));
    }
    // nextest has divided the list: the one trial that it wants is not divided again.
    let nextest = [quarter[0], ("NEXTEST_RUN_ID", "n1")];
    assert_eq!(shard("--exact a::b --nocapture", &nextest), None);
    assert_eq!(shard("--list --format terse", &nextest).as_deref(), Some("1/4"));
}

#[test]
fn a_bad_value_names_its_flag_or_its_variable() {
    let paths = ["out", "scratch-dir", "lock", "against", "history"];
    for (flag, ..) in TWINS.iter().filter(|(flag, ..)| !paths.contains(flag)) {
        let error = refused(&format!("--{flag}=%"), &[]);
        assert!(error.starts_with(&format!("error: --{flag}: \"%\"")), "{error}");
        let error = refused("", &[(&twin(flag), "%")]);
        assert!(error.contains(&twin(flag)) && error.contains("\"%\""), "{error}");
    }
    assert!(refused("--samples 0", &[]).contains("no samples"));
    assert!(refused("", &[("WALLGRIND_RUN", "mesure")]).contains("did you mean measure?"));
    assert!(refused("", &[("NEXTEST_ATTEMPT", "x")]).contains("NEXTEST_ATTEMPT"));
    assert!(refused("", &[("NEXTEST_RUN_ID", "a/b")]).contains("NEXTEST_RUN_ID"));
}

#[test]
fn what_is_not_known_is_refused_with_a_suggestion() {
    assert!(refused("--smaples 3", &[]).contains("--samples"));
    assert!(refused("--format junit", &[]).contains("cargo nextest"));
    assert!(refused("--format jsn", &[]).contains("did you mean json?"));
    assert!(refused("-Z other", &[]).contains("-Z other"));
    assert!(refused("--test-threads 0", &[]).contains("--test-threads"));
}

#[test]
fn a_variable_that_is_nearly_ours_is_warned_about() {
    let warned = |name| request("", &[(name, "1")]).expect("a plan").warnings;
    assert!(warned("WALLGRIND_SAMPELS")[0].contains("did you mean WALLGRIND_SAMPLES?"));
    assert!(warned("WALLGRIND_PARENT").is_empty());
    let known = plan("", &[("WALLGRIND_SAMPLES", "1")]);
    assert_eq!(known.walltime.min_samples, 1);
    assert!(request("", &[("WALLGRIND_SAMPLES", "1")]).expect("a request").warnings.is_empty());
}

#[test]
fn runs_are_joined_by_nextest_or_get_a_name_of_their_own() {
    assert_eq!(plan("", &[("NEXTEST_RUN_ID", "abc-1")]).run_id, "abc-1");
    assert_eq!(plan("--run-id mine", &[("NEXTEST_RUN_ID", "abc-1")]).run_id, "mine");
    assert_ne!(plan("", &[]).run_id, plan("", &[]).run_id);
    assert_eq!(plan("", &[("NEXTEST_ATTEMPT", "3")]).attempt, 3);
    assert_eq!(plan("", &[]).attempt, 1);
}

#[test]
fn colors_follow_the_flag_then_no_color() {
    let color = |argv, env: &[(&str, &str)]| request(argv, env).expect("a request").output.color;
    assert_eq!(color("", &[]), Color::Auto);
    assert_eq!(color("", &[("NO_COLOR", "1")]), Color::Never);
    assert_eq!(color("--color always", &[("NO_COLOR", "1")]), Color::Always);
}

#[test]
fn times_of_tests_have_libtests_variable() {
    let env = [("RUST_TEST_TIME_INTEGRATION", "10,20")];
    assert_eq!(plan("--ensure-time", &env).test_time, Some(Duration::from_millis(20)));
    assert_eq!(plan("--ensure-time", &[]).test_time, Some(TEST_TIME));
    assert_eq!(plan("--report-time", &env).test_time, None);
    assert!(refused("--ensure-time", &[("RUST_TEST_TIME_INTEGRATION", "x")]).contains("milliseconds"));
}

#[test]
fn help_is_short_and_has_every_flag() {
    let argv = ["exe", "-h"].map(OsString::from);
    let help = Args::parse_from_iter(argv).expect_err("help").to_string();
    assert!(help.lines().count() < 90, "{} lines", help.lines().count());
    for (flag, ..) in TWINS {
        assert!(help.contains(&format!("--{flag}")), "no --{flag} in the help");
    }
    assert!(!help.contains("wallgrind-"), "hidden flags are shown");
}

#[test]
fn files_of_bodies_lie_where_the_system_has_its_temporary_files_unless_told_otherwise() {
    assert_eq!(plan("", &[]).scratch, Path::new("/tmp"));
    assert_eq!(plan("", &[("TMPDIR", "/var/tmp")]).scratch, Path::new("/var/tmp"));
    assert_eq!(plan("--scratch-dir /dev/shm", &[("TMPDIR", "/var/tmp")]).scratch, Path::new("/dev/shm"));
    assert!(refused("--scratch-dir=", &[]).contains("--scratch-dir: give a path"));
}
