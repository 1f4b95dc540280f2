//! What a body sees: the [`Bencher`], which takes the region of interest.
//!
//! Neighbours: `work` turns the closures into [`Work`](super::Work) for the meter.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::gauges::Gauges;
use super::meter::Meter;
use super::ops::Ops;
use super::party::Party;
use super::work::{Closures, Pair, exchange};
use crate::units::Throughput;

/// Hands the region of interest of a body to the meter.
pub struct Bencher<'m> {
    meter: &'m mut dyn Meter,
    throughput: Vec<Throughput>,
    facts: BTreeMap<String, String>,
    has_run: bool,
}

impl<'m> Bencher<'m> {
    /// A Bencher in front of `meter`.
    pub fn new(meter: &'m mut dyn Meter) -> Self {
        Self { meter, throughput: Vec::new(), facts: BTreeMap::new(), has_run: false }
    }

    /// States what one iteration gets done; bytes and elements may both be stated.
    pub fn throughput(&mut self, done: impl Into<Throughput>) {
        self.throughput.push(done.into());
    }

    /// What one iteration gets done, as stated by the body.
    pub fn throughput_stated(&self) -> &[Throughput] {
        &self.throughput
    }

    /// States what a number depends on that only the body knows: the file
    /// system, the state of the page cache, the engine. Stored with the record,
    /// under any meter; of two values of one key the last one is.
    pub fn fact(&mut self, key: impl Into<String>, value: impl fmt::Display) {
        self.facts.insert(key.into(), value.to_string());
    }

    /// The facts that the body has stated.
    pub fn facts_stated(&self) -> &BTreeMap<String, String> {
        &self.facts
    }

    /// Hands over numbers to be read right before and right after each region,
    /// outside of what is measured: each becomes a metric of the scenario, for
    /// one iteration. Call it before the region is handed over.
    pub fn gauges(&mut self, gauges: impl Gauges + 'static) {
        self.meter.gauges(Box::new(gauges));
    }

    /// The folder for files of the body: on the file system that `--scratch-dir`
    /// chose, and removed with the run, however that ends. All trials of a
    /// process share it. Under Valgrind each child has its own, at a path whose
    /// length is always the same, so that counts do not depend on the setting.
    ///
    /// Outside of [`wallgrind::main`](crate::main) it is the system's temporary folder.
    ///
    /// # Errors
    /// The folder is gone and cannot be made again.
    pub fn scratch_dir(&self) -> Result<PathBuf> {
        // `main` points the temporary folder there, for bodies that ask the
        // standard library or `tempfile` for a place, too.
        let folder = std::env::temp_dir();
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("the scratch folder {} cannot be made", folder.display()))?;
        Ok(folder)
    }

    /// Whether the body has handed over a region.
    pub fn has_run(&self) -> bool {
        self.has_run
    }

    /// Measures `routine`. Its results are dropped outside the region.
    ///
    /// # Errors
    /// The meter failed, or the body measures twice.
    pub fn iter<O>(&mut self, mut routine: impl FnMut() -> O) -> Result<()> {
        self.iter_full(|| Ok(()), |()| routine(), |_| Ok(()))
    }

    /// Measures `routine`, and checks each result outside the region.
    ///
    /// # Errors
    /// The check or the meter failed.
    pub fn iter_checked<O>(
        &mut self,
        mut routine: impl FnMut() -> O,
        check: impl FnMut(O) -> Result<()>,
    ) -> Result<()> {
        self.iter_full(|| Ok(()), |()| routine(), check)
    }

    /// Measures `routine` with an input that `setup` makes anew for each
    /// iteration, outside the region.
    ///
    /// # Errors
    /// The set-up or the meter failed.
    pub fn iter_with_setup<I, O>(
        &mut self,
        setup: impl FnMut() -> Result<I>,
        routine: impl FnMut(I) -> O,
    ) -> Result<()> {
        self.iter_full(setup, routine, |_| Ok(()))
    }

    /// Measures `routine`, with a set-up and a check for each iteration, both
    /// outside the region.
    ///
    /// # Errors
    /// The set-up, the check or the meter failed.
    pub fn iter_full<I, O>(
        &mut self,
        setup: impl FnMut() -> Result<I>,
        mut routine: impl FnMut(I) -> O,
        check: impl FnMut(O) -> Result<()>,
    ) -> Result<()> {
        self.once()?;
        self.meter.measure(&mut Closures::new(setup, |input, _: &mut Ops| routine(input), check))
    }

    /// Measures `routine` as [`iter_full`](Bencher::iter_full) does, and the
    /// time of each operation that it marks: [`Ops::op`] around one that is
    /// waited for, [`Ops::start`] and [`Ops::done`] at the ends of one that is
    /// queued. The times of operations come from a pass of their own; the time
    /// of the iteration and the counts are taken without their clock.
    ///
    /// # Errors
    /// The set-up, the check or the meter failed, or an operation was started
    /// and never done.
    pub fn iter_ops<I, O>(
        &mut self,
        setup: impl FnMut() -> Result<I>,
        routine: impl FnMut(I, &mut Ops) -> O,
        check: impl FnMut(O) -> Result<()>,
    ) -> Result<()> {
        self.once()?;
        self.meter.measure(&mut Closures::new(setup, routine, check).with_ops())
    }

    /// Measures a future that `block_on` runs to its end: the executor is yours,
    /// and so is its set-up, outside the region. `block_on` is called once for
    /// each iteration, under every meter, so that what it costs to enter the
    /// executor is a part of each iteration.
    ///
    /// An executor with threads of its own makes instruction counts vary; see
    /// [`Scenario::counts_vary`](super::Scenario::counts_vary).
    ///
    /// ```
    /// use std::pin::pin;
    /// use std::task::{Context, Poll, Waker};
    ///
    /// // Tokio's would be `|future| runtime.block_on(future)`.
    /// fn block_on<F: Future>(future: F) -> F::Output {
    ///     let mut future = pin!(future);
    ///     loop {
    ///         if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
    ///             return output;
    ///         }
    ///     }
    /// }
    ///
    /// # let mut suite = wallgrind::Suite::new();
    /// suite.bench("queue::one", |b| b.iter_async(block_on, || async { std::future::ready(7).await + 1 }));
    /// # assert_eq!(suite.finish().map(|all| all.len()).ok(), Some(1));
    /// ```
    ///
    /// # Errors
    /// The meter failed, or the body measures twice.
    pub fn iter_async<F: Future>(
        &mut self,
        block_on: impl FnMut(F) -> F::Output,
        mut routine: impl FnMut() -> F,
    ) -> Result<()> {
        self.iter_async_full(block_on, || Ok(()), |()| routine(), |_| Ok(()))
    }

    /// Measures a future as [`iter_async`](Bencher::iter_async) does, with a
    /// set-up and a check for each iteration, both outside the region and
    /// outside of `block_on`. Making the future is inside.
    ///
    /// # Errors
    /// The set-up, the check or the meter failed, or the body measures twice.
    pub fn iter_async_full<I, F: Future>(
        &mut self,
        mut block_on: impl FnMut(F) -> F::Output,
        setup: impl FnMut() -> Result<I>,
        mut routine: impl FnMut(I) -> F,
        check: impl FnMut(F::Output) -> Result<()>,
    ) -> Result<()> {
        self.iter_full(setup, |input| block_on(routine(input)), check)
    }

    /// Measures two parties that talk to each other. Each closure makes one
    /// party for one iteration, outside the region; under a meter that runs
    /// the parties in processes of their own, only one of the two is called.
    ///
    /// # Errors
    /// A party, its check or the meter failed.
    pub fn pair<A: Party, B: Party>(
        &mut self,
        first: impl FnMut() -> Result<A>,
        second: impl FnMut() -> Result<B>,
    ) -> Result<()> {
        self.once()?;
        self.meter.measure(&mut Pair::new(first, second))
    }

    /// Runs both phases of two parties once, unmeasured, and checks them: the
    /// full handshake that resumed ones need first, for example.
    ///
    /// # Errors
    /// A party or its check failed.
    pub fn exchange<A: Party, B: Party>(
        &mut self,
        first: impl FnMut() -> Result<A>,
        second: impl FnMut() -> Result<B>,
    ) -> Result<()> {
        exchange(&mut Pair::new(first, second), self.meter.site())
    }

    fn once(&mut self) -> Result<()> {
        ensure!(!self.has_run, "the body measures twice: one scenario has one region");
        self.has_run = true;
        Ok(())
    }
}
