//! Numbers of a region that no meter knows by itself: system calls, bytes
//! moved, cache misses of a cache of one's own.
//!
//! Neighbours: a body hands them to its `bencher`, which hands them to the
//! meter; each meter reads them around the region, outside of what it measures.

use std::fmt;

use anyhow::{Result, ensure};

use crate::units::{Direction, Unit};

/// Numbers that only go up while work is done; read right before and right
/// after each region, outside the clock and outside of what is counted.
///
/// A reading is cheap, changes none of the numbers, and does not depend on
/// which thread or process it takes place in, as far as the work does not.
pub trait Gauges {
    /// What the numbers are, in the order in which [`read`](Gauges::read)
    /// gives them. It is asked for once, before the first reading.
    fn names(&self) -> Vec<Gauge>;

    /// Appends the present value of each number to `out`.
    fn read(&mut self, out: &mut Vec<u64>);
}

/// One number of a region: a metric like those of the meters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// The name of the metric: `[a-z][a-z0-9_]*`, such as `system_calls`.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way it is better.
    pub direction: Direction,
}

impl Gauge {
    /// A number that is better when it is lower.
    pub fn lower(metric: impl Into<String>, unit: Unit) -> Self {
        Self { metric: metric.into(), unit, direction: Direction::LowerIsBetter }
    }

    /// A number that is better when it is higher.
    pub fn higher(metric: impl Into<String>, unit: Unit) -> Self {
        Self { metric: metric.into(), unit, direction: Direction::HigherIsBetter }
    }
}

/// Metrics that the meters have themselves; a gauge of that name would hide one.
const TAKEN: [&str; 23] = [
    "wall_time",
    "op_p50",
    "op_p90",
    "op_p99",
    "op_max",
    "instructions",
    "estimated_cycles",
    "i1_accesses",
    "i1_misses",
    "d1_accesses",
    "d1_misses",
    "ll_accesses",
    "ll_misses",
    "branches",
    "branch_mispredictions",
    "heap_total_bytes",
    "heap_total_blocks",
    "heap_held_bytes",
    "heap_held_blocks",
    "heap_peak_bytes",
    "heap_peak_blocks",
    "heap_start_bytes",
    "heap_start_blocks",
];

/// All gauges of a body, as a meter reads them: from [`start`](GaugeSet::start)
/// to [`stop`](GaugeSet::stop) is a region. Neither of the two allocates.
#[derive(Default)]
pub struct GaugeSet {
    sources: Vec<Box<dyn Gauges>>,
    list: Vec<Gauge>,
    before: Vec<u64>,
    after: Vec<u64>,
}

impl GaugeSet {
    /// Adds the gauges of one source behind those that are there.
    pub fn add(&mut self, source: Box<dyn Gauges>) {
        self.list.extend(source.names());
        self.sources.push(source);
        // Twice as many, for a source that gives more than it named.
        self.before.reserve(2 * self.list.len());
        self.after.reserve(2 * self.list.len());
    }

    /// What the numbers are, in the order of their values.
    pub fn list(&self) -> &[Gauge] {
        &self.list
    }

    /// Checks the names.
    ///
    /// # Errors
    /// A name that is no metric's, is a meter's, or stands there twice.
    pub fn check(&self) -> Result<()> {
        for (at, Gauge { metric, .. }) in self.list.iter().enumerate() {
            let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            let named = metric.starts_with(|c: char| c.is_ascii_lowercase()) && metric.bytes().all(letters);
            ensure!(named, "the gauge {metric:?} must have a name of a-z, 0-9 and _, a letter first");
            let unit = self.list[at].unit;
            ensure!(
                unit.is_sound(),
                "the gauge {metric} has the unit {:?}, which is no symbol: 1 to 32 letters, digits and _ / % . ^ -",
                unit.symbol()
            );
            ensure!(!TAKEN.contains(&metric.as_str()), "the gauge {metric} has the name of a meter's metric");
            ensure!(self.list[..at].iter().all(|g| g.metric != *metric), "two gauges are called {metric}");
        }
        Ok(())
    }

    /// The first reading of a region.
    pub fn start(&mut self) {
        read(&mut self.sources, &mut self.before);
    }

    /// The last reading of a region.
    pub fn stop(&mut self) {
        read(&mut self.sources, &mut self.after);
    }

    /// By how much each number went up between the two readings.
    ///
    /// # Errors
    /// A number went down, or a source gave another number of values than it
    /// has names.
    pub fn risen(&self) -> Result<Vec<u64>> {
        let (named, read) = (self.list.len(), self.after.len());
        ensure!(read == named && self.before.len() == named, "gauges of {named} names gave {read} values");
        let pairs = self.list.iter().zip(self.before.iter().zip(&self.after));
        pairs
            .map(|(gauge, (before, after))| {
                let name = &gauge.metric;
                after.checked_sub(*before).ok_or_else(|| {
                    anyhow::anyhow!("the gauge {name} went from {before} to {after}: gauges only go up")
                })
            })
            .collect()
    }
}

impl fmt::Debug for GaugeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GaugeSet").field("list", &self.list).finish_non_exhaustive()
    }
}

fn read(sources: &mut [Box<dyn Gauges>], into: &mut Vec<u64>) {
    into.clear();
    for source in sources {
        source.read(into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the next of its readings each time.
    struct Told(Vec<&'static str>, Vec<Vec<u64>>);

    impl Gauges for Told {
        fn names(&self) -> Vec<Gauge> {
            self.0.iter().map(|name| Gauge::lower(*name, Unit::SystemCalls)).collect()
        }

        fn read(&mut self, out: &mut Vec<u64>) {
            out.extend(self.1.remove(0));
        }
    }

    fn told(names: &[&'static str], readings: &[&[u64]]) -> GaugeSet {
        let mut set = GaugeSet::default();
        set.add(Box::new(Told(names.into(), readings.iter().map(|r| r.to_vec()).collect())));
        set
    }

    #[test]
    fn what_rose_between_the_readings_is_given_in_order() {
        let mut set = told(&["calls", "bytes"], &[&[5, 100], &[7, 100]]);
        set.add(Box::new(Told(vec!["misses"], vec![vec![1], vec![10]])));
        set.start();
        set.stop();
        assert_eq!(set.risen().expect("they rose"), [2, 0, 9]);
        assert_eq!(set.list().len(), 3);
    }

    #[test]
    fn what_falls_or_is_missing_is_said() {
        let wrong = |names: &[&'static str], readings: &[&[u64]]| {
            let mut set = told(names, readings);
            set.start();
            set.stop();
            set.risen().expect_err("it is wrong").to_string()
        };
        assert!(wrong(&["calls"], &[&[5], &[4]]).contains("calls went from 5 to 4"));
        assert!(wrong(&["calls", "bytes"], &[&[5], &[6]]).contains("2 names gave 1 values"));
        assert!(wrong(&["calls"], &[&[5, 6], &[6]]).contains("gave 1 values"));
    }

    #[test]
    fn names_are_metrics_of_their_own() {
        let said = |names: &[&'static str]| told(names, &[]).check().map_err(|e| e.to_string());
        assert_eq!(said(&["system_calls", "bytes_read", "l2"]), Ok(()));
        assert!(said(&["calls", "calls"]).is_err_and(|e| e.contains("two gauges are called calls")));
        assert!(said(&["wall_time"]).is_err_and(|e| e.contains("a meter's metric")));
        let mut odd = GaugeSet::default();
        odd.list.push(Gauge::lower("calls", Unit::named("system calls")));
        assert!(odd.check().is_err_and(|e| e.to_string().contains("\"system calls\", which is no symbol")));
        for bad in ["", "2x", "System", "a b", "a-b", "ä"] {
            assert!(said(&[bad]).is_err(), "{bad:?} was taken");
        }
    }
}
