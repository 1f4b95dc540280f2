//! Formats of other tools, written from records and read into records: texts
//! in, texts out, no files.

mod bencher;
mod callgrind;
pub mod cloud_hypervisor;
pub mod criterion;
mod csv;
mod export;
pub mod github_action;
mod import;
mod junit;
#[cfg(test)]
mod tests;

pub use bencher::{Benchmarks, bencher};
pub use callgrind::from_cachegrind as callgrind_from_cachegrind;
pub use csv::{COLUMNS, csv};
pub use export::{Export, export};
pub use import::{Import, import};
pub use junit::junit;
