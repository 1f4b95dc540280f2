//! What a result depends on: machine, kernel, toolchain, commit, and the
//! versions of what is measured. No host name and no user name is kept.
//!
//! `gather` asks the system, `parse` understands what it says.

mod gather;
mod parse;

pub use gather::identity;
