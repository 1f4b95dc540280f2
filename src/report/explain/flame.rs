//! The flame graph of a region: its stacks of calls as one SVG, or two builds'
//! stacks with what moved in colour.
//!
//! Neighbours: `evidence` has the stacks; the drawing is the `inferno` crate's.

use super::evidence::Evidence;
use crate::error::{Error, Kind, Result};

/// Draws the stacks of `after`. With `before`, frames are as wide as after,
/// and red where they have grown, blue where they have shrunk.
///
/// # Errors
/// There are no stacks of one of the sides, they hold no instructions, or
/// this executable was built without flame graphs.
pub fn flame_graph(trial: &str, before: Option<&Evidence>, after: &Evidence) -> Result<Vec<u8>> {
    for side in before.into_iter().chain([after]) {
        if side.stacks.iter().all(|(_, stacks)| stacks.each().next().is_none()) {
            let why = side.gaps.iter().map(|gap| format!(": {gap}")).collect::<String>();
            return Err(Error::new(
                Kind::Missing,
                format!("there are no stacks of calls of {trial} in {}{why}", side.label),
            )
            .hint("cargo bench -- --mode cachegrind --stacks takes them, with Valgrind"));
        }
    }
    draw(trial, before.map(|side| side.label.as_str()), &lines(before, after), after.iterations())
}

/// Lines of the folded form, with one count or two. Where the sides have other
/// numbers of iterations, the first is scaled to the second.
fn lines(before: Option<&Evidence>, after: &Evidence) -> Vec<String> {
    let mut all: std::collections::BTreeMap<String, (u64, u64)> = std::collections::BTreeMap::new();
    for (stack, n) in rooted(after) {
        all.entry(stack).or_default().1 += n;
    }
    let Some(side) = before else {
        return all.into_iter().map(|(stack, (_, n))| format!("{stack} {n}")).collect();
    };
    let scale = after.iterations() as f64 / side.iterations() as f64;
    for (stack, n) in rooted(side) {
        all.entry(stack).or_default().0 += (n as f64 * scale).round() as u64;
    }
    all.into_iter().map(|(stack, (before, after))| format!("{stack} {before} {after}")).collect()
}

/// The stacks of all parties, each party's on a frame of its own.
fn rooted(side: &Evidence) -> impl Iterator<Item = (String, u64)> {
    side.stacks.iter().flat_map(|(party, stacks)| {
        let root = party.as_ref().map(|party| format!("{party};")).unwrap_or_default();
        stacks.each().map(move |(stack, n)| (format!("{root}{stack}"), n))
    })
}

#[cfg(feature = "flamegraph")]
fn draw(trial: &str, before: Option<&str>, lines: &[String], iterations: u64) -> Result<Vec<u8>> {
    use inferno::flamegraph::{Options, from_lines};
    let mut options = Options::default();
    options.title = trial.to_string();
    let moved = before.map(|label| {
        format!("; width: now; red: more than in {label}, blue: less (what is gone has no frame)")
    });
    options.subtitle = Some(format!(
        "instructions of the region, {iterations} iteration(s), by callgrind{}",
        moved.unwrap_or_default()
    ));
    options.count_name = "instructions".into();
    // One input, one picture.
    options.deterministic = true;
    let mut svg = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .map_err(|error| Error::new(Kind::Format, "the flame graph cannot be drawn").source(error))?;
    Ok(svg)
}

#[cfg(not(feature = "flamegraph"))]
fn draw(_: &str, _: Option<&str>, _: &[String], _: u64) -> Result<Vec<u8>> {
    can_draw().map(|()| Vec::new())
}

/// Whether this executable draws flame graphs: to be asked before anything is measured for one.
///
/// # Errors
/// It was built without.
pub fn can_draw() -> Result<()> {
    if cfg!(feature = "flamegraph") {
        return Ok(());
    }
    Err(Error::new(Kind::Missing, "this wallgrind was built without flame graphs").hint(
        "build it with --features flamegraph, or draw the .folded files of the run with another program",
    ))
}
