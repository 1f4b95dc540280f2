//! SIGINT, SIGTERM and SIGHUP: the first one ends the run in order, the
//! second one at once.
//!
//! Neighbours: `trial::watch` waits for them together with the trial.

use std::io;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use super::process::end_descendants;

/// Calls `first` with the number of the first signal. A second one ends the
/// process on the spot, with its children.
///
/// # Errors
/// The handlers cannot be set.
pub fn watch(first: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut arrivals = signals.forever();
        let Some(signal) = arrivals.next() else { return };
        first(signal);
        if let Some(signal) = arrivals.next() {
            end_descendants();
            low_level::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// The name of a signal, such as `SIGTERM`.
pub fn name(signal: i32) -> String {
    low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_string)
}
