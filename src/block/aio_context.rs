//! The one AIO context of the process, shared by all engines, because
//! destroying one takes 30 ms. It is set up by the first engine and lives
//! until the process ends.
//!
//! Completions of all engines arrive in one ring. Who takes them keeps its
//! own and puts the others' into their mailboxes. One thread at a time may
//! wait in the kernel (the leader); who comes meanwhile waits for its mailbox.
//!
//! Neighbours: `sys::aio` makes the calls, `engine_aio` is the only user.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use super::error::{Error, ErrorKind, Result};
use super::lock::lock;
use super::queue::Raw;
use super::ready::Ready;
use super::sys::aio::{Context, Event};

/// Operations of all engines together: 1/16 of the usual `aio-max-nr`.
const CAPACITY: u32 = 4096;
/// The smallest context worth having.
const LEAST: u32 = 32;
/// Completions taken by one `io_getevents`.
const BATCH: usize = 128;

/// The context, and who waits for what of it.
#[derive(Debug)]
pub(crate) struct Shared {
    context: Context,
    capacity: u32,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Operations that engines have reserved.
    reserved: u32,
    /// A mailbox for each engine, by number; `None` once it is gone.
    boxes: Vec<Option<Mailbox>>,
    /// Whether a thread waits in the kernel, with the state unlocked.
    led: bool,
}

/// Completions of one engine that another one took.
#[derive(Debug, Default)]
struct Mailbox {
    raws: VecDeque<Raw>,
}

static SHARED: Mutex<Option<&'static Shared>> = Mutex::new(None);

/// The process's context, set up if need be.
///
/// # Errors
///
/// `Missing` with errno where the kernel has no AIO or `aio-max-nr` is used up.
pub(crate) fn shared(depth: u32) -> Result<&'static Shared> {
    let mut known = lock(&SHARED);
    if let Some(shared) = *known {
        return Ok(shared);
    }
    let (context, capacity) = set_up(CAPACITY.max(depth), depth.max(LEAST))?;
    let shared = Shared { context, capacity, state: Mutex::default(), arrived: Condvar::new() };
    Ok(known.insert(Box::leak(Box::new(shared))))
}

/// The largest context from `most` down to `least` that can be had.
fn set_up(most: u32, least: u32) -> Result<(Context, u32)> {
    let mut size = most;
    loop {
        match Context::setup(size) {
            Ok(context) => return Ok((context, size)),
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && size / 2 >= least => {
                size /= 2;
            }
            Err(error) => return Err(missing(error)),
        }
    }
}

/// Why there is no context.
pub(crate) fn missing(error: std::io::Error) -> Error {
    let reason = match error.raw_os_error() {
        Some(libc::EAGAIN) => "no AIO context: aio-max-nr is used up by other processes",
        Some(libc::ENOSYS) => "this kernel has no Linux AIO",
        _ => "no AIO context",
    };
    Error::missing(reason, error)
}

/// What comes back with a completion: engine and slot.
fn address(engine: u32, slot: u32) -> u64 {
    u64::from(engine) << 32 | u64::from(slot)
}

fn engine_of(data: u64) -> u32 {
    (data >> 32) as u32
}

fn raw(event: &Event) -> Raw {
    Raw { slot: slot_of(event.data), result: i32::try_from(event.result).unwrap_or(i32::MAX) }
}

/// The slot of a control block's data.
pub(crate) fn slot_of(data: u64) -> u32 {
    data as u32
}

/// An engine's part in the context.
#[derive(Debug)]
pub(crate) struct Member {
    shared: &'static Shared,
    number: u32,
    depth: u32,
    events: Box<[Event; BATCH]>,
}

impl Shared {
    /// Joins with up to `depth` operations at a time.
    ///
    /// # Errors
    ///
    /// `Exhausted` where the engines that are there have reserved too many.
    pub fn join(&'static self, depth: u32) -> Result<Member> {
        let mut state = lock(&self.state);
        let left = self.capacity - state.reserved;
        if depth > left {
            return Err(Error::new(
                ErrorKind::Exhausted,
                format!("{depth} operations in an AIO context with room for {left} more"),
            ));
        }
        state.reserved += depth;
        let mut mailbox = Some(Mailbox { raws: VecDeque::with_capacity(depth as usize) });
        let free = state.boxes.iter_mut().position(|place| {
            place.is_none() && {
                *place = mailbox.take();
                true
            }
        });
        let number = free.unwrap_or_else(|| {
            state.boxes.push(mailbox);
            state.boxes.len() - 1
        });
        Ok(Member { shared: self, number: number as u32, depth, events: Box::new([Event::default(); BATCH]) })
    }
}

impl State {
    /// Sorts a completion: the member's own to `ready`, others to their mailboxes.
    fn sort(&mut self, own: u32, event: &Event, ready: &mut Ready) {
        let engine = engine_of(event.data);
        if engine == own {
            ready.push(raw(event));
        } else if let Some(Some(mailbox)) = self.boxes.get_mut(engine as usize) {
            mailbox.raws.push_back(raw(event));
        }
    }

    /// Moves what is in the member's mailbox to `ready`.
    fn collect(&mut self, own: u32, ready: &mut Ready) {
        if let Some(Some(mailbox)) = self.boxes.get_mut(own as usize) {
            ready.extend(mailbox.raws.drain(..));
        }
    }

    fn alone(&self) -> bool {
        self.boxes.iter().flatten().count() == 1
    }
}

impl Member {
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// What a control block of `slot` carries.
    pub fn address(&self, slot: u32) -> u64 {
        address(self.number, slot)
    }

    /// Moves the completions that have arrived to `ready`, without waiting.
    pub fn take_ready(&mut self, ready: &mut Ready) -> Result<()> {
        let shared = self.shared;
        let mut state = lock(&shared.state);
        state.collect(self.number, ready);
        if state.led {
            // The leader has the ring, and puts ours into the mailbox.
            return Ok(());
        }
        let before = ready.len();
        let mut seen = 0;
        if shared.context.has_ring() {
            shared.context.take_ready(|event| {
                seen += 1;
                state.sort(self.number, &event, ready);
            });
        } else {
            seen = self.poll(&mut state, ready)?;
        }
        if seen > ready.len() - before {
            shared.arrived.notify_all();
        }
        Ok(())
    }

    /// As [`Member::take_ready`], where the ring is not as this code knows it.
    #[cold]
    fn poll(&mut self, state: &mut State, ready: &mut Ready) -> Result<usize> {
        let taken = super::io::retry(|| self.shared.context.get_events(0, &mut *self.events));
        let taken = taken.map_err(|error| Error::io("cannot take AIO completions", error))?;
        for event in &self.events[..taken] {
            state.sort(self.number, event, ready);
        }
        Ok(taken)
    }

    /// Waits until `ready` has `min` completions (or at least one, where other
    /// engines are there too).
    pub fn wait(&mut self, min: usize, ready: &mut Ready) -> Result<()> {
        self.take_ready(ready)?;
        self.wait_in_kernel(min, ready)
    }

    /// As [`Member::wait`], without a look at the ring before: what has arrived
    /// comes from the kernel as well, so that the calls do not depend on it.
    pub fn wait_in_kernel(&mut self, min: usize, ready: &mut Ready) -> Result<()> {
        while ready.len() < min {
            let shared = self.shared;
            let mut state = lock(&shared.state);
            state.collect(self.number, ready);
            if ready.len() >= min {
                return Ok(());
            }
            if state.led {
                let guard = shared.arrived.wait(state);
                drop(guard.unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            state.led = true;
            let wanted = if state.alone() { min - ready.len() } else { 1 };
            drop(state);
            let result = self.lead(wanted.min(BATCH), ready);
            shared.arrived.notify_all();
            result?;
        }
        Ok(())
    }

    /// Waits in the kernel, sorts what it gets, and stops leading.
    fn lead(&mut self, min: usize, ready: &mut Ready) -> Result<()> {
        let result = self.shared.context.get_events(min, &mut *self.events);
        let mut state = lock(&self.shared.state);
        state.led = false;
        let taken = match result {
            Ok(taken) => taken,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(Error::io("cannot wait for AIO completions", error)),
        };
        for event in &self.events[..taken] {
            state.sort(self.number, event, ready);
        }
        Ok(())
    }

    /// Leaves the context. An engine that could not drain keeps its number,
    /// so that late completions never reach another engine.
    pub fn leave(&self) {
        let mut state = lock(&self.shared.state);
        state.reserved -= self.depth;
        if let Some(place) = state.boxes.get_mut(self.number as usize) {
            *place = None;
        }
    }
}
