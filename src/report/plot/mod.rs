//! Plots as data: axes with their labels, and paths in the small whole numbers
//! of one drawing area. Pure; `html` puts them into SVG.

mod axis;
mod draw;
mod kinds;
mod path;
#[cfg(test)]
mod tests;

pub use draw::{HEIGHT, Layer, Plot, WIDTH};
pub use kinds::{
    Bars, Interval, Side, bars, cumulative, densities, history, interval, latencies, over_time, small,
};
