//! Numbers as people read them, always with their unit.
//!
//! Neighbours: `terminal` fills its cells with it; all of it is pure.

use crate::store::Rate;
use crate::units::{Throughput, Unit};

/// A time in the unit that leaves one to three digits before the point, with
/// half the width of its interval in the same unit: `412.3 ± 1.2 µs`.
pub(super) fn time(ns: f64, half: Option<f64>) -> String {
    let (scale, symbol) = match ns.abs() {
        v if v < 999.95 => (1.0, "ns"),
        v if v < 999.95e3 => (1e3, "µs"),
        v if v < 999.95e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let value = ns / scale;
    let digits = decimals(value);
    match half {
        Some(half) => {
            let half = half / scale;
            // An interval that rounds to nothing would look like certainty.
            let own =
                if half > 0.0 && half < 0.5 * 10f64.powi(-(digits as i32)) { digits + 1 } else { digits };
            format!("{value:.digits$} ± {half:.own$} {symbol}")
        }
        None => format!("{value:.digits$} {symbol}"),
    }
}

/// Decimals that make four significant digits.
fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v < 9.9995 => 3,
        v if v < 99.995 => 2,
        v if v < 999.95 => 1,
        _ => 0,
    }
}

/// A count with separators: `1,234,567`. A fraction (of a count for one
/// iteration) shows where it matters, below 100.
pub(super) fn count(value: f64) -> String {
    if value.abs() < 99.95 && (value - value.round()).abs() > 0.05 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < -0.5 { format!("-{text}") } else { text }
}

/// A count in four digits: `1.235 M`.
pub(super) fn short_count(value: f64) -> String {
    let (scale, symbol) = match value.abs() {
        v if v < 9_999.5 => return count(value),
        v if v < 999.95e3 => (1e3, "k"),
        v if v < 999.95e6 => (1e6, "M"),
        v if v < 999.95e9 => (1e9, "G"),
        _ => (1e12, "T"),
    };
    let value = value / scale;
    format!("{value:.0$} {symbol}", decimals(value))
}

/// A value of any unit; `short` where room is scarce.
pub(super) fn value(value: f64, unit: Unit, short: bool) -> String {
    match unit {
        Unit::Nanoseconds => time(value, None),
        Unit::Ratio => format!("{value:.3}"),
        _ if short => short_count(value),
        _ => count(value),
    }
}

/// A rate: `2.61 GiB/s`, `850.2 MiB/s`, `12.3 k/s`.
pub(super) fn rate(rate: &Rate) -> String {
    let per_second = rate.median;
    match rate.of {
        Throughput::Bytes(_) => {
            let (scale, symbol) = match per_second {
                v if v < 999.5 => (1.0, "B"),
                v if v < 999.5 * 1024.0 => (1024.0, "KiB"),
                v if v < 999.5 * 1024.0 * 1024.0 => (1024.0 * 1024.0, "MiB"),
                _ => (1024.0 * 1024.0 * 1024.0, "GiB"),
            };
            format!("{} {symbol}/s", three_digits(per_second / scale))
        }
        Throughput::Elements(_) => {
            let (scale, symbol) = match per_second {
                v if v < 999.5 => (1.0, ""),
                v if v < 999.5e3 => (1e3, " k"),
                v if v < 999.5e6 => (1e6, " M"),
                _ => (1e9, " G"),
            };
            format!("{}{symbol}/s", three_digits(per_second / scale))
        }
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A share of the whole: `45 %`.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p > 0.0 && p < 0.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// A change as a share, with its sign: `+4.9 %`, `-0.03 %`.
pub(super) fn signed_percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent.abs() {
        0.0 => "0 %".into(),
        v if v < 0.001 => format!("{percent:+.5} %"),
        v if v < 0.0995 => format!("{percent:+.3} %"),
        v if v < 9.995 => format!("{percent:+.2} %"),
        _ => format!("{percent:+.1} %"),
    }
}

/// A change of a count, with its sign.
pub(super) fn signed_count(change: f64) -> String {
    if change > 0.0 { format!("+{}", count(change)) } else { count(change) }
}

/// How often something happened: `1 outlier`, `3 outliers`.
pub(super) fn times(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n as f64), if n == 1 { "" } else { "s" })
}
