//! The parent's side of one child that takes steps: started, asked, ended, and
//! killed with its group whatever comes.
//!
//! Neighbours: `steps` is the child, `turns` has two of these at a time.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::isolate::{PARENT, how_it_ended, pass_on};
use super::steps::{PADDING, Said, VERSION, order};
use crate::measure::{Step, Taken, Tempo};
use crate::sys;

/// The groups of the children that live, to be killed from another thread.
#[derive(Clone, Debug, Default)]
pub struct Alive(Arc<Mutex<Groups>>);

#[derive(Debug, Default)]
struct Groups {
    leaders: Vec<u32>,
    closed: bool,
}

impl Alive {
    /// Kills all of them, and whatever is started later.
    pub fn end(&self) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.closed = true;
        groups.leaders.drain(..).for_each(sys::kill_group);
    }

    fn add(&self, leader: u32) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if groups.closed {
            sys::kill_group(leader);
        } else {
            groups.leaders.push(leader);
        }
    }

    /// Kills one group before its leader is reaped: its number is still its own.
    fn remove(&self, leader: u32) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = groups.leaders.iter().position(|l| *l == leader) {
            groups.leaders.swap_remove(at);
            sys::kill_group(leader);
        }
    }
}

/// What a child is started with.
#[derive(Clone, Debug)]
pub struct Start<'a> {
    /// The executable.
    pub program: &'a Path,
    /// The scenario.
    pub name: &'a str,
    /// Settings, as variables.
    pub variables: &'a [(String, OsString)],
    /// The processor to run on.
    pub cpu: Option<usize>,
    /// Bytes by which its environment is longer.
    pub padding: usize,
    /// Its temporary folder.
    pub scratch: &'a Path,
}

/// A child that takes steps.
pub struct Stepper {
    child: Child,
    orders: ChildStdin,
    replies: BufReader<ChildStdout>,
    last: Arc<Mutex<VecDeque<String>>>,
    alive: Alive,
    /// The precision of its clock, in nanoseconds.
    pub precision: f64,
}

impl Drop for Stepper {
    fn drop(&mut self) {
        self.alive.remove(self.child.id());
        // Killed just now, or ended before: it is not waited for long.
        let _ = self.child.wait();
    }
}

impl Stepper {
    /// Starts a child and hears its first line.
    ///
    /// # Errors
    /// It cannot be started, or is not one of ours.
    pub fn start(start: &Start<'_>, alive: &Alive) -> Result<Self, String> {
        let mut command = Command::new(start.program);
        command.args([format!("--wallgrind-steps={}", start.name).as_str(), "--bench"]);
        command.envs(start.variables.iter().map(|(name, value)| (name, value)));
        if let Some(cpu) = start.cpu {
            command.env("WALLGRIND_CPU", cpu.to_string());
        }
        command.env(PADDING, "x".repeat(start.padding)).env("TMPDIR", start.scratch);
        command.env(PARENT, std::process::id().to_string()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: io::Error| format!("{} cannot be started: {error}", start.program.display());
        let mut child = command.spawn().map_err(failed)?;
        alive.add(child.id());
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(orders), Some(replies), Some(stderr)) = pipes else {
            return Err("a child has no pipes".into());
        };
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let lines = Arc::clone(&last);
        let mut stepper = Self {
            child,
            orders,
            replies: BufReader::new(replies),
            last,
            alive: alive.clone(),
            precision: 0.0,
        };
        let reader = thread::Builder::new().name("stderr".into());
        reader.spawn(move || pass_on(stderr, &lines)).map_err(failed)?;
        stepper.greet(start.name)?;
        Ok(stepper)
    }

    fn greet(&mut self, name: &str) -> Result<(), String> {
        match self.hear()? {
            Said::Hello(VERSION, scenario, precision) if scenario == name => {
                self.precision = precision;
                Ok(())
            }
            Said::Hello(version, ..) if version != VERSION => {
                Err(format!("it takes steps by version {version} of the protocol, not {VERSION}"))
            }
            other => Err(format!("it said {other:?} first")),
        }
    }

    /// Waits until its body is warm; gives the tempo it would choose, and how
    /// long a step takes at it, in nanoseconds.
    ///
    /// # Errors
    /// The body failed.
    pub fn ready(&mut self) -> Result<(Tempo, u64), String> {
        match self.hear()? {
            Said::Ready(tempo, ns) => Ok((tempo, ns)),
            other => Err(format!("it said {other:?} instead of being ready")),
        }
    }

    /// Takes one step.
    ///
    /// # Errors
    /// The body failed.
    pub fn take(&mut self, tempo: Tempo) -> Result<Taken, String> {
        self.say(Step::Take(tempo))?;
        match self.hear()? {
            Said::Took(taken) => Ok(taken),
            other => Err(format!("it said {other:?} instead of a step")),
        }
    }

    /// Lets its body come to its end, with its last check.
    ///
    /// # Errors
    /// The body failed.
    pub fn end(mut self) -> Result<(), String> {
        self.say(Step::End)?;
        match self.hear()? {
            Said::Ended => Ok(()),
            other => Err(format!("it said {other:?} at the end")),
        }
    }

    fn say(&mut self, step: Step) -> Result<(), String> {
        // What it has to say about a broken pipe is in its last lines.
        self.orders.write_all(order(step).as_bytes()).or_else(|_| self.hear().map(drop))
    }

    fn hear(&mut self) -> Result<Said, String> {
        let mut line = String::new();
        match self.replies.read_line(&mut line) {
            Ok(n) if n > 0 => match Said::parse(&line) {
                Some(Said::Failed(why)) => Err(why),
                Some(said) => Ok(said),
                None => Err(format!("it said {:?}, which is not understood", line.trim_end())),
            },
            _ => Err(self.death()),
        }
    }

    fn death(&mut self) -> String {
        self.alive.remove(self.child.id());
        let how =
            self.child.wait().map_or_else(|error| format!("cannot be waited for: {error}"), how_it_ended);
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reason = format!("its process {how} in the middle");
        last.iter().for_each(|line| reason.push_str(&format!("\n  {line}")));
        reason
    }
}

/// What an executable lists under the given arguments.
///
/// # Errors
/// It cannot be run, or is no bench target.
pub fn list(program: &Path, arguments: &[OsString]) -> Result<Vec<String>, String> {
    let output = Command::new(program)
        .args(["--list", "--format=terse"])
        .args(arguments)
        // All that it has: which of it is this shard's, this build says.
        .env_remove("WALLGRIND_SHARD")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("its list of trials failed: {}", said.trim_end()));
    }
    Ok(text.lines().filter_map(|line| line.strip_suffix(": benchmark")).map(str::to_string).collect())
}

/// The running executable by its own path: a child whose path is
/// `/proc/self/exe` would find its place for records elsewhere.
pub fn this_program() -> PathBuf {
    std::env::current_exe()
        .ok()
        .filter(|path| path.is_file())
        .unwrap_or_else(|| sys::self_path().to_path_buf())
}
