//! Names of scenarios: Rust paths, since test explorers find a stub function
//! of the same name.
//!
//! Neighbours: `registry` checks that they are unique, `spec` carries them.

use std::fmt;

use crate::error::{Error, Kind, Result};

/// A validated name such as `tls::handshake_tickets::ring_1_3_rsa_aes`:
/// segments of `[a-z_][a-z0-9_]*` joined by `::`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScenarioId(String);

impl ScenarioId {
    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`Kind::Suite`] when a segment is empty, starts with a digit, or has a
    /// character other than `a-z`, `0-9` and `_`.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        if name.split("::").all(is_segment) {
            return Ok(Self(name));
        }
        Err(Error::new(Kind::Suite, format!("scenario name {name:?} is not a path of lower-case Rust names"))
            .hint("use segments of a-z, 0-9 and _, no digit first, joined by `::`"))
    }

    /// Stands in for a name that was refused, until the suite is.
    pub(super) fn invalid() -> Self {
        Self(String::new())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_segment(segment: &str) -> bool {
    let first = segment.bytes().next();
    first.is_some_and(|b| b.is_ascii_lowercase() || b == b'_')
        && segment.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

impl fmt::Display for ScenarioId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::ScenarioId;

    #[test]
    fn takes_rust_paths_only() {
        for good in ["a", "parse::small", "_x::y2", "tls::handshake_tickets::ring_1_3_rsa_aes"] {
            assert_eq!(ScenarioId::new(good).map(|id| id.to_string()).ok().as_deref(), Some(good));
        }
        for bad in ["", "::", "a::", "1a", "a::2b", "A", "a-b", "a b", "a:b", "ä"] {
            assert!(ScenarioId::new(bad).is_err(), "{bad:?} was taken");
        }
    }
}
