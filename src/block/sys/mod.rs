//! The operating system's side of the block layer, and the only unsafe code
//! of it: every block says why it is sound.
//!
//! - [`counters`]: system calls and bytes moved, by thread and by process.
//! - [`copy`]: whole files, and the page cache of one.
//! - [`mem`]: aligned memory.
//! - [`file`](mod@file): positional system calls on one open file.
//! - [`slab`]: the operations that the kernel may be working on, and their buffers.
//! - [`aio`]: Linux AIO contexts and their completion ring.
//! - [`uring`]: one io_uring.
//! - [`eventfd`]: the counter that tells of completions.

pub mod aio;
pub mod copy;
pub mod counters;
pub mod eventfd;
pub mod file;
pub mod mem;
pub mod slab;
pub mod uring;
