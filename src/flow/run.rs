//! A run: the selected trials, one at a time, each with its event and its record.
//!
//! Neighbours: `setup` (before the first trial), `resume` (after one that
//! cannot be ended in this process), `finish` (after the last), `trial` (each of them).

use std::collections::BTreeMap;
use std::fs::File;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::comparing::Comparing;
use super::finish::Run;
use super::resume::{self, State};
use super::{FAILED, setup};
use crate::cli::{self, Division, Out, Printer, Request, Selected, Tally};
use crate::error::{Error, Kind, Result};
use crate::plan::{Action, Plan};
use crate::scenario::Scenario;
use crate::store::RunDir;
use crate::sys::{self, Held};
use crate::trial::{Ended, Identity, Runner, Scratch, Waited, Watch};

/// Why the trials ended.
enum End {
    /// None is left, or none is wanted any more.
    All,
    /// A signal.
    Signal(i32),
    /// The last one still runs in this process; these are left.
    Stuck(Vec<&'static Scenario>),
}

/// Runs the selected trials, or goes on with those that are left.
///
/// # Errors
/// The run cannot begin: records cannot be written, a meter cannot be used.
pub fn run(
    scenarios: &'static [Scenario],
    request: Request,
    suite: String,
    state: Option<State>,
) -> Result<ExitCode> {
    let began = Instant::now();
    let Request { mut plan, output, warnings, .. } = request;
    state.iter().for_each(|state| state.settle(&mut plan));
    let (out, lock) = descriptors(state.as_ref())?;
    // Before any thread: this changes the environment.
    let scratch = Scratch::make(&plan.scratch)?;
    // What is left of a run that goes on is known by name, and is not divided again.
    let division = if state.is_some() { None } else { cli::divide(scenarios, &plan, &suite)? };
    let selected = selected(scenarios, &plan, state.as_ref(), division.as_ref());
    let tally = state.as_ref().map_or_else(|| first_tally(&selected), |state| state.tally.clone());
    scratch.check_room(&plan.scratch, &to_run(&selected), setup::at_once(&plan))?;
    let events = out.try_clone().map_err(no_stdout)?;
    let mut printer = Printer::new(output, Out::taken(events), tally)?;
    let mut watch = Watch::new(printer.term.has_progress())?;
    let records = records(&plan, &suite, &selected, division.as_ref())?;
    let resumed = state.is_some();
    if !resumed {
        warnings.iter().for_each(|warning| printer.term.say(warning));
        division.iter().flat_map(|division| &division.warnings).for_each(|text| printer.term.say(text));
        say_what_is_left_out(scenarios, (&plan, &suite), &selected, division.as_ref(), &mut printer);
    }
    let lock = match lock {
        None if records.is_some() => setup::lock(&plan, &mut watch, &mut printer)?,
        lock => Waited::Done(lock),
    };
    let Waited::Done(lock) = lock else { return Ok(early(&lock)) };
    let facts = records.as_ref().map_or_else(BTreeMap::new, |_| setup::identity(scratch.path()));
    let to_run = to_run(&selected);
    let comparing = match &records {
        Some(_) => {
            Comparing::prepare(&plan, (&suite, division.as_ref()), scratch.path(), &to_run, &mut watch)?
        }
        None => Waited::Done(None),
    };
    let Waited::Done(comparing) = comparing else { return Ok(early(&comparing)) };
    let identity = Identity { suite, facts };
    let runner = Runner::new(&plan, identity.clone(), scratch.path(), to_run, &mut watch)?;
    let Waited::Done(runner) = runner else { return Ok(early(&runner)) };
    let runner = runner.against(comparing.as_ref().and_then(Comparing::duel));
    if !resumed {
        printer.begin(plan.shuffle);
    }
    let ended = state.as_ref().map(|state| state.ended.clone()).unwrap_or_default();
    let mut run = Run::new(&plan, printer, records, ended).comparing(comparing, identity);
    let end = trials(&mut run, &selected, &runner, &mut watch);
    let elapsed = state.map(|state| state.elapsed()).unwrap_or_default() + began.elapsed();
    Ok(match end {
        End::All => {
            let code = run.finish(elapsed);
            if sys::is_exit_held() {
                // A regular exit could wait for the one that a body has begun.
                drop((scratch, lock));
                sys::leave(i32::from(FAILED));
            }
            code
        }
        End::Signal(signal) => run.interrupted(signal),
        End::Stuck(left) => {
            // Whatever the body has started would outlive it.
            sys::end_descendants();
            let error = go_on(&run, &left, elapsed, (&out, lock.as_ref()), scratch);
            for scenario in left {
                run.ended(runner.not_run(scenario, &format!("the run could not go on: {error}")));
            }
            run.finish(elapsed)
        }
    })
}

/// Runs trial after trial.
fn trials(run: &mut Run<'_>, selected: &Selected<'static>, runner: &Runner<'_>, watch: &mut Watch) -> End {
    for (at, (scenario, missing)) in selected.trials.iter().enumerate() {
        if let Some(signal) = watch.interrupted() {
            return End::Signal(signal);
        }
        run.started(scenario.id().as_str());
        let ended = runner.run(scenario, missing.as_deref(), watch, &mut || run.tick());
        let (record, stuck) = match ended {
            Ended::Interrupted(signal) => return End::Signal(signal),
            Ended::Record(record) => (record, false),
            Ended::Stuck(record) => (record, true),
        };
        let failed = run.ended(record);
        let left = &selected.trials[at + 1..];
        if failed && run.plan.fail_fast {
            run.say_rest_is_not_run(left.len());
            return End::All;
        }
        if stuck && !left.is_empty() {
            return End::Stuck(left.iter().map(|(scenario, _)| *scenario).collect());
        }
    }
    End::All
}

/// Goes on in a fresh process; returns only when that fails, with the reason.
fn go_on(
    run: &Run<'_>,
    left: &[&Scenario],
    elapsed: Duration,
    open: (&File, Option<&Held>),
    scratch: Scratch,
) -> std::io::Error {
    let left = left.iter().map(|scenario| scenario.id().to_string()).collect();
    let state = State::new(run.plan, &run.printer.tally, run.ended.clone(), left, elapsed);
    resume::go_on(state, open, scratch.remove().as_deref())
}

/// Where events go, and the lock when it came through an `exec`.
fn descriptors(state: Option<&State>) -> Result<(File, Option<Held>)> {
    match state {
        Some(state) => state.descriptors(),
        None => Ok((sys::take_stdout().map_err(no_stdout)?, None)),
    }
}

fn no_stdout(error: std::io::Error) -> Error {
    Error::new(Kind::Io, "standard output cannot be kept for events").source(error)
}

/// The trials of the run, or those that are left of it, in their order.
fn selected(
    scenarios: &'static [Scenario],
    plan: &Plan,
    state: Option<&State>,
    division: Option<&Division>,
) -> Selected<'static> {
    let mut selected = cli::select(scenarios, &plan.selection, division, setup::missing(plan));
    match (state, plan.shuffle) {
        (Some(state), _) => {
            let place =
                |scenario: &Scenario| state.left.iter().position(|name| name == scenario.id().as_str());
            selected.trials.retain(|(scenario, _)| place(scenario).is_some());
            selected.trials.sort_by_key(|(scenario, _)| place(scenario));
        }
        (None, Some(seed)) => selected.shuffle(seed),
        (None, None) => {}
    }
    selected
}

fn first_tally(selected: &Selected<'_>) -> Tally {
    Tally { total: selected.trials.len(), filtered_out: selected.filtered_out, ..Tally::default() }
}

/// The trials that this machine can run.
fn to_run(selected: &Selected<'static>) -> Vec<&'static Scenario> {
    selected.trials.iter().filter(|(_, missing)| missing.is_none()).map(|(scenario, _)| *scenario).collect()
}

/// The folder of records, when there will be any. A shard says there what it
/// is to do, also when that is nothing: else it would be missed.
fn records(
    plan: &Plan,
    suite: &str,
    selected: &Selected<'_>,
    division: Option<&Division>,
) -> Result<Option<RunDir>> {
    let shard = plan.shard.as_ref().zip(division).filter(|(_, division)| !division.all.is_empty());
    let some = plan.action == Action::Measure && (!selected.trials.is_empty() || shard.is_some());
    let records = some.then(|| RunDir::open(&plan.out, &plan.run_id)).transpose()?;
    if let (Some(records), Some((shard, division))) = (&records, shard) {
        division.manifest(plan, shard, suite, &selected.names()).write(records.path())?;
    }
    Ok(records)
}

/// Says which filters match nothing, and which trials are ignored and why.
fn say_what_is_left_out(
    scenarios: &[Scenario],
    (plan, suite): (&Plan, &str),
    selected: &Selected<'_>,
    division: Option<&Division>,
    printer: &mut Printer,
) {
    let of_all = division.map_or(selected.trials.len(), |division| division.all.len());
    if let Some(shard) = plan.shard.as_ref().filter(|_| of_all > 0 && selected.trials.is_empty()) {
        printer.term.say(&format!("shard {shard} has none of the {of_all} trials of {suite}"));
    }
    if of_all == 0 {
        let names: Vec<&str> = scenarios.iter().map(|s| s.id().as_str()).collect();
        cli::nothing_matches(suite, &plan.selection, &names).iter().for_each(|text| printer.term.say(text));
    }
    setup::say_what_is_ignored(selected, printer);
}

/// The exit code of a run that a signal ended before its first trial.
fn early<T>(waited: &Waited<T>) -> ExitCode {
    match waited {
        Waited::Interrupted(signal) => super::finish::code_of(*signal),
        Waited::Done(_) | Waited::TimedOut => ExitCode::from(FAILED),
    }
}
