//! What is known of one scenario in one build: a record of each meter, and
//! stacks of calls.
//!
//! Neighbours: `parts` makes rows of it, `flame` draws the stacks; the
//! `explain` command finds it.

use std::collections::BTreeMap;

use crate::error::{Error, Kind, Result};
use crate::store::Record;

/// What is known of one scenario in one build.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What the build is called.
    pub label: String,
    /// Its wall time.
    pub time: Option<Record>,
    /// Its instructions, caches and functions.
    pub counts: Option<Record>,
    /// Its heap use.
    pub heap: Option<Record>,
    /// Stacks of calls, with those of each party apart; they belong to `counts`.
    pub stacks: Vec<(Option<String>, Stacks)>,
    /// What is not known, and why.
    pub gaps: Vec<String>,
    /// How many of the gaps are measurements that were tried and failed.
    pub failed: usize,
}

impl Evidence {
    /// All records.
    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        [&self.time, &self.counts, &self.heap].into_iter().flatten()
    }

    /// How many iterations the counts are of; at least 1.
    pub(super) fn iterations(&self) -> u64 {
        let stated = self.counts.as_ref().and_then(|record| record.facts.get("iterations"));
        stated.and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
    }

    /// Where the records come from, each once: run and commit.
    pub(super) fn sources(&self) -> Vec<String> {
        let mut all = Vec::new();
        for record in self.records() {
            let commit = record.identity.get("commit").map(|c| c.chars().take(12).collect::<String>());
            let dirty = record.identity.get("tree_dirty").is_some_and(|dirty| dirty == "yes");
            let commit = commit.unwrap_or_else(|| "unknown".into());
            let changed = if dirty { " and changes" } else { "" };
            all.push(format!("{}: run {}, commit {commit}{changed}", record.mode, record.run_id));
        }
        all
    }
}

/// Instructions of all iterations by stack of calls, the outermost frame first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stacks(BTreeMap<String, u64>);

impl Stacks {
    /// Reads the folded form: a line a stack, its frames with `;` between
    /// them, and its instructions behind the last space.
    ///
    /// # Errors
    /// A line has another form; the error has its number.
    pub fn parse(text: &str) -> Result<Self> {
        let mut stacks = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = || Error::new(Kind::Format, format!("line {} is no stack of calls", number + 1));
            let (stack, cost) = line.rsplit_once(' ').ok_or_else(wrong)?;
            let cost: u64 = cost.parse().map_err(|_| wrong())?;
            let sum: &mut u64 = stacks.entry(stack.to_string()).or_default();
            *sum = sum.saturating_add(cost);
        }
        Ok(Self(stacks))
    }

    /// Stacks and their instructions, in the order of their frames.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(stack, cost)| (stack.as_str(), *cost))
    }

    /// Instructions of each function and of all that it calls. In a recursion
    /// each instruction is counted once.
    pub fn functions_with_callees(&self) -> BTreeMap<&str, u64> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, cost) in self.each() {
            let mut frames: Vec<&str> = stack.split(';').collect();
            frames.sort_unstable();
            frames.dedup();
            for frame in frames {
                *sums.entry(frame).or_default() += cost;
            }
        }
        sums
    }
}
