//! The command line: what was typed ([`Args`]), what it means
//! ([`Request`]), what the clients of a bench target are told ([`Printer`]),
//! and the only writers to standard output and standard error.

mod args;
mod baselines;
mod busy;
mod cloud_hypervisor;
mod commands;
mod doctor;
mod env;
mod equals;
mod events;
mod evidence;
mod exchange;
mod explain;
mod formats;
mod history;
mod idle;
mod json;
mod lines;
mod linker;
mod listing;
mod merge;
mod names;
mod place;
mod progress;
mod report;
mod resolve;
mod revision;
mod select;
mod shards;
mod shell;
mod stubs;
mod term;
mod value;
mod whole;

pub use args::Args;
pub use commands::{clap_exit, command};
pub use env::Env;
pub use events::{Printer, Tally};
pub use listing::listing;
pub use names::{nearest, nothing_matches};
pub use place::suite;
pub use resolve::{Format, Request, Role, resolve};
pub use select::{Selected, select};
pub use shards::{Division, divide};
pub use term::{Out, say};
