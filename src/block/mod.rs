//! Disk images (raw, qcow2) behind one engine interface; written as if it
//! were a crate of its own: nothing here sees the benchmark harness.

pub mod error;
pub mod storage;

pub use error::{Error, ErrorKind, Result};
pub use storage::Storage;
