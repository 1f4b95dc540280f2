//! From records of two sides to verdicts: slower, faster, same, not known.
//! Pure: it sees records and a rule, no files and no meter.
//!
//! ```text
//! records of both sides -> pairs -> comparable? -> exact | times -> lines -> settle (many tests) -> verdicts
//! ```

mod alike;
mod comparable;
mod exact;
mod functions;
mod limits;
mod line;
mod pairs;
mod parts;
mod rule;
mod settle;
mod sight;
#[cfg(test)]
mod tests;
mod times;
mod turns;
mod usual;

pub use alike::Conditions;
pub use comparable::{Kinship, differences};
pub use functions::moved;
pub use limits::{Limit, Limits};
pub use line::{Line, Size, Verdict};
pub use pairs::{Sides, sides};
pub use parts::{Flaws, Parts};
pub use rule::{Many, Rule};
pub use settle::{Comparison, compare, judge_alone};
pub use sight::{SEEN, Sight};
pub use turns::{BASELINE_SUFFIX, Turns, is_settled, next_look};
pub use usual::{Learnt, Usual};
