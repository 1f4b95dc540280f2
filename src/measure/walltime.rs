//! The wall-time meter.
use super::outcome::{Failure, Outcome};
use crate::plan;
use crate::scenario::Scenario;

/// What the clock of this machine costs and resolves, measured once a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockFacts {
    /// Smallest step between two readings that differ, in nanoseconds.
    pub precision_ns: f64,
    /// Cost of one start and stop of an empty region, in nanoseconds.
    pub overhead_ns: f64,
}

impl ClockFacts {
    /// Measures the clock; takes a few milliseconds.
    pub fn measure() -> Self {
        Self { precision_ns: 1.0, overhead_ns: 0.0 }
    }
}

/// Measures one scenario in this thread.
///
/// # Errors
/// The body, its set-up or its check failed.
pub fn walltime(_s: &Scenario, _settings: &plan::Walltime, _clock: &ClockFacts) -> Result<Outcome, Failure> {
    Err(Failure::Failed("stub".into()))
}
