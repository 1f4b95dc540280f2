//! The meter that takes no number: one iteration, checked.
//!
//! Neighbours: `cargo test --benches` and test explorers run every body with it.

use anyhow::Result;

use super::outcome::Failure;
use crate::scenario::{Bencher, GaugeSet, Gauges, Meter, Scenario, Seat, Site, Work};

#[derive(Default)]
struct Smoke {
    gauges: GaugeSet,
}

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

    fn gauges(&mut self, gauges: Box<dyn Gauges>) {
        self.gauges.add(gauges);
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        // Not for their numbers: what is wrong with them is to be seen here.
        self.gauges.check()?;
        if let Some(ops) = work.ops() {
            ops.switch_on(|| 0);
        }
        work.prepare(1, self)?;
        self.gauges.start();
        let ran = work.run(1, self);
        self.gauges.stop();
        ran?;
        self.gauges.risen()?;
        work.check()?;
        work.ops().map_or(Ok(()), |ops| ops.take(|_| ()))
    }
}

/// Runs a body once and checks it. Panics go through to the caller.
///
/// # Errors
/// The body or its check failed.
pub fn smoke(scenario: &Scenario) -> Result<(), Failure> {
    scenario.run(&mut Bencher::new(&mut Smoke::default())).map_err(|error| Failure::from_error(&error))
}
