//! What a suite is made of: scenarios with a set-up, a region of interest and
//! a check, for one party or two. Nothing here knows which meter runs.
//!
//! A body is called with a [`Bencher`]. What it does before it calls one of
//! the Bencher's `iter…` or `pair` methods is set-up; the closure handed over
//! is the region; what a check does is outside of it again. The meter behind
//! the Bencher decides how often all of that happens.

mod bencher;
mod gauges;
mod id;
mod meter;
mod ops;
mod party;
mod pipe;
mod registry;
mod spec;
mod work;
#[cfg(test)]
mod work_tests;

pub use bencher::Bencher;
pub use gauges::{Gauge, GaugeSet, Gauges};
pub use id::ScenarioId;
pub use meter::{Meter, Seat, Site, Wire, Work};
pub use ops::Ops;
pub use party::{Party, Turn};
pub use pipe::Pipe;
pub use registry::{Group, Suite};
pub use spec::{Body, Counts, Need, Scenario};
