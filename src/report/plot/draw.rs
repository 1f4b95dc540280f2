//! A plot: what it is called, what it says in words, its axes and its layers.
//!
//! Neighbours: `kinds` makes them; the page's script puts them into SVG.

use super::axis::Axis;
use super::path::Point;

/// The width of the drawing area.
pub const WIDTH: i32 = 3200;
/// Its height.
pub const HEIGHT: i32 = 1400;

/// A plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// What is shown.
    pub title: String,
    /// The same in words, for those who do not see it.
    pub text: String,
    /// What the horizontal axis measures.
    pub x: String,
    /// Where its labels stand in the drawing area, and what they say.
    pub xs: Vec<(i32, String)>,
    /// What the vertical axis measures.
    pub y: String,
    /// Where its labels stand, from above.
    pub ys: Vec<(i32, String)>,
    /// What is drawn, the lowest first.
    pub layers: Vec<Layer>,
    /// What is not to be seen in it.
    pub note: String,
}

/// One path of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer(pub &'static str, pub String);

impl Plot {
    /// A plot with its axes; a side without an axis is `None`.
    pub fn new(title: &str, x: Option<Axis>, y: Option<Axis>) -> Self {
        let mut plot = Self { title: title.into(), ..Self::default() };
        if let Some(axis) = x {
            plot.xs = axis.labels.into_iter().map(|(at, text)| (across(at), text)).collect();
            plot.x = axis.title;
        }
        if let Some(axis) = y {
            plot.ys = axis.labels.into_iter().map(|(at, text)| (up(at), text)).collect();
            plot.y = axis.title;
        }
        plot
    }

    /// Adds a layer with something in it.
    pub fn layer(&mut self, class: &'static str, path: String) {
        if !path.is_empty() {
            self.layers.push(Layer(class, path));
        }
    }
}

/// Where a share of the width lies.
pub fn across(share: f64) -> i32 {
    (share * f64::from(WIDTH)).round() as i32
}

/// Where a share of the height lies, from above as SVG counts.
pub fn up(share: f64) -> i32 {
    HEIGHT - (share * f64::from(HEIGHT)).round() as i32
}

/// A point by its shares of the width and the height.
pub fn at(x: f64, y: f64) -> Point {
    (across(x), up(y))
}
