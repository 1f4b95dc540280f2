//! Why a trial costs what it costs: everything that is known of one scenario
//! side by side, of one build or of two, and its flame graph.

mod evidence;
mod flame;
mod functions;
mod parts;
#[cfg(test)]
mod tests;
mod text;

pub use evidence::{Evidence, Stacks};
pub use flame::{can_draw, flame_graph};
pub use parts::{Explained, explain};
