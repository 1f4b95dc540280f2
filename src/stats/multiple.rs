//! Many tests at once: p values that are adjusted for their number.
//!
//! Neighbours: `compare` adjusts what a whole suite says.

/// Adjusted p values after Holm, "A Simple Sequentially Rejective Multiple
/// Test Procedure" (1979): below a level, all of them together are wrong with
/// at most that probability, whatever depends on what. In the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let n = p.len();
    let mut adjusted = vec![0.0; n];
    let mut so_far: f64 = 0.0;
    for (rank, at) in ascending(p).into_iter().enumerate() {
        so_far = so_far.max((n - rank) as f64 * p[at]);
        adjusted[at] = so_far.min(1.0);
    }
    adjusted
}

/// Adjusted p values after Benjamini and Hochberg, "Controlling the False
/// Discovery Rate" (1995): of those below a level, at most that share is wrong
/// on average, if the tests do not depend on each other. In the order given.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let n = p.len();
    let mut adjusted = vec![0.0; n];
    let mut so_far: f64 = 1.0;
    for (rank, at) in ascending(p).into_iter().enumerate().rev() {
        so_far = so_far.min(n as f64 / (rank + 1) as f64 * p[at]);
        adjusted[at] = so_far;
    }
    adjusted
}

/// The places of the values, from the least value on.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    order
}
