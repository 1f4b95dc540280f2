//! Errors of the harness: a kind that decides the exit code, a fragment that
//! names the thing, an optional hint (the way out) on a line of its own, and
//! the source.
//!
//! Neighbours: `cli` and `store` make them, `flow` prints them, once.

use std::fmt;

/// What went wrong, and so how the process exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What was typed (or an environment variable) is wrong.
    Usage,
    /// A file or folder could not be read or written.
    Io,
    /// A file is not what it should be: cut short, another format, a newer schema.
    Format,
    /// A tool or a facility of the machine is missing.
    Missing,
    /// A suite is wrong: a duplicate or an invalid name.
    Suite,
}

/// An error of the harness, printed once at the top.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Result of the harness.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`; `message` is a lower-case fragment that names the thing.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    /// Adds the way out, printed on a line of its own.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what caused it.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The message and its causes, on one line.
    pub fn chain(&self) -> String {
        let mut text = self.message.clone();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }

    /// Message, causes and hint on one line, for lists of what is wrong.
    pub fn in_one_line(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})"));
        self.chain() + &hint.unwrap_or_default()
    }

    /// The whole text: message, causes, and the hint on a line of its own.
    pub fn report(&self) -> String {
        let mut text = format!("error: {}", self.chain());
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n  hint: {hint}"));
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}
