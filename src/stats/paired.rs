//! One number for each pair of processes, and what is known of their mean:
//! Student's t, and the same from nothing but the signs of the differences.
//!
//! Neighbours: `sequential` says at which level to look, `compare` takes the
//! logarithms of ratios of medians from here.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::quantile::{mean, sorted};

/// What a number of pairs say of their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    /// Number of pairs (of the smaller side, where there are no pairs).
    pub n: usize,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl Estimate {
    /// The estimate of at least two values, all of them finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n < 2 || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let mean = mean(values);
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let freedom = n as f64 - 1.0;
        Some(Self { mean, error: (squares / freedom / n as f64).sqrt(), n, freedom })
    }

    /// The estimate of a trimmed mean: the fifth of the values at either end
    /// says only that it is there. Pairs that a burst of other work hit would
    /// otherwise decide how wide the interval is.
    ///
    /// Tukey and McLaughlin, "Less Vulnerable Confidence and Significance
    /// Procedures for Location" (Sankhya, 1963), whose t is too bold for few
    /// values (1.2 to 1.9 times its level); with the error a little larger and
    /// the freedom a little less it keeps to levels of 1, 0.1 and 0.01 % for
    /// normal values from five on (simulated), and is shy for longer tails.
    pub fn of_trimmed(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n < 5 || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let (sorted, cut) = (sorted(values), n / 5);
        let kept = &sorted[cut..n - cut];
        let h = kept.len() as f64;
        // Those that are cut off count as the nearest that is kept.
        let ends = [kept[0], kept[kept.len() - 1]].map(|end| std::iter::repeat_n(end, cut));
        let winsorized: Vec<f64> = kept.iter().copied().chain(ends.into_iter().flatten()).collect();
        let middle = mean(&winsorized);
        let squares: f64 = winsorized.iter().map(|v| (v - middle).powi(2)).sum();
        let error = (squares * (1.0 + 1.2 / h) / (h * (h - 1.0))).sqrt();
        Some(Self { mean: mean(kept), error, n, freedom: h - 1.5 })
    }

    /// The difference of two means, of values that have nothing to do with
    /// each other, `after` less `before` (Welch, Biometrika, 1947).
    pub fn of_difference(before: &[f64], after: &[f64]) -> Option<Self> {
        let (a, b) = (Self::of(before)?, Self::of(after)?);
        let squares = [a.error.powi(2), b.error.powi(2)];
        let parts = squares[0].powi(2) / a.freedom + squares[1].powi(2) / b.freedom;
        let all = squares[0] + squares[1];
        let freedom = if parts > 0.0 { all.powi(2) / parts } else { a.freedom + b.freedom };
        Some(Self { mean: b.mean - a.mean, error: all.sqrt(), n: a.n.min(b.n), freedom })
    }

    /// Two-sided p value of "the mean is `center`" (Student, "The Probable
    /// Error of a Mean", Biometrika, 1908).
    pub fn p(&self, center: f64) -> f64 {
        let away = (self.mean - center).abs();
        if away == 0.0 {
            return 1.0;
        }
        t_p(away / self.error, self.freedom)
    }

    /// The interval of the mean that leaves out `level` of chance, both sides together.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let half = if self.error == 0.0 { 0.0 } else { t_critical(level, self.freedom) * self.error };
        (self.mean - half, self.mean + half)
    }

    /// How many such values would bring half the width of the interval at
    /// `level` down to `half`; `None` beyond a million.
    pub fn needed(&self, half: f64, level: f64) -> Option<usize> {
        let deviation = self.error * (self.n as f64).sqrt();
        let enough = |n: usize| t_critical(level, n as f64 - 1.0) * deviation / (n as f64).sqrt() <= half;
        let (mut low, mut high) = (1, 2);
        while !enough(high) {
            if half <= 0.0 || high > 1_000_000 {
                return None;
            }
            (low, high) = (high, high * 2);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// Two-sided p value of a t statistic.
pub fn t_p(t: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(students) if t.is_finite() => 2.0 * students.sf(t.abs()),
        _ => 0.0,
    }
}

/// The t statistic beyond which, both sides together, `level` of chance lies.
/// By halving, since it must hold far out in the tails as well.
pub fn t_critical(level: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t_p(high, freedom) > level && high < 1e300 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if t_p(middle, freedom) > level { low = middle } else { high = middle }
    }
    high
}

/// Up to this many pairs all signs are tried (2^16), above it as many random ones.
const EXACT_SIGNS_UP_TO: usize = 16;

/// Two-sided p value of "the values lie symmetrically around `center`": the
/// share of all ways to give their differences signs whose mean is at least
/// as far away as the one seen (Fisher, "The Design of Experiments", 1935,
/// section 21). `seed` draws the signs where there are too many to try all.
pub fn permutation_p(values: &[f64], center: f64, seed: u64) -> f64 {
    let differences: Vec<f64> = values.iter().map(|v| v - center).collect();
    // Equal sums in another order of adding must count as equal.
    let size: f64 = differences.iter().map(|d| d.abs()).sum();
    let seen = differences.iter().sum::<f64>().abs() - 1e-12 * size;
    let far = |sign: &mut dyn FnMut() -> bool| {
        let sum: f64 = differences.iter().map(|d| if sign() { *d } else { -d }).sum();
        u32::from(sum.abs() >= seen)
    };
    let all = 1_u32 << differences.len().min(EXACT_SIGNS_UP_TO);
    if differences.len() <= EXACT_SIGNS_UP_TO {
        let signs = |bits: u32| (0..).map(move |i| bits >> i & 1 == 1);
        let extreme: u32 = (0..all)
            .map(|bits| {
                let mut signs = signs(bits);
                far(&mut || signs.next().unwrap_or_default())
            })
            .sum();
        return f64::from(extreme) / f64::from(all);
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let extreme: u32 = (1..all).map(|_| far(&mut || rng.bool())).sum();
    // The one seen is one of them (Phipson and Smyth, 2010): never 0.
    f64::from(extreme + 1) / f64::from(all)
}

/// The centers that [`permutation_p`] does not refuse at `level`: an interval
/// of the mean that knows of no distribution but symmetry. Unbounded where
/// there are too few values for the level (fewer than eight at 1 %).
pub fn permutation_interval(values: &[f64], level: f64, seed: u64) -> Option<(f64, f64)> {
    let estimate = Estimate::of(values)?;
    let n = values.len();
    if n < EXACT_SIGNS_UP_TO && 2.0 / f64::from(1_u32 << n) > level {
        return Some((f64::NEG_INFINITY, f64::INFINITY));
    }
    let span = values.iter().map(|v| (v - estimate.mean).abs()).fold(0.0, f64::max);
    let end = |direction: f64| {
        let (mut inside, mut outside) = (estimate.mean, estimate.mean + direction * 2.0 * span);
        for _ in 0..30 {
            let middle = 0.5 * (inside + outside);
            if permutation_p(values, middle, seed) > level { inside = middle } else { outside = middle }
        }
        outside
    };
    Some((end(-1.0), end(1.0)))
}

/// Whether an interval lies within `margin` on both sides of nothing: two
/// one-sided tests at once (Schuirmann, 1987), at half the interval's level each.
pub fn is_equivalent((low, high): (f64, f64), (from, to): (f64, f64)) -> bool {
    low > from && high < to
}
