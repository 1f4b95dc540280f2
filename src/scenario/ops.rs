//! The operations inside an iteration, and how long each of them took.
//!
//! While samples are taken, and under Valgrind, nothing is timed: what is left
//! is one branch an operation, which always goes the same way. The wall-time
//! meter switches the clock on for a pass of its own.
//!
//! Neighbours: `bencher` hands it to bodies, a meter switches it on.

use std::fmt;

use anyhow::{Result, ensure};

/// Marks the operations of an iteration; see
/// [`Bencher::iter_ops`](super::Bencher::iter_ops).
#[derive(Default)]
pub struct Ops {
    timer: Option<Box<Timer>>,
}

/// What times operations while it is on.
struct Timer {
    clock: Box<dyn FnMut() -> u64>,
    /// When the operation in each slot began.
    began: Vec<Option<u64>>,
    under_way: usize,
    /// Operations that ended without having begun, or began twice.
    astray: usize,
    took: Vec<u64>,
}

impl Ops {
    /// One operation from its beginning to its end.
    #[inline]
    pub fn op<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        match &mut self.timer {
            None => operation(),
            Some(timer) => timer.time(operation),
        }
    }

    /// A queued operation begins. `slot` tells it from the others that are
    /// under way: the index of its buffer, or its tag. Slots are small
    /// numbers, used again and again.
    #[inline]
    pub fn start(&mut self, slot: usize) {
        if let Some(timer) = &mut self.timer {
            timer.start(slot);
        }
    }

    /// The queued operation in this slot has ended.
    #[inline]
    pub fn done(&mut self, slot: usize) {
        if let Some(timer) = &mut self.timer {
            timer.done(slot);
        }
    }

    /// From here on operations are timed by `clock`, in nanoseconds.
    pub fn switch_on(&mut self, clock: impl FnMut() -> u64 + 'static) {
        let clock: Box<dyn FnMut() -> u64> = Box::new(clock);
        let timer = Timer { clock, began: Vec::new(), under_way: 0, astray: 0, took: Vec::new() };
        self.timer = Some(Box::new(timer));
    }

    /// From here on operations are not timed.
    pub fn switch_off(&mut self) {
        self.timer = None;
    }

    /// Hands over what the operations since the last call took, in
    /// nanoseconds, in the order of their ends. Between iterations only.
    ///
    /// # Errors
    /// An operation began and did not end, or the other way round.
    pub fn take(&mut self, mut each: impl FnMut(u64)) -> Result<()> {
        let Some(timer) = &mut self.timer else { return Ok(()) };
        let (left, astray) = (timer.under_way, timer.astray);
        ensure!(left == 0, "{left} operations were started in an iteration and never done");
        ensure!(
            astray == 0,
            "{astray} operations were done in a slot where none had been started, or started twice"
        );
        timer.took.drain(..).for_each(&mut each);
        Ok(())
    }
}

impl fmt::Debug for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ops").field("on", &self.timer.is_some()).finish()
    }
}

impl Timer {
    #[cold]
    #[inline(never)]
    fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        let began = (self.clock)();
        let result = operation();
        let ended = (self.clock)();
        self.took.push(ended.saturating_sub(began));
        result
    }

    #[cold]
    #[inline(never)]
    fn start(&mut self, slot: usize) {
        if slot >= self.began.len() {
            self.began.resize(slot + 1, None);
        }
        let now = (self.clock)();
        match self.began[slot].replace(now) {
            None => self.under_way += 1,
            Some(_) => self.astray += 1,
        }
    }

    #[cold]
    #[inline(never)]
    fn done(&mut self, slot: usize) {
        let now = (self.clock)();
        match self.began.get_mut(slot).and_then(Option::take) {
            Some(began) => {
                self.under_way -= 1;
                self.took.push(now.saturating_sub(began));
            }
            None => self.astray += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ops;

    /// A clock that goes 10 ns a reading.
    fn ticking() -> impl FnMut() -> u64 {
        let mut now = 0;
        move || {
            now += 10;
            now
        }
    }

    fn taken(ops: &mut Ops) -> Result<Vec<u64>, String> {
        let mut all = Vec::new();
        ops.take(|ns| all.push(ns)).map(|()| all).map_err(|e| e.to_string())
    }

    #[test]
    fn nothing_is_timed_before_it_is_switched_on_nor_after() {
        let mut ops = Ops::default();
        assert_eq!(ops.op(|| 3), 3);
        ops.done(7);
        assert_eq!(taken(&mut ops), Ok(vec![]));
        ops.switch_on(|| panic!("a reading of the clock"));
        ops.switch_off();
        ops.op(|| ());
        ops.start(0);
    }

    #[test]
    fn each_operation_is_timed_by_itself_and_queued_ones_overlap() {
        let mut ops = Ops::default();
        ops.switch_on(ticking());
        assert_eq!(ops.op(|| "result"), "result");
        ops.start(4);
        ops.start(0);
        ops.done(4);
        ops.done(0);
        ops.start(4);
        ops.done(4);
        assert_eq!(taken(&mut ops), Ok(vec![10, 20, 20, 10]));
        assert_eq!(taken(&mut ops), Ok(vec![]), "they are handed over once");
    }

    #[test]
    fn an_operation_without_an_end_or_a_beginning_is_said() {
        let said = |work: fn(&mut Ops)| {
            let mut ops = Ops::default();
            ops.switch_on(ticking());
            work(&mut ops);
            taken(&mut ops).expect_err("it is wrong")
        };
        assert!(
            said(|ops| ops.start(1)).contains("1 operations were started in an iteration and never done")
        );
        assert!(said(|ops| ops.done(1)).contains("where none had been started"));
        assert!(
            said(|ops| {
                ops.start(0);
                ops.start(0);
                ops.done(0);
            })
            .contains("started twice")
        );
    }
}
