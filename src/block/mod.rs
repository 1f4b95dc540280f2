//! Disk images (raw, qcow2) behind one engine interface; written as if it
//! were a crate of its own: nothing here sees the benchmark harness.
//!
//! - [`error`]: the one error type.
//! - [`storage`]: where an image's bytes live; [`raw`] is a file, [`mem`] one in memory for tests.
//! - [`engine`]: operations in, completions out; [`op`] has both, [`queue`]
//!   what all engines share; [`engine_sync`], [`engine_aio`], [`engine_uring`]
//!   and [`engine_mem`] are the engines; [`raw_disk`] is a disk over any.
//! - [`qcow2`]: images of that format, over any storage, and disks in them over any engine.
//! - [`io`]: single system calls and the loops that make them whole;
//!   [`faults`] and [`faulty_driver`] make them fail on demand.
//! - [`buf`], [`align`]: buffers, and the arithmetic of direct I/O.
//! - [`probe`]: what this machine has of all that.
//! - [`sys`]: the operating system, and the only unsafe code.

mod aio_context;
pub mod align;
mod bounce;
pub mod buf;
mod disk_jobs;
pub mod engine;
pub mod engine_aio;
pub mod engine_mem;
pub mod engine_sync;
pub mod engine_uring;
pub mod error;
pub mod faults;
pub mod faulty_driver;
pub mod io;
mod lock;
pub mod mem;
pub mod op;
pub mod probe;
pub mod qcow2;
pub mod queue;
pub mod raw;
pub mod raw_disk;
mod ready;
pub mod storage;
pub mod sys;
mod tags;

pub use buf::{AlignedBuf, BufPool};
pub use engine::Engine;
pub use engine_aio::AioEngine;
pub use engine_mem::{MemEngine, MemStorage};
pub use engine_sync::SyncEngine;
pub use engine_uring::UringEngine;
pub use error::{Error, ErrorKind, Result};
pub use op::{Buffers, Completion, Op, OpKind};
pub use qcow2::QcowDisk;
pub use raw::FileStorage;
pub use raw_disk::RawDisk;
pub use storage::Storage;
pub use sys::file::{BlockFile, FileOptions};
