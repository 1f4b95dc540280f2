//! What a body sees: the [`Bencher`], which takes the region of interest.
//!
//! Neighbours: `work` turns the closures into [`Work`](super::Work) for the meter.

use anyhow::{Result, ensure};

use super::meter::Meter;
use super::party::Party;
use super::work::{Closures, Pair, exchange};
use crate::units::Throughput;

/// Hands the region of interest of a body to the meter.
pub struct Bencher<'m> {
    meter: &'m mut dyn Meter,
    throughput: Vec<Throughput>,
    has_run: bool,
}

impl<'m> Bencher<'m> {
    /// A Bencher in front of `meter`.
    pub fn new(meter: &'m mut dyn Meter) -> Self {
        Self { meter, throughput: Vec::new(), has_run: false }
    }

    /// States what one iteration gets done; bytes and elements may both be stated.
    pub fn throughput(&mut self, done: impl Into<Throughput>) {
        self.throughput.push(done.into());
    }

    /// What one iteration gets done, as stated by the body.
    pub fn throughput_stated(&self) -> &[Throughput] {
        &self.throughput
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
        routine: impl FnMut(I) -> O,
        check: impl FnMut(O) -> Result<()>,
    ) -> Result<()> {
        self.once()?;
        self.meter.measure(&mut Closures::new(setup, routine, check))
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
