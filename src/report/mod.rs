//! Reports from records alone: a model with one row builder, and renderers
//! that are pure functions from it to text.

mod annotate;
mod determinism;
mod entries;
pub mod exchange;
mod explain;
mod format;
mod grid;
mod html;
mod markdown;
#[cfg(test)]
mod markdown_tests;
mod model;
mod plot;
mod sights;
mod terminal;
#[cfg(test)]
mod tests;
mod verdicts;
#[cfg(test)]
mod verdicts_tests;

pub use annotate::annotate;
pub use determinism::{Determinism, determinism};
pub use entries::{Against, Class, Entry, Sources, entries, totals};
pub use explain::{Evidence, Explained, Stacks, can_draw, explain, flame_graph};
pub use html::html;
pub use markdown::{MOST as MOST_MARKDOWN, markdown};
pub use model::{Figures, Further, Group, Row, Section, State, sections};
pub use sights::{Asked, Seen, seen, sights};
pub use terminal::{Look, table};
pub use verdicts::{failure, verdicts};
