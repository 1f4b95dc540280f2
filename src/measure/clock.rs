//! The clock of the wall-time meter, what it costs, and what it resolves.
//!
//! The region is timed by `CLOCK_MONOTONIC_RAW` with a barrier on both sides
//! of each reading. The kernel answers it from user space (vDSO), has checked
//! the hardware counter behind it, converts it to nanoseconds, and copes with
//! machines where that counter cannot be trusted; "raw" leaves out the steering
//! by NTP (up to 0.05 %), so two runs of one build tick alike. A counter of our
//! own with a calibration of our own would save some 20 ns a sample, and a
//! sample takes at least a thousand times that.
//!
//! Turns of two parties are told apart by a *mark*, inside the region, so it
//! must be cheap: the time stamp counter without barriers where it is steady,
//! else the same clock. Marks have a unit of their own; their rate is taken
//! from the clock over the whole measurement of a scenario.
//!
//! Neighbours: `clock_sys` reads, `walltime_loop` asks, `walltime_mock` is the
//! scripted clock of the tests.

use super::clock_sys::{
    Usage, barrier, has_steady_time_stamp, monotonic_raw, resident_bytes, thread_usage, time_stamp,
};

/// Readings taken to measure the clock; some 0.3 ms.
const READINGS: usize = 4_096;

/// Time, as the loop of the meter sees it.
pub(super) trait Clock {
    /// Nanoseconds from some start. What comes before the call is done when
    /// it reads, and what comes after has not begun.
    fn now(&mut self) -> u64;

    /// A cheap reading for turns, in a unit of its own with a constant rate.
    fn mark(&mut self) -> u64;
}

/// What else the loop sees of the machine.
pub(super) trait Witness {
    /// What the kernel has counted for this thread so far.
    fn usage(&mut self) -> Usage;

    /// Bytes of this process that are in memory.
    fn resident(&mut self) -> u64;
}

/// Where marks of turns come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnClock {
    /// The processor's time stamp counter, unordered: work near the change of
    /// turn can be put down to the neighbour, by tens of nanoseconds.
    TimeStampCounter,
    /// `CLOCK_MONOTONIC_RAW`, without barriers.
    Monotonic,
}

impl TurnClock {
    /// The name that is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::TimeStampCounter => "tsc",
            Self::Monotonic => "CLOCK_MONOTONIC_RAW",
        }
    }
}

/// What the clock of this machine costs and resolves, measured once a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockFacts {
    /// Smallest step between two readings that differ, in nanoseconds.
    pub precision_ns: f64,
    /// What a start and stop show for an empty region, in nanoseconds
    /// (median). It is part of every sample, and stored, not subtracted: a
    /// sample is so long that it is at most 0.1 % of it.
    pub overhead_ns: f64,
    /// Cost of one change of turn inside the region, in nanoseconds (mean).
    pub turn_overhead_ns: f64,
    /// Where the marks of turns come from.
    pub turn_clock: TurnClock,
}

impl ClockFacts {
    /// The clock that regions are timed with.
    pub const SOURCE: &'static str = "CLOCK_MONOTONIC_RAW";

    /// Measures the clock; takes about a millisecond.
    pub fn measure() -> Self {
        let turn_clock = match has_steady_time_stamp() {
            true => TurnClock::TimeStampCounter,
            false => TurnClock::Monotonic,
        };
        Self::of(&mut Native::new(turn_clock), turn_clock)
    }

    /// Measures the given clock.
    pub(super) fn of(clock: &mut impl Clock, turn_clock: TurnClock) -> Self {
        let mut empty: Vec<u64> = (0..READINGS).map(|_| empty_region(clock)).collect();
        empty.sort_unstable();
        let start = clock.now();
        for _ in 0..READINGS {
            std::hint::black_box(clock.mark());
        }
        let marks = clock.now().saturating_sub(start);
        // A clock that stood still all the time resolves no better than that time.
        let step = empty.iter().copied().find(|ns| *ns > 0).unwrap_or(marks.max(1));
        Self {
            precision_ns: step as f64,
            overhead_ns: empty[READINGS / 2] as f64,
            turn_overhead_ns: marks as f64 / READINGS as f64,
            turn_clock,
        }
    }

    /// The shortest sample, in nanoseconds: 1,000 times what the clock
    /// resolves, and 1,000 times what it costs.
    pub fn shortest_sample_ns(&self) -> u64 {
        (1_000.0 * self.precision_ns.max(self.overhead_ns)).ceil().max(1.0) as u64
    }
}

/// What the clock shows for a region with nothing in it.
fn empty_region(clock: &mut impl Clock) -> u64 {
    let start = clock.now();
    let stop = clock.now();
    stop.saturating_sub(start)
}

/// The clock of this machine.
#[derive(Clone, Debug)]
pub(super) struct Native {
    turn_clock: TurnClock,
}

impl Native {
    pub(super) fn new(turn_clock: TurnClock) -> Self {
        Self { turn_clock }
    }
}

impl Clock for Native {
    #[inline]
    fn now(&mut self) -> u64 {
        barrier();
        let now = monotonic_raw();
        barrier();
        now
    }

    #[inline]
    fn mark(&mut self) -> u64 {
        match self.turn_clock {
            TurnClock::TimeStampCounter => time_stamp(),
            TurnClock::Monotonic => monotonic_raw(),
        }
    }
}

impl Witness for Native {
    fn usage(&mut self) -> Usage {
        thread_usage()
    }

    fn resident(&mut self) -> u64 {
        resident_bytes()
    }
}
