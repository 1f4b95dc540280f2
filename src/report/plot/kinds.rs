//! The plots of a report, one function each. What lies far out is counted in
//! the note, and marked at the edge, so that it cannot flatten the rest.
//!
//! Neighbours: `axis` chooses what is shown, `path` writes it.

use super::axis::{View, view};
use super::draw::{HEIGHT, Layer, Plot, WIDTH, across, at, up};
use super::path::{Point, area, dots, line, strokes};
use crate::report::format::{count, signed_percent, value};
use crate::samples::Histogram;
use crate::stats::{density, median, quantile, sorted};
use crate::units::{Unit, grouped};

/// The values of one side, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// How it is drawn: `before` or `after`.
    pub class: &'static str,
    /// The values of one iteration.
    pub values: &'a [f64],
}

/// The class of the marks at the edge for what lies beyond it.
const BEYOND: &str = "beyond";

fn view_of(sides: &[Side<'_>]) -> Option<View> {
    view(&sides.iter().map(|side| side.values).collect::<Vec<_>>())
}

/// How many values a plot does not show where they are.
fn beyond(sides: &[Side<'_>], shown: &View, unit: Unit) -> String {
    let of = |side: &Side<'_>| {
        let out: Vec<f64> = side.values.iter().copied().filter(|v| !shown.holds(*v)).collect();
        let least = out.iter().copied().fold(f64::INFINITY, f64::min);
        let most = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (!out.is_empty()).then(|| {
            let ends = if least == most || out.len() == 1 {
                value(most, unit, false)
            } else {
                format!("{} to {}", value(least, unit, false), value(most, unit, false))
            };
            let (n, all) = (grouped(out.len() as u64), grouped(side.values.len() as u64));
            format!("{n} of {all} samples {} lie beyond what is shown: {ends}", side.class)
        })
    };
    sides.iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

/// A side in words.
fn words(side: &Side<'_>, unit: Unit) -> String {
    let ascending = sorted(side.values);
    let at = |p| value(quantile(&ascending, p), unit, false);
    format!(
        "{}: {} samples, median {}, nine of ten between {} and {}",
        side.class,
        grouped(side.values.len() as u64),
        value(median(&ascending), unit, false),
        at(0.05),
        at(0.95)
    )
}

fn in_words(sides: &[Side<'_>], unit: Unit) -> String {
    sides.iter().map(|side| words(side, unit)).collect::<Vec<_>>().join("; ")
}

/// Samples in the order in which they were taken; `most` dots a side. Where
/// there are more samples, the least and the greatest of neighbours are drawn.
pub fn over_time(sides: &[Side<'_>], (what, unit): (&str, Unit), most: usize) -> Option<Plot> {
    let shown = view_of(sides)?;
    let longest = sides.iter().map(|side| side.values.len()).max().filter(|n| *n > 1)?;
    let order = View { from: 1.0, to: longest as f64, log: false };
    let axes = (order.places("sample, in the order taken", 5), shown.axis(what, unit, 5));
    let mut plot = Plot::new("Samples over time", Some(axes.0), Some(axes.1));
    let mut edge = Vec::new();
    for side in sides {
        let mut inside = Vec::new();
        for (i, v) in thinned(side.values, most) {
            let point = at(order.place(i as f64 + 1.0), shown.place(v));
            if shown.holds(v) { inside.push(point) } else { edge.push(point) }
        }
        plot.layer(dots_of(side.class), dots(&inside));
    }
    plot.layer(BEYOND, dots(&edge));
    plot.text = in_words(sides, unit);
    plot.note = beyond(sides, &shown, unit);
    if longest > most {
        let each = count(2.0 * longest as f64 / most as f64);
        let dots = format!("each pair of dots is the least and the greatest of about {each} samples");
        plot.note = [plot.note, dots].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join("; ");
    }
    Some(plot)
}

/// At most about `most` values with their places: all, or the least and the
/// greatest of as many groups of neighbours as that takes.
fn thinned(values: &[f64], most: usize) -> Vec<(usize, f64)> {
    if values.len() <= most {
        return values.iter().copied().enumerate().collect();
    }
    let size = values.len().div_ceil((most / 2).max(1));
    let mut kept = Vec::new();
    for (group, part) in values.chunks(size).enumerate() {
        let indexed = || part.iter().copied().enumerate().map(|(i, v)| (group * size + i, v));
        let least = indexed().min_by(|a, b| a.1.total_cmp(&b.1));
        let most = indexed().max_by(|a, b| a.1.total_cmp(&b.1));
        kept.extend(least);
        kept.extend(most);
    }
    kept
}

/// The curves of both sides, as shares of the higher peak.
fn curves(sides: &[Side<'_>], shown: &View, points: usize) -> Vec<(&'static str, Vec<Point>)> {
    let ends = (shown.measure(shown.from), shown.measure(shown.to));
    let of = |side: &Side<'_>| {
        let measured: Vec<f64> = side.values.iter().map(|v| shown.measure(*v)).collect();
        Some((side.class, density(&sorted(&measured), ends, points)?))
    };
    let all: Vec<(&'static str, Vec<f64>)> = sides.iter().filter_map(of).collect();
    let peak = all.iter().flat_map(|(_, curve)| curve).copied().fold(0.0, f64::max);
    let place = |curve: &[f64]| -> Vec<Point> {
        let last = (curve.len() - 1) as f64;
        curve.iter().enumerate().map(|(i, v)| at(i as f64 / last, 0.96 * v / peak)).collect()
    };
    all.iter().filter(|_| peak > 0.0).map(|(class, curve)| (*class, place(curve))).collect()
}

/// How densely the samples of both sides lie. `None` where they do not spread.
pub fn densities(sides: &[Side<'_>], (what, unit): (&str, Unit), points: usize) -> Option<Plot> {
    let shown = view_of(sides)?;
    let curves = curves(sides, &shown, points);
    let mut plot = Plot::new("Density", Some(shown.axis(what, unit, 4)), None);
    for (class, curve) in curves.iter().filter(|_| !curves.is_empty()) {
        plot.layer(fill_of(class), area(curve, HEIGHT));
    }
    for side in sides {
        let middle = across(shown.place(median(&sorted(side.values))));
        plot.layer(median_of(side.class), strokes(&[((middle, HEIGHT), (middle, 0))]));
    }
    plot.y = "density".into();
    plot.text = in_words(sides, unit);
    plot.note = beyond(sides, &shown, unit);
    (!curves.is_empty()).then_some(plot)
}

fn fill_of(class: &str) -> &'static str {
    if class == "before" { "before fill" } else { "after fill" }
}

fn dots_of(class: &str) -> &'static str {
    if class == "before" { "before dots" } else { "after dots" }
}

fn median_of(class: &str) -> &'static str {
    if class == "before" { "before middle" } else { "after middle" }
}

/// The share of samples that are no greater than a value.
pub fn cumulative(sides: &[Side<'_>], (what, unit): (&str, Unit), points: usize) -> Option<Plot> {
    let shown = view_of(sides)?;
    if !sides.iter().any(|side| side.values.len() > 1) {
        return None;
    }
    let share = View { from: 0.0, to: 1.0, log: false };
    let mut share_axis = share.axis("share of samples", Unit::Ratio, 4);
    share_axis.labels = [0.0, 0.25, 0.5, 0.75, 1.0].map(|p| (p, format!("{:.0} %", 100.0 * p))).into();
    let mut plot = Plot::new("Cumulative share (ECDF)", Some(shown.axis(what, unit, 4)), Some(share_axis));
    for side in sides {
        plot.layer(side.class, line(&steps(&sorted(side.values), &shown, points)));
    }
    plot.text = in_words(sides, unit);
    plot.note = beyond(sides, &shown, unit);
    Some(plot)
}

/// The steps of a cumulative share: of all values, or of about `most` of them.
fn steps(ascending: &[f64], shown: &View, most: usize) -> Vec<Point> {
    let n = ascending.len();
    let every = n.div_ceil(most.max(1)).max(1);
    let mut points: Vec<Point> = vec![at(0.0, 0.0)];
    for i in (every - 1..n).step_by(every).chain((!n.is_multiple_of(every)).then_some(n - 1)) {
        if ascending[i] > shown.to {
            break;
        }
        let (x, below) = (across(shown.place(ascending[i])), points.last().map_or(HEIGHT, |p| p.1));
        points.push((x, below));
        points.push((x, up((i + 1) as f64 / n as f64)));
    }
    let last = points.last().map_or(HEIGHT, |point| point.1);
    points.push((WIDTH, last));
    points
}

/// What is known of a change.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// The change as a share.
    pub change: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// Changes up to this are none.
    pub margin: f64,
}

/// The changes of metrics with their intervals, one below the other.
pub fn interval(rows: &[(String, Interval)]) -> Option<Plot> {
    let ends = rows.iter().flat_map(|(_, row)| [row.interval.0, row.interval.1, row.margin, -row.margin]);
    let ends: Vec<f64> = ends.filter(|end| end.is_finite()).collect();
    let from = ends.iter().copied().fold(0.0, f64::min);
    let to = ends.iter().copied().fold(0.0, f64::max);
    let margin = rows.first()?.1.margin;
    // A ratio has no upper end: beyond a hundredfold there is nothing to read.
    let shown = View::around(100.0 * from, 100.0 * to.min(100.0));
    let mut axis = shown.axis("change", Unit::Ratio, 5);
    axis.title = "change, %".into();
    let mut plot = Plot::new("Change with its interval", Some(axis), None);
    let x = |share: f64| across(shown.place(100.0 * share));
    let band = [(x(-margin), 0), (x(margin), 0), (x(margin), HEIGHT), (x(-margin), HEIGHT)];
    plot.layer("band", line(&band) + "z");
    plot.layer("zero", strokes(&[((x(0.0), 0), (x(0.0), HEIGHT))]));
    let mut texts = Vec::new();
    for (i, (name, row)) in rows.iter().enumerate() {
        let y = HEIGHT * (2 * i as i32 + 1) / (2 * rows.len() as i32);
        let (low, high) = (x(row.interval.0), x(row.interval.1));
        let ends = [((low, y), (high, y)), ((low, y - 90), (low, y + 90)), ((high, y - 90), (high, y + 90))];
        plot.layer("after", strokes(&ends));
        plot.layer("after point", dots(&[(x(row.change), y)]));
        plot.ys.push((y, name.clone()));
        texts.push(format!(
            "{name}: {}, interval {} to {}",
            signed_percent(row.change),
            signed_percent(row.interval.0),
            signed_percent(row.interval.1)
        ));
    }
    plot.text = format!("{}; changes up to ±{} are none", texts.join("; "), percent(margin));
    plot.note = format!("shaded: changes up to ±{}, which are called none", percent(margin));
    Some(plot)
}

fn percent(share: f64) -> String {
    signed_percent(share).trim_start_matches('+').to_string()
}

/// A name, and its values by class.
pub type Bars = (String, Vec<(&'static str, f64)>);

/// Lengths side by side: what each party has of the whole.
pub fn bars(title: &str, rows: &[Bars], (what, unit): (&str, Unit)) -> Option<Plot> {
    let most = rows.iter().flat_map(|(_, values)| values).map(|(_, v)| *v).fold(0.0, f64::max);
    let shown = View::from_zero(most);
    let slots: i32 = rows.iter().map(|(_, values)| values.len() as i32 + 1).sum();
    if rows.is_empty() || most <= 0.0 {
        return None;
    }
    let mut plot = Plot::new(title, Some(shown.axis(what, unit, 4)), None);
    let mut texts = Vec::new();
    let mut slot = 0;
    for (name, values) in rows {
        let middle = 2 * slot + values.len() as i32 + 1;
        plot.ys.push((HEIGHT * middle / (2 * slots), name.clone()));
        for (class, v) in values {
            let (top, bottom) =
                (HEIGHT * (4 * slot + 3) / (4 * slots), HEIGHT * (4 * slot + 6) / (4 * slots));
            let end = across(shown.place(*v));
            let bar = [(0, top), (end, top), (end, bottom), (0, bottom)];
            plot.layer(fill_of(class), line(&bar) + "z");
            texts.push(format!("{name} {class}: {}", value(*v, unit, false)));
            slot += 1;
        }
        slot += 1;
    }
    plot.text = texts.join("; ");
    Some(plot)
}

/// The latency of operations by the share of them that took no longer. The
/// axis stretches the slowest, which is where latencies differ; values are on
/// a scale of factors.
pub fn latencies(sides: &[(&'static str, &Histogram)], points: usize) -> Option<Plot> {
    let sides: Vec<_> = sides.iter().filter(|(_, histogram)| histogram.count() > 0).collect();
    let (_, first) = sides.first()?;
    let most = sides.iter().map(|(_, h)| h.max).max()? as f64;
    let least = sides.iter().map(|(_, h)| h.min).min()?.max(1) as f64;
    let shown = View { from: least / 1.1, to: (most * 1.1).max(least), log: true };
    let nines = sides.iter().map(|(_, h)| (h.count() as f64).log10()).fold(1.0, f64::max).min(7.0);
    let mut plot = Plot::new("Latency of operations", None, Some(shown.axis("one operation", first.unit, 6)));
    plot.x = "share of operations that took no longer".into();
    let named = [(0.0, "0"), (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %")];
    let rare = [(0.9999, "99.99 %"), (0.99999, "99.999 %"), (0.999999, "99.9999 %")];
    let place = |p: f64| -(1.0 - p).log10() / nines;
    let labels = named.into_iter().chain(rare).map(|(p, text)| (place(p), text));
    plot.xs = labels.filter(|(x, _)| *x <= 1.0).map(|(x, text)| (across(x), text.to_string())).collect();
    let mut texts = Vec::new();
    for (class, histogram) in sides {
        let share = |i: usize| i as f64 / points as f64;
        let p = |i: usize| 1.0 - 10f64.powf(-nines * share(i));
        let y = |v: u64| shown.place(v as f64);
        let curve: Vec<Point> = (0..=points).map(|i| at(share(i), y(histogram.quantile(p(i))))).collect();
        plot.layer(class, line(&curve));
        let of = |p| value(histogram.quantile(p) as f64, histogram.unit, false);
        texts.push(format!(
            "{class}: {} operations, half within {}, 99 % within {}, all within {}",
            grouped(histogram.count()),
            of(0.5),
            of(0.99),
            of(1.0)
        ));
    }
    plot.text = texts.join("; ");
    Some(plot)
}

/// The main line of a metric, run by run, with the places where its level changed.
pub fn history(values: &[f64], changes: &[usize], (what, unit): (&str, Unit)) -> Option<Plot> {
    if values.len() < 2 {
        return None;
    }
    let shown = view(&[values])?;
    let order = View { from: 1.0, to: values.len() as f64, log: false };
    let axes = (order.places("run of the main line", 5), shown.axis(what, unit, 5));
    let mut plot = Plot::new("History", Some(axes.0), Some(axes.1));
    let x = |i: f64| order.place(i + 1.0);
    let points: Vec<Point> =
        values.iter().enumerate().map(|(i, v)| at(x(i as f64), shown.place(*v))).collect();
    let lines: Vec<(Point, Point)> =
        changes.iter().map(|i| across(x(*i as f64 - 0.5))).map(|x| ((x, 0), (x, HEIGHT))).collect();
    plot.layer("change", strokes(&lines));
    plot.layer("after", line(&points));
    plot.layer(dots_of("after"), dots(&points));
    let ends = (values[0], values[values.len() - 1]);
    plot.text = format!(
        "{} runs, from {} to {}, {} of level",
        values.len(),
        value(ends.0, unit, false),
        value(ends.1, unit, false),
        if changes.len() == 1 { "1 change".to_string() } else { format!("{} changes", changes.len()) }
    );
    plot.note = beyond(&[Side { class: "after", values }], &shown, unit).replace("samples after", "runs");
    Some(plot)
}

/// The distribution of a row, for a drawing of a few pixels: curves where the
/// samples spread, else a stroke at each median.
pub fn small(sides: &[Side<'_>], points: usize) -> Vec<Layer> {
    let Some(shown) = view_of(sides) else { return Vec::new() };
    let curves = curves(sides, &shown, points);
    let spread = |class: &str| curves.iter().find(|(known, _)| *known == class);
    let of = |side: &Side<'_>| match spread(side.class) {
        Some((class, curve)) => Layer(fill_of(class), area(curve, HEIGHT)),
        None => {
            let x = across(shown.place(median(&sorted(side.values))));
            Layer(side.class, strokes(&[((x, HEIGHT), (x, HEIGHT / 5))]))
        }
    };
    sides.iter().filter(|side| !side.values.is_empty()).map(of).collect()
}
