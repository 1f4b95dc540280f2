//! Rank correlation, by which drift within a run is found.
//!
//! Neighbours: `summary` correlates values with their order.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Up to this many pairs the p value is exact: all permutations are counted
/// (8! = 40,320). The t approximation would call three rising values certain.
pub const EXACT_UP_TO: usize = 8;

/// A rank correlation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rank {
    /// Spearman's rho, -1 to 1; 0 where one side is constant.
    pub rho: f64,
    /// Two-sided p value of "no correlation".
    pub p: f64,
}

/// Spearman's rank correlation of `a` with `b`, pair by pair; tied values
/// share the mean of their ranks. The p value is exact up to [`EXACT_UP_TO`]
/// pairs, and from Student's t with n - 2 degrees of freedom above (Kendall
/// and Stuart, "The Advanced Theory of Statistics", as SciPy does).
pub fn spearman(a: &[f64], b: &[f64]) -> Rank {
    let n = a.len().min(b.len());
    let (a, b) = (ranks(&a[..n]), ranks(&b[..n]));
    let Some(rho) = pearson(&a, &b) else { return Rank { rho: 0.0, p: 1.0 } };
    let p = if n <= EXACT_UP_TO { permutation_p(&a, &b, rho) } else { t_p(rho, n) };
    Rank { rho, p }
}

/// Ranks from 1; ties share their mean rank.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = start as f64 + (tied.len() as f64 + 1.0) / 2.0;
        for at in tied {
            ranks[*at] = mean;
        }
        start += tied.len();
    }
    ranks
}

/// Pearson's correlation of two rank vectors; `None` where one is constant.
fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let middle = (a.len() as f64 + 1.0) / 2.0;
    let sum =
        |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| (x - middle) * (y - middle)).sum() };
    let scale = (sum(a, a) * sum(b, b)).sqrt();
    (scale > 0.0).then(|| (sum(a, b) / scale).clamp(-1.0, 1.0))
}

fn t_p(rho: f64, n: usize) -> f64 {
    let freedom = n as f64 - 2.0;
    let t = rho.abs() * (freedom / ((1.0 - rho) * (1.0 + rho))).sqrt();
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(students) if t.is_finite() => 2.0 * students.sf(t),
        _ => 0.0,
    }
}

/// The share of all orders of `b` that correlate with `a` at least as much as
/// the one seen, either way (Heap's algorithm goes through them).
fn permutation_p(a: &[f64], b: &[f64], rho: f64) -> f64 {
    let mut b = b.to_vec();
    let mut counters = vec![0; b.len()];
    // Equal sums in another order of adding must count as equal.
    let at_least = rho.abs() - 1e-9;
    let as_much = |b: &[f64]| pearson(a, b).is_some_and(|r| r.abs() >= at_least);
    let (mut all, mut extreme) = (1u32, u32::from(as_much(&b)));
    let mut i = 1;
    while i < b.len() {
        if counters[i] < i {
            b.swap(if i % 2 == 0 { 0 } else { counters[i] }, i);
            all += 1;
            extreme += u32::from(as_much(&b));
            counters[i] += 1;
            i = 1;
        } else {
            counters[i] = 0;
            i += 1;
        }
    }
    f64::from(extreme) / f64::from(all)
}
