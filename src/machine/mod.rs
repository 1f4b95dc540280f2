//! What a result depends on: machine, kernel, toolchain, commit, and the
//! versions of what is measured. No host name and no user name is kept.
//!
//! `cargo` finds what cargo wrote down of this executable's build; `gather` asks the system, `parse` understands what it says; `mounts` does
//! both for the file system of a folder. `health` says what is good and bad
//! about a machine.

mod cargo;
mod gather;
mod health;
mod mounts;
mod parse;

pub use gather::{identity, identity_of};
pub use health::{Check, Health, WATCH, health};
pub use mounts::file_system;
