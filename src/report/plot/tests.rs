//! Plots from known values: what is shown, what is only counted, and where
//! labels stand.

use super::axis::{View, view};
use super::draw::{HEIGHT, WIDTH};
use super::*;
use crate::samples::Histogram;
use crate::units::{Direction, Unit};

const TIME: (&str, Unit) = ("wall time", Unit::Nanoseconds);

/// Around 1,000, a few per cent apart.
fn near(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1_000.0 + (i * 7_919 % 101) as f64).collect()
}

fn after(values: &[f64]) -> [Side<'_>; 1] {
    [Side { class: "after", values }]
}

/// The points of a path of relative steps, as a browser would reach them.
fn points(path: &str) -> Vec<(i32, i32)> {
    let mut all: Vec<(i32, i32)> = Vec::new();
    let spaced = path.replace("h0", "").replace('z', "").replace('-', " -").replace(['M', 'l', 'm'], " ");
    let numbers: Vec<i32> = spaced.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    for pair in numbers.chunks(2) {
        let (x, y) = all.last().copied().unwrap_or_default();
        all.push((x + pair[0], y + pair[1]));
    }
    all
}

fn layer<'a>(plot: &'a Plot, class: &str) -> &'a str {
    let found = plot.layers.iter().find(|layer| layer.0 == class);
    &found.unwrap_or_else(|| panic!("no layer {class} in {plot:?}")).1
}

#[test]
fn a_thousandfold_outlier_is_counted_and_flattens_nothing() {
    let mut values = near(50);
    values[20] = 1e6;
    let shown = view(&[&values]).expect("a view");
    assert!(shown.to < 1_600.0 && !shown.log, "{shown:?}");
    let plot = over_time(&after(&values), TIME, 400).expect("a plot");
    assert_eq!(plot.note, "1 of 50 samples after lie beyond what is shown: 1.000 ms");
    let heights: Vec<i32> = points(layer(&plot, "after dots")).into_iter().map(|p| p.1).collect();
    assert_eq!((heights.len(), points(layer(&plot, "beyond"))), (49, vec![(WIDTH * 20 / 49, 0)]));
    let spread = heights.iter().max().expect("some") - heights.iter().min().expect("some");
    assert!(spread > HEIGHT / 8, "the others are pressed into {spread}");
}

#[test]
fn sides_a_thousandfold_apart_are_on_a_scale_of_factors() {
    let (slow, fast) = (near(30).iter().map(|v| 1e3 * v).collect::<Vec<_>>(), near(30));
    let both = [Side { class: "before", values: &fast }, Side { class: "after", values: &slow }];
    let plot = cumulative(&both, TIME, 100).expect("a plot");
    assert!(plot.x.ends_with("(log scale)"), "{}", plot.x);
    let labels: Vec<&str> = plot.xs.iter().map(|(_, text)| text.as_str()).collect();
    assert!(labels.contains(&"10 µs") && labels.contains(&"100 µs"), "{labels:?}");
    let middle = points(layer(&plot, "before")).into_iter().find(|p| p.1 <= HEIGHT / 2).expect("the median");
    assert!(middle.0 < WIDTH / 20, "{middle:?}");
}

#[test]
fn labels_are_round_numbers_with_one_unit() {
    let axis = View { from: 103_000.0, to: 187_000.0, log: false }.axis("wall time", Unit::Nanoseconds, 5);
    assert_eq!(axis.title, "wall time, µs");
    let texts: Vec<&str> = axis.labels.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["120", "140", "160", "180"]);
    assert!((axis.labels[0].0 - 17.0 / 84.0).abs() < 1e-12);
    let axis =
        View { from: 2_092_000.0, to: 2_093_000.0, log: false }.axis("instructions", Unit::Instructions, 2);
    assert_eq!((axis.title.as_str(), axis.labels[1].1.as_str()), ("thousand instructions", "2,092.5"));
    let axis = View { from: 1.0, to: 3.0, log: false }.places("run", 9);
    assert_eq!(axis.labels.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["1", "2", "3"]);
}

#[test]
fn samples_that_are_too_many_keep_the_least_and_the_greatest() {
    let mut values = near(10_000);
    values[7_777] = 900.0;
    values[1_234] = 1_180.0;
    let plot = over_time(&after(&values), TIME, 100).expect("a plot");
    let dots = points(layer(&plot, "after dots"));
    assert!((90..=102).contains(&dots.len()), "{}", dots.len());
    let (low, high) =
        (dots.iter().max_by_key(|p| p.1).expect("one"), dots.iter().min_by_key(|p| p.1).expect("one"));
    let place = |i: f64| (f64::from(WIDTH) * i / 9_999.0).round() as i32;
    assert_eq!((low.0, high.0), (place(7_777.0), place(1_234.0)));
    assert!(plot.note.contains("about 200 samples"), "{}", plot.note);
}

#[test]
fn a_cumulative_share_steps_at_its_values() {
    let plot = cumulative(&after(&[10.0, 20.0, 20.0, 40.0]), TIME, 100).expect("a plot");
    let points = points(layer(&plot, "after"));
    let shown = view(&[&[10.0, 20.0, 20.0, 40.0]]).expect("a view");
    let at = |v: f64| (shown.place(v) * f64::from(WIDTH)).round() as i32;
    let reached = |x: i32| points.iter().filter(|p| p.0 == x).map(|p| p.1).min().expect("a step");
    assert_eq!([reached(at(10.0)), reached(at(20.0)), reached(at(40.0))], [HEIGHT * 3 / 4, HEIGHT / 4, 0]);
}

#[test]
fn an_interval_stands_where_its_numbers_are() {
    let row = Interval { change: 0.05, interval: (0.03, 0.07), margin: 0.01 };
    let plot = interval(&[("wall time".into(), row)]).expect("a plot");
    let place = |label: &str| plot.xs.iter().find(|(_, text)| text == label).expect("a label").0;
    let ends = points(layer(&plot, "after"));
    let (per_cent, zero) = ((place("6") - place("0")) as f64 / 6.0, f64::from(place("0")));
    assert!((f64::from(ends[0].0) - zero - 3.0 * per_cent).abs() < 3.0, "{plot:?}");
    assert!((f64::from(ends[1].0) - zero - 7.0 * per_cent).abs() < 3.0, "{plot:?}");
    assert_eq!(plot.text, "wall time: +5.00 %, interval +3.00 % to +7.00 %; changes up to ±1.00 % are none");
    let endless = Interval { change: 0.5, interval: (-1.0, f64::INFINITY), margin: 0.01 };
    let plot = interval(&[("wall time".into(), endless)]).expect("a plot");
    assert_eq!(points(layer(&plot, "after"))[1].0, WIDTH);
}

#[test]
fn latencies_stretch_the_slowest() {
    let histogram = Histogram {
        metric: "op_time".into(),
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        digits: 3,
        min: 1_000,
        max: 1_000_000,
        buckets: vec![(1_000, 990), (100_000, 9), (1_000_000, 1)],
    };
    let plot = latencies(&[("after", &histogram)], 300).expect("a plot");
    let labels: Vec<&str> = plot.xs.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(labels, ["0", "50 %", "90 %", "99 %", "99.9 %"]);
    let curve = points(layer(&plot, "after"));
    let low = curve[0].1;
    let rises = curve.iter().find(|p| p.1 < low).expect("it rises").0;
    // 99 % is two of three nines.
    assert!((rises - 2 * WIDTH / 3).abs() <= WIDTH / 150, "{rises}");
    assert!(
        plot.text
            .contains("1,000 operations, half within 1.000 µs, 99 % within 1.000 µs, all within 1.000 ms")
    );
}

#[test]
fn what_there_is_nothing_of_has_no_plot() {
    assert_eq!(over_time(&after(&[]), TIME, 10), None);
    assert_eq!(over_time(&after(&[1.0]), TIME, 10), None);
    assert_eq!(densities(&after(&[5.0; 8]), TIME, 10), None);
    assert_eq!(bars("x", &[], TIME), None);
    assert_eq!(bars("x", &[("a".into(), vec![("after", 0.0)])], TIME), None);
    assert_eq!(interval(&[]), None);
    assert_eq!(history(&[1.0], &[], TIME), None);
    assert_eq!(latencies(&[], 10), None);
    assert!(small(&[], 10).is_empty());
    // All the same: a stroke instead of a curve, and a view that has room.
    assert_eq!(small(&after(&[5.0; 8]), 10).len(), 1);
    assert!(over_time(&after(&[0.0; 8]), TIME, 10).is_some());
}

#[test]
fn a_history_marks_its_changes() {
    let values: Vec<f64> = (0..20).map(|i| if i < 12 { 100.0 } else { 120.0 }).collect();
    let plot = history(&values, &[12], TIME).expect("a plot");
    let line = points(layer(&plot, "change"));
    let expected = (WIDTH as f64 * 11.5 / 19.0).round() as i32;
    assert_eq!(line, [(expected, 0), (expected, HEIGHT)]);
    assert_eq!(plot.text, "20 runs, from 100.0 ns to 120.0 ns, 1 change of level");
}
