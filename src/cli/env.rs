//! The environment as a value, so that what it means can be tested.
//!
//! Neighbours: `resolve` reads it.

use std::collections::BTreeMap;

use crate::sys;

/// Names in the environment that mean something here begin with one of these.
const PREFIXES: [&str; 7] =
    ["WALLGRIND_", "NEXTEST_", "RUST_TEST_", "NO_COLOR", "TERM", "CARGO_TARGET_DIR", "TMPDIR"];

/// The variables that mean something here, without the empty ones.
#[derive(Clone, Debug, Default)]
pub struct Env {
    variables: BTreeMap<String, String>,
    /// Tells the cargo that started this process from any other, if one did.
    cargo: Option<String>,
}

impl Env {
    /// The environment of this process. A value that is not Unicode is kept
    /// with replacement characters, so that its error can show it.
    pub fn of_process() -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let parent = sys::parent().filter(|(command, _)| command == "cargo");
        Self { cargo: parent.map(|(_, mark)| mark), ..variables.collect() }
    }

    /// An environment in which this cargo started the process.
    #[cfg(test)]
    pub fn under_cargo(mark: &str) -> Self {
        Self { variables: BTreeMap::new(), cargo: Some(mark.to_string()) }
    }

    /// What tells the cargo that started this process from any other: all
    /// bench targets that one `cargo bench` starts have it in common.
    pub fn cargo(&self) -> Option<&str> {
        self.cargo.as_deref()
    }

    /// The value of a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The names that begin with `prefix`, in order.
    pub fn names<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.variables.keys().map(String::as_str).filter(move |name| name.starts_with(prefix))
    }
}

impl FromIterator<(String, String)> for Env {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(all: I) -> Self {
        let ours = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let variables = all.into_iter().filter(|(name, value)| ours(name) && !value.is_empty()).collect();
        Self { variables, cargo: None }
    }
}
