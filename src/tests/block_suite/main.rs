//! The block suite finds what is wrong: each fault that is planted in an
//! engine fails the trial. And what it says of system calls is so.
//!
//! Neighbours: `src/families/block` is what is tested; `faults` plants,
//! `calls` compares with strace.

mod calls;
mod faults;
mod meter;
mod planted;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Set where the temporary folder is this run's own.
const OWN_FOLDER: &str = "WALLGRIND_TEST_OWN_FOLDER";

/// Runs this program with a temporary folder of its own.
fn again_in_a_folder() -> ExitCode {
    let run = || {
        let dir = tempfile::tempdir()?;
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).env("TMPDIR", dir.path()).env(OWN_FOLDER, "yes");
        command.status()
    };
    run().map_or(ExitCode::FAILURE, |status| ExitCode::from(status.code().unwrap_or(101) as u8))
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some(calls::CHILD) {
        return calls::child(args.next().as_deref(), args.next().as_deref());
    }
    // Images go to the temporary folder of the process: it is to be one that goes away.
    if std::env::var_os(OWN_FOLDER).is_none() {
        return again_in_a_folder();
    }
    let trials: Vec<Trial> = faults::trials().into_iter().chain(calls::trials()).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
