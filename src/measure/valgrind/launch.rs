//! Has measured children forked under Valgrind, waits for their reports, and
//! ends them: the parent's side of the protocol.
//!
//! Neighbours: `counter` gives the orders, `server` forks the children,
//! `readings` reads the files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::groups::{self, Group};
use super::protocol::{self, Done, FLAG, Job, Method, Report, Task};
use super::scratch::{Folder, Scratch, behind};
use super::server::{Server, is_timeout, path_of, wait_at_most};
use super::tool::{Tool, WITH_CHASING};
use super::{complaint, features, sys, world};
use crate::error::Result;
use crate::measure::Failure;

/// Masks RDRAND, whose results no replacement can make the same again.
const NO_RDRAND: &str = "~0x4000000000000000";
/// What a pipe between two parties may hold, in bytes.
const PIPE: i32 = 1 << 20;
/// How long a killed process may take to end.
const LAST: Duration = Duration::from_secs(10);
/// Variables that reach the children although the environment is cleared: the
/// loader's and Valgrind's own, without which they could not start.
const PASSED_ON: [&str; 2] = ["LD_LIBRARY_PATH", "VALGRIND_LIB"];

/// Starts children, all in the same way.
pub(super) struct Launcher {
    tool: Tool,
    /// `cachegrind`, `callgrind` or `dhat`, and what it is told.
    name: &'static str,
    options: Vec<String>,
    /// What bodies read of the environment.
    variables: Vec<(OsString, OsString)>,
    /// By seed; ended before the scratch folder goes.
    servers: Mutex<BTreeMap<u64, Arc<Server>>>,
    scratch: Scratch,
    second_tries: Mutex<()>,
    is_closed: AtomicBool,
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
    fn job(&self, party: usize, temporary: PathBuf) -> Job {
        let task = match &self.scenario {
            None => Task::Canary { loops: self.loops },
            Some(name) => Task::Scenario { name: name.clone(), party: (self.parties == 2).then_some(party) },
        };
        let Self { method, warm, iterations, ballast, .. } = *self;
        Job { task, method, warm, iterations, ballast, temporary }
    }
}

/// What the child of one party left behind.
pub(super) struct Left {
    pub done: Done,
    pub process: i32,
    stem: PathBuf,
}

impl Left {
    /// The tool's output file of a process: the child's own, or a snapshot's.
    pub(super) fn file(&self, process: i64) -> PathBuf {
        self.stem.with_extension(format!("out.{process}"))
    }
}

/// A party's child that runs.
struct Running {
    process: i32,
    control: UnixStream,
    /// Where the body's files are; removed behind it.
    _files: TempDir,
}

impl Launcher {
    /// Prepares the scratch folder.
    ///
    /// # Errors
    /// There is no place for it.
    pub(super) fn new(
        tool: Tool,
        name: &'static str,
        options: Vec<String>,
        variables: Vec<(OsString, OsString)>,
    ) -> Result<Self> {
        let servers = Mutex::new(BTreeMap::new());
        Ok(Self {
            tool,
            name,
            options,
            variables,
            scratch: Scratch::make()?,
            servers,
            second_tries: Mutex::new(()),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Runs all parties of an order to their end. When the server dies
    /// meanwhile, perhaps of another order's child, the order gets a second
    /// try with a new server, one such order at a time: so the one that kills
    /// servers fails alone.
    ///
    /// # Errors
    /// A party failed, died, or did not end in time.
    pub(super) fn run(&self, order: &Order) -> std::result::Result<(Vec<Left>, Folder), Failure> {
        let deadline = deadline(order.timeout);
        let server = self.server(order.seed, deadline)?;
        let result = self.run_from(&server, order, deadline);
        if result.is_ok() || !server.is_gone() || self.is_closed.load(Relaxed) {
            return result;
        }
        drop(server);
        let _alone = self.second_tries.lock().unwrap_or_else(PoisonError::into_inner);
        let server = self.server(order.seed, deadline)?;
        self.run_from(&server, order, deadline)
    }

    /// Ends all children and servers, and starts no more.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Relaxed);
        groups::kill_alive();
    }

    /// The server of a seed, which is in the environment from its start.
    fn server(&self, seed: u64, deadline: Instant) -> std::result::Result<Arc<Server>, Failure> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&seed).filter(|server| !server.is_gone()) {
            return Ok(Arc::clone(server));
        }
        if self.is_closed.load(Relaxed) {
            return Err(Failure::Failed("interrupted".into()));
        }
        let folder = self.scratch.folder().map_err(no_folder)?;
        let mut command = Command::new(&self.tool.path);
        command.args(self.options(folder.path()));
        command.arg(self.scratch.program()).arg(FLAG);
        command
            .env_clear()
            .envs(self.variables.iter().cloned())
            .envs(environment(seed))
            .env("TMPDIR", folder.path());
        let server = Arc::new(Server::start(command, folder, &self.tool, deadline)?);
        servers.insert(seed, Arc::clone(&server));
        Ok(server)
    }

    fn run_from(
        &self,
        server: &Server,
        order: &Order,
        deadline: Instant,
    ) -> std::result::Result<(Vec<Left>, Folder), Failure> {
        let folder = self.scratch.folder().map_err(no_folder)?;
        let (group, mut running) = self.start(server, order, folder.path())?;
        let reports: Vec<_> = running.iter_mut().map(|r| r.report(deadline)).collect();
        let late = reports.iter().any(|r| matches!(r, Err(e) if is_timeout(e)));
        if late || order.method == Method::Difference || reports.iter().any(|r| !is_done(r)) {
            // The totals wanted are on disk already, or are not wanted any more.
            group.kill();
        }
        let ends: Vec<_> = running.iter_mut().map(|r| r.end(server, deadline, &group)).collect();
        drop(group);
        if late {
            return Err(self.timed_out(folder.path(), order));
        }
        for (party, (running, report)) in running.iter().zip(&reports).enumerate() {
            take_files(server, running.process, report, &stem(folder.path(), party));
        }
        let dones = self.judge(reports, &ends, folder.path())?;
        let processes = running.iter().map(|r| r.process);
        let left = dones.into_iter().zip(processes).enumerate().map(|(party, (done, process))| Left {
            done,
            process,
            stem: stem(folder.path(), party),
        });
        Ok((left.collect(), folder))
    }

    fn start(
        &self,
        server: &Server,
        order: &Order,
        folder: &Path,
    ) -> std::result::Result<(Group, Vec<Running>), Failure> {
        let failed = |e: io::Error| Failure::Failed(format!("a measured child does not start: {e}"));
        let mut streams = Streams::new(order.parties).map_err(failed)?;
        let mut running = Vec::new();
        let first = Group::start(|| {
            let first = spawn(server, order, 0, 0, streams.next()?, folder)?;
            let group = first.process;
            running.push(first);
            Ok(group)
        });
        let group = first.ok_or_else(|| Failure::Failed("interrupted".into()))?.map_err(failed)?;
        for party in 1..order.parties {
            let next = streams.next().and_then(|s| spawn(server, order, party, group.id(), s, folder));
            // What runs already is killed with its group, and reaped with the server.
            running.push(next.map_err(failed)?);
        }
        Ok((group, running))
    }

    fn options(&self, folder: &Path) -> Vec<OsString> {
        let path = |prefix: String, what: &str| {
            let mut option = OsString::from(prefix);
            option.push(path_of(folder, what, "%p"));
            option
        };
        let mut options: Vec<OsString> = [
            format!("--tool={}", self.name).as_str(),
            // Nothing from VALGRIND_OPTS or a .valgrindrc.
            "--command-line-only=yes",
            "-q",
            "--vgdb=no",
            "--main-stacksize=8388608",
            "--read-inline-info=no",
        ]
        .map(OsString::from)
        .into();
        if self.tool.version >= WITH_CHASING {
            // It would count instructions that are not executed (see `roi::canary`).
            options.push("--vex-guest-chase=no".into());
        }
        options.extend(self.options.iter().map(OsString::from));
        // Each process has files of its own.
        options.push(path("--log-file=".into(), "log"));
        options.push(path(format!("--{}-out-file=", self.name), "out"));
        options
    }

    fn timed_out(&self, folder: &Path, order: &Order) -> Failure {
        let said =
            (0..order.parties).map(|party| complaint::last_words(&stem(folder, party))).collect::<String>();
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
                    let said = complaint::last_words(&stem(folder, party));
                    failures.push((0, Failure::Panicked(format!("{reason}{said}"))));
                }
                Ok(Report::Failed { reason, abandoned, .. }) => {
                    let said = complaint::last_words(&stem(folder, party));
                    failures
                        .push((if abandoned { 2 } else { 1 }, Failure::Failed(format!("{reason}{said}"))));
                }
                Err(error) => {
                    let text = complaint::of_death(&self.tool, &error, &ends[party], &stem(folder, party));
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

fn is_done(report: &io::Result<Report>) -> bool {
    matches!(report, Ok(Report::Done(_)))
}

/// The environment of a child, apart from its folder for temporary files and
/// from what its body reads.
fn environment(seed: u64) -> Vec<(OsString, OsString)> {
    let fixed =
        [(world::SEED_VARIABLE, format!("{seed:016x}")), (features::AWS_LC_VARIABLE, NO_RDRAND.to_string())];
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    fixed.into_iter().map(|(name, value)| (name.into(), value.into())).chain(passed_on).collect()
}

/// Where the files of a party are, without extension.
fn stem(folder: &Path, party: usize) -> PathBuf {
    folder.join(party.to_string())
}

fn no_folder(error: io::Error) -> Failure {
    Failure::Failed(format!("scratch folder: {error}"))
}

/// Has one party's child forked, and gives it its job.
fn spawn(
    server: &Server,
    order: &Order,
    party: usize,
    group: i32,
    (input, output): (OwnedFd, OwnedFd),
    folder: &Path,
) -> io::Result<Running> {
    let stem = stem(folder, party);
    let temporary = stem.with_extension("tmp");
    let files = behind(&temporary)?;
    let (mut control, theirs) = UnixStream::pair()?;
    let errors = File::create(stem.with_extension("err"))?;
    let process = server.fork(group, [theirs.as_fd(), input.as_fd(), output.as_fd(), errors.as_fd()])?;
    drop(theirs);
    match protocol::send(&mut control, &order.job(party, temporary)) {
        // A child that is gone already says why on stderr.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            sys::kill_group(process);
            Err(error)
        }
        _ => Ok(Running { process, control, _files: files }),
    }
}

/// Moves what Valgrind wrote of a child and its snapshots to the order's files.
/// What is missing there is found out when it is read.
fn take_files(server: &Server, process: i32, report: &io::Result<Report>, stem: &Path) {
    let snapshots = match report {
        Ok(Report::Done(done)) => done.snapshots.as_slice(),
        _ => &[],
    };
    for process in snapshots.iter().copied().chain([process.into()]) {
        let _ = fs::rename(server.file("out", process), stem.with_extension(format!("out.{process}")));
        let _ = fs::rename(server.file("log", process), stem.with_extension("log"));
    }
}

/// Standard input and output of each party, crossed.
struct Streams(std::vec::IntoIter<(OwnedFd, OwnedFd)>);

impl Streams {
    fn new(parties: usize) -> io::Result<Self> {
        if parties < 2 {
            return Ok(Self(Vec::new().into_iter()));
        }
        let (first_in, second_out) = io::pipe()?;
        let (second_in, first_out) = io::pipe()?;
        sys::widen(first_out.as_fd(), PIPE);
        sys::widen(second_out.as_fd(), PIPE);
        let both = vec![(first_in.into(), first_out.into()), (second_in.into(), second_out.into())];
        Ok(Self(both.into_iter()))
    }

    fn next(&mut self) -> io::Result<(OwnedFd, OwnedFd)> {
        let nothing = || -> io::Result<OwnedFd> {
            Ok(File::options().read(true).write(true).open("/dev/null")?.into())
        };
        self.0.next().map_or_else(|| Ok((nothing()?, nothing()?)), Ok)
    }
}

impl Running {
    fn report(&mut self, deadline: Instant) -> io::Result<Report> {
        wait_at_most(&self.control, deadline)?;
        protocol::receive(&mut self.control)
    }

    /// Waits for the process; when it does not end in time, ends the group.
    fn end(&mut self, server: &Server, deadline: Instant, group: &Group) -> io::Result<ExitStatus> {
        // The socket ends with the last process that holds it.
        let mut rest = [0; 64];
        loop {
            let read = wait_at_most(&self.control, deadline)
                .and_then(|()| io::Read::read(&mut self.control, &mut rest));
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
        server.wait(self.process, deadline).or_else(|error| {
            if !is_timeout(&error) {
                return Err(error);
            }
            // It had let go of the socket, but went on.
            group.kill();
            server.wait(self.process, self::deadline(LAST))
        })
    }
}
