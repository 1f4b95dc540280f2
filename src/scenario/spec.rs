//! A scenario: its name, what is said about it before it runs, and its body.
//!
//! Neighbours: `registry` collects scenarios; the trial reads them.

use std::ffi::OsString;
use std::fmt;

use super::bencher::Bencher;
use super::id::ScenarioId;
use crate::units::Bytes;

/// The body of a scenario: set-up, then one call that hands over the region.
pub type Body = dyn Fn(&mut Bencher<'_>) -> anyhow::Result<()> + Send + Sync;

/// Something that a machine must have for a scenario to run. It is probed
/// before the list is made, so that what is missing shows as ignored.
#[derive(Clone, Copy)]
pub struct Need {
    name: &'static str,
    probe: fn() -> Result<(), String>,
}

impl Need {
    /// A need called `name`; `probe` says why this machine does not meet it.
    /// It must be cheap and have no side effects, since listing runs it.
    pub const fn new(name: &'static str, probe: fn() -> Result<(), String>) -> Self {
        Self { name, probe }
    }

    /// The name of the need.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// # Errors
    /// The reason why this machine does not meet the need.
    pub fn check(&self) -> Result<(), String> {
        (self.probe)().map_err(|reason| format!("needs {}: {reason}", self.name))
    }
}

impl fmt::Debug for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Need").field(&self.name).finish()
    }
}

/// What is expected of a scenario's instruction counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// Equal to the last digit from run to run; a spread is reported as a fault.
    #[default]
    Exact,
    /// They vary, for the reason given (threads, for example).
    Vary(String),
}

/// One scenario, ready to run under any meter.
pub struct Scenario {
    id: ScenarioId,
    params: Vec<(String, String)>,
    parties: Vec<String>,
    needs: Vec<Need>,
    variables: Vec<String>,
    lacking: Option<String>,
    counts: Counts,
    counted: usize,
    scratch: u64,
    body: Box<Body>,
}

impl Scenario {
    pub(super) fn new(id: ScenarioId, body: Box<Body>) -> Self {
        Self {
            id,
            params: Vec::new(),
            parties: Vec::new(),
            needs: Vec::new(),
            variables: Vec::new(),
            lacking: None,
            counts: Counts::Exact,
            counted: 1,
            scratch: 0,
            body,
        }
    }

    /// States a parameter, stored with every record; their order is kept.
    pub fn param(&mut self, key: impl Into<String>, value: impl fmt::Display) -> &mut Self {
        self.params.push((key.into(), value.to_string()));
        self
    }

    /// States that the body is a [`Bencher::pair`] of two parties, by name.
    pub fn parties(&mut self, first: impl Into<String>, second: impl Into<String>) -> &mut Self {
        self.parties = vec![first.into(), second.into()];
        self
    }

    /// States that the body reads this variable of the environment: it reaches
    /// measured children, whose environment is cleared otherwise, and its value
    /// is kept with each record.
    pub fn variable(&mut self, name: impl Into<String>) -> &mut Self {
        self.variables.push(name.into());
        self
    }

    /// States something that the machine must have.
    pub fn needs(&mut self, need: Need) -> &mut Self {
        self.needs.push(need);
        self
    }

    /// States that the scenario cannot run whatever the machine has, and why: what it measures is
    /// something that its subject does not do. It shows as ignored with that reason.
    pub fn lacks(&mut self, reason: impl Into<String>) -> &mut Self {
        self.lacking.get_or_insert(reason.into());
        self
    }

    /// States how much room the body's files take in the scratch folder at
    /// most, beyond what the [suite](super::Suite::needs_scratch) states. A run
    /// that does not find it does not start.
    pub fn needs_scratch(&mut self, room: Bytes) -> &mut Self {
        self.scratch = room.0;
        self
    }

    /// The room that a run of this scenario takes in the scratch folder, with
    /// what the suite takes.
    pub fn scratch_stated(&self) -> Bytes {
        Bytes(self.scratch)
    }

    /// Adds what the suite takes.
    pub(super) fn add_scratch(&mut self, bytes: u64) {
        self.scratch = self.scratch.saturating_add(bytes);
    }

    /// States that instruction counts vary, and why.
    pub fn counts_vary(&mut self, reason: impl Into<String>) -> &mut Self {
        self.counts = Counts::Vary(reason.into());
        self
    }

    /// States how many iterations the meters under Valgrind count together
    /// (the default is 1, after a warm one): more for a body whose cost differs
    /// from iteration to iteration. It is a part of what the scenario is, and no
    /// setting, so that counts can be compared.
    pub fn counted_iterations(&mut self, iterations: usize) -> &mut Self {
        self.counted = iterations.max(1);
        self
    }

    /// How many iterations the meters under Valgrind count together.
    pub fn counted_iterations_stated(&self) -> usize {
        self.counted
    }

    /// The name.
    pub fn id(&self) -> &ScenarioId {
        &self.id
    }

    /// The parameters in the order in which they were stated.
    pub fn params_stated(&self) -> &[(String, String)] {
        &self.params
    }

    /// The variables that the body reads, with their values where they are set.
    pub fn variables(&self) -> Vec<(&str, Option<OsString>)> {
        self.variables.iter().map(|name| (name.as_str(), std::env::var_os(name))).collect()
    }

    /// The names of the two parties; empty for a scenario with one.
    pub fn party_names(&self) -> &[String] {
        &self.parties
    }

    /// What is expected of the instruction counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Why the scenario cannot run: what its subject does not do, or the first need that this
    /// machine does not meet.
    pub fn missing(&self) -> Option<String> {
        if self.lacking.is_some() {
            return self.lacking.clone();
        }
        self.needs.iter().find_map(|need| need.check().err())
    }

    /// Calls the body; it calls the meter behind `bencher`.
    ///
    /// # Errors
    /// What the body returns, or that it never handed over a region.
    pub fn run(&self, bencher: &mut Bencher<'_>) -> anyhow::Result<()> {
        (self.body)(bencher)?;
        anyhow::ensure!(
            bencher.has_run(),
            "the body measured nothing: it must call one of the Bencher's methods"
        );
        Ok(())
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("id", &self.id).field("params", &self.params).finish_non_exhaustive()
    }
}
