//! The meters: what start and stop of a region mean. A clock read in this
//! process, or a request, a difference or a snapshot under Valgrind.
//!
//! A meter takes a [`Scenario`](crate::scenario::Scenario) and settings, and
//! gives an [`Outcome`] of raw series; it never prints and never writes records.

mod clock;
mod clock_sys;
mod op_times;
mod outcome;
mod smoke;
mod steps;
pub mod valgrind;
mod walltime;
mod walltime_loop;
#[cfg(test)]
mod walltime_mock;
#[cfg(test)]
mod walltime_outcome_tests;
#[cfg(test)]
mod walltime_tests;

pub use clock::{ClockFacts, TurnClock};
pub use outcome::{Failure, Outcome};
pub use smoke::smoke;
pub use steps::{Conductor, Step, Taken, Tempo, steps};
pub use walltime::walltime;
