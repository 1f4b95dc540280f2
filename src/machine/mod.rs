//! What a result depends on: machine, kernel, toolchain, commit, and the
//! versions of what is measured. No host name and no user name is kept.
//!
//! `gather` asks the system, `parse` understands what it says; `mounts` does
//! both for the file system of a folder.

mod gather;
mod mounts;
mod parse;

pub use gather::identity;
pub use mounts::file_system;
