//! qcow2 images of every kind, damaged and used as the bytes say.
//!
//! Neighbours: `src/tests/qcow2/fuzz` has all of it, so that the usual tests
//! run it too.

#![no_main]

#[path = "../../src/tests/qcow2/fuzz/mod.rs"]
#[allow(dead_code, reason = "shared with the usual tests, which use other parts")]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::play::play(bytes));
