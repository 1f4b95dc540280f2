//! Runs one trial after the other, each in the way that the plan wants, and
//! gives its record.
//!
//! Neighbours: `flow` calls it; `body`, `isolate` and `counting` are the ways.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::body::{self, Verdict};
use super::counting::Counting;
use super::isolate::{self, Said};
use super::record::{Begun, Identity, ignored};
use super::stepper::Alive;
use super::turns::Duel;
use super::watch::{Waited, Watch};
use crate::error::Result;
use crate::measure::{ClockFacts, Failure};
use crate::plan::{Action, Ignored, Mode, Plan};
use crate::scenario::Scenario;
use crate::store::Record;
use crate::sys;

const EXITED: &str = "the body called exit, which would have ended the whole run: \
                      it must return an error instead";

/// How a trial ended for the run.
#[derive(Debug)]
pub enum Ended {
    /// With a record.
    Record(Record),
    /// It is still running in this process and cannot be ended there: the run
    /// has to go on in a fresh one.
    Stuck(Record),
    /// A signal came: there is no record.
    Interrupted(i32),
}

/// How trials are run.
enum Way {
    /// On a thread of this process.
    Here(Option<ClockFacts>),
    /// In a process each.
    Isolated,
    /// Under Valgrind.
    Counted(Counting),
}

/// Runs the trials of a plan.
pub struct Runner<'a> {
    plan: &'a Plan,
    identity: Identity,
    scratch: PathBuf,
    way: Way,
    duel: Option<(Duel, BTreeSet<String>)>,
}

impl<'a> Runner<'a> {
    /// Prepares the meter for the trials that will be run.
    ///
    /// # Errors
    /// The meter cannot be used on this machine.
    pub fn new(
        plan: &'a Plan,
        identity: Identity,
        scratch: &Path,
        selected: Vec<&'static Scenario>,
        watch: &mut Watch,
    ) -> Result<Waited<Self>> {
        let measures = plan.action == Action::Measure;
        let way = match plan.mode {
            // Where Valgrind is missing all trials are ignored, and nothing is to be started.
            Mode::Cachegrind | Mode::Dhat if measures && !selected.is_empty() => {
                match Counting::start(plan, selected, watch)? {
                    Waited::Done(counting) => Way::Counted(counting),
                    Waited::TimedOut => return Ok(Waited::TimedOut),
                    Waited::Interrupted(signal) => return Ok(Waited::Interrupted(signal)),
                }
            }
            _ if plan.isolate => Way::Isolated,
            _ => Way::Here(measures.then(ClockFacts::measure)),
        };
        Ok(Waited::Done(Self { plan, identity, scratch: scratch.to_path_buf(), way, duel: None }))
    }

    /// Measures the trials `names`, which another build has as well, in turn with it.
    #[must_use]
    pub fn against(mut self, duel: Option<(Duel, BTreeSet<String>)>) -> Self {
        self.duel = duel;
        self
    }

    /// Runs one trial. `missing` says what the machine lacks for it; `tick` is
    /// called from time to time while it runs.
    pub fn run(
        &self,
        scenario: &'static Scenario,
        missing: Option<&str>,
        watch: &mut Watch,
        tick: &mut dyn FnMut(),
    ) -> Ended {
        let begun = Begun::now();
        let ended = |verdict| begun.ended(scenario, self.plan, &self.identity, verdict);
        if let Some(reason) = missing {
            if self.plan.selection.ignored == Ignored::Skip {
                return Ended::Record(ignored(scenario, self.plan, &self.identity, reason.to_string()));
            }
            // It was asked for by --ignored: a pass without having run would be a lie.
            return Ended::Record(ended(Err(Failure::Failed(reason.to_string()))));
        }
        sys::mute_when_closed();
        let duel = self.duel.as_ref().filter(|(_, names)| names.contains(scenario.id().as_str()));
        let waited = match &self.way {
            _ if let Some((duel, _)) = duel => self.in_turn(duel, scenario, watch, tick),
            Way::Here(clock) => self.here(scenario, clock.as_ref(), watch, tick),
            Way::Isolated => self.isolated(scenario, watch, tick),
            Way::Counted(counting) => {
                counting.order(scenario, watch.ticket());
                watch.wait(None, tick)
            }
        };
        match waited {
            // Its thread stands still in the middle of an exit.
            Waited::Done(verdict) if sys::is_exit_held() => Ended::Stuck(ended(verdict)),
            Waited::Done(verdict) => Ended::Record(ended(verdict)),
            Waited::Interrupted(signal) => Ended::Interrupted(signal),
            Waited::TimedOut => {
                let limit = self.limit().as_secs_f64();
                let reason =
                    format!("timed out: it had not ended after {limit} s (--timeout sets the limit)");
                let record = ended(Err(Failure::TimedOut(reason)));
                if duel.is_none() && matches!(self.way, Way::Here(_)) {
                    Ended::Stuck(record)
                } else {
                    Ended::Record(record)
                }
            }
        }
    }

    /// The record of a trial that could not be run at all.
    pub fn not_run(&self, scenario: &Scenario, reason: &str) -> Record {
        Begun::now().ended(scenario, self.plan, &self.identity, Err(Failure::Failed(reason.to_string())))
    }

    /// On a thread of this process.
    fn here(
        &self,
        scenario: &'static Scenario,
        clock: Option<&ClockFacts>,
        watch: &mut Watch,
        tick: &mut dyn FnMut(),
    ) -> Waited<Verdict> {
        let ticket = watch.ticket();
        let exits = ticket.twin();
        let done = move |verdict| ticket.done(verdict);
        // A body must not end the process: what is left of the run would be lost.
        sys::hold_exit(Some(Box::new(move || exits.done(Err(Failure::Failed(EXITED.to_string()))))));
        let started = body::start(scenario, self.plan.clone(), clock.cloned(), done);
        let waited = match started {
            Ok(()) => watch.wait(self.deadline(), tick),
            Err(error) => Waited::Done(Err(Failure::Failed(format!("no thread can be started: {error}")))),
        };
        sys::hold_exit(None);
        waited
    }

    /// In a process of its own.
    fn isolated(
        &self,
        scenario: &'static Scenario,
        watch: &mut Watch,
        tick: &mut dyn FnMut(),
    ) -> Waited<Verdict> {
        // Removed with all that the trial leaves in it.
        let scratch = tempfile::Builder::new().prefix("trial-").tempdir_in(&self.scratch).ok();
        let dir = scratch.as_ref().map(tempfile::TempDir::path);
        let child = match isolate::start(scenario, dir, watch.ticket()) {
            Ok(child) => child,
            Err(error) => {
                return Waited::Done(Err(Failure::Failed(format!("no process can be started: {error}"))));
            }
        };
        // The child is killed with its group when it is dropped, whatever comes.
        match watch.wait::<Said>(self.deadline(), tick) {
            Waited::Done(said) => Waited::Done(child.verdict(scenario, &said)),
            Waited::TimedOut => Waited::TimedOut,
            Waited::Interrupted(signal) => Waited::Interrupted(signal),
        }
    }

    /// In turn with another build, in pairs of processes.
    fn in_turn(
        &self,
        duel: &Duel,
        scenario: &'static Scenario,
        watch: &mut Watch,
        tick: &mut dyn FnMut(),
    ) -> Waited<Verdict> {
        let ticket = watch.ticket();
        let alive = Alive::default();
        let duel = Duel { alive: alive.clone(), ..duel.clone() };
        let (plan, scratch) = (self.plan.clone(), self.scratch.clone());
        let work = move || {
            ticket.done(duel.measure(scenario.id().as_str(), scenario.party_names(), &plan, &scratch))
        };
        let thread = match std::thread::Builder::new().name("turns".into()).spawn(work) {
            Ok(thread) => thread,
            Err(error) => {
                return Waited::Done(Err(Failure::Failed(format!("no thread can be started: {error}"))));
            }
        };
        let waited = watch.wait(self.deadline(), tick);
        // Nothing is left to be killed when the thread has ended by itself.
        alive.end();
        let _ = thread.join();
        waited
    }

    /// How long a trial may take.
    fn limit(&self) -> Duration {
        let measures = self.plan.action == Action::Measure;
        let budget = if measures { self.plan.walltime.time } else { Duration::ZERO };
        self.plan.timeout.saturating_add(budget)
    }

    fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.limit())
    }
}
