//! The few calls to libc that starting and ending measured children needs;
//! with `roi`, `world` and `stack` the only unsafe code of the meters.
//!
//! Neighbours: `launch` prepares children with it, `groups` ends them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Wants `command` to run in the process group `group` (0: one of its own), to
/// end with the thread that starts it, to have address randomisation off (as
/// far as the system allows), and to find `control` as descriptor `at`.
pub(super) fn prepare(command: &mut Command, group: i32, control: RawFd, at: RawFd) {
    command.process_group(group);
    // SAFETY: between fork and exec only system calls are made, which are safe
    // there; `control` is open, since the caller holds it until it has spawned.
    unsafe {
        command.pre_exec(move || {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // Default containers forbid it; the child reports whether it worked.
            libc::personality(libc::ADDR_NO_RANDOMIZE as _);
            if control == at {
                check(libc::fcntl(at, libc::F_SETFD, 0))
            } else {
                check(libc::dup2(control, at))
            }
        });
    }
}

/// Whether this process runs without address randomisation.
pub(super) fn is_randomisation_off() -> bool {
    // SAFETY: 0xffffffff asks and changes nothing.
    let persona = unsafe { libc::personality(0xffff_ffff) };
    persona != -1 && persona & libc::ADDR_NO_RANDOMIZE != 0
}

/// Ends all processes of a group.
pub(super) fn kill_group(group: i32) {
    if group > 1 {
        // SAFETY: sends a signal; a group that is gone is no harm.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

/// A copy of `from` under a number of at least `lowest`, closed at exec.
pub(super) fn duplicate(from: BorrowedFd<'_>, lowest: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: makes a new descriptor, which nobody else owns.
    unsafe {
        let fd = libc::fcntl(from.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Makes `target` another name of what `source` names.
pub(super) fn redirect(source: BorrowedFd<'_>, target: RawFd) -> io::Result<()> {
    // SAFETY: the caller redirects standard streams, which nobody owns.
    check(unsafe { libc::dup2(source.as_raw_fd(), target) })
}

/// Takes a descriptor that was handed over at the start of this process.
pub(super) fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the protocol hands this descriptor to a child for itself alone,
    // and the child takes it once; that it is open is asked first.
    unsafe {
        check(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Asks for a pipe that holds `bytes`; the system may allow less.
pub(super) fn widen(pipe: BorrowedFd<'_>, bytes: i32) {
    // SAFETY: changes the size of a buffer of the kernel, or does not.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
