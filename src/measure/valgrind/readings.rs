//! From the files of a run to numbers: what one party did in the region.
//!
//! Neighbours: `launch` leaves the files, `outcome` makes series of readings.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::dhat::{Amount, Heap};
use super::launch::Left;
use super::profile::Profile;
use super::protocol::{Method, Risen};
use super::settings::Settings;
use super::stacks;

/// Functions that are stored of each party; the rest is summed up.
const FUNCTIONS: usize = 200;
/// The event of system calls of the region, in what [`counts`] gives.
pub(super) const SYSTEM_CALLS: &str = "system calls";
/// The name under which the rest is summed up.
const OTHER: &str = "(other)";

/// What one party did in the region.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    /// Events and their counts, all iterations together.
    pub events: Vec<(String, u64)>,
    /// Instructions by function, all iterations together.
    pub functions: Vec<(String, u64)>,
    /// Heap use, in the mode for it.
    pub heap: Option<HeapUse>,
    /// Processor features that the party saw.
    pub features: Vec<String>,
    /// Address randomisation could be switched off.
    pub randomisation_off: bool,
    /// What one iteration gets done.
    pub bytes: Vec<u64>,
    /// What one iteration gets done.
    pub elements: Vec<u64>,
    /// What the body has stated.
    pub facts: BTreeMap<String, String>,
    /// What the gauges of the body rose by, all iterations together.
    pub gauges: Vec<Risen>,
}

/// Heap use of a party in the region.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HeapUse {
    /// Allocated in the region.
    pub total: Amount,
    /// The most that was held in the region beyond what was held when it began.
    pub peak: Amount,
    /// Held when the region began.
    pub start: Amount,
    /// Held at the end by what set-up and region made: connections that idle.
    pub held: Amount,
}

impl Reading {
    /// The count of an event; 0 where it was not counted.
    pub(super) fn count(&self, event: &str) -> u64 {
        self.events.iter().find(|(name, _)| name == event).map_or(0, |(_, n)| *n)
    }

    /// What a gauge rose by; 0 where this party has none of that name.
    pub(super) fn risen(&self, metric: &str) -> u64 {
        self.gauges.iter().find(|g| g.metric == metric).map_or(0, |g| g.total)
    }
}

/// Reads the counts of a party, without the `overhead` of marking the region;
/// keeps the region's profile at `keep`, and stacks of calls beside it.
///
/// # Errors
/// In words, with the file.
pub(super) fn counts(
    left: &Left,
    settings: &Settings,
    overhead: u64,
    keep: Option<(&Path, &str)>,
) -> Result<Reading, String> {
    let method = settings.method;
    let mut profile = match (method, left.done.snapshots.as_slice()) {
        (Method::Difference, [before, after]) => {
            let before = profile(&left.file(*before))?;
            profile(&left.file(*after))?.since(&before)?
        }
        (Method::Difference, other) => return Err(format!("{} snapshots where 2 are due", other.len())),
        (Method::Requests | Method::Toggle, _) => profile(&left.file(left.process.into()))?,
    };
    let stacks = settings.stacks.then(|| stacks::take(&mut profile));
    if let Some((path, command)) = keep {
        if let Some(stacks) = &stacks {
            write(&path.with_extension("folded"), &stacks.folded())?;
        }
        write(path, &profile.to_cachegrind("the region only, all iterations together", command))?;
    }
    let mut events: Vec<_> = profile.named_totals().map(|(name, n)| (name.to_string(), n)).collect();
    let mut functions = profile.functions();
    if let Some(calls) = stacks.as_ref().and_then(stacks::Stacks::system_calls) {
        events.push((SYSTEM_CALLS.to_string(), calls));
    }
    take_overhead(&mut events, &mut functions, overhead)?;
    Ok(Reading { events, functions: largest(functions), ..described(left) })
}

/// The instructions of marking the region belong to no body.
fn take_overhead(
    events: &mut [(String, u64)],
    functions: &mut Vec<(String, u64)>,
    overhead: u64,
) -> Result<(), String> {
    let total = events.iter_mut().find(|(name, _)| name == "Ir").ok_or("instructions were not counted")?;
    total.1 = total.1.checked_sub(overhead).ok_or_else(|| {
        format!("{} instructions were counted, fewer than marking the region takes ({overhead})", total.1)
    })?;
    let mut rest = overhead;
    for (_, n) in functions.iter_mut().filter(|(name, _)| name.contains("valgrind::child::")) {
        let taken = rest.min(*n);
        (*n, rest) = (*n - taken, rest - taken);
    }
    // What the compiler has put elsewhere comes off the largest.
    if let Some((_, n)) = functions.first_mut() {
        *n = n.saturating_sub(rest);
    }
    functions.retain(|(_, n)| *n > 0);
    functions.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    Ok(())
}

/// The largest functions, and the sum of the others: the total is kept.
fn largest(mut functions: Vec<(String, u64)>) -> Vec<(String, u64)> {
    if functions.len() > FUNCTIONS {
        let rest: u64 = functions.drain(FUNCTIONS..).map(|(_, n)| n).sum();
        functions.push((OTHER.to_string(), rest));
    }
    functions
}

/// Reads the heap use of a party that held `ballast` bytes in the region.
///
/// # Errors
/// In words, with the file.
pub(super) fn heap(left: &Left, ballast: u64, keep: Option<&Path>) -> Result<Reading, String> {
    let [start, before, after] = left.done.snapshots.as_slice() else {
        return Err(format!("{} snapshots where 3 are due", left.done.snapshots.len()));
    };
    let heap = |process: i64| {
        let path = left.file(process);
        Heap::parse(&read(&path)?).map_err(|reason| format!("{}: {reason}", path.display()))
    };
    let (start, before, after) = (heap(*start)?, heap(*before)?, heap(*after)?);
    if before.peak != before.held {
        return Err(format!(
            "the set-up held more than the {ballast} bytes that are kept apart to tell the region's peak from it"
        ));
    }
    if let Some(path) = keep {
        write(path, &read(&left.file(left.done.snapshots[2]))?)?;
    }
    let ballast = Amount { bytes: ballast, blocks: 1 };
    let used = HeapUse {
        total: after.total.without(before.total),
        peak: after.peak.without(before.held),
        start: before.held.without(ballast),
        held: after.held.without(ballast).without(start.held),
    };
    Ok(Reading { heap: Some(used), ..described(left) })
}

fn described(left: &Left) -> Reading {
    let done = left.done.clone();
    Reading {
        features: done.features,
        randomisation_off: done.randomisation_off,
        bytes: done.bytes,
        elements: done.elements,
        facts: done.facts,
        gauges: done.gauges,
        ..Reading::default()
    }
}

fn profile(path: &Path) -> Result<Profile, String> {
    Profile::parse(&read(path)?).map_err(|reason| format!("{}: {reason}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|e| format!("{}: {e}", path.display()))
}
