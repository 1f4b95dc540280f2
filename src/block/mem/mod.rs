//! Files in memory, for tests: what a disk can do to an image, on demand.
//!
//! - [`sparse`]: bytes with holes, the content of such a file.
//! - [`file`](mod@file): the file: its content now, at the last barrier, and what was
//!   written in between.
//! - [`crash`]: the images that a power cut may leave.
//! - [`storage`]: a [`crate::block::Storage`] over all that, with faults.

pub mod crash;
pub mod file;
pub mod sparse;
pub mod storage;
