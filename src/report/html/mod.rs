//! The report as one HTML file: a row a trial, and behind each row its plots
//! and tables, which the page's own script draws when they are asked for.
//! Nothing is loaded from elsewhere.

mod data;
mod detail;
mod page;
mod rows;
#[cfg(test)]
pub(super) mod tests;
mod text;

pub use detail::{Headline, with_unit};
pub use page::html;
