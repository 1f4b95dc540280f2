//! Statistics as pure functions over slices: no I/O, no clock.
//!
//! Nothing here removes a value. What every function assumes is that values
//! are finite; [`summarize`] is the door that checks it.

mod bootstrap;
mod quantile;
mod rank;
mod summary;
#[cfg(test)]
mod tests;

pub use bootstrap::{RESAMPLES, median_interval, order_statistic_interval};
pub use quantile::{mad, mean, median, outliers, quantile, quartiles, sorted};
pub use rank::{EXACT_UP_TO, Rank, ranks, spearman};
pub use summary::{Summary, summarize};
