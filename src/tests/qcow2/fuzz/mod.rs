//! What the fuzzer plays: bytes choose an image of some kind, damage to it, and
//! what is done with it. Nothing may panic; and as long as nothing is wrong with
//! the image, its contents are those of a plain array and a check is clean.
//!
//! - [`input`]: bytes as choices.
//! - [`bases`]: an image of every kind, in memory.
//! - [`bitmap`]: a persistent bitmap for one of them.
//! - [`damage`]: changes behind the image's back.
//! - [`inputs`]: bytes that found something once.
//! - [`model`]: what the disk and its snapshots have to be.
//! - [`play`](mod@play): the operations.
//!
//! Neighbours: the target of `cargo fuzz`, and `qcow2_fuzz`, which runs it in
//! the usual tests.

pub mod bases;
pub mod bitmap;
pub mod damage;
pub mod input;
pub mod inputs;
pub mod model;
pub mod play;
