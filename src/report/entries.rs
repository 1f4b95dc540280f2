//! The trials of a run as the page and the comment of a pull request show
//! them: each with its other side, its verdict, and its history, the one that
//! wants looking at first.
//!
//! Neighbours: `model` makes the row of a record, `compare` the verdicts;
//! `html` and `markdown` give it a form.

use std::collections::BTreeMap;

use super::model::{Row, State, row};
use crate::compare::{Comparison, Line, Rule, Size, Verdict, sides};
use crate::store::{Point, Record};

/// Everything that a report is made of.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The run, in words.
    pub run: &'a str,
    /// Its records.
    pub records: &'a [Record],
    /// What it is compared with, if anything.
    pub against: Option<Against<'a>>,
    /// The main line: the points of each scenario and meter.
    pub history: &'a [Vec<Point>],
}

/// The other side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// The other side, in words.
    pub label: &'a str,
    /// Its records; none where both were measured in turn in one run.
    pub records: &'a [Record],
    /// The verdicts.
    pub comparison: &'a Comparison,
    /// The rule that they were given by.
    pub rule: &'a Rule,
}

/// What a trial is listed under, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It has no number, and should have.
    Failed,
    /// A metric got worse.
    Slower,
    /// A metric got better, and none worse.
    Faster,
    /// It cannot be told.
    NotKnown,
    /// There is no other side to compare with.
    NotCompared,
    /// It is the same.
    Same,
    /// It was measured; nothing was to be compared.
    Measured,
    /// It is only there before.
    Gone,
    /// This machine lacks something.
    Ignored,
}

impl Class {
    /// All of them, in their order.
    pub const ALL: [Self; 9] = [
        Self::Failed,
        Self::Slower,
        Self::Faster,
        Self::NotKnown,
        Self::NotCompared,
        Self::Same,
        Self::Measured,
        Self::Gone,
        Self::Ignored,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::NotKnown => "not known",
            Self::NotCompared => "not compared",
            Self::Same => "same",
            Self::Measured => "measured",
            Self::Gone => "gone",
            Self::Ignored => "ignored",
        }
    }

    /// A sign beside the word, so that colour is not all that tells it.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Failed => "✕",
            Self::Slower => "▲",
            Self::Faster => "▼",
            Self::NotKnown => "?",
            Self::NotCompared => "∅",
            Self::Same => "=",
            Self::Measured => "•",
            Self::Gone => "−",
            Self::Ignored => "○",
        }
    }
}

/// One trial of a run, or one that only the other side has.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The whole name of the scenario.
    pub scenario: &'a str,
    /// The bench target.
    pub suite: &'a str,
    /// The meter.
    pub mode: &'a str,
    /// The record of the run.
    pub after: Option<&'a Record>,
    /// The record of the other side.
    pub before: Option<&'a Record>,
    /// What a report shows of the run's record.
    pub row: Option<Row>,
    /// The lines of the comparison, the headline's first.
    pub lines: Vec<&'a Line>,
    /// Why nothing could be compared.
    pub why_not: Option<&'a str>,
    /// The main line of it.
    pub history: &'a [Point],
    /// What it is listed under.
    pub class: Class,
}

impl<'a> Entry<'a> {
    /// The line that decides what the trial is listed under: the first that
    /// got worse, else the headline's unless it is the same, else the first
    /// that got better.
    pub fn deciding(&self) -> Option<&'a Line> {
        let first = |wanted: Verdict| self.lines.iter().find(|line| line.verdict == wanted);
        let headline = self.lines.first();
        let moved = headline.filter(|line| line.verdict != Verdict::Same);
        first(Verdict::Slower).or(moved).or(first(Verdict::Faster)).or(headline).copied()
    }

    /// The word for what it is listed under: an amount is worse, not slower.
    pub fn word(&self) -> &'static str {
        match (self.class, self.deciding()) {
            (Class::Slower | Class::Faster, Some(line)) => line.verdict.word(line.unit),
            (Class::Failed, _) => match &self.row {
                Some(Row { state: State::Unmeasured(word, _), .. }) => word,
                _ => self.class.word(),
            },
            _ => self.class.word(),
        }
    }

    /// Whether something is worse than its limit allows.
    pub fn fails(&self) -> bool {
        self.lines.iter().any(|line| line.fails)
    }

    /// Why there is no number, or none to compare.
    pub fn reason(&self) -> Option<String> {
        if let Some(Row { state: State::Unmeasured(_, reason), .. }) = &self.row {
            return Some(reason.clone());
        }
        match self.deciding().map(|line| (&line.size, &line.verdict)) {
            Some((Size::None(reason), _)) => Some(reason.clone()),
            Some((Size::Estimated { remedy, .. }, Verdict::NotKnown(_))) => {
                Some(format!("would settle it: {remedy}"))
            }
            Some((_, Verdict::NotKnown(reason))) => Some(reason.clone()),
            Some(_) => None,
            None => self.why_not.map(str::to_string),
        }
    }

    fn classify(&self, compares: bool) -> Class {
        match (&self.row, self.deciding().map(|line| &line.verdict)) {
            (None, _) => Class::Gone,
            (Some(Row { state: State::Unmeasured(word, _), .. }), _) if *word == "ignored" => Class::Ignored,
            (Some(Row { state: State::Unmeasured(..), .. }), _) => Class::Failed,
            (_, Some(Verdict::Slower)) => Class::Slower,
            (_, Some(Verdict::Faster)) => Class::Faster,
            (_, Some(Verdict::NotKnown(_))) => Class::NotKnown,
            (_, Some(Verdict::Same)) => Class::Same,
            (_, None) if compares => Class::NotCompared,
            (_, None) => Class::Measured,
        }
    }

    /// How large the change is, for the order within a class.
    fn weight(&self) -> f64 {
        self.deciding().and_then(Line::change).map_or(0.0, f64::abs)
    }
}

/// Bench target, scenario and meter.
type Name<'a> = (&'a str, &'a str, &'a str);

/// The trials of a run, the most urgent first, and of those that are equally
/// so the one that changed most; else in the order in which they ran.
pub fn entries<'a>(sources: &Sources<'a>) -> Vec<Entry<'a>> {
    let (before, comparison) = match &sources.against {
        Some(against) => (against.records, Some(against.comparison)),
        None => (&[][..], None),
    };
    let mut lines: BTreeMap<Name<'_>, Vec<&Line>> = BTreeMap::new();
    let mut why_not: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for line in comparison.into_iter().flat_map(|all| &all.lines) {
        lines.entry((&line.suite, &line.scenario, &line.mode)).or_default().push(line);
    }
    for (scenario, mode, why) in comparison.into_iter().flat_map(|all| &all.unmatched) {
        why_not.insert((scenario, mode), why);
    }
    let history: BTreeMap<_, &[Point]> =
        sources.history.iter().filter_map(|points| by_name(points)).collect();
    let mut all: Vec<Entry<'a>> = Vec::new();
    for sides in sides(before, sources.records).into_values() {
        let (before, after) = (last(&sides.before), last(&sides.after));
        let Some(named) = after.or(before) else { continue };
        let (suite, scenario, mode) = (&*named.suite, &*named.scenario, &*named.mode);
        let row = after.and_then(row);
        // A smoke run has nothing to show on either side.
        if row.is_none() && (after.is_some() || before.and_then(self::row).is_none()) {
            continue;
        }
        let mut entry = Entry {
            scenario,
            suite,
            mode,
            after,
            before,
            row,
            lines: lines.remove(&(suite, scenario, mode)).unwrap_or_default(),
            why_not: why_not.get(&(scenario, mode)).copied(),
            history: history.get(&(suite, scenario, mode)).copied().unwrap_or_default(),
            class: Class::Gone,
        };
        entry.class = entry.classify(comparison.is_some());
        all.push(entry);
    }
    put_in_order(&mut all, sources.records);
    all
}

/// The record that counts: of several attempts the last.
fn last<'a>(records: &[&'a Record]) -> Option<&'a Record> {
    let indexed = records.iter().enumerate();
    indexed.max_by_key(|(at, record)| (record.attempt, *at)).map(|(_, record)| *record)
}

fn by_name(points: &[Point]) -> Option<(Name<'_>, &[Point])> {
    let first = points.first()?;
    Some(((&first.suite, &first.scenario, &first.mode), points))
}

fn put_in_order(all: &mut [Entry<'_>], records: &[Record]) {
    let mut places: BTreeMap<Name<'_>, usize> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        places.entry((&record.suite, &record.scenario, &record.mode)).or_insert(at);
    }
    let place = |entry: &Entry<'_>| {
        places.get(&(entry.suite, entry.scenario, entry.mode)).copied().unwrap_or(usize::MAX)
    };
    all.sort_by(|a, b| {
        let rank = a.class.cmp(&b.class).then_with(|| b.weight().total_cmp(&a.weight()));
        rank.then_with(|| place(a).cmp(&place(b))).then_with(|| a.scenario.cmp(b.scenario))
    });
}

/// How many trials are listed under each class that there is.
pub fn totals(entries: &[Entry<'_>]) -> Vec<(Class, usize)> {
    let count = |class: Class| entries.iter().filter(|entry| entry.class == class).count();
    Class::ALL.map(|class| (class, count(class))).into_iter().filter(|(_, n)| *n > 0).collect()
}
