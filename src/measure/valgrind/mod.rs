//! The meters that re-execute this program under Valgrind.
//!
//! Each party of a scenario runs in a process of its own, in a world without
//! chance (`world`); what a region takes is told apart by requests to
//! Valgrind, or as the difference of two snapshots of its totals (`roi`).
//! The program is started once, and each child forked from it (`serve`).
//! Children run ahead on several processors ([`Counter`]) while outcomes are
//! taken one at a time.
//!
//! ```text
//! counter -> launch -> server =valgrind=> serve =fork=> child -> roi, world, stack, wire
//!         -> readings (profile, stacks, dhat) -> outcome (spread)
//! ```

mod canary;
mod child;
mod complaint;
mod counter;
mod dhat;
mod features;
mod groups;
mod launch;
mod outcome;
mod profile;
mod protocol;
mod readings;
mod roi;
mod scratch;
mod serve;
mod server;
mod settings;
mod spread;
mod stack;
mod stacks;
mod sys;
mod tool;
mod wire;
mod world;

pub use child::child;
pub use counter::Counter;
pub use features::{Cap, cap as cap_features, seen as cpu_features};
pub use groups::kill_all;
pub use profile::Profile;
pub use tool::missing;
