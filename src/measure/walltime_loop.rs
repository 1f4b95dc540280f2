//! The loop of the wall-time meter: warm-up, how many iterations make a
//! sample, samples until the time is used.
//!
//! It is generic over the clock, so that tests count every iteration of it
//! with a scripted one. Neighbours: `walltime` starts it and turns what it
//! took into an outcome.

use std::time::Duration;

use anyhow::Result;

use super::clock::{Clock, Witness};
use super::clock_sys::Usage;
use super::op_times::OpTimes;
use crate::scenario::{Gauge, GaugeSet, Gauges, Meter, Ops, Seat, Site, Work};

/// The part of the budget that goes to warming up, unless finding the number
/// of iterations takes longer.
const WARM_UP_SHARE: u32 = 5;

/// The most iterations that are prepared at a time: enough for a sample of a
/// body that takes a third of a nanosecond.
pub(super) const MOST_PREPARED: usize = 1 << 17;

/// The memory, in bytes, by which prepared iterations may let the process
/// grow. Beyond it fewer are prepared at a time.
pub(super) const MOST_MEMORY: u64 = 64 << 20;

/// As long as this, in nanoseconds, a sample may become to use the time that
/// there is: a fraction of a scheduler's slice (3 ms and more), so that an
/// interruption spoils some samples and leaves the median of all alone. Where
/// samples are at their most before the budget is used even so, it ends early.
const STRETCHED_NS: f64 = 1e6;

/// The turn of neither party.
const NOBODY: usize = 2;

/// The bounds of measuring one scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Time for all of it, warm-up, set-ups and checks included.
    pub budget: Duration,
    /// Time for the pass that times single operations, where there are any.
    pub op_budget: Duration,
    /// The shortest region that gives a sample, in nanoseconds.
    pub shortest_ns: u64,
    /// Samples taken even when the budget is used.
    pub min_samples: usize,
    /// Samples after which it ends even when the budget is not used.
    pub max_samples: usize,
}

/// How a sample is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// Iterations that are prepared, run back to back, and checked.
    pub iterations: usize,
    /// How many such batches make one sample: more than one where the samples
    /// would otherwise be at their most before the budget is used. Longer
    /// batches would do it too, but their inputs would no longer be in cache.
    pub batches: usize,
}

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Iterations in it.
    pub iterations: u64,
    /// The time of its regions, in nanoseconds.
    pub region_ns: u64,
    /// The time of each party's turns, in marks.
    pub marks: [u64; 2],
}

/// What was measured of one scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Yield {
    /// The samples in order.
    pub samples: Vec<Taken>,
    /// How each of them was taken.
    pub pace: Pace,
    /// Iterations before the first sample.
    pub warm_up_iterations: u64,
    /// Whether memory bounded the iterations of a batch.
    pub bounded_by_memory: bool,
    /// Time from the first preparation to the last check, in nanoseconds.
    pub elapsed_ns: u64,
    /// The part of it before the first sample, in nanoseconds.
    pub warm_up_ns: u64,
    /// Nanoseconds in one mark.
    pub ns_per_mark: f64,
    /// Changes of turn in all samples.
    pub turns: u64,
    /// What the kernel counted inside the regions of all samples; `cpu` is the last one.
    pub usage: Usage,
    /// Samples that ended on another processor than they began on.
    pub migrations: u64,
    /// Changes of processor between two regions, in set-up or check.
    pub migrations_between: u64,
    /// What the gauges are.
    pub gauges: Vec<Gauge>,
    /// By how much they rose in each sample.
    pub risen: Vec<Vec<u64>>,
    /// The times of single operations, where the work marks them.
    pub op_times: Option<OpTimes>,
}

/// Times the work that a body hands over.
pub(super) struct Loop<H> {
    host: H,
    limits: Limits,
    turns: Turns,
    yielded: Yield,
    last_cpu: Option<u32>,
    gauges: GaugeSet,
}

/// Whose turn it is, and what each has had.
struct Turns {
    marks: [u64; 3],
    current: usize,
    since: u64,
    changes: u64,
}

/// Prepared, run and checked once.
pub(super) struct Batch {
    region_ns: u64,
    pub(super) whole_ns: u64,
    resident: u64,
}

impl<H: Clock + Witness + Clone + 'static> Loop<H> {
    pub(super) fn new(host: H, limits: Limits) -> Self {
        let turns = Turns { marks: [0; 3], current: NOBODY, since: 0, changes: 0 };
        Self { host, limits, turns, yielded: Yield::default(), last_cpu: None, gauges: GaugeSet::default() }
    }

    /// The clock of this loop.
    pub(super) fn now(&mut self) -> u64 {
        self.host.now()
    }

    /// Its cheap reading, for turns.
    pub(super) fn mark(&mut self) -> u64 {
        self.host.mark()
    }

    /// What was measured.
    pub(super) fn into_yield(self) -> Yield {
        self.yielded
    }

    /// Runs batches of growing size until one is long enough and the share of
    /// the budget is used, and decides how samples are taken.
    pub(super) fn warm_up(&mut self, work: &mut dyn Work, begin: u64) -> Result<Pace> {
        let budget = nanos(self.limits.budget);
        let resident = self.host.resident();
        let (mut n, mut most) = (1, MOST_PREPARED);
        let mut fastest = f64::INFINITY;
        // Time and iterations of all batches of the present size: the last one
        // alone is the one that crossed the limit, more often than not because
        // it was interrupted.
        let (mut whole_ns, mut iterations) = (0, 0);
        loop {
            let batch = self.batch(work, n, true)?;
            self.yielded.warm_up_iterations += n as u64;
            fastest = fastest.min(batch.region_ns as f64 / n as f64);
            whole_ns += batch.whole_ns;
            iterations += n;
            let grown = batch.resident.saturating_sub(resident);
            if grown > MOST_MEMORY {
                // In proportion, and at least one.
                most = most.min((n as u128 * u128::from(MOST_MEMORY) / u128::from(grown)).max(1) as usize);
                self.yielded.bounded_by_memory = true;
            }
            let elapsed = self.host.now().saturating_sub(begin);
            let found = batch.region_ns >= self.limits.shortest_ns || n >= most;
            if elapsed >= budget || (found && elapsed >= budget / u64::from(WARM_UP_SHARE)) {
                self.yielded.warm_up_ns = elapsed;
                let each = whole_ns as f64 / iterations as f64;
                return Ok(self.pace(fastest, each, most, budget.saturating_sub(elapsed)));
            }
            let next = if found { n.min(most) } else { (n * 2).min(most) };
            if next != n {
                (whole_ns, iterations) = (0, 0);
            }
            n = next;
        }
    }

    /// How samples are taken, from the time of an iteration's region, the time
    /// of an iteration with its set-up and check, and what is left, in nanoseconds.
    /// The iterations of a batch follow from the clock whatever they cost;
    /// batches are added to it only as far as the time allows.
    fn pace(&self, region: f64, whole: f64, most: usize, left: u64) -> Pace {
        let needed = self.limits.shortest_ns as f64 / region.max(f64::MIN_POSITIVE);
        // The float is at least 1 and is cut at the bound, so the conversion keeps it.
        let iterations = needed.ceil().clamp(1.0, most as f64) as usize;
        let batch = iterations as f64 * whole.max(1.0);
        let most_batches = (left as f64 / (batch * self.limits.min_samples as f64)).floor();
        let to_be_long = (needed / iterations as f64).ceil().min(most_batches);
        let of_each = (left as f64 / self.limits.max_samples as f64).min(STRETCHED_NS);
        let to_use_the_time = (of_each / batch).floor();
        let batches = to_be_long.max(to_use_the_time).max(1.0) as usize;
        Pace { iterations, batches }
    }

    /// Takes samples until the budget is used, within their least and most number.
    fn take_samples(&mut self, work: &mut dyn Work, begin: u64) -> Result<()> {
        let budget = nanos(self.limits.budget);
        let Limits { min_samples, max_samples, .. } = self.limits;
        while self.yielded.samples.len() < max_samples {
            let elapsed = self.host.now().saturating_sub(begin);
            if self.yielded.samples.len() >= min_samples && elapsed >= budget {
                break;
            }
            let sample = self.sample(work)?;
            self.yielded.samples.push(sample);
        }
        Ok(())
    }

    fn sample(&mut self, work: &mut dyn Work) -> Result<Taken> {
        self.sample_at(work, self.yielded.pace)
    }

    /// One sample, taken in a given way.
    pub(super) fn sample_at(&mut self, work: &mut dyn Work, pace: Pace) -> Result<Taken> {
        let Pace { iterations, batches } = pace;
        let mut sample = Taken::default();
        self.yielded.risen.push(vec![0; self.gauges.list().len()]);
        for _ in 0..batches {
            let batch = self.batch(work, iterations, false)?;
            sample.iterations += iterations as u64;
            sample.region_ns += batch.region_ns;
            sample.marks[0] += self.turns.marks[0];
            sample.marks[1] += self.turns.marks[1];
            self.yielded.turns += self.turns.changes;
        }
        Ok(sample)
    }

    /// Times single operations, if the work marks them, until the budget of
    /// this pass is used; one batch at least.
    fn time_operations(&mut self, work: &mut dyn Work) -> Result<()> {
        let Some(ops) = work.ops() else { return Ok(()) };
        let mut clock = self.host.clone();
        ops.switch_on(move || clock.now());
        let (begin, budget) = (self.host.now(), nanos(self.limits.op_budget));
        let mut times = OpTimes::new()?;
        while times.iterations == 0 || times.elapsed_ns < budget {
            let n = self.yielded.pace.iterations;
            self.batch(work, n, true)?;
            if let Some(ops) = work.ops() {
                times.take(ops, n as u64)?;
            }
            times.elapsed_ns = self.host.now().saturating_sub(begin);
        }
        work.ops().into_iter().for_each(Ops::switch_off);
        self.yielded.op_times = Some(times);
        Ok(())
    }

    /// Prepares, runs and checks `n` iterations. What the kernel counts and
    /// the gauges are read outside of the clock readings; memory (a file to
    /// read) too, and only in the warm-up.
    pub(super) fn batch(&mut self, work: &mut dyn Work, n: usize, warming_up: bool) -> Result<Batch> {
        let begin = self.host.now();
        work.prepare(n, self)?;
        self.turns.reset();
        let before = self.host.usage();
        self.gauges.start();
        let start = self.host.now();
        let ran = work.run(n, self);
        self.turns.end(&mut self.host);
        let stop = self.host.now();
        self.gauges.stop();
        let after = self.host.usage();
        ran?;
        let resident = if warming_up { self.host.resident() } else { 0 };
        if !warming_up {
            self.witness(before, after);
            self.add_risen()?;
        }
        work.check()?;
        let whole_ns = self.host.now().saturating_sub(begin);
        Ok(Batch { region_ns: stop.saturating_sub(start), whole_ns, resident })
    }

    /// Adds what the gauges rose by to the sample under way.
    fn add_risen(&mut self) -> Result<()> {
        let risen = self.gauges.risen()?;
        if let Some(sum) = self.yielded.risen.last_mut() {
            sum.iter_mut().zip(risen).for_each(|(sum, more)| *sum += more);
        }
        Ok(())
    }

    fn witness(&mut self, before: Usage, after: Usage) {
        let Yield { usage, migrations, migrations_between, .. } = &mut self.yielded;
        *migrations += u64::from(before.cpu != after.cpu);
        *migrations_between += u64::from(self.last_cpu.is_some_and(|cpu| cpu != before.cpu));
        self.last_cpu = Some(after.cpu);
        usage.voluntary += after.voluntary - before.voluntary;
        usage.involuntary += after.involuntary - before.involuntary;
        usage.minor_faults += after.minor_faults - before.minor_faults;
        usage.major_faults += after.major_faults - before.major_faults;
        usage.cpu = after.cpu;
    }
}

impl Turns {
    fn reset(&mut self) {
        *self = Self { marks: [0; 3], current: NOBODY, since: 0, changes: 0 };
    }

    /// The time since the last change belongs to the party whose turn it was.
    #[inline]
    fn change_to(&mut self, party: usize, now: u64) {
        self.marks[self.current] += now.saturating_sub(self.since);
        self.current = party.min(NOBODY);
        self.since = now;
        self.changes += 1;
    }

    fn end(&mut self, clock: &mut impl Clock) {
        if self.current != NOBODY {
            let now = clock.mark();
            self.change_to(NOBODY, now);
            self.changes -= 1;
        }
    }
}

impl<H: Clock + Witness> Site for Loop<H> {
    fn seat(&mut self) -> Seat<'_> {
        Seat::Both
    }

    #[inline]
    fn turn_of(&mut self, party: usize) {
        let now = self.host.mark();
        self.turns.change_to(party, now);
    }
}

impl<H: Clock + Witness + Clone + 'static> Meter for Loop<H> {
    fn site(&mut self) -> &mut dyn Site {
        self
    }

    fn gauges(&mut self, gauges: Box<dyn Gauges>) {
        self.gauges.add(gauges);
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        self.gauges.check()?;
        self.yielded.gauges = self.gauges.list().to_vec();
        let (begin, first_mark) = (self.host.now(), self.host.mark());
        self.yielded.pace = self.warm_up(work, begin)?;
        self.take_samples(work, begin)?;
        let (end, last_mark) = (self.host.now(), self.host.mark());
        self.yielded.elapsed_ns = end.saturating_sub(begin);
        let marks = last_mark.saturating_sub(first_mark).max(1);
        self.yielded.ns_per_mark = self.yielded.elapsed_ns as f64 / marks as f64;
        self.time_operations(work)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
