//! System calls and bytes of a region, as the block layer counts them.
//!
//! Neighbours: `ours` offers them, `run` hands them to the meter.

use crate::block::sys::counters;
use crate::scenario::{Gauge, Gauges};
use crate::units::Unit;

/// The counters of all threads of this process.
pub(super) struct Calls;

impl Gauges for Calls {
    fn names(&self) -> Vec<Gauge> {
        vec![
            Gauge::lower("system_calls", Unit::SystemCalls),
            Gauge::lower("bytes_read", Unit::Bytes),
            Gauge::lower("bytes_written", Unit::Bytes),
        ]
    }

    fn read(&mut self, out: &mut Vec<u64>) {
        let counts = counters::process();
        out.extend([counts.total(), counts.bytes_read(), counts.bytes_written()]);
    }
}

/// What a subject counts.
pub(super) struct Counted(pub Box<dyn Gauges>);

impl Gauges for Counted {
    fn names(&self) -> Vec<Gauge> {
        self.0.names()
    }

    fn read(&mut self, out: &mut Vec<u64>) {
        self.0.read(out);
    }
}
