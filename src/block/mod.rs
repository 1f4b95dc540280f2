//! Disk images (raw, qcow2) behind one engine interface; written as if it
//! were a crate of its own: nothing here sees the benchmark harness.
//!
//! - [`error`]: the one error type.
//! - [`storage`]: where an image's bytes live; [`raw`] is a file, [`mem`] one in memory for tests.
//! - [`io`]: single system calls and the loops that make them whole;
//!   [`faults`] makes them fail on demand.
//! - [`buf`], [`align`]: buffers, and the arithmetic of direct I/O.
//! - [`sys`]: the operating system, and the only unsafe code.

pub mod align;
mod bounce;
pub mod buf;
pub mod error;
pub mod faults;
pub mod io;
mod lock;
pub mod mem;
pub mod qcow2;
pub mod raw;
pub mod storage;
pub mod sys;

pub use error::{Error, ErrorKind, Result};
pub use mem::storage::MemStorage;
pub use raw::FileStorage;
pub use storage::Storage;
pub use sys::file::FileOptions;
