//! Records on disk: what one trial left behind, in memory ([`Record`]) and in
//! versioned files.
//!
//! A run has a folder, and each trial a JSON file in it, written when the
//! trial ends. Every number in a file has its unit beside it, and every metric
//! the direction in which it is better. Raw samples are kept in their order;
//! the summary beside them can be computed from them again.

mod baseline;
#[cfg(test)]
mod baseline_tests;
mod dir;
mod durations;
mod history;
mod joined;
mod json;
mod layouts;
mod name;
mod record;
mod schema;
mod shards;
mod shared;
mod side_by_side;
#[cfg(test)]
mod tests;

pub use baseline::{Baselines, Kept, digest};
pub use dir::{Found, RunDir, read_bytes, read_record, record_files, record_of};
pub use durations::{Durations, durations};
pub use history::{Point, add_to_history, history_key, read_history};
pub use joined::Joined;
pub use json::{from_json, to_json};
pub use layouts::{LEAST_LAYOUTS, layouts_of, make_layouts};
pub use record::{Metric, Rate, Record, Status, Summary};
pub use schema::{JSON_SCHEMA, MAJOR, MINOR};
pub use shards::{MOST_SHARDS, SHARDS, ShardManifest};
pub use shared::Shared;
pub use side_by_side::side_by_side;
