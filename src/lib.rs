//! Wallgrind: one benchmark, two meters.

pub mod error;
pub mod units;

pub mod scenario;

pub mod families;

pub mod machine;
pub mod plan;
pub mod samples;

pub mod measure;
pub mod stats;
pub mod store;

pub mod compare;
pub mod report;

mod cli;
mod flow;
mod sys;
mod trial;

pub mod manual;

pub mod block;
pub mod tls;

// `families::block::peers` has a file that a crate of its own compiles too.
#[cfg(feature = "peers")]
extern crate self as wallgrind;

pub use anyhow;
pub use cli::command;
pub use flow::main;
pub use scenario::{Bencher, Gauge, Gauges, Need, Ops, Party, Pipe, Suite, Turn};
pub use units::{Bytes, Direction, Elements, Unit};
