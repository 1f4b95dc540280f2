//! The suite: where scenarios are registered, and checked for doubles.
//!
//! Neighbours: `families` and strangers' crates fill it; `flow` runs it.

use std::collections::BTreeSet;

use super::bencher::Bencher;
use super::id::ScenarioId;
use super::spec::Scenario;
use crate::error::{Error, Kind, Result};
use crate::units::Bytes;

/// All scenarios of one bench target, in the order of registration.
#[derive(Debug, Default)]
pub struct Suite {
    scenarios: Vec<Scenario>,
    errors: Vec<Error>,
    scratch: u64,
}

impl Suite {
    /// An empty suite.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a scenario. The returned [`Scenario`] takes parameters,
    /// parties and needs. A wrong or double name is reported when the suite starts.
    pub fn bench<F>(&mut self, name: impl Into<String>, body: F) -> &mut Scenario
    where
        F: Fn(&mut Bencher<'_>) -> anyhow::Result<()> + Send + Sync + 'static,
    {
        let name = name.into();
        let id = ScenarioId::new(name.as_str()).unwrap_or_else(|error| {
            self.errors.push(error);
            ScenarioId::invalid()
        });
        let at = self.scenarios.len();
        self.scenarios.push(Scenario::new(id, Box::new(body)));
        &mut self.scenarios[at]
    }

    /// States how much room the suite takes in the scratch folder whichever of
    /// its scenarios runs: files that are kept for all of them. What one
    /// scenario takes is [its own statement](Scenario::needs_scratch).
    pub fn needs_scratch(&mut self, room: Bytes) {
        self.scratch = room.0;
    }

    /// A group: all names registered through it start with `prefix::`.
    pub fn group(&mut self, prefix: impl Into<String>) -> Group<'_> {
        Group { suite: self, prefix: prefix.into() }
    }

    /// The scenarios in the order of registration.
    ///
    /// # Errors
    /// [`Kind::Suite`] for an invalid name, a double, or a name that is a
    /// substring of another one (explorers filter by substring).
    pub fn finish(mut self) -> Result<Vec<Scenario>> {
        for scenario in &mut self.scenarios {
            scenario.add_scratch(self.scratch);
        }
        if let Some(error) = self.errors.into_iter().next() {
            return Err(error);
        }
        let mut seen = BTreeSet::new();
        for scenario in &self.scenarios {
            if !seen.insert(scenario.id().as_str()) {
                return Err(Error::new(Kind::Suite, format!("two scenarios are called {}", scenario.id())));
            }
        }
        match within_another(&self.scenarios) {
            Some((short, long)) => Err(Error::new(
                Kind::Suite,
                format!("scenario name {short} is part of {long}, and test explorers filter by substring"),
            )
            .hint("make the names of equal length, such as qd001 and qd128")),
            None => Ok(self.scenarios),
        }
    }
}

/// The first name that is a substring of another: it then begins one of the
/// ends of that name. Ends are sorted and searched, so that many thousand
/// names are no more work for each of them than a few.
fn within_another(scenarios: &[Scenario]) -> Option<(&str, &str)> {
    let mut names: Vec<&str> = scenarios.iter().map(|s| s.id().as_str()).collect();
    names.sort_by_key(|name| name.len());
    let least = names.first()?.len();
    // Shorter ends begin with no name. Of names of one length there is one each.
    let ends_of = |name: &&'_ str| (0..=name.len() - least).map(|at| at..name.len()).collect::<Vec<_>>();
    let mut ends: Vec<(&str, &str)> = names
        .iter()
        .flat_map(|name| ends_of(name).into_iter().filter_map(|end| Some((name.get(end)?, *name))))
        .collect();
    ends.sort_unstable();
    names.iter().find_map(|short| {
        let from = ends.partition_point(|(end, _)| end < short);
        let begun = ends[from..].iter().take_while(|(end, _)| end.starts_with(short));
        let (_, longer) = begun.into_iter().find(|(_, name)| name != short)?;
        Some((*short, *longer))
    })
}

/// Scenarios under one prefix.
#[derive(Debug)]
pub struct Group<'a> {
    suite: &'a mut Suite,
    prefix: String,
}

impl Group<'_> {
    /// Registers `prefix::name`; see [`Suite::bench`].
    pub fn bench<F>(&mut self, name: impl AsRef<str>, body: F) -> &mut Scenario
    where
        F: Fn(&mut Bencher<'_>) -> anyhow::Result<()> + Send + Sync + 'static,
    {
        self.suite.bench(format!("{}::{}", self.prefix, name.as_ref()), body)
    }
}

#[cfg(test)]
mod tests {
    use super::Suite;

    fn names(list: &[&str]) -> Result<usize, String> {
        let mut suite = Suite::new();
        for name in list {
            suite.bench(*name, |b| b.iter(|| 1));
        }
        suite.finish().map(|s| s.len()).map_err(|e| e.report())
    }

    #[test]
    fn refuses_doubles_parts_and_bad_names() {
        assert_eq!(names(&["io::qd001", "io::qd128"]), Ok(2));
        assert!(names(&["a::b", "a::b"]).is_err_and(|e| e.contains("two scenarios")));
        assert!(names(&["io::qd1", "io::qd128"]).is_err_and(|e| e.contains("is part of io::qd128")));
        assert!(names(&["io::a", "xio::ab"]).is_err_and(|e| e.contains("io::a is part of xio::ab")));
        assert!(names(&["b::longer", "a::b::longer"]).is_err_and(|e| e.contains("b::longer is part of")));
        assert!(names(&["ok", "Not"]).is_err_and(|e| e.contains("\"Not\"")));
    }

    #[test]
    fn one_part_among_many_names_is_found() {
        let mut many: Vec<String> = (0..2_000).map(|i| format!("g{}::s{}", i % 90, 10_000 + i)).collect();
        let list = |many: &[String]| names(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(list(&many), Ok(2_000));
        many.push("g13::s1100".into());
        assert!(list(&many).is_err_and(|e| e.contains("g13::s1100 is part of g13::s11003")));
    }

    #[test]
    fn a_group_puts_its_prefix_in_front() {
        let mut suite = Suite::new();
        suite.group("g::h").bench("x", |b| b.iter(|| 1)).param("size", 3);
        let all = suite.finish().expect("one valid scenario");
        assert_eq!(all[0].id().as_str(), "g::h::x");
        assert_eq!(all[0].params_stated(), [("size".to_string(), "3".to_string())]);
    }
}
