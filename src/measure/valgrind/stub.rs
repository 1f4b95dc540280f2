//! Stub.
use crate::error::Result;
use crate::measure::{Failure, Outcome};
use crate::plan::Plan;
use crate::scenario::Scenario;
use std::process::ExitCode;

/// Why the meters under Valgrind cannot run on this machine, if they cannot. Cheap: listing asks.
pub fn missing() -> Option<String> {
    Some("stub".into())
}

/// When this process was started as a measured child (first argument is the
/// hidden flag), does the child's work and gives its exit code.
pub fn child(_scenarios: &[Scenario]) -> Option<ExitCode> {
    None
}

/// Runs children ahead on all cores while results are taken one at a time.
pub struct Counter {}

impl Counter {
    /// Probes Valgrind, runs the canaries, and starts the children of `selected` in that order.
    pub fn start(_plan: &Plan, _selected: &[&Scenario]) -> Result<Self> {
        Ok(Self {})
    }

    /// Waits for the outcome of one of the selected scenarios.
    pub fn measure(&mut self, _scenario: &Scenario) -> std::result::Result<Outcome, Failure> {
        Err(Failure::Failed("stub".into()))
    }
}
