//! Wallgrind: one benchmark, two meters.

pub mod block;
