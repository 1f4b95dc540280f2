//! The meter that takes no number: one iteration, checked.
//!
//! Neighbours: `cargo test --benches` and test explorers run every body with it.

use anyhow::Result;

use super::outcome::Failure;
use crate::scenario::{Bencher, Meter, Scenario, Seat, Site, Work};

struct Smoke;

impl Site for Smoke {
    fn seat(&mut self) -> Seat<'_> {
        Seat::Both
    }

    fn turn_of(&mut self, _party: usize) {}
}

impl Meter for Smoke {
    fn site(&mut self) -> &mut dyn Site {
        self
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        work.prepare(1, self)?;
        work.run(1, self)?;
        work.check()
    }
}

/// Runs a body once and checks it. Panics go through to the caller.
///
/// # Errors
/// The body or its check failed.
pub fn smoke(scenario: &Scenario) -> Result<(), Failure> {
    scenario.run(&mut Bencher::new(&mut Smoke)).map_err(|error| Failure::from_error(&error))
}
