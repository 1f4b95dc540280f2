//! The page of `wallgrind report` in a real browser: it loads without an
//! error, filters, sorts, opens, and shows the right numbers, whatever the
//! names are and however many rows there are. And the command around it, with
//! run folders that are empty, damaged, or of another version.
//!
//! `browser` drives headless Chromium, `scene` makes the runs. Without a
//! browser its trials are ignored, and say so.

mod browser;
mod command;
mod looks;
mod many;
mod scene;
mod shows;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let mut trials = command::trials();
    let missing = browser::find().err();
    if let Some(reason) = &missing {
        browser::say(&format!("the page is not tried in a browser: {reason}"));
    }
    for (name, test) in shows::TESTS.iter().chain(looks::TESTS).chain(many::TESTS) {
        let run = || -> Result<(), Failed> { Ok(test()?) };
        trials.push(Trial::test(*name, run).with_ignored_flag(missing.is_some()));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test that needs a browser.
type Test = (&'static str, fn() -> Result<(), String>);

/// Fails with both values where they differ.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, not {expected:?}")) }
}
