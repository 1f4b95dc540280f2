//! Runs the children of all selected scenarios ahead on several processors,
//! while their outcomes are taken one at a time.
//!
//! Neighbours: `launch` runs one order, `outcome` makes an [`Outcome`] of the
//! readings; the flow calls [`Counter::measure`] in its own order.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::canary::{self, Canary};
use super::features;
use super::launch::{Launcher, Order};
use super::outcome::{self, Taken};
use super::readings::{self, Reading};
use super::settings::Settings;
use super::tool::Tool;
use crate::error::{Error, Kind, Result};
use crate::measure::{Failure, Outcome};
use crate::plan::{Mode, Plan};
use crate::scenario::{Counts, Scenario};

/// The readings of all parties in one run of a scenario.
type Run = std::result::Result<Vec<Reading>, Failure>;

/// Runs children ahead on all cores while results are taken one at a time.
pub struct Counter {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    launcher: Launcher,
    settings: Settings,
    tool: Tool,
    canary: Canary,
    native: Vec<String>,
    seeds: u32,
    repeat: u32,
    timeout: Duration,
    keep: PathBuf,
    attempt: u32,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

struct Queue {
    waiting: VecDeque<Unit>,
    done: BTreeMap<(String, u32, u32), Run>,
    selected: BTreeMap<String, Subject>,
    closed: bool,
}

/// What the workers need to know of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub name: String,
    pub parties: Vec<String>,
    pub iterations: usize,
    pub counts: Counts,
}

/// One run of a scenario: its seed, and which repetition it is.
struct Unit {
    subject: Subject,
    seed: u32,
    repeat: u32,
}

impl Counter {
    /// Probes Valgrind, runs the canaries, and starts the children of
    /// `selected` in that order.
    ///
    /// # Errors
    /// Valgrind is missing or too old, does not count what is known to be
    /// there, or did not take the repeatable world on.
    pub fn start(plan: &Plan, selected: &[&Scenario]) -> Result<Self> {
        let tool = Tool::probe()?;
        let settings = Settings::resolve(plan.mode, &plan.valgrind, &tool)?;
        let launcher =
            Launcher::new(tool.clone(), settings.tool, settings.options.clone(), variables(selected))?;
        let canary = canary::run(&launcher, &settings)?;
        let (seeds, repeat) = (plan.valgrind.seeds.max(1), plan.valgrind.repeat.max(1));
        let subjects: Vec<_> = selected.iter().map(|s| Subject::of(s)).collect();
        let queue = Queue {
            waiting: units(&subjects, seeds, repeat),
            done: BTreeMap::new(),
            selected: subjects.into_iter().map(|s| (s.name.clone(), s)).collect(),
            closed: false,
        };
        let shared = Arc::new(Shared {
            launcher,
            settings,
            tool,
            canary,
            native: features::seen(),
            seeds,
            repeat,
            timeout: plan.timeout,
            keep: plan.out.join(&plan.run_id).join("valgrind"),
            attempt: plan.attempt,
            queue: Mutex::new(queue),
            arrived: Condvar::new(),
        });
        let workers = (0..plan.valgrind.jobs.max(1)).map(|i| worker(i, &shared)).collect::<Result<_>>()?;
        Ok(Self { shared, workers })
    }

    /// Waits for the outcome of one of the selected scenarios.
    ///
    /// # Errors
    /// The scenario failed under Valgrind, or was not selected.
    pub fn measure(&mut self, scenario: &Scenario) -> std::result::Result<Outcome, Failure> {
        let shared = &self.shared;
        let name = scenario.id().as_str();
        let mut queue = shared.lock();
        let Some(subject) = queue.selected.get(name).cloned() else {
            return Err(Failure::Failed(format!("{name} was not among the scenarios to be counted")));
        };
        let mut runs = Vec::new();
        for seed in 0..shared.seeds {
            for repeat in 0..shared.repeat {
                let key = (name.to_string(), seed, repeat);
                let run = loop {
                    match queue.done.remove(&key) {
                        Some(run) => break run?,
                        None => queue = shared.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner),
                    }
                };
                runs.push((seed, run));
            }
        }
        drop(queue);
        Ok(outcome::build(&Taken {
            subject: &subject,
            settings: &shared.settings,
            valgrind: &shared.tool.text,
            canary: &shared.canary,
            native: &shared.native,
            repeat: shared.repeat,
            runs: &runs,
        }))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        {
            let mut queue = self.shared.lock();
            queue.closed = true;
            queue.waiting.clear();
        }
        self.shared.launcher.close();
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing left to end.
            let _ = worker.join();
        }
    }
}

/// What the bodies of all scenarios read of the environment, each once: their
/// children are forked from one process.
fn variables(selected: &[&Scenario]) -> Vec<(OsString, OsString)> {
    let stated = selected.iter().flat_map(|scenario| scenario.variables());
    let set: BTreeMap<&str, OsString> = stated.filter_map(|(name, value)| Some((name, value?))).collect();
    set.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

impl Subject {
    fn of(scenario: &Scenario) -> Self {
        Self {
            name: scenario.id().to_string(),
            parties: scenario.party_names().to_vec(),
            iterations: scenario.counted_iterations_stated(),
            counts: scenario.counts().clone(),
        }
    }

    /// The names of the parties; one without a name where there are none.
    pub(super) fn party_names(&self) -> Vec<Option<&str>> {
        if self.parties.is_empty() {
            return vec![None];
        }
        self.parties.iter().map(|name| Some(name.as_str())).collect()
    }
}

fn units(subjects: &[Subject], seeds: u32, repeat: u32) -> VecDeque<Unit> {
    let mut units = VecDeque::new();
    for subject in subjects {
        for seed in 0..seeds {
            units.extend((0..repeat).map(|repeat| Unit { subject: subject.clone(), seed, repeat }));
        }
    }
    units
}

fn worker(number: usize, shared: &Arc<Shared>) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new()
        .name(format!("valgrind-{number}"))
        .spawn(move || shared.work())
        .map_err(|e| Error::new(Kind::Missing, "no thread to run measured children").source(e))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let mut queue = self.lock();
            let Some(unit) = queue.waiting.pop_front().filter(|_| !queue.closed) else { return };
            drop(queue);
            let run = self.run(&unit);
            let key = (unit.subject.name, unit.seed, unit.repeat);
            self.lock().done.insert(key, run);
            self.arrived.notify_all();
        }
    }

    fn run(&self, unit: &Unit) -> Run {
        let names = unit.subject.party_names();
        let order = Order {
            scenario: Some(unit.subject.name.clone()),
            loops: 0,
            parties: names.len(),
            method: self.settings.method,
            warm: self.settings.warm,
            iterations: unit.subject.iterations,
            ballast: self.settings.ballast,
            seed: u64::from(unit.seed),
            timeout: self.timeout,
        };
        let (left, _folder) = self.launcher.run(&order)?;
        let read = left.iter().zip(names).map(|(left, party)| {
            let keep = self.kept(unit, party);
            match self.settings.mode {
                Mode::Dhat => readings::heap(left, self.settings.ballast as u64, Some(&keep)),
                _ => {
                    let kept = (keep.as_path(), unit.subject.name.as_str());
                    readings::counts(left, &self.settings, self.canary.overhead, Some(kept))
                }
            }
        });
        read.collect::<std::result::Result<_, _>>().map_err(Failure::Failed)
    }

    /// Where the output of a party is kept: `<run>/valgrind/<scenario>/<tool>[…].out`.
    fn kept(&self, unit: &Unit, party: Option<&str>) -> PathBuf {
        let mut name = self.settings.tool.to_string();
        let parts = [
            (unit.seed > 0, format!(".seed{}", unit.seed)),
            (unit.repeat > 0, format!(".repeat{}", unit.repeat)),
            (self.attempt > 1, format!(".attempt{}", self.attempt)),
            (party.is_some(), format!(".{}", party.unwrap_or_default())),
        ];
        parts.into_iter().filter(|(there, _)| *there).for_each(|(_, part)| name.push_str(&part));
        self.keep.join(unit.subject.name.replace("::", ".")).join(name + ".out")
    }
}
