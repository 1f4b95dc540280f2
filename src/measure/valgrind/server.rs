//! The parent's side of the server under Valgrind from which measured children
//! are forked: starts it, has it fork, and asks it how a child has ended.
//!
//! Neighbours: `serve` is the server itself, `launch` gives the orders.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::complaint;
use super::groups::Group;
use super::protocol::{CONTROL, FORK, FRAME, PASSED, READY, VERSION, WAIT, frame, numbers};
use super::scratch::Folder;
use super::sys;
use super::tool::Tool;
use crate::measure::Failure;

/// A server that stands ready answers at once; this is for one that was stopped.
const ANSWER: Duration = Duration::from_secs(60);
/// Between two questions about a child that is about to end.
const AGAIN: Duration = Duration::from_millis(1);

/// A running server. Dropping it ends it, and with it all of its children.
pub(super) struct Server {
    group: Group,
    child: Child,
    socket: Mutex<UnixStream>,
    is_gone: AtomicBool,
    folder: Folder,
}

/// Where a server puts its own files: Valgrind's messages and output of each
/// process, by its id, and the standard error of the server.
pub(super) fn path_of(folder: &Path, what: &str, process: impl std::fmt::Display) -> PathBuf {
    folder.join(format!("{what}.{process}"))
}

impl Server {
    /// Starts `command`, which runs this program under Valgrind and writes its
    /// files to `folder`, and waits until it stands before the first scenario.
    ///
    /// # Errors
    /// It does not start, or does not get there in time.
    pub(super) fn start(
        mut command: Command,
        folder: Folder,
        tool: &Tool,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let failed = |e: io::Error| Failure::Failed(format!("valgrind does not start: {e}"));
        let stem = folder.path().join("server");
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let errors = File::create(stem.with_extension("err")).map_err(failed)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        sys::prepare(&mut command, 0, theirs.as_raw_fd(), CONTROL);
        let mut started = None;
        let group = Group::start(|| {
            let child = command.spawn()?;
            let group = child.id() as i32;
            started = Some(child);
            Ok(group)
        });
        drop(theirs);
        let group = group.ok_or_else(|| Failure::Failed("interrupted".into()))?.map_err(failed)?;
        let child = started.ok_or_else(|| Failure::Failed("valgrind does not start".into()))?;
        let server = Self { group, child, socket: Mutex::new(ours), is_gone: AtomicBool::new(false), folder };
        match server.hello(deadline) {
            Ok(()) => Ok(server),
            Err(error) => Err(server.complaint(&error, tool, deadline, &stem)),
        }
    }

    /// Waits for the first word of the server.
    fn hello(&self, deadline: Instant) -> io::Result<()> {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        wait_at_most(&socket, deadline)?;
        match read(&socket)? {
            [READY, version] if version == VERSION as i32 => socket.set_read_timeout(Some(ANSWER)),
            [_, version] => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it speaks version {version} of the protocol, and this program {VERSION}"),
            )),
        }
    }

    /// Why the server is of no use.
    fn complaint(mut self, error: &io::Error, tool: &Tool, deadline: Instant, stem: &Path) -> Failure {
        self.group.kill();
        let end = self.child.wait();
        let log = path_of(self.folder.path(), "log", self.child.id());
        // Where there is none, there is nothing to quote.
        let _ = fs::rename(log, stem.with_extension("log"));
        if is_timeout(error) && Instant::now() >= deadline {
            let said = complaint::last_words(stem);
            return Failure::TimedOut(format!(
                "the suite is not registered yet under valgrind {}{said}",
                tool.version
            ));
        }
        Failure::Failed(complaint::of_death(tool, error, &end, stem))
    }

    /// Forks a measured child with these descriptors (socket, standard input,
    /// output, error) into a process group (0: one of its own); its process id.
    ///
    /// # Errors
    /// The server is gone, or the system lets no process be forked.
    pub(super) fn fork(&self, group: i32, passed: [BorrowedFd<'_>; PASSED]) -> io::Result<i32> {
        let [process, _] = self.ask([FORK, group], &passed.map(|fd| fd.as_raw_fd()))?;
        if process > 0 { Ok(process) } else { Err(io::Error::from_raw_os_error(-process)) }
    }

    /// Waits until `deadline` for the end of a child that has let go of its socket.
    ///
    /// # Errors
    /// It goes on, or nobody knows how it ended because the server is gone.
    pub(super) fn wait(&self, process: i32, deadline: Instant) -> io::Result<ExitStatus> {
        loop {
            match self.ask([WAIT, process], &[])? {
                [0, _] if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
                [0, _] => std::thread::sleep(AGAIN),
                [-1, error] => return Err(io::Error::from_raw_os_error(error)),
                [_, status] => return Ok(ExitStatus::from_raw(status)),
            }
        }
    }

    fn ask(&self, question: [i32; 2], fds: &[i32]) -> io::Result<[i32; 2]> {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_gone() {
            return Err(gone());
        }
        let answer = sys::send(socket.as_fd(), &frame(question), fds).and_then(|()| read(&socket));
        answer.map_err(|_| {
            // Whatever comes after a lost answer would be taken for it.
            self.is_gone.store(true, Relaxed);
            gone()
        })
    }

    /// Whether it has been found out that the server is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Relaxed)
    }

    /// The file of Valgrind of a process: its messages (`log`) or output (`out`).
    pub(super) fn file(&self, what: &str, process: impl std::fmt::Display) -> PathBuf {
        path_of(self.folder.path(), what, process)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.group.kill();
        // A killed process is reaped at once.
        let _ = self.child.wait();
    }
}

fn gone() -> io::Error {
    io::Error::other("the process that it is forked from has died")
}

fn read(mut socket: &UnixStream) -> io::Result<[i32; 2]> {
    let mut answer = [0; FRAME];
    io::Read::read_exact(&mut socket, &mut answer)?;
    Ok(numbers(answer))
}

/// Lets reads from a socket fail from a point in time on.
pub(super) fn wait_at_most(socket: &UnixStream, deadline: Instant) -> io::Result<()> {
    // A time-out of zero would mean none at all.
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    socket.set_read_timeout(Some(left))
}

/// Whether it was the time that ended a read.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
