//! Reports from records alone: a model with one row builder, and renderers
//! that are pure functions from it to text.

mod annotate;
mod determinism;
pub mod exchange;
mod terminal;

pub use annotate::annotate;
pub use determinism::{Determinism, determinism};
pub use terminal::{Look, table};
