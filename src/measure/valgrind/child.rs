//! The measured child: does one [`Job`] in this process and reports.
//!
//! Neighbours: `launch` starts it; `roi` marks the region, `world` keeps
//! chance and time out, `stack` gives the body a stack of its own.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};

use super::protocol::{self, CONTROL, Done, FLAG, Job, Method, Report, Risen, Task};
use super::wire::{Abandoned, Framed};
use super::{features, roi, stack, sys, world};
use crate::scenario::{Bencher, GaugeSet, Gauges, Meter, Scenario, Seat, Site, Wire, Work};
use crate::units::{Direction, Throughput};

/// Where the wire's descriptors are put, out of the way of standard streams.
const WIRE: i32 = 110;

/// Message and place of a panic.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// When this process was started as a measured child (its first argument is
/// the hidden flag), does the child's work and gives its exit code.
pub fn child(scenarios: &[Scenario]) -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != FLAG {
        return None;
    }
    // Without a parent there is nobody to report to.
    Some(match serve(scenarios) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(101),
    })
}

fn serve(scenarios: &[Scenario]) -> io::Result<()> {
    let mut control = UnixStream::from(sys::inherited(CONTROL)?);
    let report = match protocol::receive::<Job>(&mut control) {
        Ok(job) => attempt(&job, scenarios),
        Err(error) => failed(&anyhow::Error::from(error).context("the job could not be read")),
    };
    protocol::send(&mut control, &report)
}

/// Does the job on a stack of its own, and catches what goes wrong.
fn attempt(job: &Job, scenarios: &[Scenario]) -> Report {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("a value that is no text");
        if let Ok(mut panic) = PANIC.lock() {
            *panic = Some(format!("{message}{place}"));
        }
    }));
    match stack::on_own_stack(|| perform(job, scenarios)) {
        Err(error) => failed(&anyhow::Error::from(error).context("no memory for a stack")),
        Ok(Ok(Ok(done))) => Report::Done(done),
        Ok(Ok(Err(error))) => failed(&error),
        Ok(Err(_)) => {
            let reason = PANIC.lock().ok().and_then(|mut p| p.take()).unwrap_or_default();
            Report::Failed { reason, panicked: true, abandoned: false }
        }
    }
}

fn failed(error: &anyhow::Error) -> Report {
    Report::Failed { reason: format!("{error:#}"), panicked: false, abandoned: error.is::<Abandoned>() }
}

fn perform(job: &Job, scenarios: &[Scenario]) -> Result<Done> {
    ensure!(
        job.version == protocol::VERSION,
        "parent and child speak different versions of the protocol ({} and {})",
        job.version,
        protocol::VERSION
    );
    ensure!(roi::on_valgrind(), "the measured child does not run under Valgrind");
    let missing = world::missing();
    ensure!(
        missing.is_empty(),
        "Valgrind did not replace {}: the executable has lost its symbols; \
         set `strip = \"none\"` in the profile that builds it",
        missing.join(", ")
    );
    let mut done = match &job.task {
        Task::Canary { loops } => canary(job, *loops)?,
        Task::Scenario { name, party } => scenario(job, name, *party, scenarios)?,
    };
    done.features = features::seen();
    done.randomisation_off = sys::is_randomisation_off();
    Ok(done)
}

fn scenario(job: &Job, name: &str, party: Option<usize>, scenarios: &[Scenario]) -> Result<Done> {
    let Some(scenario) = scenarios.iter().find(|s| s.id().as_str() == name) else {
        bail!("the measured child has no scenario {name}: it registers others than its parent");
    };
    let seat = match party {
        Some(party) => Some((party, Framed::new(take_stream(0)?, take_stream(1)?))),
        None => None,
    };
    let mut meter = Marked::new(job, seat);
    let mut bencher = Bencher::new(&mut meter);
    scenario.run(&mut bencher)?;
    let mut done = Done::default();
    for throughput in bencher.throughput_stated() {
        match *throughput {
            Throughput::Bytes(n) => done.bytes.push(n),
            Throughput::Elements(n) => done.elements.push(n),
        }
    }
    done.facts = bencher.facts_stated().clone();
    (done.snapshots, done.gauges) = (meter.snapshots, meter.risen);
    Ok(done)
}

/// Takes a standard stream for the wire, and leaves something harmless in its
/// place: what a body prints must not end up in the other party.
fn take_stream(stream: i32) -> Result<File> {
    let (fd, place) = if stream == 0 {
        (sys::duplicate(io::stdin().as_fd(), WIRE)?, File::open("/dev/null").context("/dev/null")?.into())
    } else {
        (sys::duplicate(io::stdout().as_fd(), WIRE)?, sys::duplicate(io::stderr().as_fd(), WIRE)?)
    };
    sys::redirect(place.as_fd(), stream)?;
    Ok(fd.into())
}

fn canary(job: &Job, loops: u64) -> Result<Done> {
    let mut meter = Marked::new(job, None);
    meter.measure(&mut Known { loops, heap: job.ballast > 0, held: Vec::new() })?;
    Ok(Done { snapshots: meter.snapshots, ..Done::default() })
}

/// Bytes of each block of the canary for heap use.
pub(super) const CANARY_BLOCK: usize = 100;

/// A body with a known count, or with a known use of the heap.
struct Known {
    loops: u64,
    heap: bool,
    held: Vec<Vec<u8>>,
}

impl Work for Known {
    fn prepare(&mut self, _n: usize, _site: &mut dyn Site) -> Result<()> {
        self.held = Vec::with_capacity(if self.heap { self.loops as usize } else { 0 });
        Ok(())
    }

    fn run(&mut self, _n: usize, _site: &mut dyn Site) -> Result<()> {
        if self.heap {
            self.held.extend((0..self.loops).map(|_| black_box(Vec::with_capacity(CANARY_BLOCK))));
        } else {
            roi::canary(black_box(self.loops));
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The meter inside a child: marks the region for the tool.
struct Marked<'j> {
    job: &'j Job,
    seat: Option<(usize, Framed)>,
    snapshots: Vec<i64>,
    gauges: GaugeSet,
    risen: Vec<Risen>,
}

impl<'j> Marked<'j> {
    fn new(job: &'j Job, seat: Option<(usize, Framed)>) -> Self {
        let (gauges, risen) = (GaugeSet::default(), Vec::new());
        Self { job, seat, snapshots: Vec::with_capacity(4), gauges, risen }
    }

    /// What the gauges rose by, for the parent.
    fn keep_risen(&mut self) -> Result<()> {
        let all = self.gauges.list().iter().zip(self.gauges.risen()?);
        self.risen = all
            .map(|(gauge, total)| Risen {
                metric: gauge.metric.clone(),
                unit: gauge.unit.symbol().to_string(),
                higher_is_better: gauge.direction == Direction::HigherIsBetter,
                total,
            })
            .collect();
        Ok(())
    }

    /// The region between two snapshots.
    #[inline(never)]
    fn between_snapshots(&mut self, work: &mut dyn Work) -> Result<()> {
        let n = self.job.iterations;
        let before = roi::snapshot();
        let result = work.run(n, self);
        let after = roi::snapshot();
        result?;
        ensure!(before > 0 && after > 0, "a snapshot could not be forked: errors {before}, {after}");
        self.snapshots.extend([before, after]);
        Ok(())
    }

    /// The region between cachegrind's requests.
    #[inline(never)]
    fn between_requests(&mut self, work: &mut dyn Work) -> Result<()> {
        let n = self.job.iterations;
        roi::cachegrind_start();
        let result = work.run(n, self);
        roi::cachegrind_stop();
        result
    }

    /// The region between callgrind's toggles.
    #[inline(never)]
    fn between_toggles(&mut self, work: &mut dyn Work) -> Result<()> {
        let n = self.job.iterations;
        roi::callgrind_start();
        roi::callgrind_toggle();
        let result = work.run(n, self);
        roi::callgrind_toggle();
        roi::callgrind_stop();
        result
    }
}

impl Site for Marked<'_> {
    fn seat(&mut self) -> Seat<'_> {
        match &mut self.seat {
            Some((party, wire)) => Seat::One(*party, wire as &mut dyn Wire),
            None => Seat::Both,
        }
    }

    fn turn_of(&mut self, _party: usize) {}
}

impl Meter for Marked<'_> {
    fn site(&mut self) -> &mut dyn Site {
        self
    }

    fn gauges(&mut self, gauges: Box<dyn Gauges>) {
        self.gauges.add(gauges);
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        self.gauges.check()?;
        if self.job.warm > 0 {
            work.prepare(self.job.warm, self)?;
            work.run(self.job.warm, self)?;
            work.check()?;
        }
        if self.job.ballast > 0 {
            // What is held at the end is counted from here.
            let start = roi::snapshot();
            ensure!(start > 0, "a snapshot could not be forked: error {start}");
            self.snapshots.push(start);
        }
        work.prepare(self.job.iterations, self)?;
        let ballast = black_box(Vec::<u8>::with_capacity(self.job.ballast));
        // Outside of the marks: what reading costs is not counted.
        self.gauges.start();
        let marked = match self.job.method {
            Method::Difference => self.between_snapshots(work),
            Method::Requests => self.between_requests(work),
            Method::Toggle => self.between_toggles(work),
        };
        self.gauges.stop();
        marked?;
        drop(black_box(ballast));
        self.keep_risen()?;
        work.check()
    }
}
