//! The command line: what was typed ([`Args`]), what it means
//! ([`Request`]), what the clients of a bench target are told ([`Printer`]),
//! and the only writers to standard output and standard error.

mod args;
mod baselines;
mod cloud_hypervisor;
mod commands;
mod doctor;
mod env;
mod equals;
mod events;
mod exchange;
mod formats;
mod history;
mod idle;
mod json;
mod lines;
mod listing;
mod names;
mod place;
mod progress;
mod report;
mod resolve;
mod revision;
mod select;
mod stubs;
mod term;
mod value;

pub use args::Args;
pub use commands::{clap_exit, command};
pub use env::Env;
pub use events::{Printer, Tally};
pub use listing::listing;
pub use names::{nearest, nothing_matches};
pub use place::suite;
pub use resolve::{Format, Request, Role, resolve};
pub use select::{Selected, select};
pub use term::{Out, say};
