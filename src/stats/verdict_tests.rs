//! The statistics behind verdicts against published values; `.ci/statistics`
//! holds them against SciPy as well, over stored data.

use super::*;

fn near(ours: f64, theirs: f64, within: f64) {
    assert!((ours - theirs).abs() <= within, "{ours} is not {theirs}");
}

/// Extra hours of sleep with one drug over the other: Student's own example (1908).
const SLEEP: [f64; 10] = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];

/// Darwin's maize, in eighths of an inch: Fisher's example (1935), who counted
/// 863 ways of 32,768 on one side.
const MAIZE: [f64; 15] = [49., -67., 8., 16., 6., 23., 28., 41., 14., 29., 56., 24., 75., 60., -48.];

#[test]
fn students_sleep_is_that_of_r() {
    // t.test(extra ~ group, data = sleep, paired = TRUE)
    let sleep = Estimate::of(&SLEEP).expect("ten values");
    near(sleep.mean / sleep.error, 4.0621, 5e-5);
    near(sleep.p(0.0), 0.002_833, 5e-7);
    let (low, high) = sleep.interval(0.05);
    near(low, 0.700_114_2, 5e-8);
    near(high, 2.459_885_8, 5e-8);
    near(sleep.p(low), 0.05, 1e-9);
}

#[test]
fn welch_is_that_of_r() {
    // t.test(extra ~ group, data = sleep): t = -1.8608, df = 17.776, p-value = 0.07939
    let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    let second: Vec<f64> = first.iter().zip(SLEEP).map(|(a, d)| a + d).collect();
    let welch = Estimate::of_difference(&first, &second).expect("values");
    near(welch.mean / welch.error, 1.8608, 5e-5);
    near(welch.freedom, 17.776, 5e-4);
    near(welch.p(0.0), 0.079_39, 5e-6);
    let (low, high) = welch.interval(0.05);
    near(low, -0.205_483_2, 5e-8);
    near(high, 3.365_483_2, 5e-8);
}

#[test]
fn critical_values_are_those_of_the_tables_also_far_out() {
    for (level, freedom, t) in [
        (0.05, 1.0, 12.7062),
        (0.05, 4.0, 2.7764),
        (0.01, 4.0, 4.6041),
        (0.01, 9.0, 3.2498),
        (0.01, 29.0, 2.7564),
    ] {
        near(t_critical(level, freedom), t, 5e-5);
    }
    for freedom in [2.0, 5.0, 40.0] {
        let t = t_critical(1e-9, freedom);
        near(t_p(t, freedom) / 1e-9, 1.0, 1e-6);
    }
}

#[test]
fn fishers_maize_is_counted_as_he_did() {
    near(permutation_p(&MAIZE, 0.0, 1), 2.0 * 863.0 / 32_768.0, 1e-12);
    near(Estimate::of(&MAIZE).expect("values").p(0.0), 0.0497, 5e-5);
    let (low, high) = permutation_interval(&MAIZE, 0.05, 1).expect("values");
    assert!(low < 0.0 && low > -1.0 && high > 40.0 && high < 43.0, "{low} to {high}");
    assert!(permutation_p(&MAIZE, low, 1) <= 0.05 && permutation_p(&MAIZE, low + 0.5, 1) > 0.05);
}

#[test]
fn a_trimmed_mean_keeps_to_its_level_and_shrugs_bursts_off() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut called = |n: usize, burst: f64| {
        let mut normal = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        let mut values: Vec<f64> = (0..n).map(|_| normal()).collect();
        values[0] *= burst;
        Estimate::of_trimmed(&values).expect("values").p(0.0) <= 0.05
    };
    for n in [5, 8, 12, 27] {
        // At 5 % one standard deviation of 3,000 is 0.4 %.
        let share = (0..3_000).filter(|_| called(n, 1.0)).count() as f64 / 3_000.0;
        assert!(share < 0.062, "{n}: {share}");
    }
    let quiet: Vec<f64> = (0..20).map(|i| 0.02 + f64::from(i % 5) * 1e-4).collect();
    let hit: Vec<f64> =
        quiet.iter().enumerate().map(|(i, v)| if i % 9 == 0 { v + 0.5 } else { *v }).collect();
    let (quiet, hit, plain) = (Estimate::of_trimmed(&quiet), Estimate::of_trimmed(&hit), Estimate::of(&hit));
    let half =
        |estimate: Option<Estimate>| estimate.map(|e| e.interval(0.01)).map_or(0.0, |(low, high)| high - low);
    assert!(half(hit) < 3.0 * half(quiet) && half(plain) > 100.0 * half(hit));
    assert_eq!(Estimate::of_trimmed(&[1.0; 4]), None);
}

#[test]
fn too_few_signs_give_no_interval_and_many_are_drawn() {
    let unbounded = (f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!(permutation_interval(&SLEEP[..6], 0.01, 1), Some(unbounded));
    assert_eq!(permutation_interval(&[1.0], 0.01, 1), None);
    let many: Vec<f64> = MAIZE.iter().chain(&MAIZE).copied().collect();
    let (drawn, t) = (permutation_p(&many, 0.0, 1), Estimate::of(&many).expect("values").p(0.0));
    assert!(drawn > 0.0 && (drawn / t).ln().abs() < 0.3, "{drawn} and {t}");
}

/// The p values of the example of Benjamini and Hochberg (1995): thrombolysis.
const HEART: [f64; 15] = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
    0.7590, 1.0000,
];

#[test]
fn holm_and_benjamini_hochberg_refuse_what_the_papers_say() {
    let below = |adjusted: &[f64]| adjusted.iter().filter(|p| **p <= 0.05).count();
    assert_eq!(below(&holm(&HEART)), 3);
    assert_eq!(below(&benjamini_hochberg(&HEART)), 4);
    near(benjamini_hochberg(&HEART)[3], 0.0095 * 15.0 / 4.0, 1e-15);
    near(holm(&HEART)[1], 0.0004 * 14.0, 1e-15);
    // In the order given, and never falling along it.
    let mixed = [0.04, 0.01, 0.03];
    assert_eq!(holm(&mixed), [0.06, 0.03, 0.06]);
    assert_eq!(benjamini_hochberg(&mixed), [0.04, 0.03, 0.04]);
    assert!(holm(&[]).is_empty());
}

/// Looks at which as much of the data is there as of the error may be spent.
fn even(shares: &[f64]) -> Vec<Look> {
    shares.iter().map(|share| Look { n: 100.0 * share, share: *share }).collect()
}

#[test]
fn bounds_of_five_looks_are_the_published_ones() {
    // Lan and DeMets' two functions at alpha = 0.05 (two-sided), five equal
    // steps: Proschan, Lan and Wittes, "Statistical Monitoring of Clinical
    // Trials" (2006), and the programs ld98 and rpact.
    let shares = [0.2, 0.4, 0.6, 0.8, 1.0];
    let expected = [
        (Spending::ObrienFleming, [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
        (Spending::Pocock, [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
    ];
    for (spending, bounds) in expected {
        for (level, bound) in levels(0.05, spending, &even(&shares)).into_iter().zip(bounds) {
            // A level is a two-sided p value of a normal statistic.
            let z = t_critical(level, 1e12);
            near(z, bound, 1e-3);
        }
    }
}

#[test]
fn one_look_is_an_ordinary_test_and_more_looks_cost_something() {
    near(levels(0.01, Spending::Power(2.0), &even(&[1.0]))[0], 0.01, 1e-9);
    let looks = even(&[0.25, 0.5, 1.0]);
    let p = sequential_p(Spending::Power(2.0), &looks, &[0.6, 0.2, 0.004]);
    assert!(p > 0.004 && p < 0.008, "{p}");
    // It is the error at which the last look just stops.
    let last = levels(p, Spending::Power(2.0), &looks)[2];
    near(last / 0.004, 1.0, 1e-3);
    assert_eq!(sequential_p(Spending::Power(2.0), &even(&[0.5]), &[1.0]), 1.0);
    assert!(sequential_p(Spending::Power(2.0), &even(&[0.1, 0.5]), &[1e-12, 0.9]) < 1e-9);
    // All that is left may be spent at a last look that comes early.
    let early = [Look { n: 5.0, share: 0.25 }, Look { n: 8.0, share: 1.0 }];
    let late = [Look { n: 5.0, share: 0.25 }, Look { n: 20.0, share: 1.0 }];
    let last = |looks: &[Look]| levels(0.01, Spending::Power(2.0), looks)[1];
    assert!(last(&early) > last(&late) && last(&early) < 0.01, "{} {}", last(&early), last(&late));
}

#[test]
fn walks_without_a_drift_stop_as_often_as_the_rule_says() {
    // 4,000 tests of ten looks each; at 5 % one standard deviation is 0.34 %.
    let shares: Vec<f64> = (1..=10).map(|i| f64::from(i) / 10.0).collect();
    let levels = levels(0.05, Spending::Power(2.0), &even(&shares));
    let mut rng = fastrand::Rng::with_seed(7);
    // Sums of twelve uniform values are near enough to normal ones here.
    let mut normal = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    let mut stopped = 0;
    for _ in 0..4_000 {
        let mut sum = 0.0;
        stopped += u32::from(levels.iter().zip(1..).any(|(level, n)| {
            sum += normal();
            t_p(sum / f64::from(n).sqrt(), 1e12) <= *level
        }));
    }
    assert!((150..=250).contains(&stopped), "{stopped} of 4,000");
}

#[test]
fn the_number_of_pairs_that_are_needed_is_the_least_that_suffices() {
    let sleep = Estimate::of(&SLEEP).expect("ten values");
    let needed = sleep.needed(0.5, 0.01).expect("a number");
    let deviation = sleep.error * 10.0_f64.sqrt();
    let half = |n: usize| t_critical(0.01, n as f64 - 1.0) * deviation / (n as f64).sqrt();
    assert!(half(needed) <= 0.5 && half(needed - 1) > 0.5, "{needed}");
    assert_eq!(sleep.needed(0.0, 0.01), None);
    assert_eq!(Estimate::of(&[1.0]), None);
    assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
}

#[test]
fn equivalence_is_an_interval_within_the_margin() {
    let margin = (-0.01, 0.01);
    assert!(is_equivalent((-0.009, 0.002), margin));
    assert!(!is_equivalent((-0.011, 0.002), margin));
    assert!(!is_equivalent((0.0, 0.01), margin));
}

/// Lines of a name, and numbers behind it.
fn rows(text: &str, names: usize) -> Vec<(Vec<&str>, Vec<f64>)> {
    let row = |line: &'static str| {
        let words: Vec<&str> = line.split(',').collect();
        let numbers = words[names..].iter().map(|word| word.parse().expect("a number")).collect();
        (words[..names].to_vec(), numbers)
    };
    // Both are constants of the program.
    text.to_string().leak().lines().map(row).collect()
}

#[test]
fn all_of_it_is_that_of_scipy_on_stored_data() {
    let pairs = rows(include_str!("../../fixtures/statistics/pairs.csv"), 1);
    let values = |name: &str| &pairs.iter().find(|(names, _)| names[0] == name).expect("a row").1;
    let p: Vec<f64> = pairs.iter().map(|(_, v)| Estimate::of(v).expect("values").p(0.0)).collect();
    let looks = [(5.0, 0.1), (8.0, 0.3), (12.0, 1.0)].map(|(n, share)| Look { n, share });
    let levels = levels(0.01, Spending::Power(2.0), &looks);
    let expected = rows(include_str!("../../fixtures/statistics/scipy.csv"), 2);
    assert_eq!(expected.len(), 51);
    for (names, theirs) in expected {
        let (name, quantity) = (names[0], names[1]);
        let estimate = || Estimate::of(values(name)).expect("values");
        let difference = || {
            let (one, other) = name.split_once(':').expect("two names");
            Estimate::of_difference(values(one), values(other)).expect("values")
        };
        let ours = match quantity {
            "mean" => vec![estimate().mean],
            "p" => vec![estimate().p(0.0)],
            "low" => vec![estimate().interval(0.01).0],
            "high" => vec![estimate().interval(0.01).1],
            "permutation_p" => vec![permutation_p(values(name), 0.0, 1)],
            "trimmed_mean" => vec![Estimate::of_trimmed(values(name)).expect("values").mean],
            "trimmed_error" => vec![Estimate::of_trimmed(values(name)).expect("values").error],
            "trimmed_p" => vec![Estimate::of_trimmed(values(name)).expect("values").p(0.0)],
            "welch_p" => vec![difference().p(0.0)],
            "welch_freedom" => vec![difference().freedom],
            "holm" => holm(&p),
            "bh" => benjamini_hochberg(&p),
            "level" => vec![levels[name[4..].parse::<usize>().expect("a number") - 1]],
            other => panic!("{other} is not computed here"),
        };
        assert_eq!(ours.len(), theirs.len(), "{names:?}");
        // SciPy integrates over several dimensions by chance, to some five digits.
        let within = if quantity == "level" { 1e-3 } else { 1e-8 };
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours / theirs - 1.0).abs() < within, "{names:?}: {ours} is not {theirs}");
        }
    }
}
