//! What the clients of a bench target are told, in one of three formats:
//! this is the one place that takes the part of `libtest_mimic::run`'s printer.
//!
//! Neighbours: `flow` calls it, `lines` and `json` hold the texts.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::json;
use super::lines::{self, Paint};
use super::resolve::{Format, Output};
use super::term::{Out, Term};
use crate::error::{Error, Kind, Result};
use crate::store::{Record, Status};

/// How a trial ended, as events tell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending<'a> {
    /// It ran and was not measured.
    Passed,
    /// It has a number for one iteration.
    Measured {
        /// The median.
        median: f64,
        /// The median absolute deviation.
        deviation: f64,
        /// The symbol of the unit.
        unit: &'a str,
    },
    /// It failed.
    Failed {
        /// Why.
        reason: &'a str,
        /// Whether it did not end in time.
        timed_out: bool,
    },
    /// It was not run, for this reason.
    Ignored(&'a str),
}

impl<'a> Ending<'a> {
    fn of(record: &'a Record) -> Self {
        match (&record.status, record.metrics.first()) {
            (Status::Ok, None) => Self::Passed,
            (Status::Ok, Some(metric)) => Self::Measured {
                median: metric.summary.median,
                deviation: metric.summary.mad,
                unit: metric.series.unit.symbol(),
            },
            (Status::Failed(reason), _) => Self::Failed { reason, timed_out: false },
            (Status::TimedOut(reason), _) => Self::Failed { reason, timed_out: true },
            (Status::Ignored(reason), _) => Self::Ignored(reason),
        }
    }
}

/// The totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Trials of the run.
    pub total: usize,
    /// Trials that ran and were not measured.
    pub passed: usize,
    /// Trials that failed or did not end in time.
    pub failed: usize,
    /// Trials that this machine cannot run.
    pub ignored: usize,
    /// Trials with a number.
    pub measured: usize,
    /// Trials that were not selected.
    pub filtered_out: usize,
    /// The names of those that failed, with the reasons.
    pub failures: Vec<(String, String)>,
    /// Characters on the last line of terse mode.
    pub column: usize,
}

impl Tally {
    /// Trials that have ended.
    pub fn ended(&self) -> usize {
        self.passed + self.failed + self.ignored + self.measured
    }

    fn count(&mut self, name: &str, ending: &Ending<'_>) {
        match ending {
            Ending::Passed => self.passed += 1,
            Ending::Measured { .. } => self.measured += 1,
            Ending::Ignored(_) => self.ignored += 1,
            Ending::Failed { reason, .. } => {
                self.failed += 1;
                self.failures.push((name.to_string(), (*reason).to_string()));
            }
        }
    }
}

/// Tells the events of a run.
#[derive(Debug)]
pub struct Printer {
    output: Output,
    out: Out,
    /// Standard error.
    pub term: Term,
    /// The totals so far.
    pub tally: Tally,
    log: Option<File>,
    paint: Paint,
}

impl Printer {
    /// A printer that begins (or goes on, when `tally` has something in it).
    ///
    /// # Errors
    /// The log file cannot be written.
    pub fn new(output: Output, out: Out, tally: Tally) -> Result<Self> {
        let log = output.logfile.as_deref().map(|path| {
            let fresh = tally.ended() == 0;
            let file = OpenOptions::new().create(true).write(true).append(!fresh).truncate(fresh).open(path);
            file.map_err(|error| {
                Error::new(Kind::Io, format!("cannot write the log file {}", path.display()))
                    .source(error)
                    .hint("--logfile takes the path of a file in a folder that exists")
            })
        });
        let paint = Paint(output.color.wanted(out.is_terminal()));
        // In JSON mode a program reads; a line that moves would only disturb it.
        let term = Term::new(output.color, output.dumb, output.format != Format::Json);
        Ok(Self { log: log.transpose()?, paint, term, output, out, tally })
    }

    /// The run begins.
    pub fn begin(&mut self, shuffle: Option<u64>) {
        let total = self.tally.total;
        self.event(&match self.output.format {
            Format::Json => json::suite_started(total, shuffle),
            Format::Pretty | Format::Terse => lines::title(total, shuffle),
        });
    }

    /// A trial begins.
    pub fn started(&mut self, name: &str) {
        if self.output.format == Format::Json {
            self.event(&json::started(name));
        }
    }

    /// A trial has ended.
    pub fn ended(&mut self, record: &Record) {
        let name = record.scenario.as_str();
        let ending = Ending::of(record);
        if let Ending::Failed { reason, .. } = ending {
            // Clients that keep standard error find the reason in this form.
            self.term.say(&format!("Error: {name}: {reason}"));
        }
        self.tally.count(name, &ending);
        let took = self.output.report_time.then(|| Duration::from_nanos(record.elapsed_ns).as_secs_f64());
        let time = took.map(|seconds| format!(" <{seconds:.3}s>")).unwrap_or_default();
        let counts = (self.tally.ended(), self.tally.total);
        let text = match self.output.format {
            Format::Json => json::ended(name, &ending, took, self.output.ends_in_test),
            Format::Pretty => lines::pretty(name, &ending, &time, self.paint),
            Format::Terse => lines::terse(name, &ending, &time, self.paint, &mut self.tally.column, counts),
        };
        self.event(&text);
        self.log(&lines::log(name, &ending, &time));
    }

    /// The run has ended.
    pub fn end(&mut self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let text = match self.output.format {
            Format::Json => json::suite_ended(&self.tally, seconds),
            Format::Pretty | Format::Terse => {
                let newline = if std::mem::take(&mut self.tally.column) > 0 { "\n" } else { "" };
                let failures = lines::failures(&self.tally);
                format!("{newline}{failures}{}", lines::result(&self.tally, seconds, self.paint))
            }
        };
        self.event(&text);
    }

    /// Whether the table belongs at the end: people read the pretty format.
    pub fn wants_table(&self) -> bool {
        self.output.format == Format::Pretty
    }

    /// Whether texts for people are wanted that no program is to trip over.
    pub fn is_for_people(&self) -> bool {
        self.output.format != Format::Json
    }

    /// Why events were lost, unless their reader went away.
    pub fn failure(&self) -> Option<String> {
        self.out.failure().map(|error| format!("standard output could not be written: {error}"))
    }

    fn event(&mut self, text: &str) {
        self.term.erase();
        self.out.write(text);
    }

    /// A full disk must not end a run: it is said once, and the log ends there.
    fn log(&mut self, line: &str) {
        if let Some(file) = &mut self.log
            && let Err(error) = file.write_all(line.as_bytes())
        {
            self.log = None;
            self.term.say(&format!("warning: the log file ends here: {error}"));
        }
    }
}
