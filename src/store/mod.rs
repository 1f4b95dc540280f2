//! Records on disk: what one trial left behind, in memory ([`Record`]) and in
//! versioned files.

mod dir;
mod record;

pub use dir::RunDir;
pub use record::{Metric, Record, Status, Summary};
