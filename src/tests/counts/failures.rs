//! What goes wrong in a measured child is a failure that names its cause, and
//! the run goes on.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use wallgrind::measure::Failure;
use wallgrind::plan::{Mode, Region};

use crate::driver::{outcome, outcomes, plan};
use crate::{Missing, Test};

pub const TESTS: &[Test] = &[
    ("failures_name_their_cause_and_the_run_goes_on", named),
    ("a_scenario_that_hangs_is_ended", hangs),
    ("a_scenario_that_kills_what_it_was_forked_from_fails_alone", kills),
    (FLAGGED, flagged),
    (REQUESTS, refused),
    ("a_valgrind_that_lies_about_its_version_gives_no_number", lies),
    ("a_valgrind_that_counts_what_is_not_executed_gives_no_number", chases),
    ("another_valgrind_is_named", others),
    ("a_stripped_executable_says_what_it_lacks", stripped),
];

const FLAGGED: &str = "a_count_that_differs_is_flagged_with_its_range";
const REQUESTS: &str = "requests_are_refused_where_valgrind_would_ignore_them";

fn named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cases: [(&str, &str, &[&str]); 6] = [
        ("ill::body_fails", "Failed", &["while reading: no such thing"]),
        ("ill::check_fails", "Failed", &["1 is not 2"]),
        ("ill::panics", "Panicked", &["planted panic", "toys.rs:"]),
        ("ill::dies", "Failed", &["was ended by signal 6", "famous last words"]),
        ("ill::unknown_instruction", "Failed", &["does not know an instruction", "toys"]),
        ("ill::one_party_fails", "Failed", &["no key"]),
    ];
    let mut names: Vec<&str> = cases.iter().map(|(name, ..)| *name).collect();
    names.push("toy::prints");
    let mut results = outcomes(&plan(Mode::Cachegrind, folder.path().into()), &names)?;
    let last = results.pop();
    ensure!(matches!(last, Some(Ok(_))), "the last one: {last:?}");
    for ((name, kind, words), result) in cases.iter().zip(results) {
        let Err(failure) = result else { anyhow::bail!("{name} gave a number") };
        let text = format!("{failure:?}");
        ensure!(text.starts_with(kind), "{name}: {text}");
        for word in *words {
            ensure!(text.contains(word), "{name} does not say {word:?}: {text}");
        }
    }
    Ok(())
}

fn hangs() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut plan = plan(Mode::Cachegrind, folder.path().into());
    plan.timeout = Duration::from_secs(5);
    let result = outcomes(&plan, &["ill::hangs"])?.remove(0);
    ensure!(matches!(&result, Err(Failure::TimedOut(text)) if text.contains("5 s")), "{result:?}");
    Ok(())
}

fn kills() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let names = ["toy::hash_seeds", "ill::kills_its_parent", "toy::two_parties", "toy::prints"];
    let results = outcomes(&plan(Mode::Cachegrind, folder.path().into()), &names)?;
    for (name, result) in names.iter().zip(results) {
        match (*name, result) {
            ("ill::kills_its_parent", Err(failure)) => {
                ensure!(failure.reason().contains("forked from has died"), "{failure:?}")
            }
            (_, Ok(_)) if !name.starts_with("ill") => {}
            (name, result) => anyhow::bail!("{name}: {result:?}"),
        }
    }
    Ok(())
}

fn flagged() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut plan = plan(Mode::Cachegrind, folder.path().into());
    plan.valgrind.repeat = 3;
    let outcome = outcome(&plan, "ill::process_id")?;
    let note = outcome.notes.iter().find(|note| note.contains("not deterministic"));
    ensure!(note.is_some_and(|n| n.contains(" in 3 runs; differs in ")), "{:?}", outcome.notes);
    Ok(())
}

fn refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut plan = plan(Mode::Cachegrind, folder.path().into());
    plan.valgrind.region = Region::Requests;
    match outcomes(&plan, &["toy::prints"]) {
        Err(error) => ensure!(error.to_string().contains("would ignore them"), "{error}"),
        // A later Valgrind has them.
        Ok(results) => {
            ensure!(results[0].as_ref().is_ok_and(|o| o.facts["method"] == "requests"), "{results:?}")
        }
    }
    Ok(())
}

/// What one of this executable's tests says with `script` as its Valgrind.
fn with_valgrind(test: &str, script: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("valgrind");
    std::fs::write(&file, script)?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.path().to_path_buf()).chain(std::env::split_paths(&path));
    let output = Command::new(std::env::current_exe()?)
        .args(["--exact", test])
        .env("PATH", std::env::join_paths(folders)?)
        .output()?;
    ensure!(!output.status.success(), "{script} gave a number");
    Ok(String::from_utf8(output.stdout)?)
}

/// An old Valgrind under the version of one that has requests: it ignores them
/// and counts the whole program, which the canary must find out.
fn lies() -> Result<()> {
    let real = std::env::var("PATH")?;
    let text = with_valgrind(
        REQUESTS,
        &format!(
            "#!/bin/sh\nPATH='{real}'\n[ \"$1\" = --version ] && exec echo valgrind-3.22.0\n\
         for a; do shift; [ \"$a\" = --instr-at-start=no ] || set -- \"$@\" \"$a\"; done\n\
         exec valgrind \"$@\"\n"
        ),
    )?;
    ensure!(text.contains("does not tell the region from the rest"), "{text}");
    Ok(())
}

/// With branches chased, which is Valgrind's default, instructions behind a
/// branch that is taken count as well: 6 a loop of the canary, not 4.
fn chases() -> Result<()> {
    let real = std::env::var("PATH")?;
    let text = with_valgrind(
        FLAGGED,
        &format!(
            "#!/bin/sh\nPATH='{real}'\n\
         for a; do shift; [ \"$a\" = --vex-guest-chase=no ] || set -- \"$@\" \"$a\"; done\n\
         exec valgrind \"$@\"\n"
        ),
    )?;
    ensure!(text.contains("instructions were counted where 4000 were executed"), "{text}");
    Ok(())
}

fn others() -> Result<()> {
    for (version, words) in [
        ("echo valgrind-3.10.1", "valgrind 3.10 is too old"),
        ("echo hello", "gave no version, but \"hello\""),
        ("echo broken >&2; exit 1", "broken"),
    ] {
        let text = with_valgrind(REQUESTS, &format!("#!/bin/sh\n{version}\n"))?;
        ensure!(text.contains(words), "{version}: {text}");
    }
    Ok(())
}

/// A copy of this executable without symbols, which Valgrind finds the
/// replacements of the repeatable world by.
fn stripped() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("program");
    let strip = Command::new("strip").arg("-o").arg(&program).arg(std::env::current_exe()?).output();
    let strip = match strip {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(Missing("strip").into()),
        other => other?,
    };
    ensure!(strip.status.success(), "{}", String::from_utf8_lossy(&strip.stderr));
    let output = Command::new(&program).args(["--exact", FLAGGED]).output()?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(!output.status.success(), "it gave a number: {text}");
    for words in ["did not replace getrandom, syscall, clock_gettime", "lost its symbols", "strip = \"none\""]
    {
        ensure!(text.contains(words), "it does not say {words:?}: {text}");
    }
    Ok(())
}
