//! What a run keeps while it goes on, and how it ends: totals, table, exit code.
//!
//! Neighbours: `run` feeds it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::FAILED;
use super::comparing::{self, Comparing};
use crate::cli::Printer;
use crate::plan::{Action, Plan};
use crate::report::{self, Look};
use crate::store::{Record, RunDir, Status};
use crate::sys;
use crate::trial::Identity;

/// A run that goes on.
pub struct Run<'a> {
    /// Its plan.
    pub plan: &'a Plan,
    /// Where its events go.
    pub printer: Printer,
    /// The names of the trials that have ended.
    pub ended: Vec<String>,
    records: Option<RunDir>,
    /// Records of this process; those of a process before are on disk.
    kept: Vec<Record>,
    before: usize,
    spent: Duration,
    comparing: Option<Comparing>,
    identity: Option<Identity>,
}

/// The exit code after a signal, as shells have it.
pub fn code_of(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(FAILED))
}

impl<'a> Run<'a> {
    /// A run in which the trials `ended` have ended in a process before.
    pub fn new(plan: &'a Plan, printer: Printer, records: Option<RunDir>, ended: Vec<String>) -> Self {
        let before = ended.len();
        let (kept, spent) = (Vec::new(), Duration::ZERO);
        Self { plan, printer, records, kept, ended, before, spent, comparing: None, identity: None }
    }

    /// Compares what is measured, and keeps it as a baseline if the plan wants it.
    #[must_use]
    pub fn comparing(mut self, comparing: Option<Comparing>, identity: Identity) -> Self {
        (self.comparing, self.identity) = (comparing, Some(identity));
        self
    }

    /// A trial begins.
    pub fn started(&mut self, name: &str) {
        self.printer.started(name);
        let (total, done) = (self.printer.tally.total, self.printer.tally.ended());
        let measures = self.plan.action == Action::Measure;
        let expected = if measures { self.plan.walltime.time } else { Duration::ZERO };
        // What one took here is known for the trials of this process only.
        let seen = u32::try_from(done.saturating_sub(self.before)).unwrap_or(u32::MAX);
        let each = self.spent.checked_div(seen).unwrap_or(expected);
        self.printer.term.progress(|line| {
            (line.total, line.done, line.each, line.began) = (total, done, each, Some(Instant::now()));
            line.name = name.to_string();
        });
    }

    /// A trial still runs.
    pub fn tick(&mut self) {
        self.printer.term.progress(|_| ());
    }

    /// A trial has ended: its record is written first, then its event is told.
    /// Gives whether it failed.
    pub fn ended(&mut self, mut record: Record) -> bool {
        let written = self.records.as_ref().map(|records| records.write(&record));
        if let Some(Err(error)) = written {
            record.metrics.clear();
            record.histograms.clear();
            record.status = Status::Failed(format!("its record could not be written: {}", error.chain()));
        }
        self.spent += Duration::from_nanos(record.elapsed_ns);
        self.ended.push(record.scenario.clone());
        let shown = self.judged(&record);
        let shown = shown.as_ref().unwrap_or(&record);
        self.printer.ended(shown);
        let failed = matches!(shown.status, Status::Failed(_) | Status::TimedOut(_));
        self.kept.push(record);
        failed
    }

    /// What is told of a trial that is beyond its limits: its numbers are on
    /// disk, and for everybody who hears events it has failed.
    fn judged(&self, record: &Record) -> Option<Record> {
        let why = self.comparing.as_ref().and_then(|comparing| comparing.failure(record))?;
        Some(Record { status: Status::Failed(why), metrics: Vec::new(), ..record.clone() })
    }

    /// Says that a failure has ended the run early.
    pub fn say_rest_is_not_run(&mut self, left: usize) {
        if left > 0 {
            self.printer.term.say(&format!("stopped after the first failure (--fail-fast): {left} not run"));
        }
    }

    /// Ends the run: totals, table, where the records are, and the exit code.
    pub fn finish(mut self, elapsed: Duration) -> ExitCode {
        self.printer.end(elapsed);
        let shown = self.all_records();
        if self.printer.wants_table() && shown.iter().any(|record| record.status == Status::Ok) {
            let look = Look { width: self.printer.term.width(), color: self.printer.term.color() };
            self.printer.term.say(report::table(&shown, look).trim_end());
        }
        let mut beyond = false;
        if let Some(comparing) = &self.comparing {
            let look = Look { width: self.printer.term.width(), color: self.printer.term.color() };
            let (text, fails) = comparing.end(&shown, look);
            beyond = fails;
            if fails && self.printer.tally.failed == 0 {
                let text =
                    "error: beyond the limits with all trials accounted for, though none was by itself";
                self.printer.term.say(text);
            }
            if self.printer.is_for_people() {
                self.printer.term.say(text.trim_end());
            }
        }
        if let Some(identity) = &self.identity {
            match comparing::save(self.plan, identity, &shown) {
                Ok(said) => said.iter().for_each(|text| self.printer.term.say(text)),
                Err(error) => {
                    self.printer.term.say(&error.report());
                    beyond = true;
                }
            }
        }
        let people = self.printer.is_for_people() && !shown.is_empty();
        if let Some(records) = self.records.as_ref().filter(|_| people) {
            self.printer.term.say(&format!("records: {}", records.path().display()));
        }
        if let Some(failure) = self.printer.failure() {
            self.printer.term.say(&format!("error: {failure}"));
            return ExitCode::from(FAILED);
        }
        if self.printer.tally.failed > 0 || beyond { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
    }

    /// Ends the run after a signal: children go, records stay.
    pub fn interrupted(mut self, signal: i32) -> ExitCode {
        sys::end_descendants();
        let (ended, total) = (self.printer.tally.ended(), self.printer.tally.total);
        let mut text = format!("ended by {} after {ended} of {total} trials", sys::name(signal));
        if let Some(records) = self.records.as_ref().filter(|_| ended > 0 && self.printer.is_for_people()) {
            text.push_str(&format!("; their records are in {}", records.path().display()));
        }
        self.printer.term.say(&text);
        code_of(signal)
    }

    /// All records of the run that have been measured, also in processes before.
    fn all_records(&mut self) -> Vec<Record> {
        let Some(records) = &self.records else { return Vec::new() };
        let before = &self.ended[..self.before];
        let mut all = if before.is_empty() { Vec::new() } else { read(records, before, self.plan) };
        all.append(&mut self.kept);
        all
    }
}

/// The records of the trials `names` of this run, as they are on disk. What
/// cannot be read is missing in the table, and was said when it was written.
fn read(records: &RunDir, names: &[String], plan: &Plan) -> Vec<Record> {
    let found = RunDir::scan(records.path()).map(|found| found.records).unwrap_or_default();
    let ours = |record: &Record| record.attempt == plan.attempt && names.contains(&record.scenario);
    found.into_iter().filter(ours).collect()
}
