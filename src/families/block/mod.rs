//! The block suite: Cloud Hypervisor's twenty block micro-benchmarks at two
//! sizes, under names that keep its words, and scenarios beyond them.
//!
//! Each scenario is a [`Case`]: an image, how it is opened, and operations on
//! it. An engine of your own gets all of them: implement [`Subject`] and
//! [`Disk`], and call [`register_for`] in a bench target.
//!
//! The region is the operations. Making and copying images, opening them,
//! filling buffers, looking at each completion, comparing every byte that was
//! read and reading back what was written are outside.

mod beyond;
mod calls;
mod case;
mod data;
mod growth;
mod needs;
mod ours;
#[cfg(feature = "peers")]
pub mod peers;
mod place;
mod recipe;
mod reference;
mod register;
mod run;
mod subject;
mod template;
mod turn;
mod verify;

pub use case::{Action, Case, Fate, Order, Step, Walk, Way};
pub use growth::Growth;
pub use ours::{Ours, over_engine, over_image};
pub use recipe::{Packing, Pieces, Recipe};
pub use reference::{from_reference, reference_names, to_reference};
pub use register::{register, register_for};
pub use run::run;
pub use subject::{Disk, Feature, Format, Io, PageCache, Setting, Subject};
