//! Looking more than once at data that grow, with the error of all looks
//! together known: group sequential tests with alpha spending.
//!
//! The error that has been spent when a share `t` of the most information has
//! been seen is a function of `t` (Lan and DeMets, "Discrete Sequential
//! Boundaries for Clinical Trials", Biometrika, 1983). Each look spends what
//! the function allows since the look before, and the bound of its statistic
//! follows by integrating over all ways in which no look before has stopped
//! (Armitage, McPherson and Rowe, 1969). Bounds are two-sided and symmetric.
//! They are given as levels, so that a t test can use them (Jennison and
//! Turnbull, "Group Sequential Methods", 2000, section 3.8).
//!
//! Neighbours: `paired` is what is looked at.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// How the error is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spending {
    /// Like the bounds of O'Brien and Fleming: next to nothing early.
    ObrienFleming,
    /// Like the bounds of Pocock: nearly evenly.
    Pocock,
    /// `t` to this power (Kim and DeMets, 1987).
    Power(f64),
}

impl Spending {
    /// The part of `alpha` (two-sided) that may be spent when the share `t`
    /// of the information has been seen.
    pub fn spent(self, alpha: f64, t: f64) -> f64 {
        let t = t.clamp(0.0, 1.0);
        match self {
            // Two one-sided tests of half the error each.
            Self::ObrienFleming if t > 0.0 => 4.0 * upper_tail(quantile(alpha / 4.0) / t.sqrt()),
            Self::ObrienFleming => 0.0,
            Self::Pocock => alpha * (1.0 + (std::f64::consts::E - 1.0) * t).ln(),
            Self::Power(power) => alpha * t.powf(power),
        }
    }
}

/// One look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// How much there is to be seen: the number of values, for example.
    pub n: f64,
    /// The share of the way from nothing to the last look, 0 to 1: how much of
    /// the error may have been spent. 1 for the last look, also when that comes
    /// earlier or later than was planned.
    pub share: f64,
}

/// The levels (two-sided p values) below which each look stops. Both `n` and
/// `share` rise from look to look.
pub fn levels(alpha: f64, spending: Spending, looks: &[Look]) -> Vec<f64> {
    let whole = looks.last().map_or(1.0, |look| look.n);
    let mut walk = Walk::new();
    let mut before = (0.0, 0.0);
    let mut levels = Vec::with_capacity(looks.len());
    for look in looks {
        let (n, spent) = (look.n / whole, spending.spent(alpha, look.share));
        let step = (n - before.0).max(f64::EPSILON);
        let bound = walk.bound(step, (spent - before.1).max(0.0));
        walk.go_on(step, bound);
        levels.push(2.0 * upper_tail(bound / n.sqrt()));
        before = (n, spent);
    }
    levels
}

/// The p value of a sequential test: the least error with which one of the
/// looks would have stopped, from the two-sided p value seen at each. It holds
/// whenever one stops looking.
pub fn sequential_p(spending: Spending, looks: &[Look], seen: &[f64]) -> f64 {
    let stops = |alpha: f64| {
        let levels = levels(alpha, spending, looks);
        seen.iter().zip(levels).any(|(p, level)| *p <= level)
    };
    // In steps of the exponent: what matters ranges over many powers of ten.
    let (mut low, mut high) = (-18.0, 0.0);
    if !stops(1.0) {
        return 1.0;
    }
    for _ in 0..24 {
        let middle = 0.5 * (low + high);
        if stops(10_f64.powf(middle)) { high = middle } else { low = middle }
    }
    10_f64.powf(high)
}

/// Points of the grid on which the density is kept; odd, for Simpson's rule.
const POINTS: usize = 161;

/// Bounds beyond this many standard deviations are never reached.
const NEVER: f64 = 40.0;

/// A sum that grows by independent normal steps, as long as no bound has stopped it.
struct Walk {
    /// Where it may be, with density and weight of the integral; the start is a point.
    density: Vec<(f64, f64)>,
}

impl Walk {
    fn new() -> Self {
        Self { density: vec![(0.0, 1.0)] }
    }

    /// The bound which a step of variance `step` crosses with probability `spend`.
    fn bound(&self, step: f64, spend: f64) -> f64 {
        let deviation = step.sqrt();
        let crosses = |bound: f64| -> f64 {
            let beyond = |x: f64| upper_tail((bound - x) / deviation) + upper_tail((bound + x) / deviation);
            self.density.iter().map(|(x, mass)| mass * beyond(*x)).sum()
        };
        let (mut low, mut high) = (0.0, NEVER);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if crosses(middle) > spend { low = middle } else { high = middle }
        }
        high
    }

    /// Takes a step, and drops what is beyond `bound`.
    fn go_on(&mut self, step: f64, bound: f64) {
        let deviation = step.sqrt();
        // Beyond eight deviations there is nothing worth points.
        let reach = self.density.iter().map(|(x, _)| x.abs()).fold(0.0, f64::max) + 8.0 * deviation;
        let end = bound.min(reach);
        let width = 2.0 * end / (POINTS - 1) as f64;
        let normal = standard();
        let point = |i: usize| {
            let y = -end + i as f64 * width;
            let density: f64 =
                self.density.iter().map(|(x, mass)| mass * normal.pdf((y - x) / deviation) / deviation).sum();
            let simpson = if i == 0 || i == POINTS - 1 { 1.0 } else { [2.0, 4.0][i % 2] };
            (y, density * simpson * width / 3.0)
        };
        self.density = (0..POINTS).map(point).collect();
    }
}

fn standard() -> Normal {
    Normal::standard()
}

/// The probability of a standard normal value above `z`.
fn upper_tail(z: f64) -> f64 {
    standard().sf(z)
}

/// The value above which a standard normal one lies with probability `p`.
fn quantile(p: f64) -> f64 {
    -standard().inverse_cdf(p)
}
