//! The state of a run that goes on in a fresh process of the same executable,
//! after a trial that could not be ended in this one: an `exec` ends all its
//! threads, and keeps process, descriptors and lock.
//!
//! Neighbours: `run` saves and loads it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::RawFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cli::Tally;
use crate::error::{Error, Kind, Result};
use crate::plan::Plan;
use crate::sys::{self, Held};

const VERSION: u32 = 1;

/// What a run has come to. The plan itself follows from arguments and
/// environment, which stay, except for what was drawn at random.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    version: u32,
    run_id: String,
    shuffle: Option<u64>,
    /// The totals so far.
    pub tally: Tally,
    /// The names that have ended, in their order.
    pub ended: Vec<String>,
    /// The names that are left, in their order.
    pub left: Vec<String>,
    /// How long the run has taken, in nanoseconds.
    elapsed_ns: u64,
    out: RawFd,
    lock: Option<RawFd>,
}

impl State {
    /// Reads the state that the process before left behind a descriptor.
    ///
    /// # Errors
    /// There is no such descriptor, or no state of this version behind it.
    pub fn load(fd: RawFd) -> Result<Self> {
        let wrong = |error: io::Error| {
            Error::new(Kind::Usage, format!("there is no run to go on with behind descriptor {fd}"))
                .source(error)
                .hint("--wallgrind-resume is for wallgrind's own use")
        };
        let mut file = sys::inherited(fd).map_err(wrong)?;
        let mut text = String::new();
        file.rewind().and_then(|()| file.read_to_string(&mut text)).map_err(wrong)?;
        let state: Self = serde_json::from_str(&text).map_err(|error| wrong(error.into()))?;
        if state.version != VERSION {
            return Err(wrong(io::Error::other(format!("it is of version {}", state.version))));
        }
        Ok(state)
    }

    /// The state of a run under `plan`.
    pub fn new(plan: &Plan, tally: &Tally, ended: Vec<String>, left: Vec<String>, elapsed: Duration) -> Self {
        Self {
            version: VERSION,
            run_id: plan.run_id.clone(),
            shuffle: plan.shuffle,
            tally: tally.clone(),
            ended,
            left,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            out: -1,
            lock: None,
        }
    }

    /// Puts what was drawn at random into a plan.
    pub fn settle(&self, plan: &mut Plan) {
        plan.run_id.clone_from(&self.run_id);
        plan.shuffle = self.shuffle;
    }

    /// How long the run has taken before.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns)
    }

    /// What was standard output, and the lock.
    ///
    /// # Errors
    /// They did not come through.
    pub fn descriptors(&self) -> Result<(File, Option<Held>)> {
        let lost = |error| Error::new(Kind::Io, "a descriptor did not come through").source(error);
        let out = sys::inherited(self.out).map_err(lost)?;
        let lock = self.lock.map(sys::inherited).transpose().map_err(lost)?;
        Ok((out, lock.map(Held::from_inherited)))
    }
}

/// Goes on with the trials that are left in a fresh process. Returns only
/// when that fails, with the reason. `temp_dir` is the run's original one.
pub fn go_on(mut state: State, (out, lock): (&File, Option<&Held>), temp_dir: Option<&OsStr>) -> io::Error {
    let mut save = || -> io::Result<File> {
        state.out = sys::keep_on_exec(out)?;
        state.lock = lock.map(|held| sys::keep_on_exec(held.file())).transpose()?;
        // In memory: the disk may be full.
        let mut file = sys::memory_file()?;
        file.write_all(serde_json::to_string(&state)?.as_bytes())?;
        Ok(file)
    };
    match save().and_then(|file| Ok((sys::keep_on_exec(&file)?, file))) {
        Ok((fd, _open)) => sys::replace_self(&arguments(fd), temp_dir),
        Err(error) => error,
    }
}

/// The arguments of this process, with the state's descriptor at the end.
fn arguments(fd: RawFd) -> Vec<OsString> {
    let ours = |text: &OsString| text.to_str().is_some_and(|text| text.starts_with("--wallgrind-resume"));
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).filter(|text| !ours(text)).collect();
    arguments.push(format!("--wallgrind-resume={fd}").into());
    arguments
}
