//! Formats of other tools, written from records and read into records: texts
//! in, texts out, no files.

mod callgrind;
pub mod cloud_hypervisor;
mod export;
mod import;

pub use callgrind::from_cachegrind as callgrind_from_cachegrind;
pub use export::{Export, export};
pub use import::{Import, import};
