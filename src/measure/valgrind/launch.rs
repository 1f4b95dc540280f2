//! Starts measured children under Valgrind, waits for their reports, and ends
//! them: the parent's side of the protocol.
//!
//! Neighbours: `counter` gives the orders, `readings` reads the files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::complaint;
use super::groups::Group;
use super::protocol::{self, CONTROL, Done, FLAG, Job, Method, Report, Task, VERSION};
use super::scratch::{Folder, Scratch, behind};
use super::tool::Tool;
use super::{features, sys, world};
use crate::error::Result;
use crate::measure::Failure;

/// Masks RDRAND, whose results no replacement can make the same again.
const NO_RDRAND: &str = "~0x4000000000000000";
/// What a pipe between two parties may hold, in bytes.
const PIPE: i32 = 1 << 20;
/// Variables that reach the children although the environment is cleared: the
/// loader's and Valgrind's own, without which they could not start.
const PASSED_ON: [&str; 2] = ["LD_LIBRARY_PATH", "VALGRIND_LIB"];

/// Starts children, all in the same way.
pub(super) struct Launcher {
    tool: Tool,
    /// `cachegrind`, `callgrind` or `dhat`, and what it is told.
    name: &'static str,
    options: Vec<String>,
    scratch: Scratch,
}

/// What to run.
pub(super) struct Order {
    /// The scenario, or `None` for the canary.
    pub scenario: Option<String>,
    /// Loops of the canary.
    pub loops: u64,
    /// How many parties the scenario has: 1 or 2.
    pub parties: usize,
    pub method: Method,
    pub warm: usize,
    pub iterations: usize,
    pub ballast: usize,
    pub seed: u64,
    /// All of it must be done within this time.
    pub timeout: Duration,
}

impl Order {
    fn job(&self, party: usize) -> Job {
        let task = match &self.scenario {
            None => Task::Canary { loops: self.loops },
            Some(name) => Task::Scenario { name: name.clone(), party: (self.parties == 2).then_some(party) },
        };
        let Self { method, warm, iterations, ballast, .. } = *self;
        Job { version: VERSION, task, method, warm, iterations, ballast }
    }
}

/// What the child of one party left behind.
pub(super) struct Left {
    pub done: Done,
    pub process: u32,
    folder: PathBuf,
    party: usize,
}

impl Left {
    /// The tool's output file of a process: the child's own, or a snapshot's.
    pub(super) fn file(&self, process: i64) -> PathBuf {
        self.folder.join(format!("{}.out.{process}", self.party))
    }
}

struct Running {
    child: Child,
    control: UnixStream,
    /// Where the body's files are; removed behind it.
    _files: TempDir,
}

impl Launcher {
    /// Prepares the scratch folder.
    ///
    /// # Errors
    /// There is no place for it.
    pub(super) fn new(tool: Tool, name: &'static str, options: Vec<String>) -> Result<Self> {
        Ok(Self { tool, name, options, scratch: Scratch::make()? })
    }

    /// Runs all parties of an order to their end.
    ///
    /// # Errors
    /// A party failed, died, or did not end in time.
    pub(super) fn run(&self, order: &Order) -> std::result::Result<(Vec<Left>, Folder), Failure> {
        let folder = self.scratch.folder().map_err(|e| Failure::Failed(format!("scratch folder: {e}")))?;
        let (group, mut running) = self.start(order, folder.path())?;
        let deadline = deadline(order.timeout);
        let reports: Vec<_> = running.iter_mut().map(|r| r.report(deadline)).collect();
        let late = reports.iter().any(|r| matches!(r, Err(e) if is_timeout(e)));
        if late || order.method == Method::Difference || reports.iter().any(|r| !is_done(r)) {
            // The totals wanted are on disk already, or are not wanted any more.
            group.kill();
        }
        let ends: Vec<_> = running.iter_mut().map(|r| r.end(deadline, &group)).collect();
        let processes: Vec<_> = running.iter().map(|r| r.child.id()).collect();
        drop(group);
        if late {
            return Err(self.timed_out(folder.path(), order));
        }
        let dones = self.judge(reports, &ends, folder.path())?;
        let left = dones.into_iter().zip(processes).enumerate();
        let left = left.map(|(party, (done, process))| Left {
            done,
            process,
            folder: folder.path().to_path_buf(),
            party,
        });
        Ok((left.collect(), folder))
    }

    fn start(&self, order: &Order, folder: &Path) -> std::result::Result<(Group, Vec<Running>), Failure> {
        let failed = |e: io::Error| Failure::Failed(format!("a measured child does not start: {e}"));
        let mut streams = Streams::new(order.parties).map_err(failed)?;
        let mut running = Vec::new();
        let first = Group::start(|| {
            let first = self.spawn(order, 0, 0, streams.next(), folder)?;
            let group = first.child.id() as i32;
            running.push(first);
            Ok(group)
        });
        let group = first.ok_or_else(|| Failure::Failed("interrupted".into()))?.map_err(failed)?;
        for party in 1..order.parties {
            match self.spawn(order, party, group.id(), streams.next(), folder) {
                Ok(next) => running.push(next),
                Err(error) => {
                    group.kill();
                    // A killed process is reaped at once.
                    running.iter_mut().for_each(|r| drop(r.child.wait()));
                    return Err(failed(error));
                }
            }
        }
        Ok((group, running))
    }

    fn spawn(
        &self,
        order: &Order,
        party: usize,
        group: i32,
        (input, output): (Stdio, Stdio),
        folder: &Path,
    ) -> io::Result<Running> {
        let temporary = folder.join(format!("{party}.tmp"));
        let files = behind(&temporary)?;
        let (mut control, theirs) = UnixStream::pair()?;
        let file = |what: &str| folder.join(format!("{party}.{what}")).into_os_string();
        let mut command = Command::new(&self.tool.path);
        command.args(self.options(party, folder));
        command.arg(self.scratch.program()).arg(FLAG);
        command.env_clear().envs(environment(order.seed)).env("TMPDIR", temporary);
        let stderr = File::create(file("err"))?;
        command.stdin(input).stdout(output).stderr(stderr);
        sys::prepare(&mut command, group, theirs.as_raw_fd(), CONTROL);
        let child = command.spawn()?;
        drop(theirs);
        let mut running = Running { child, control: control.try_clone()?, _files: files };
        if let Err(error) = protocol::send(&mut control, &order.job(party)) {
            // A child that is gone already says why on stderr.
            if error.kind() != ErrorKind::BrokenPipe {
                sys::kill_group(running.child.id() as i32);
                running.child.wait()?;
                return Err(error);
            }
        }
        Ok(running)
    }

    fn options(&self, party: usize, folder: &Path) -> Vec<OsString> {
        let path = |prefix: String, what: &str| {
            let mut option = OsString::from(prefix);
            option.push(folder.join(format!("{party}.{what}")));
            option
        };
        let mut options: Vec<OsString> = [
            format!("--tool={}", self.name).as_str(),
            // Nothing from VALGRIND_OPTS or a .valgrindrc.
            "--command-line-only=yes",
            "-q",
            "--vgdb=no",
            "--child-silent-after-fork=yes",
            "--main-stacksize=8388608",
            "--read-inline-info=no",
            // Blocks that end at each branch are translated faster, and a
            // child is mostly translation; the count is the same.
            "--vex-guest-chase=no",
        ]
        .map(OsString::from)
        .into();
        options.extend(self.options.iter().map(OsString::from));
        options.push(path("--log-file=".into(), "log"));
        options.push(path(format!("--{}-out-file=", self.name), "out.%p"));
        options
    }

    fn timed_out(&self, folder: &Path, order: &Order) -> Failure {
        let said = (0..order.parties).map(|party| complaint::last_words(folder, party)).collect::<String>();
        Failure::TimedOut(format!(
            "not done after {} s under valgrind {}{said}",
            order.timeout.as_secs_f64(),
            self.tool.version
        ))
    }

    /// All parties' reports, or the failure that explains the others.
    fn judge(
        &self,
        reports: Vec<io::Result<Report>>,
        ends: &[io::Result<ExitStatus>],
        folder: &Path,
    ) -> std::result::Result<Vec<Done>, Failure> {
        let mut dones = Vec::new();
        let mut failures = Vec::new();
        for (party, report) in reports.into_iter().enumerate() {
            match report {
                Ok(Report::Done(done)) => dones.push(done),
                Ok(Report::Failed { reason, panicked: true, .. }) => {
                    let said = complaint::last_words(folder, party);
                    failures.push((0, Failure::Panicked(format!("{reason}{said}"))));
                }
                Ok(Report::Failed { reason, abandoned, .. }) => {
                    let said = complaint::last_words(folder, party);
                    failures
                        .push((if abandoned { 2 } else { 1 }, Failure::Failed(format!("{reason}{said}"))));
                }
                Err(error) => {
                    let text = complaint::of_death(&self.tool, &error, &ends[party], folder, party);
                    failures.push((0, Failure::Failed(text)));
                }
            }
        }
        match failures.into_iter().min_by_key(|(rank, _)| *rank) {
            None => Ok(dones),
            Some((_, failure)) => Err(failure),
        }
    }
}

/// When a time is over; a year stands for no limit.
fn deadline(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(Duration::from_secs(365 * 24 * 3600))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn is_done(report: &io::Result<Report>) -> bool {
    matches!(report, Ok(Report::Done(_)))
}

/// The whole environment of a child, apart from its folder for temporary files.
fn environment(seed: u64) -> Vec<(OsString, OsString)> {
    let fixed =
        [(world::SEED_VARIABLE, format!("{seed:016x}")), (features::AWS_LC_VARIABLE, NO_RDRAND.to_string())];
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    fixed.into_iter().map(|(name, value)| (name.into(), value.into())).chain(passed_on).collect()
}

/// Standard input and output of each party, crossed.
struct Streams(std::vec::IntoIter<(Stdio, Stdio)>);

impl Streams {
    fn new(parties: usize) -> io::Result<Self> {
        use std::os::fd::AsFd;
        if parties < 2 {
            let lone = (Stdio::null(), Stdio::null());
            return Ok(Self(vec![lone].into_iter()));
        }
        let (first_in, second_out) = io::pipe()?;
        let (second_in, first_out) = io::pipe()?;
        sys::widen(first_out.as_fd(), PIPE);
        sys::widen(second_out.as_fd(), PIPE);
        let both = vec![(first_in.into(), first_out.into()), (second_in.into(), second_out.into())];
        Ok(Self(both.into_iter()))
    }

    fn next(&mut self) -> (Stdio, Stdio) {
        self.0.next().unwrap_or_else(|| (Stdio::null(), Stdio::null()))
    }
}

impl Running {
    fn report(&mut self, deadline: Instant) -> io::Result<Report> {
        self.wait_until(deadline)?;
        protocol::receive(&mut self.control)
    }

    /// Waits for the process; when it does not end in time, ends the group.
    fn end(&mut self, deadline: Instant, group: &Group) -> io::Result<ExitStatus> {
        // The socket ends with the last process that holds it.
        let mut rest = [0; 64];
        loop {
            let read = self.wait_until(deadline).and_then(|()| io::Read::read(&mut self.control, &mut rest));
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    group.kill();
                    break;
                }
            }
        }
        self.child.wait()
    }

    fn wait_until(&self, deadline: Instant) -> io::Result<()> {
        // A time-out of zero would mean none at all.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.control.set_read_timeout(Some(left))
    }
}
