//! The statistics against published values, and against those of SciPy 1.17.1
//! and NumPy 2.4.6, whose calls stand beside the constants.

use super::*;

/// A. A. Michelson's first 20 determinations of the speed of light in air,
/// 1879, in km/s above 299,000, in the order taken (R: `morley`, Expt 1).
const MICHELSON: [f64; 20] = [
    850., 740., 900., 1070., 930., 850., 950., 980., 980., 880., 1000., 980., 930., 650., 760., 810., 1000.,
    1000., 960., 960.,
];

fn close(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-12 * theirs.abs().max(1e-3), "{ours} is not {theirs}");
}

#[test]
fn quantiles_are_those_of_numpy() {
    // numpy.quantile([1, 2, 3, 4], p), method "linear" (definition 7)
    let four = [1.0, 2.0, 3.0, 4.0];
    for (p, value) in [(0.0, 1.0), (0.1, 1.3), (0.25, 1.75), (0.5, 2.5), (0.75, 3.25), (0.9, 3.7), (1.0, 4.0)]
    {
        close(quantile(&four, p), value);
    }
    let ascending = sorted(&MICHELSON);
    for (p, value) in [(0.025, 692.75), (0.1, 758.0), (0.9, 1000.0), (0.975, 1036.75)] {
        close(quantile(&ascending, p), value);
    }
    assert!(quantile(&[], 0.5).is_nan());
}

#[test]
fn the_summary_of_michelsons_light_is_that_of_scipy() {
    let summary = summarize(&MICHELSON, 1).expect("finite values");
    close(summary.median, 940.0); // numpy.median
    close(summary.quartiles.0, 850.0); // numpy.quantile
    close(summary.quartiles.1, 980.0);
    close(summary.mad, 60.0); // scipy.stats.median_abs_deviation
    close(summary.mean, 909.0);
    assert_eq!((summary.min, summary.max), (650.0, 1070.0));
    // Fences at 655 and 1175: the 650 alone is beyond.
    assert_eq!(summary.outliers, 1);
    // scipy.stats.spearmanr(range(20), values)
    close(summary.drift.0, 0.200_832_233_593_210_62);
    close(summary.drift.1, 0.395_871_461_408_611_7);
    // scipy.stats.bootstrap(.., method="percentile", n_resamples=200000): (865, 980).
    // The ends are order statistics or means of two, so a neighbour is 10 to 15 away.
    let (low, high) = summary.median_ci;
    assert!((850.0..=880.0).contains(&low) && high == 980.0, "{low} to {high}");
}

#[test]
fn spearman_is_that_of_scipy_with_and_without_ties() {
    // IQ and hours of television a week: the example of the English Wikipedia's
    // article on Spearman's coefficient, rho = -29/165.
    let iq = [106., 100., 86., 101., 99., 103., 97., 113., 112., 110.];
    let tv = [7., 27., 2., 50., 28., 29., 20., 12., 6., 17.];
    let wikipedia = spearman(&iq, &tv);
    close(wikipedia.rho, -29.0 / 165.0);
    close(wikipedia.p, 0.627_188_344_776_484_6);
    // Ties on one side: scipy.stats.spearmanr(range(12), ..), scipy.stats.rankdata
    let order: Vec<f64> = (0..12).map(f64::from).collect();
    let tied = [3., 3., 1., 5., 4., 4., 4., 8., 9., 7., 9., 9.];
    assert_eq!(ranks(&tied), [2.5, 2.5, 1., 7., 5., 5., 5., 9., 11., 8., 11., 11.]);
    let rank = spearman(&order, &tied);
    close(rank.rho, 0.891_765_815_657_626_7);
    assert!((rank.p - 9.729_171_630_077_512e-5).abs() < 1e-14, "{}", rank.p);
}

#[test]
fn few_pairs_have_exact_p_values() {
    // Two of the six orders of three values are monotonic.
    close(spearman(&[1., 2., 3.], &[10., 20., 30.]).p, 1.0 / 3.0);
    // Counted over itertools.permutations in Python: 156 of 5,040.
    let rank = spearman(&[1., 2., 3., 4., 5., 6., 7.], &[5., 6., 7., 8., 7., 7., 9.]);
    close(rank.rho, 0.815_374_248_327_211_4);
    close(rank.p, 156.0 / 5040.0);
}

#[test]
fn the_bootstrap_follows_its_exact_distribution() {
    // For an odd number of values the resampled median is the j-th value or
    // less with probability P(Bin(n, j/n) > n/2). Of the first 15 values, the
    // 15 and 85 % points of that are the 6th and the 10th (0.213 and 0.912).
    let ascending = sorted(&MICHELSON[..15]);
    for seed in 0..20 {
        assert_eq!(median_interval(&ascending, 0.7, seed), (880.0, 950.0), "seed {seed}");
    }
}

#[test]
fn the_exact_interval_is_scipys_and_the_bootstrap_lies_within() {
    // scipy.stats.quantile_test(values, p=0.5).confidence_interval(0.95)
    let ascending = sorted(&MICHELSON);
    let exact = order_statistic_interval(&ascending, 0.95).expect("20 values are enough");
    assert_eq!(exact, (850.0, 980.0));
    let (low, high) = median_interval(&ascending, 0.95, 7);
    assert!(exact.0 <= low && high <= exact.1);
    // The ranks of the lower end, from 0 (scipy.stats.binom.cdf(k, n, 0.5) <= 0.025).
    for (n, rank) in [(6, 0), (8, 0), (10, 1), (20, 5), (50, 17), (100, 39), (1000, 468)] {
        let ascending: Vec<f64> = (0..n).map(f64::from).collect();
        let interval = order_statistic_interval(&ascending, 0.95);
        assert_eq!(interval, Some((f64::from(rank), f64::from(n - 1 - rank))), "n = {n}");
    }
    assert_eq!(order_statistic_interval(&[1., 2., 3., 4., 5.], 0.95), None);
}

#[test]
fn a_seed_gives_one_interval_and_another_seed_another() {
    let values: Vec<f64> = (0..101).map(|i| f64::from(i * i % 1009)).collect();
    let of = |seed| summarize(&values, seed).expect("finite values").median_ci;
    assert_eq!(of(1), of(1));
    assert!((2..20).any(|seed| of(seed) != of(1)));
}

#[test]
fn edges_one_value_equal_values_and_none() {
    let one = summarize(&[42.0], 1).expect("one value");
    assert_eq!((one.median, one.median_ci, one.mad), (42.0, (42.0, 42.0), 0.0));
    assert_eq!((one.quartiles, one.outliers, one.drift), ((42.0, 42.0), 0, (0.0, 1.0)));
    let equal = summarize(&[7.0; 50], 1).expect("equal values");
    assert_eq!((equal.median_ci, equal.mad, equal.drift), ((7.0, 7.0), 0.0, (0.0, 1.0)));
    assert_eq!(equal.outliers, 0);
    let two = summarize(&[1.0, 2.0], 1).expect("two values");
    assert_eq!((two.median, two.median_ci), (1.5, (1.0, 2.0)));
    assert_eq!(summarize(&[], 1), None);
    assert_eq!(summarize(&[1.0, f64::NAN], 1), None);
    assert_eq!(summarize(&[f64::INFINITY], 1), None);
}

#[test]
fn a_rising_series_drifts_and_a_shuffled_one_does_not() {
    let rising: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i)).collect();
    let drift = summarize(&rising, 1).expect("finite values").drift;
    assert_eq!(drift.0, 1.0);
    assert!(drift.1 < 1e-12);
    let mut shuffled = rising;
    fastrand::Rng::with_seed(3).shuffle(&mut shuffled);
    assert!(summarize(&shuffled, 1).expect("finite values").drift.1 > 0.05);
}
