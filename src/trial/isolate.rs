//! A trial in a process of its own: the same executable, in a process group
//! that is killed as a whole, with one line of protocol on its standard
//! output, which the body cannot reach.
//!
//! Neighbours: `runner` starts it, `protocol` is what is said.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::body::{self, Verdict};
use super::protocol;
use super::watch::Ticket;
use crate::error::{Error, Kind, Result};
use crate::measure::{ClockFacts, Failure};
use crate::plan::Plan;
use crate::scenario::Scenario;
use crate::sys;

/// Lines of standard error that are quoted when a child dies.
const QUOTED: usize = 10;

/// The variable that tells a child who its parent is.
pub(super) const PARENT: &str = "WALLGRIND_PARENT";

/// A running trial. Dropping it kills its whole group and reaps it.
pub struct Isolated {
    child: Child,
    reaped: bool,
    /// Ends when all that the child wrote to standard error has been passed on.
    told: Receiver<Infallible>,
}

/// How long something that left its group may keep standard error open.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Drop for Isolated {
    fn drop(&mut self) {
        // It is not asked for any more.
        let _ = self.end();
    }
}

/// Starts the child of a trial. `ticket` gets the line that it says, empty
/// when it dies before.
///
/// # Errors
/// The child cannot be started.
pub fn start(scenario: &Scenario, scratch: Option<&Path>, ticket: Ticket<Said>) -> io::Result<Isolated> {
    let mut command = Command::new(sys::self_path());
    command.args(std::env::args_os().skip(1).filter(|argument| !is_resume(argument)));
    command.arg(format!("--wallgrind-trial={}", scenario.id()));
    command.env(PARENT, std::process::id().to_string()).process_group(0);
    if let Some(dir) = scratch {
        command.env("TMPDIR", dir);
    }
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (tell, told) = mpsc::channel();
    let isolated = Isolated { child, reaped: false, told };
    let last = Arc::new(Mutex::new(VecDeque::new()));
    let lines = Arc::clone(&last);
    thread::Builder::new().name("stderr".into()).spawn(move || {
        stderr.into_iter().for_each(|stderr| pass_on(stderr, &lines));
        drop(tell);
    })?;
    thread::Builder::new().name("protocol".into()).spawn(move || {
        let mut line = Vec::new();
        // To the end, since what a body printed may be written only then. A
        // pipe that breaks is a child that died: the line says enough.
        let _ = stdout.map(|mut stdout| stdout.read_to_end(&mut line));
        ticket.done(Said { line: String::from_utf8_lossy(&line).into_owned(), last });
    })?;
    Ok(isolated)
}

fn is_resume(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| text.starts_with("--wallgrind-resume"))
}

/// What a child said.
pub struct Said {
    line: String,
    last: Arc<Mutex<VecDeque<String>>>,
}

impl Isolated {
    /// Ends the group, with what a body has left running in it, and reaps the
    /// child. Once only: its number may be another's afterwards.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if !std::mem::replace(&mut self.reaped, true) {
            sys::kill_group(self.child.id());
        }
        self.child.wait()
    }

    /// What became of the trial, once the child has said its line or died.
    pub fn verdict(mut self, scenario: &Scenario, said: &Said) -> Verdict {
        let status = self.end();
        // An error both when all is said, and when somebody keeps it open.
        let _ = self.told.recv_timeout(LAST_WORDS);
        if said.line.ends_with('\n') {
            return protocol::read(scenario.id().as_str(), &said.line).unwrap_or_else(|wrong| {
                Err(Failure::Failed(format!("the trial's process cannot be understood: {wrong}")))
            });
        }
        let how = status.map_or_else(|error| format!("cannot be waited for: {error}"), how_it_ended);
        let last = said.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reason = format!("the trial's process {how} before it gave a result");
        if !last.is_empty() {
            reason.push_str("; its last lines:");
            last.iter().for_each(|line| reason.push_str(&format!("\n  {line}")));
        }
        Err(Failure::Failed(reason))
    }
}

pub(super) fn how_it_ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by {}", sys::name(signal)),
        (None, Some(code)) => format!("exited with {code}"),
        (None, None) => "ended".to_string(),
    }
}

/// Passes standard error of a child on, and keeps its last lines.
pub(super) fn pass_on(stderr: impl Read, last: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let _ = io::stderr().lock().write_all(&line);
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        last.push_back(String::from_utf8_lossy(&line).trim_end().to_string());
        if last.len() > QUOTED {
            last.pop_front();
        }
        line.clear();
    }
}

/// The child's side: runs one trial and says what became of it.
///
/// # Errors
/// The trial is not in this suite, or standard output cannot be taken.
pub fn child(scenarios: &'static [Scenario], plan: &Plan, name: &str, measures: bool) -> Result<()> {
    let parent = std::env::var(PARENT).ok().and_then(|pid| pid.parse().ok());
    let refused = |error| Error::new(Kind::Missing, "the trial's process cannot be set up").source(error);
    sys::die_with_parent(parent.unwrap_or(0)).map_err(refused)?;
    let mut out = sys::take_stdout().map_err(refused)?;
    let scenario = scenarios.iter().find(|s| s.id().as_str() == name).ok_or_else(|| {
        Error::new(Kind::Usage, format!("there is no trial {name} here"))
            .hint("--wallgrind-trial is for wallgrind's own use")
    })?;
    let clock = measures.then(ClockFacts::measure);
    let (sender, receiver) = mpsc::channel();
    let done = move |verdict| drop(sender.send(verdict));
    body::start(scenario, plan.clone(), clock, done).map_err(refused)?;
    let verdict = receiver.recv().unwrap_or_else(|_| Err(Failure::Failed("its thread has gone".into())));
    out.write_all(protocol::write(name, verdict).as_bytes()).map_err(refused)?;
    // Open until the process has ended: its end tells the parent that what
    // bodies printed has been flushed, too.
    std::mem::forget(out);
    Ok(())
}
