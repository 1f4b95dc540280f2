//! File descriptors: standard output is taken away from bodies, and a few
//! descriptors are carried through an `exec`.
//!
//! Neighbours: `process` (the `exec`), `cli::term` (which owns what is taken).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// Takes standard output for events: from here on everything else that
/// writes to descriptor 1, in this process or a child, writes to standard
/// error. The returned file is not inherited by children.
///
/// # Errors
/// The system has no descriptor left.
pub fn take_stdout() -> io::Result<File> {
    // SAFETY: duplicates a descriptor number; no memory is involved.
    let saved = check(unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: `fcntl` has just made this descriptor, and nothing else knows it.
    let saved = unsafe { File::from_raw_fd(saved) };
    // SAFETY: replaces descriptor 1 by a duplicate of 2; no memory is involved.
    check(unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) })?;
    Ok(saved)
}

/// Takes standard input for commands: from here on whoever reads descriptor 0
/// finds its end. The returned file is not inherited by children.
///
/// # Errors
/// The system has no descriptor left.
pub fn take_stdin() -> io::Result<File> {
    // SAFETY: duplicates a descriptor number; no memory is involved.
    let saved = check(unsafe { libc::fcntl(libc::STDIN_FILENO, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: `fcntl` has just made this descriptor, and nothing else knows it.
    let saved = unsafe { File::from_raw_fd(saved) };
    let null = File::open("/dev/null")?;
    // SAFETY: replaces descriptor 0 by a duplicate of an open file; no memory is involved.
    check(unsafe { libc::dup2(null.as_raw_fd(), libc::STDIN_FILENO) })?;
    Ok(saved)
}

/// A file that is nowhere but in memory.
///
/// # Errors
/// The system refuses.
pub fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a valid C string, and is only read.
    let fd = check(unsafe { libc::memfd_create(c"wallgrind".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor was made just now, and nothing else knows it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Lets a descriptor live through the next `exec`, and gives its number.
///
/// # Errors
/// The system refuses.
pub fn keep_on_exec(file: &impl AsRawFd) -> io::Result<RawFd> {
    let fd = file.as_raw_fd();
    // SAFETY: clears the close-on-exec flag of a descriptor; no memory is involved.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) })?;
    Ok(fd)
}

/// Takes over a descriptor that the process before an `exec` kept, and closes
/// it on the next `exec` again.
///
/// # Errors
/// No such descriptor is open, or it is one of the standard three.
pub fn inherited(fd: RawFd) -> io::Result<File> {
    if fd <= libc::STDERR_FILENO {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: sets a flag of a descriptor number; an invalid number is an error.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and came through `exec` for this call: nobody else in this image knows it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// When the reader of standard error has gone, points descriptors 1 and 2 to
/// `/dev/null`: a body that prints would panic otherwise.
pub fn mute_when_closed() {
    let mut poll = libc::pollfd { fd: libc::STDERR_FILENO, events: 0, revents: 0 };
    // SAFETY: one valid `pollfd`, no waiting.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    if ready <= 0 || poll.revents & libc::POLLERR == 0 {
        return;
    }
    let Ok(null) = File::options().write(true).open("/dev/null") else { return };
    for fd in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: replaces one of the standard descriptors by an open file. A failure leaves it as it was.
        unsafe { libc::dup2(null.as_raw_fd(), fd) };
    }
}

/// Turns the return value of a libc call into a result.
pub(super) fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}
