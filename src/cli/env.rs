//! The environment as a value, so that what it means can be tested.
//!
//! Neighbours: `resolve` reads it.

use std::collections::BTreeMap;

/// Names in the environment that mean something here begin with one of these.
const PREFIXES: [&str; 6] = ["WALLGRIND_", "NEXTEST_", "RUST_TEST_", "NO_COLOR", "TERM", "CARGO_TARGET_DIR"];

/// The variables that mean something here, without the empty ones.
#[derive(Clone, Debug, Default)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// The environment of this process. A value that is not Unicode is kept
    /// with replacement characters, so that its error can show it.
    pub fn of_process() -> Self {
        std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect()
    }

    /// The value of a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names that begin with `prefix`, in order.
    pub fn names<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(move |name| name.starts_with(prefix))
    }
}

impl FromIterator<(String, String)> for Env {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(all: I) -> Self {
        let ours = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        Self(all.into_iter().filter(|(name, value)| ours(name) && !value.is_empty()).collect())
    }
}
