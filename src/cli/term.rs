//! Standard output and standard error: the only place that writes to them.
//!
//! Events go to standard output, which bodies cannot reach; everything for
//! people goes to standard error. A reader that has gone away ends the
//! writing and nothing else.
//!
//! Neighbours: `events` (lines of a run), `progress` (the line that moves),
//! `flow` (errors).

use std::fs::File;
use std::io::{self, IsTerminal, Write};

use super::progress::Progress;
use crate::error::{Error, Kind, Result};

/// Whether colours are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Yes.
    Always,
    /// No.
    Never,
}

impl Color {
    /// Whether to colour what goes to a place that is a terminal or not.
    pub fn wanted(self, terminal: bool) -> bool {
        match self {
            Self::Auto => terminal,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Where events go.
#[derive(Debug)]
pub struct Out {
    to: Box<dyn OutFile>,
    broken: Option<io::Error>,
}

/// A writer that may be a terminal.
trait OutFile: Write + IsTerminal + std::fmt::Debug {}
impl OutFile for File {}
impl OutFile for io::Stdout {}

impl Out {
    /// Standard output as it is.
    pub fn stdout() -> Self {
        Self { to: Box::new(io::stdout()), broken: None }
    }

    /// What was standard output before bodies were kept from it.
    pub fn taken(file: File) -> Self {
        Self { to: Box::new(file), broken: None }
    }

    /// Whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.to.is_terminal()
    }

    /// Writes all of `text`, until the first failure.
    pub fn write(&mut self, text: &str) {
        if self.broken.is_none() && !text.is_empty() {
            let written = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
            self.broken = written.err();
        }
    }

    /// Why writing has ended, unless the reader went away, which is its right.
    pub fn failure(&self) -> Option<&io::Error> {
        self.broken.as_ref().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }
}

/// Writes all of `text` to standard output. A reader that goes away is no fault.
///
/// # Errors
/// It cannot be written: a full disk behind it, for example.
pub fn print(text: &str) -> Result<()> {
    let mut out = Out::stdout();
    out.write(text);
    match out.failure() {
        None => Ok(()),
        Some(error) => {
            let source = io::Error::new(error.kind(), error.to_string());
            Err(Error::new(Kind::Io, "standard output cannot be written").source(source))
        }
    }
}

/// Standard error, with the progress line when it is a terminal.
#[derive(Debug)]
pub struct Term {
    progress: Option<Progress>,
    color: Color,
}

impl Term {
    /// Standard error; with a progress line if `progress` and it is a terminal that can move its cursor.
    pub fn new(color: Color, dumb: bool, progress: bool) -> Self {
        let moves = progress && !dumb && io::stderr().is_terminal();
        Self { progress: moves.then(Progress::default), color }
    }

    /// Writes a line (or several) for people.
    pub fn say(&mut self, text: &str) {
        self.erase();
        to_stderr(&format!("{text}\n"));
    }

    /// Whether colours are wanted on standard error.
    pub fn color(&self) -> bool {
        self.color.wanted(io::stderr().is_terminal())
    }

    /// Columns of the terminal; a hundred when there is none.
    pub fn width(&self) -> usize {
        terminal_size::terminal_size_of(io::stderr()).map_or(100, |(width, _)| usize::from(width.0).max(20))
    }

    /// Says where the run is, on the progress line.
    pub fn progress(&mut self, update: impl FnOnce(&mut Progress)) {
        let width = self.width();
        if let Some(progress) = &mut self.progress {
            update(progress);
            to_stderr(&progress.draw(width));
        }
    }

    /// Puts a text of this many columns where the progress line is.
    pub fn line(&mut self, text: impl FnOnce(usize) -> String) {
        let width = self.width();
        if let Some(progress) = &mut self.progress {
            to_stderr(&progress.redraw(&text(width)));
        }
    }

    /// Whether there is a progress line.
    pub fn has_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Takes the progress line away until it is drawn again.
    pub fn erase(&mut self) {
        if let Some(progress) = &mut self.progress {
            to_stderr(progress.erase());
        }
    }
}

/// A reader that has gone is no reason to stop.
fn to_stderr(text: &str) {
    if !text.is_empty() {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Writes a text for people before there is a [`Term`], or after it.
pub fn say(text: &str) {
    to_stderr(&format!("{text}\n"));
}
