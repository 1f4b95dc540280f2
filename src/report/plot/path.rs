//! The text of SVG paths (SVG 1.1, chapter 8.3) with whole, relative numbers,
//! which is what keeps a page of many plots small.
//!
//! Neighbours: `kinds` gives it points in the drawing area.

use std::fmt::Write as _;

/// A point of the drawing area, `y` from below.
pub type Point = (i32, i32);

/// A line through all points.
pub fn line(points: &[Point]) -> String {
    let mut text = String::new();
    let mut at: Option<Point> = None;
    for point in points {
        step(&mut text, &mut at, *point, 'l');
    }
    text
}

/// A line through all points, and back along the ground.
pub fn area(points: &[Point], ground: i32) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let mut all = vec![(first.0, ground)];
    all.extend(points);
    all.push((last.0, ground));
    line(&all) + "z"
}

/// A dot at each point: a line of no length, whose round ends are drawn.
pub fn dots(points: &[Point]) -> String {
    let mut text = String::new();
    let mut at: Option<Point> = None;
    for point in points {
        step(&mut text, &mut at, *point, 'm');
        text.push_str("h0");
    }
    text
}

/// Lines from one point to the other.
pub fn strokes(pairs: &[(Point, Point)]) -> String {
    let mut text = String::new();
    let mut at: Option<Point> = None;
    for (from, to) in pairs {
        step(&mut text, &mut at, *from, 'm');
        step(&mut text, &mut at, *to, 'l');
    }
    text
}

fn step(text: &mut String, at: &mut Option<Point>, to: Point, command: char) {
    match *at {
        None => {
            let _ = write!(text, "M{} {}", to.0, to.1);
        }
        Some(from) => {
            let (x, y) = (to.0 - from.0, to.1 - from.1);
            let space = if y < 0 { "" } else { " " };
            let _ = write!(text, "{command}{x}{space}{y}");
        }
    }
    *at = Some(to);
}
