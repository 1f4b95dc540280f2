//! The whole flow of a bench target: arguments and environment become a plan,
//! the plan selects trials, one trial at a time becomes a record, and the
//! records become a table and an exit code.
//!
//! Neighbours: everything; this is the only module that sees all others.

mod comparing;
mod finish;
mod list;
mod resume;
mod run;
mod setup;

use std::process::ExitCode;

use crate::cli::{self, Env, Role};
use crate::error::{Error, Kind, Result};
use crate::measure;
use crate::plan::{Action, Mode, Plan};
use crate::scenario::{Scenario, Suite};
use crate::{sys, trial};

/// Exit code of a failed trial and of a usage error, as libtest has it.
const FAILED: u8 = 101;

/// Runs a suite as a bench target: reads arguments and environment, lists the
/// trials or runs them one at a time, writes records, and reports.
///
/// Call it first in `main`, before a thread is started: it points `TMPDIR` to
/// a folder of the run, and standard output to standard error, so that what
/// bodies print cannot fall between events.
///
/// The exit code is 0 when all went well or nothing matched, 101 when a trial
/// failed or the arguments are wrong, and 128 + the signal's number after
/// SIGINT, SIGTERM or SIGHUP.
pub fn main(register: impl FnOnce(&mut Suite)) -> ExitCode {
    flow(register).unwrap_or_else(|error| {
        cli::say(&error.report());
        ExitCode::from(FAILED)
    })
}

fn flow(register: impl FnOnce(&mut Suite)) -> Result<ExitCode> {
    let mut suite = Suite::new();
    register(&mut suite);
    // The suite lives as long as the process: a body that hangs keeps using it.
    let scenarios: &'static [Scenario] = suite.finish()?.leak();
    if let Some(code) = measure::valgrind::child(scenarios) {
        return Ok(code);
    }
    let args = match cli::Args::parse_from_iter(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => return Ok(cli::clap_exit(&error)),
    };
    let exe = std::env::current_exe().unwrap_or_default();
    let request = cli::resolve(&args, &Env::of_process(), &exe)?;
    cap_features(&request.plan)?;
    let suite = cli::suite(&exe);
    let measures = request.plan.action == Action::Measure;
    setup::check_cpu(&request.plan)?;
    match (&request.role, request.plan.action) {
        (Role::Trial(name), _) => {
            trial::child(scenarios, &request.plan, name, measures).map(|()| ExitCode::SUCCESS)
        }
        (Role::Steps(name), _) => {
            trial::steps_child(scenarios, &request.plan, name).map(|()| ExitCode::SUCCESS)
        }
        (_, Action::List) => list::list(scenarios, &request, &suite),
        (Role::Coordinator, _) => run::run(scenarios, request, suite, None),
        (Role::Resumed(fd), _) => {
            let state = resume::State::load(*fd)?;
            run::run(scenarios, request, suite, Some(state))
        }
    }
}

/// Starts anew with fewer processor features, if that is what the plan wants
/// and the environment does not say so yet: providers look only once.
///
/// # Errors
/// The process cannot be replaced.
fn cap_features(plan: &Plan) -> Result<()> {
    let wanted =
        plan.walltime.valgrind_features && plan.mode == Mode::Walltime && plan.action == Action::Measure;
    let Some(cap) = wanted.then(measure::valgrind::cap_features).flatten() else { return Ok(()) };
    if std::env::var_os(cap.variable).is_some_and(|value| value == cap.value.as_str()) {
        return Ok(());
    }
    let error = sys::restart_with(cap.variable, &cap.value);
    Err(Error::new(Kind::Io, "this program cannot be started anew with fewer processor features")
        .hint("leave --cpu-features at native")
        .source(error))
}
