//! Counts of another build: it counts its own trials, in a run of its own, and
//! leaves records.
//!
//! Counts do not depend on when they are taken, so nothing needs to be taken
//! in turn. Neighbours: `turns` is for times; `flow` compares the records.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::watch::{Waited, Watch};
use crate::error::{Error, Kind, Result};
use crate::store::{Record, RunDir};
use crate::sys;

/// Variables that would make the other run one that compares, too.
const OURS: [&str; 5] = [
    "WALLGRIND_AGAINST",
    "WALLGRIND_BASELINE",
    "WALLGRIND_SAVE_BASELINE",
    "WALLGRIND_SHUFFLE_SEED",
    "WALLGRIND_SHARD",
];

/// The name of its run.
const RUN: &str = "against";

/// Lets another build count the trials `names`.
///
/// # Errors
/// It cannot be started, or leaves no records.
pub fn count_other(
    program: &Path,
    names: &[String],
    variables: &[(String, OsString)],
    scratch: &Path,
    watch: &mut Watch,
) -> Result<Waited<Vec<Record>>> {
    if names.is_empty() {
        return Ok(Waited::Done(Vec::new()));
    }
    let failed = |text: String| Error::new(Kind::Io, format!("{}: {text}", program.display()));
    let out = scratch.join("other");
    let mut command = Command::new(program);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    for name in OURS {
        command.env_remove(name);
    }
    command.args(["--bench", "--quiet", "--color=never", "--lock=none", "--exact"]);
    command.arg("--run-id").arg(RUN).arg("--out").arg(&out).args(names);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| failed("it cannot be started".into()).source(error))?;
    let group = child.id();
    let ticket = watch.ticket::<String>();
    let work = move || {
        let mut said = Vec::new();
        // It ends when the other run does; what it said is for a failure only.
        let _ = child.stderr.take().map(|mut stderr| stderr.read_to_end(&mut said));
        let _ = child.wait();
        ticket.done(String::from_utf8_lossy(&said).into_owned());
    };
    let thread = std::thread::Builder::new().name("other".into()).spawn(work);
    let thread = thread.map_err(|error| failed("no thread can be started".into()).source(error))?;
    let waited = watch.wait::<String>(None, &mut || ());
    if !matches!(waited, Waited::Done(_)) {
        sys::kill_group(group);
    }
    let _ = thread.join();
    Ok(match waited {
        Waited::Interrupted(signal) => Waited::Interrupted(signal),
        Waited::TimedOut => Waited::TimedOut,
        Waited::Done(said) => {
            let folder = out.join(RUN);
            let records = if folder.is_dir() { RunDir::read(&folder)? } else { Vec::new() };
            if records.is_empty() {
                let lines: Vec<&str> = said.lines().collect();
                let last = lines[lines.len().saturating_sub(10)..].join("\n  ");
                return Err(failed(format!("it counted nothing; its last lines:\n  {last}")));
            }
            Waited::Done(records)
        }
    })
}
