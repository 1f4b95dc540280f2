//! What a scenario asks of a meter, and a meter of a scenario. The meters
//! themselves are elsewhere; nothing here knows which of them runs.
//!
//! Neighbours: `bencher` and `work` are the scenario's side of it.

use super::gauges::Gauges;
use super::ops::Ops;
use super::pipe::Pipe;

/// A link to a party that runs in another process.
pub trait Wire {
    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// The link is broken.
    fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()>;

    /// Waits for the next piece that the other party sent, and appends it. A
    /// piece has bytes of one [`send`](Wire::send) only: a party must not be
    /// handed what belongs to the next phase or iteration of the other one,
    /// which may be ahead.
    ///
    /// # Errors
    /// The link is broken, or has ended: a reader that waits wants more.
    fn receive(&mut self, into: &mut Pipe) -> anyhow::Result<()>;

    /// The largest piece, in bytes, that one [`receive`](Wire::receive) brings.
    fn piece(&self) -> usize;
}

/// Where the parties of a scenario sit.
pub enum Seat<'a> {
    /// Both in this process and thread.
    Both,
    /// Only the party with this index; the other one is behind the wire.
    One(usize, &'a mut dyn Wire),
}

/// What a scenario's work sees of the meter while it runs.
pub trait Site {
    /// Where the parties sit.
    fn seat(&mut self) -> Seat<'_>;

    /// From here on the work is that of `party`. Called between the turns of
    /// two parties, inside the region.
    fn turn_of(&mut self, party: usize);
}

/// The iterations of a body, without its types.
///
/// A meter calls `prepare(n)`, then [`run`](Work::run) any number of times for
/// `n` iterations in all, then [`check`](Work::check). Only `run` is the region.
pub trait Work {
    /// Set-up of the next `n` iterations.
    ///
    /// # Errors
    /// The set-up failed.
    fn prepare(&mut self, n: usize, site: &mut dyn Site) -> anyhow::Result<()>;

    /// The region: the next `n` of the prepared iterations, back to back.
    ///
    /// # Errors
    /// A party failed, or the parties stopped making progress.
    fn run(&mut self, n: usize, site: &mut dyn Site) -> anyhow::Result<()>;

    /// Checks the results of what has run, and drops it all.
    ///
    /// # Errors
    /// A result is wrong.
    fn check(&mut self) -> anyhow::Result<()>;

    /// What marks the operations of an iteration, for work that has them.
    fn ops(&mut self) -> Option<&mut Ops> {
        None
    }
}

/// Measures the work of a scenario.
pub trait Meter {
    /// Where unmeasured exchanges of a body take place.
    fn site(&mut self) -> &mut dyn Site;

    /// Takes numbers to read around each region; called before
    /// [`measure`](Meter::measure). A meter that takes no number has no use for them.
    fn gauges(&mut self, _gauges: Box<dyn Gauges>) {}

    /// Runs and measures the work: how often and how is the meter's affair.
    ///
    /// # Errors
    /// The work failed, or the meter did.
    fn measure(&mut self, work: &mut dyn Work) -> anyhow::Result<()>;
}
