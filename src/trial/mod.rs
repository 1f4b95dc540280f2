//! One scenario becomes one record: its body runs on a thread of its own, in
//! a process of its own, or under Valgrind, one at a time, against the clock
//! and with an ear for signals.

mod body;
mod counting;
mod isolate;
mod other;
mod protocol;
mod record;
mod runner;
mod scratch;
mod stepper;
mod steps;
mod turns;
mod watch;

pub use isolate::child;
pub use other::count_other;
pub use record::Identity;
pub use runner::{Ended, Runner};
pub use scratch::Scratch;
pub use stepper::{Alive, list, this_program};
pub use steps::child as steps_child;
pub use turns::Duel;
pub use watch::{Waited, Watch};
