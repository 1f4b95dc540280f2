//! Statistics as pure functions over slices: no I/O, no clock.
//!
//! Nothing here removes a value. What every function assumes is that values
//! are finite; [`summarize`] is the door that checks it.

mod bootstrap;
mod changes;
mod density;
mod multiple;
mod paired;
mod quantile;
mod rank;
mod sequential;
mod summary;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verdict_tests;

pub use bootstrap::{RESAMPLES, median_interval, order_statistic_interval};
pub use changes::{ENOUGH, change_points, unusual_change};
pub use density::density;
pub use multiple::{benjamini_hochberg, holm};
pub use paired::{Estimate, is_equivalent, permutation_interval, permutation_p, t_critical, t_p};
pub use quantile::{mad, mean, median, outliers, quantile, quartiles, sorted};
pub use rank::{EXACT_UP_TO, Rank, ranks, spearman};
pub use sequential::{Look, Spending, levels, sequential_p};
pub use summary::{Summary, summarize};
