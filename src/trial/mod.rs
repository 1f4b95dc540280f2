//! One scenario becomes one record: its body runs on a thread of its own, in
//! a process of its own, or under Valgrind, one at a time, against the clock
//! and with an ear for signals.

mod body;
mod counting;
mod isolate;
mod protocol;
mod record;
mod runner;
mod scratch;
mod watch;

pub use isolate::child;
pub use record::Identity;
pub use runner::{Ended, Runner};
pub use scratch::Scratch;
pub use watch::{Waited, Watch};
