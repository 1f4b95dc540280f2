//! A series over time: how far neighbours usually are apart, and where its
//! level changed.
//!
//! Neighbours: `cli::history` reads the series.

use super::quantile::{mean, quartiles, sorted};
use super::rank::ranks;

/// Fewer values than this say nothing about what is usual.
pub const ENOUGH: usize = 10;

/// The least segment between two changes.
const SEGMENT: usize = 4;

/// Shuffles for a p value; the least that can come out is 1 / 1,000.
const SHUFFLES: u32 = 999;

/// How large a change between neighbours is unusual: the upper quartile of the
/// changes (as shares, without sign) and three interquartile ranges. `None`
/// for fewer than [`ENOUGH`] values, or when one is not above zero.
pub fn unusual_change(values: &[f64]) -> Option<f64> {
    if values.len() < ENOUGH || values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    let changes: Vec<f64> = values.windows(2).map(|pair| (pair[1] / pair[0] - 1.0).abs()).collect();
    let (q1, q3) = quartiles(&sorted(&changes));
    Some(q3 + 3.0 * (q3 - q1))
}

/// The places at which the level of a series changed: the first value of each
/// new level. By halving: the split at which the ranks before and after differ
/// most (Pettitt, "A Non-Parametric Approach to the Change-Point Problem",
/// 1979) counts when no more than `level` of seeded shuffles of the segment
/// have one as large. Its place is where the two sides spread least around
/// their means, and both sides are searched again.
pub fn change_points(values: &[f64], level: f64, seed: u64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut segments = vec![(0, values.len())];
    while let Some((from, to)) = segments.pop() {
        let Some(at) = split(&values[from..to], level, &mut rng) else { continue };
        found.push(from + at);
        segments.extend([(from, from + at), (from + at, to)]);
    }
    found.sort_unstable();
    found
}

fn split(values: &[f64], level: f64, rng: &mut fastrand::Rng) -> Option<usize> {
    let mut ranks = ranks(values);
    let seen = greatest(&ranks)?;
    let as_large = (0..SHUFFLES).filter(|_| {
        rng.shuffle(&mut ranks);
        greatest(&ranks).is_some_and(|other| other >= seen)
    });
    let p = (as_large.count() + 1) as f64 / f64::from(SHUFFLES + 1);
    if p <= level { place(values) } else { None }
}

/// The greatest statistic of all splits: how far the sum of the ranks before
/// it is from what it would be without a change, over its deviation.
fn greatest(ranks: &[f64]) -> Option<f64> {
    let n = ranks.len();
    let middle = (n as f64 + 1.0) / 2.0;
    let mut sum = 0.0;
    let mut best: Option<f64> = None;
    for (i, rank) in ranks.iter().enumerate() {
        sum += rank - middle;
        let at = i + 1;
        if at < SEGMENT || at + SEGMENT > n {
            continue;
        }
        let size = sum.abs() / ((at * (n - at)) as f64).sqrt();
        best = Some(best.map_or(size, |other| other.max(size)));
    }
    best
}

/// The split whose two sides spread least around their means. Ranks alone are
/// off by one where the last value before it lies in the middle.
fn place(values: &[f64]) -> Option<usize> {
    let spread = |part: &[f64]| {
        let middle = mean(part);
        part.iter().map(|v| (v - middle).powi(2)).sum::<f64>()
    };
    let splits = SEGMENT..=values.len().checked_sub(SEGMENT)?;
    let both = |at: &usize| spread(&values[..*at]) + spread(&values[*at..]);
    splits.min_by(|a, b| both(a).total_cmp(&both(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around levels, with a spread of 1 % up and down.
    fn series(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let part = |(n, level): &(usize, f64)| std::iter::repeat_n(*level, *n).collect::<Vec<_>>();
        levels.iter().flat_map(part).map(|level| level * (0.99 + 0.02 * rng.f64())).collect()
    }

    #[test]
    fn changes_of_level_are_found_where_they_are() {
        for seed in 0..10 {
            assert_eq!(change_points(&series(&[(20, 100.0), (20, 105.0)], seed), 0.01, 1), [20], "{seed}");
            let two = series(&[(15, 100.0), (12, 110.0), (18, 95.0)], seed);
            assert_eq!(change_points(&two, 0.01, 1), [15, 27], "{seed}");
        }
    }

    #[test]
    fn level_series_have_none_beyond_the_level() {
        let found =
            (0..100).filter(|seed| !change_points(&series(&[(40, 100.0)], *seed), 0.01, 1).is_empty());
        assert!(found.count() <= 4);
        assert!(change_points(&[7.0; 30], 0.01, 1).is_empty());
        assert!(change_points(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 0.01, 1).is_empty());
    }

    #[test]
    fn what_is_unusual_follows_the_quartiles() {
        // Changes of 1, 2, ... 12 %: quartiles 3.75 and 9.25 %.
        let mut values = vec![100.0];
        (1..=12).for_each(|i| values.push(values[values.len() - 1] * (1.0 + f64::from(i) / 100.0)));
        let unusual = unusual_change(&values).expect("enough");
        assert!((unusual - (0.0925 + 3.0 * 0.055)).abs() < 1e-12, "{unusual}");
        assert_eq!(unusual_change(&values[..9]), None);
        assert_eq!(unusual_change(&[0.0; 12]), None);
    }
}
