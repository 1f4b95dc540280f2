//! The wall-time meter in steps: a body is warmed up, and then takes a sample
//! whenever it is told to, so that two processes can take turns.
//!
//! Neighbours: `walltime_loop` has the batches; `trial` conducts.

use anyhow::Result;

use super::clock::{ClockFacts, Native};
use super::outcome::Failure;
use super::walltime::pin;
use super::walltime_loop::{Limits, Loop, Pace};
use crate::plan;
use crate::samples::Sample;
use crate::scenario::{Bencher, Meter, Scenario, Site, Work};

/// How long a body is warmed up.
const WARM_UP: std::time::Duration = std::time::Duration::from_millis(20);

/// The budget of the loop of which a fifth goes to warming up, and the most
/// samples it may plan for: what is left divided by them is the length of a step.
const BUDGET: std::time::Duration = WARM_UP.saturating_mul(5);
const MOST_STEPS: usize = 80;

/// Above this, in nanoseconds, the other process has left nothing in the
/// caches that a batch to warm them again would be worth.
const LONG_BATCH_NS: u64 = 500_000;

/// How a step is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tempo {
    /// Iterations that are prepared, run back to back, and checked.
    pub iterations: usize,
    /// Such batches in a step.
    pub batches: usize,
}

/// What the conductor wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A step at this tempo.
    Take(Tempo),
    /// Nothing more.
    End,
}

/// A step that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its iterations, and the time of their regions in nanoseconds.
    pub sample: Sample,
    /// The time of each party's turns within it, where there are two parties.
    pub parties: Option<[u64; 2]>,
}

/// Tells a body when to take a step.
pub trait Conductor {
    /// The body is warm; `own` is the tempo that it would choose, and `step_ns`
    /// how long a step takes at it, set-up and check included.
    ///
    /// # Errors
    /// The conductor has gone.
    fn ready(&mut self, own: Tempo, step_ns: u64) -> Result<()>;

    /// What to do next.
    ///
    /// # Errors
    /// The conductor has gone.
    fn next(&mut self) -> Result<Step>;

    /// A step has been taken.
    ///
    /// # Errors
    /// The conductor has gone.
    fn took(&mut self, taken: Taken) -> Result<()>;
}

/// Runs a scenario in steps, in this thread.
///
/// # Errors
/// The body, its set-up or its check failed, the thread cannot be pinned, or
/// the conductor has gone.
pub fn steps(
    scenario: &Scenario,
    settings: &plan::Walltime,
    clock: &ClockFacts,
    conductor: &mut dyn Conductor,
) -> Result<(), Failure> {
    let _pinned = settings.cpu.map(pin).transpose()?;
    let limits = Limits {
        budget: BUDGET,
        op_budget: std::time::Duration::ZERO,
        shortest_ns: clock.shortest_sample_ns(),
        min_samples: 1,
        max_samples: MOST_STEPS,
    };
    let mut meter = Stepped { inner: Loop::new(Native::new(clock.turn_clock), limits), conductor };
    scenario.run(&mut Bencher::new(&mut meter)).map_err(|error| Failure::from_error(&error))
}

struct Stepped<'c> {
    inner: Loop<Native>,
    conductor: &'c mut dyn Conductor,
}

impl Meter for Stepped<'_> {
    fn site(&mut self) -> &mut dyn Site {
        &mut self.inner
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        let (begin, first_mark) = (self.inner.now(), self.inner.mark());
        let pace = self.inner.warm_up(work, begin)?;
        let own = Tempo { iterations: pace.iterations, batches: pace.batches };
        let batch = self.inner.batch(work, own.iterations, false)?;
        self.conductor.ready(own, batch.whole_ns.saturating_mul(own.batches as u64))?;
        while let Step::Take(Tempo { iterations, batches }) = self.conductor.next()? {
            if batch.whole_ns < LONG_BATCH_NS {
                // The other process has been here: what it left in the caches is its affair.
                self.inner.batch(work, iterations, false)?;
            }
            let taken = self.inner.sample_at(work, Pace { iterations, batches })?;
            let sample = Sample { iterations: taken.iterations, total: taken.region_ns };
            let (now, mark) = (self.inner.now(), self.inner.mark());
            let marks = mark.saturating_sub(first_mark).max(1);
            let ns_per_mark = now.saturating_sub(begin) as f64 / marks as f64;
            let ns = |marks: u64| (marks as f64 * ns_per_mark).round() as u64;
            // Without turns there are no marks.
            let parties = (taken.marks != [0, 0]).then(|| taken.marks.map(ns));
            self.conductor.took(Taken { sample, parties })?;
        }
        Ok(())
    }
}
