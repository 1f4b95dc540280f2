//! A scripted clock and scripted work: time passes only where a script says
//! so, and every call of the loop is written down.
//!
//! Neighbours: `walltime_tests` asserts on what the loop did with them.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, bail};

use super::clock::{Clock, Witness};
use super::clock_sys::Usage;
use crate::scenario::{Gauge, Gauges, Ops, Site, Work};
use crate::units::Unit;

/// The machine of a script, shared by clock and work.
#[derive(Debug, Default)]
pub(super) struct World {
    /// The time in nanoseconds.
    pub now: u64,
    /// What each reading of the clock takes.
    pub reading_ns: u64,
    /// The smallest step of the clock; 0 and 1 are one nanosecond.
    pub step_ns: u64,
    /// Marks in a nanosecond.
    pub marks_per_ns: u64,
    /// Memory in use, in bytes.
    pub resident: u64,
    /// Kernel counters.
    pub usage: Usage,
}

/// The clock and witness of a [`World`].
#[derive(Clone, Debug, Default)]
pub(super) struct Scripted(pub Rc<RefCell<World>>);

impl Scripted {
    pub(super) fn new(world: World) -> Self {
        Self(Rc::new(RefCell::new(world)))
    }

    pub(super) fn pass(&self, ns: u64) {
        self.0.borrow_mut().now += ns;
    }
}

impl Clock for Scripted {
    fn now(&mut self) -> u64 {
        let mut world = self.0.borrow_mut();
        world.now += world.reading_ns;
        world.now - world.now % world.step_ns.max(1)
    }

    fn mark(&mut self) -> u64 {
        let world = self.0.borrow();
        world.now * world.marks_per_ns.max(1)
    }
}

impl Witness for Scripted {
    fn usage(&mut self) -> Usage {
        self.0.borrow().usage
    }

    fn resident(&mut self) -> u64 {
        self.0.borrow().resident
    }
}

/// What a call of the loop did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Prepare(usize),
    Run(usize),
    Check,
}

/// Work whose iterations take scripted time.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub world: Scripted,
    /// Nanoseconds that preparing one iteration takes.
    pub setup_ns: u64,
    /// Nanoseconds of one iteration, where there are no turns.
    pub region_ns: u64,
    /// Turns of one iteration: party and nanoseconds.
    pub turns: Vec<(usize, u64)>,
    /// Nanoseconds that checking one batch takes.
    pub check_ns: u64,
    /// Memory of one prepared iteration, in bytes.
    pub bytes: u64,
    /// Kernel counters that each run adds; the processor is the one it ends on.
    pub usage: Usage,
    /// What marks the operations, where there are any.
    pub ops: Option<Ops>,
    /// Nanoseconds of each operation of an iteration.
    pub op_ns: Vec<u64>,
    /// The run that is interrupted, from 1, and for how many nanoseconds.
    pub interrupted: Option<(usize, u64)>,
    /// The run that fails, from 1.
    pub fails_at: Option<usize>,
    /// What was called, in order.
    pub calls: Vec<Call>,
    /// Iterations of the batch under way.
    pub prepared: usize,
}

impl Script {
    /// How many times the calls hold `run(n)` with this n.
    pub(super) fn runs(&self) -> Vec<usize> {
        let run = |call: &Call| if let Call::Run(n) = call { Some(*n) } else { None };
        self.calls.iter().filter_map(run).collect()
    }
}

impl Work for Script {
    fn prepare(&mut self, n: usize, site: &mut dyn Site) -> Result<()> {
        self.calls.push(Call::Prepare(n));
        // Parties take turns before the region too; that must count for nothing.
        site.turn_of(0);
        self.world.pass(self.setup_ns * n as u64);
        site.turn_of(1);
        self.prepared = n;
        // What the kernel counts here is not of the region.
        self.world.0.borrow_mut().usage.involuntary += 1_000;
        self.world.0.borrow_mut().resident += self.bytes * n as u64;
        Ok(())
    }

    fn run(&mut self, n: usize, site: &mut dyn Site) -> Result<()> {
        self.calls.push(Call::Run(n));
        if self.fails_at.is_some_and(|at| self.runs().len() == at) {
            bail!("scripted failure");
        }
        if let Some((_, ns)) = self.interrupted.filter(|(at, _)| self.runs().len() == *at) {
            self.world.pass(ns);
        }
        for _ in 0..n {
            self.world.pass(self.region_ns);
            for ns in &self.op_ns {
                let world = &self.world;
                self.ops.get_or_insert_default().op(|| world.pass(*ns));
            }
            for (party, ns) in &self.turns {
                site.turn_of(*party);
                self.world.pass(*ns);
            }
        }
        let mut world = self.world.0.borrow_mut();
        world.usage.voluntary += self.usage.voluntary;
        world.usage.involuntary += self.usage.involuntary;
        world.usage.minor_faults += self.usage.minor_faults;
        world.usage.major_faults += self.usage.major_faults;
        world.usage.cpu = self.usage.cpu;
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.calls.push(Call::Check);
        self.world.pass(self.check_ns);
        self.world.0.borrow_mut().resident -= self.bytes * self.prepared as u64;
        Ok(())
    }

    fn ops(&mut self) -> Option<&mut Ops> {
        self.ops.as_mut()
    }
}

/// Gauges of a script: how often the world was waited for, and its time. A
/// reading takes time itself.
pub(super) struct Readings {
    pub world: Scripted,
    pub reading_ns: u64,
}

impl Gauges for Readings {
    fn names(&self) -> Vec<Gauge> {
        vec![
            Gauge::lower("waits", Unit::Events),
            Gauge::higher("time", Unit::Nanoseconds),
            Gauge::lower("nothing", Unit::SystemCalls),
        ]
    }

    fn read(&mut self, out: &mut Vec<u64>) {
        self.world.pass(self.reading_ns);
        let world = self.world.0.borrow();
        out.extend([world.usage.voluntary, world.now, 5]);
    }
}
