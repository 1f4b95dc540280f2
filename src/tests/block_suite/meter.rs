//! A meter that takes no number: it runs a scenario a few times, and says
//! when a region begins and ends.
//!
//! Neighbours: `faults` and `calls` run scenarios with it.

use anyhow::{Context, Result};
use wallgrind::families::block::{Subject, register_for};
use wallgrind::scenario::{Bencher, GaugeSet, Gauges, Meter, Scenario, Seat, Site, Suite, Work};

/// The meter.
pub struct Plain {
    /// Iterations.
    pub iterations: usize,
    /// Called right before and right after the last region.
    pub mark: fn(&str),
    /// What the scenario counts, read around the last region.
    pub gauges: GaugeSet,
}

impl Plain {
    pub fn new(iterations: usize) -> Self {
        Self { iterations, mark: |_| (), gauges: GaugeSet::default() }
    }
}

impl Site for Plain {
    fn seat(&mut self) -> Seat<'_> {
        Seat::Both
    }

    fn turn_of(&mut self, _party: usize) {}
}

impl Meter for Plain {
    fn site(&mut self) -> &mut dyn Site {
        self
    }

    fn gauges(&mut self, gauges: Box<dyn Gauges>) {
        self.gauges.add(gauges);
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        for left in (0..self.iterations).rev() {
            work.prepare(1, self)?;
            let mark = (left == 0).then_some(self.mark);
            self.gauges.start();
            mark.iter().for_each(|mark| mark("begin"));
            let ran = work.run(1, self);
            mark.iter().for_each(|mark| mark("end"));
            self.gauges.stop();
            ran?;
            work.check()?;
        }
        Ok(())
    }
}

/// The scenario with this name among those of `register`.
pub fn scenario(register: impl FnOnce(&mut Suite), name: &str) -> Result<Scenario> {
    let mut suite = Suite::new();
    register(&mut suite);
    let all = suite.finish().map_err(|error| anyhow::anyhow!(error.report()))?;
    all.into_iter().find(|s| s.id().as_str() == name).with_context(|| format!("no scenario {name}"))
}

/// Runs a scenario of `subject` a few times; `name` is without its prefix.
pub fn run(subject: impl Subject + 'static, name: &str, iterations: usize) -> Result<()> {
    let name = format!("block::{}::{name}", subject.name());
    let scenario = scenario(|suite| register_for(suite, subject), &name)?;
    scenario.run(&mut Bencher::new(&mut Plain::new(iterations)))
}
