//! What part of the numbers a plot shows, on which scale, and the labels
//! beside it.
//!
//! Neighbours: `kinds` asks for a view of its values, `draw` has the area.

use crate::stats::{quartiles, sorted};
use crate::units::{Unit, grouped};

/// How many interquartile ranges from the quartiles a plot shows: what is
/// further out would press all the rest into a line.
const REACH: f64 = 4.0;

/// From this factor between its ends on, a scale is logarithmic.
const WIDE: f64 = 30.0;

/// The part of an axis that is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Its lower end.
    pub from: f64,
    /// Its upper end.
    pub to: f64,
    /// Whether its steps are factors.
    pub log: bool,
}

/// The view of all sides together: from the least to the greatest value, but
/// no further than [`REACH`] interquartile ranges from the quartiles of any
/// side. Values that are all the same get room around them. `None` without values.
pub fn view(sides: &[&[f64]]) -> Option<View> {
    let mut ends: Option<(f64, f64)> = None;
    for values in sides.iter().filter(|values| !values.is_empty()) {
        let ascending = sorted(values);
        let (q1, q3) = quartiles(&ascending);
        // Most values may be the same: then a tenth of them is near.
        let reach = (REACH * (q3 - q1)).max(0.1 * q3.abs());
        let low = ascending[0].max(q1 - reach);
        let high = ascending[ascending.len() - 1].min(q3 + reach);
        let (from, to) = ends.unwrap_or((low, high));
        ends = Some((from.min(low), to.max(high)));
    }
    let (from, to) = ends.filter(|(from, to)| from.is_finite() && to.is_finite())?;
    Some(View::around(from, to))
}

impl View {
    /// A view with a little room on both sides.
    pub fn around(from: f64, to: f64) -> Self {
        if from > 0.0 && to / from > WIDE {
            return Self { from: from / 1.1, to: to * 1.1, log: true };
        }
        // A hundredth of the value where all are the same.
        let room = if to > from { 0.04 * (to - from) } else { (0.01 * to.abs()).max(1.0) };
        let low = from - room;
        Self { from: if from >= 0.0 { low.max(0.0) } else { low }, to: to + room, log: false }
    }

    /// A view that begins at nothing, for lengths.
    pub fn from_zero(to: f64) -> Self {
        Self { from: 0.0, to: if to > 0.0 { 1.02 * to } else { 1.0 }, log: false }
    }

    /// Where a value lies, 0 to 1; beyond the ends, at the end.
    pub fn place(&self, value: f64) -> f64 {
        self.unbound(value).clamp(0.0, 1.0)
    }

    fn unbound(&self, value: f64) -> f64 {
        if self.log {
            return (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln();
        }
        (value - self.from) / (self.to - self.from)
    }

    /// Whether it is shown where it is.
    pub fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// A value as the axis measures it: its logarithm on a scale of factors.
    pub fn measure(&self, value: f64) -> f64 {
        if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value }
    }

    /// The labels, about `most` of them, with the title of the axis for `what`.
    pub fn axis(&self, what: &str, unit: Unit, most: usize) -> Axis {
        if self.log {
            let labels = self.factors(most).into_iter().map(|v| (self.place(v), alone(v, unit))).collect();
            return Axis { title: format!("{what} (log scale)"), labels };
        }
        let (scale, symbol) = scale(self.to.abs().max(self.from.abs()), unit);
        let step = round_step((self.to - self.from) / scale / most.max(1) as f64);
        let title = match symbol {
            _ if symbol.is_empty() => what.to_string(),
            _ if symbol.ends_with(what) => symbol,
            _ => format!("{what}, {symbol}"),
        };
        Axis { title, labels: self.steps(step, scale) }
    }

    /// The labels of a number of things: there are none between whole numbers.
    pub fn places(&self, what: &str, most: usize) -> Axis {
        let step = round_step((self.to - self.from) / most.max(1) as f64).max(1.0);
        Axis { title: what.to_string(), labels: self.steps(step, 1.0) }
    }

    /// Labels at the multiples of `step` times `scale`.
    fn steps(&self, step: f64, scale: f64) -> Vec<(f64, String)> {
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let first = (self.from / scale / step).ceil() as i64;
        let last = (self.to / scale / step).floor() as i64;
        let label = |i: i64| {
            let value = i as f64 * step;
            (self.place(value * scale), with_commas(value, decimals))
        };
        // A step that is lost in rounding would give labels without end.
        (first..=last.min(first.saturating_add(50))).map(label).collect()
    }

    /// 1, 2 and 5 times powers of ten, thinned out to about `most`.
    fn factors(&self, most: usize) -> Vec<f64> {
        let decades = (self.from.log10().floor() as i32)..=(self.to.log10().ceil() as i32);
        let of = |digits: &'static [f64]| {
            let all = decades.clone().flat_map(move |d| digits.iter().map(move |n| n * 10f64.powi(d)));
            all.filter(|v| self.holds(*v)).collect::<Vec<_>>()
        };
        let all = [of(&[1.0, 2.0, 5.0]), of(&[1.0, 3.0]), of(&[1.0])];
        let fits = all.iter().position(|values| values.len() <= most).unwrap_or(2);
        let values = &all[fits];
        let every = values.len().div_ceil(most.max(1)).max(1);
        values.iter().copied().step_by(every).collect()
    }
}

/// The labels of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures, with the unit.
    pub title: String,
    /// Where each label stands, 0 to 1, and its text.
    pub labels: Vec<(f64, String)>,
}

/// What numbers up to `most` are divided by, and the unit they then have.
fn scale(most: f64, unit: Unit) -> (f64, String) {
    if unit == Unit::Nanoseconds {
        let (scale, symbol) = match most {
            v if v < 1e3 => (1.0, "ns"),
            v if v < 1e6 => (1e3, "µs"),
            v if v < 1e9 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        return (scale, symbol.to_string());
    }
    let (scale, prefix) = match most {
        v if v < 1e5 => (1.0, ""),
        v if v < 1e8 => (1e3, "thousand "),
        v if v < 1e11 => (1e6, "million "),
        _ => (1e9, "billion "),
    };
    let symbol = if unit == Unit::Ratio { "" } else { unit.symbol() };
    (scale, format!("{prefix}{symbol}").trim_end().to_string())
}

/// The next of 1, 2, 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    if !step.is_finite() || step <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|n| n * power >= step * 0.999_999);
    times.unwrap_or(10.0) * power
}

fn with_commas(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(w, f)| (w, f));
    let whole = whole.parse::<u64>().map_or_else(|_| whole.to_string(), grouped);
    let sign = if value < 0.0 { "−" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A round number with its own unit.
fn alone(value: f64, unit: Unit) -> String {
    if unit != Unit::Nanoseconds {
        let decimals = if value < 1.0 { (-value.log10().floor()) as usize } else { 0 };
        return with_commas(value, decimals.min(12));
    }
    let (scale, symbol) = scale(value * 1.000_001, unit);
    let value = value / scale;
    let decimals = if value < 0.999 { (-value.log10().floor()) as usize } else { 0 };
    format!("{} {symbol}", with_commas(value, decimals.min(12)))
}
