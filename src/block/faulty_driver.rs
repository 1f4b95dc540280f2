//! Faults under an engine: attempts fail, are cut short or torn as a script
//! says, and wait behind a gate until a test lets them go.
//!
//! Neighbours: `faults` is the script, `queue` the engine over it; any driver
//! can be underneath, so one test serves every engine.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::align::Alignment;
use super::error::{Error, ErrorKind, Result};
use super::faults::{Fault, Faults, Target};
use super::lock::lock;
use super::op::OpKind;
use super::queue::{Driver, Raw, sealed::Sealed};
use super::sys::eventfd::EventFd;
use super::sys::slab::Slab;

/// Which of the held attempts go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The one that has waited longest.
    First,
    /// The one that came last.
    Last,
    /// All, in order.
    All,
}

#[derive(Debug, Default)]
struct Bars {
    closed: bool,
    broken: bool,
    held: usize,
    releases: VecDeque<Release>,
}

/// Holds attempts back. Clones are the same gate, open at first.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<Bars>>);

impl Gate {
    /// An open gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Holds attempts from now on.
    pub fn close(&self) {
        lock(&self.0).closed = true;
    }

    /// Lets new attempts through, and those that are held.
    pub fn open(&self) {
        let mut bars = lock(&self.0);
        bars.closed = false;
        bars.releases.push_back(Release::All);
    }

    /// Lets some of those through that are held, at the engine's next call.
    pub fn release(&self, which: Release) {
        lock(&self.0).releases.push_back(which);
    }

    /// Attempts that are held.
    pub fn held(&self) -> usize {
        lock(&self.0).held
    }

    /// Makes every wait fail from now on, as if the kernel's queue were lost.
    pub fn break_waits(&self) {
        lock(&self.0).broken = true;
    }
}

/// A driver with faults.
pub struct FaultyDriver<D> {
    inner: D,
    faults: Faults,
    gate: Gate,
    held: VecDeque<u32>,
    /// Attempts that failed before they reached the driver.
    ready: VecDeque<Raw>,
    /// Attempts that the driver does and that fail all the same.
    torn: Vec<u32>,
    with_inner: usize,
}

impl<D: Driver> FaultyDriver<D> {
    /// Puts `faults` and `gate` over `inner`.
    pub fn new(inner: D, faults: Faults, gate: Gate) -> Self {
        Self {
            inner,
            faults,
            gate,
            held: VecDeque::new(),
            ready: VecDeque::new(),
            torn: Vec::new(),
            with_inner: 0,
        }
    }

    /// The driver under it.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    fn pass(&mut self, slab: &mut Slab, slot: u32) {
        self.inner.push(slab, slot);
        self.with_inner += 1;
    }

    /// Passes what the gate lets go.
    fn let_go(&mut self, slab: &mut Slab) -> Result<()> {
        let mut passed = false;
        loop {
            let release = lock(&self.gate.0).releases.pop_front();
            let slots: Vec<u32> = match release {
                None => break,
                Some(Release::First) => self.held.pop_front().into_iter().collect(),
                Some(Release::Last) => self.held.pop_back().into_iter().collect(),
                Some(Release::All) => self.held.drain(..).collect(),
            };
            for slot in slots {
                self.pass(slab, slot);
                passed = true;
            }
        }
        lock(&self.gate.0).held = self.held.len();
        if passed { self.inner.submit(slab) } else { Ok(()) }
    }

    /// What the caller is told about an attempt that the driver reported.
    fn told(&mut self, raw: Raw) -> Raw {
        self.with_inner -= 1;
        match self.torn.iter().position(|slot| *slot == raw.slot) {
            Some(index) => {
                self.torn.swap_remove(index);
                Raw { result: -libc::EIO, ..raw }
            }
            None => raw,
        }
    }
}

fn target(kind: OpKind) -> Target {
    match kind {
        OpKind::Read => Target::Read,
        OpKind::Write => Target::Write,
        OpKind::WriteZeroes | OpKind::Discard => Target::Fallocate,
        OpKind::Flush => Target::Sync,
    }
}

impl<D> Sealed for FaultyDriver<D> {}

impl<D: Driver> Driver for FaultyDriver<D> {
    fn push(&mut self, slab: &mut Slab, slot: u32) {
        let kind = slab.kind(slot);
        let moves = matches!(kind, OpKind::Read | OpKind::Write);
        match self.faults.next(target(kind)) {
            Some(Fault::Errno(errno)) => {
                self.ready.push_back(Raw { slot, result: -errno });
                return;
            }
            Some(Fault::Short(bytes)) if moves => slab.limit(slot, bytes as u64),
            Some(Fault::Torn(bytes)) => {
                slab.limit(slot, bytes as u64);
                self.torn.push(slot);
            }
            Some(Fault::Short(_)) | None => {}
        }
        let closed = lock(&self.gate.0).closed;
        if closed {
            self.held.push_back(slot);
            lock(&self.gate.0).held = self.held.len();
        } else {
            self.pass(slab, slot);
        }
    }

    fn submit(&mut self, slab: &mut Slab) -> Result<()> {
        self.inner.submit(slab)
    }

    fn next(&mut self, slab: &mut Slab) -> Result<Option<Raw>> {
        self.let_go(slab)?;
        if let Some(raw) = self.ready.pop_front() {
            return Ok(Some(raw));
        }
        let raw = self.inner.next(slab)?;
        Ok(raw.map(|raw| self.told(raw)))
    }

    fn wait(&mut self, slab: &mut Slab, min: usize) -> Result<()> {
        if lock(&self.gate.0).broken {
            return Err(Error::new(ErrorKind::Io, "the queue is lost, as the test asked"));
        }
        self.let_go(slab)?;
        if !self.ready.is_empty() {
            return Ok(());
        }
        if self.with_inner == 0 {
            return Err(Error::new(ErrorKind::Busy, "every operation is held by the gate"));
        }
        self.inner.wait(slab, min.min(self.with_inner))
    }

    fn submit_and_wait(&mut self, slab: &mut Slab, min: usize) -> Result<()> {
        let broken = lock(&self.gate.0).broken;
        self.let_go(slab)?;
        // What the driver has is not waited for where there is something to report.
        if broken || self.with_inner == 0 || !self.ready.is_empty() {
            self.inner.submit(slab)?;
            return self.wait(slab, min);
        }
        self.inner.submit_and_wait(slab, min.min(self.with_inner))
    }

    fn zero_by_other_means(&mut self, kind: OpKind, offset: u64, len: u64) -> i32 {
        self.inner.zero_by_other_means(kind, offset, len)
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn depth(&self) -> u32 {
        self.inner.depth()
    }

    fn notify(&mut self, event: Arc<EventFd>) -> Result<()> {
        self.inner.notify(event)
    }

    fn drain(&mut self, slab: &mut Slab) -> Result<()> {
        // What is held still happens, as in a kernel that is merely slow.
        self.gate.open();
        super::queue::drain(self, slab)
    }
}
