//! The density of values along a line, for plots.
//!
//! Neighbours: `quantile` has the spread that sets its width; `report::plot`
//! draws it.

use super::quantile::{mean, quartiles};

/// The density of `ascending` at `points` equal steps from `from` to `to`,
/// scaled so that the area under it is the share of the values that lie there.
/// A Gaussian kernel whose width is the rule of thumb of Silverman, "Density
/// Estimation for Statistics and Data Analysis" (1986), equation 3.31, over
/// values binned at the points (each shared by its two neighbours), so that
/// the work grows with the number of values and not with that times `points`.
///
/// `None` for fewer than two values, for values that are all the same, and for
/// a range or a number of points that is none.
pub fn density(ascending: &[f64], (from, to): (f64, f64), points: usize) -> Option<Vec<f64>> {
    if ascending.len() < 2 || points < 2 || from >= to {
        return None;
    }
    let step = (to - from) / (points - 1) as f64;
    // Narrower than a step, the kernel would fall between the points.
    let width = bandwidth(ascending).filter(|width| width.is_finite())?.max(step / 2.0);
    let bins = binned(ascending, from, step, points);
    let kernel: Vec<f64> = (0..points).map(|i| (-0.5 * (i as f64 * step / width).powi(2)).exp()).collect();
    let scale = 1.0 / (width * (2.0 * std::f64::consts::PI).sqrt() * ascending.len() as f64);
    let at = |i: usize| -> f64 { bins.iter().enumerate().map(|(j, n)| n * kernel[i.abs_diff(j)]).sum() };
    Some((0..points).map(|i| at(i) * scale).collect())
}

/// 0.9 of the lesser of the standard deviation and what the quartiles say of
/// it, less where there are more values. `None` when that is nothing.
fn bandwidth(ascending: &[f64]) -> Option<f64> {
    let n = ascending.len() as f64;
    let middle = mean(ascending);
    let deviation = (ascending.iter().map(|v| (v - middle).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let (q1, q3) = quartiles(ascending);
    let by_quartiles = (q3 - q1) / 1.34;
    let spread = if by_quartiles > 0.0 { deviation.min(by_quartiles) } else { deviation };
    (spread > 0.0).then(|| 0.9 * spread * n.powf(-0.2))
}

/// How many values lie at each point; one between two points belongs to both
/// in proportion. Values outside of the range belong to none.
fn binned(ascending: &[f64], from: f64, step: f64, points: usize) -> Vec<f64> {
    let mut bins = vec![0.0; points];
    for value in ascending {
        let at = (value - from) / step;
        if at < 0.0 || at > (points - 1) as f64 {
            continue;
        }
        let low = (at.floor() as usize).min(points - 1);
        let high = (low + 1).min(points - 1);
        let share = at - low as f64;
        bins[low] += 1.0 - share;
        bins[high] += share;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::super::sorted;
    use super::*;

    #[test]
    fn the_area_is_the_share_of_the_values_in_the_range() {
        let mut rng = fastrand::Rng::with_seed(1);
        let values = sorted(&std::iter::repeat_with(|| rng.f64()).take(2_000).collect::<Vec<_>>());
        let area = |from: f64, to: f64| {
            let curve = density(&values, (from, to), 200).expect("a curve");
            curve.iter().sum::<f64>() * (to - from) / 199.0
        };
        assert!((area(-0.5, 1.5) - 1.0).abs() < 0.01, "{}", area(-0.5, 1.5));
        assert!((area(-0.5, 0.5) - 0.5).abs() < 0.05, "{}", area(-0.5, 0.5));
    }

    #[test]
    fn two_clusters_are_two_peaks() {
        let clusters = [0, 1, 2, 3, 4].map(|i| 1.0 + 0.01 * f64::from(i));
        let values: Vec<f64> = clusters.into_iter().chain(clusters.map(|v| v + 1.0)).collect();
        let curve = density(&values, (0.0, 3.0), 61).expect("a curve");
        assert!(curve[20] > 1.3 * curve[30] && curve[41] > 1.3 * curve[30], "{curve:?}");
    }

    #[test]
    fn what_has_no_spread_has_no_density() {
        assert_eq!(density(&[3.0; 9], (0.0, 5.0), 10), None);
        assert_eq!(density(&[3.0], (0.0, 5.0), 10), None);
        assert_eq!(density(&[1.0, 2.0], (5.0, 5.0), 10), None);
        assert_eq!(density(&[1.0, 2.0], (0.0, 5.0), 1), None);
    }
}
