//! Reports from records alone: a model with one row builder, and renderers
//! that are pure functions from it to text.

mod terminal;

pub use terminal::{Look, table};
