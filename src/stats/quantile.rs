//! Order statistics: quantiles, median, spread, and outliers by Tukey's fences.
//!
//! Neighbours: `summary` and `bootstrap` build on it. "Sorted" in a signature
//! means ascending, as [`sorted`] gives it.

/// The values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The quantile of `sorted` at `p` in 0 to 1: linear interpolation between the
/// values at ranks around `p (n - 1)`, which is definition 7 of Hyndman and
/// Fan, "Sample Quantiles in Statistical Packages" (1996), the default of
/// NumPy and R. NaN for no values.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = p.clamp(0.0, 1.0) * last as f64;
    let low = (at.floor() as usize).min(last);
    let high = (low + 1).min(last);
    sorted[low] + (at - low as f64) * (sorted[high] - sorted[low])
}

/// The median of `sorted`: the middle value, or the mean of the two middle ones.
pub fn median(sorted: &[f64]) -> f64 {
    quantile(sorted, 0.5)
}

/// First and third quartile of `sorted`, by [`quantile`].
pub fn quartiles(sorted: &[f64]) -> (f64, f64) {
    (quantile(sorted, 0.25), quantile(sorted, 0.75))
}

/// Arithmetic mean; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Median absolute deviation from the median, not scaled to a normal
/// distribution (which would take a factor of 1.4826).
pub fn mad(sorted_values: &[f64]) -> f64 {
    let middle = median(sorted_values);
    let deviations: Vec<f64> = sorted_values.iter().map(|v| (v - middle).abs()).collect();
    median(&sorted(&deviations))
}

/// How many values lie more than 1.5 interquartile ranges below the first or
/// above the third quartile (Tukey, "Exploratory Data Analysis", 1977).
pub fn outliers(sorted: &[f64]) -> usize {
    let (q1, q3) = quartiles(sorted);
    let reach = 1.5 * (q3 - q1);
    sorted.iter().filter(|v| **v < q1 - reach || **v > q3 + reach).count()
}
