//! The few calls to libc that starting and ending measured children needs;
//! with `roi`, `world` and `stack` the only unsafe code of the meters.
//!
//! Neighbours: `server` and `serve` start children with it, `groups` ends them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::protocol::PASSED;

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

/// Lets this process live on when the thread that started it has ended.
pub(super) fn outlive_starter() -> io::Result<()> {
    // SAFETY: takes back what `prepare` wanted, and nothing else.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) })
}

/// Forks this process, which must have one thread, and gives 0 in the child,
/// which ends with this process. The child is put into the process group
/// `group` (0: one of its own) before its id is known to anybody.
pub(super) fn fork(group: i32) -> io::Result<i32> {
    // SAFETY: there is no other thread that could hold a lock. The child asks
    // to be ended with its parent, and ends at once when that is gone already.
    unsafe {
        let parent = libc::getpid();
        let child = libc::fork();
        check(child)?;
        if child == 0 {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            if libc::getppid() != parent {
                libc::_exit(101);
            }
        } else if let Err(error) = check(libc::setpgid(child, if group == 0 { child } else { group })) {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
            return Err(error);
        }
        Ok(child)
    }
}

/// Process id and status of the child `process` if it has ended, 0 and 0 if it
/// runs, -1 and the error number if there is none.
pub(super) fn ended(process: i32) -> [i32; 2] {
    let mut status = 0;
    // SAFETY: `status` lives through the call, which does not wait.
    match unsafe { libc::waitpid(process, &mut status, libc::WNOHANG) } {
        -1 => [-1, io::Error::last_os_error().raw_os_error().unwrap_or(0)],
        process => [process, status],
    }
}

/// Closes descriptors that were handed over and are not wanted.
pub(super) fn close(fds: &[RawFd]) {
    for fd in fds.iter().filter(|fd| **fd >= 0) {
        // SAFETY: `receive` has put them there, and nobody else owns them.
        unsafe { libc::close(*fd) };
    }
}

/// Room for the descriptors of one message, aligned as the system wants it.
#[repr(C, align(8))]
struct Ancillary([u8; 64]);

/// Bytes that the descriptors of one message take at most.
const ANCILLARY: usize = PASSED * size_of::<RawFd>();

/// A message of one piece, with room for descriptors.
fn message(piece: &mut libc::iovec, room: &mut Ancillary) -> libc::msghdr {
    // SAFETY: all fields of this plain structure may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (piece, 1);
    message.msg_control = (&raw mut room.0).cast();
    // SAFETY: computes a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(ANCILLARY as _) } as _;
    message
}

/// Sends `bytes`, fewer than a socket's buffer holds, and hands over `fds`.
pub(super) fn send(to: BorrowedFd<'_>, bytes: &[u8], fds: &[RawFd]) -> io::Result<()> {
    let mut piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut room = Ancillary([0; 64]);
    let mut message = message(&mut piece, &mut room);
    if fds.is_empty() {
        message.msg_controllen = 0;
    } else {
        // SAFETY: `room` has space for the header and for PASSED descriptors,
        // which the slice of the caller does not exceed.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(ANCILLARY as _) as _;
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            std::ptr::copy_nonoverlapping(fds.as_ptr(), data, fds.len().min(PASSED));
        }
    }
    loop {
        // SAFETY: the message and all that it points to live through the call.
        let sent = unsafe { libc::sendmsg(to.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
        match sent {
            -1 if interrupted() => {}
            -1 => return Err(io::Error::last_os_error()),
            n if n as usize == bytes.len() => return Ok(()),
            _ => return Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

/// Fills `bytes`, and `fds` with the descriptors that were handed over; gives
/// 0 when the other side is gone.
pub(super) fn receive(
    from: BorrowedFd<'_>,
    bytes: &mut [u8],
    fds: &mut [RawFd; PASSED],
) -> io::Result<usize> {
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut room = Ancillary([0; 64]);
    let mut message = message(&mut piece, &mut room);
    let flags = libc::MSG_WAITALL | libc::MSG_CMSG_CLOEXEC;
    let received = loop {
        // SAFETY: the message and all that it points to live through the call.
        match unsafe { libc::recvmsg(from.as_raw_fd(), &mut message, flags) } {
            -1 if interrupted() => {}
            -1 => return Err(io::Error::last_os_error()),
            n => break n as usize,
        }
    };
    // SAFETY: the kernel has filled in the header, if there is one, and as many
    // descriptors as its length says.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let length = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            let many = (length / size_of::<RawFd>()).min(PASSED);
            std::ptr::copy_nonoverlapping(data, fds.as_mut_ptr(), many);
        }
    }
    if received == bytes.len() || received == 0 {
        Ok(received)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

/// Sets a variable of the environment of this process, which has one thread.
pub(super) fn set_variable(name: &str, value: &std::ffi::OsStr) {
    // SAFETY: nothing reads the environment meanwhile.
    unsafe { std::env::set_var(name, value) };
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_are_handed_over_with_a_message() {
        let (here, there) = UnixStream::pair().expect("a socket");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        send(here.as_fd(), b"all four", &[writer.as_raw_fd(); PASSED]).expect("room in the socket");
        send(here.as_fd(), b"none", &[]).expect("room in the socket");
        drop((writer, here));
        let (mut bytes, mut fds) = ([0; 8], [-1; PASSED]);
        assert_eq!(receive(there.as_fd(), &mut bytes, &mut fds).expect("a message"), 8);
        assert_eq!(&bytes, b"all four");
        let mut mine = std::fs::File::from(inherited(fds[3]).expect("open"));
        mine.write_all(b"x").expect("room in the pipe");
        drop(mine);
        close(&fds[..3]);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("an end, since no copy is left open");
        assert_eq!(text, "x");

        let mut fds = [-1; PASSED];
        assert_eq!(receive(there.as_fd(), &mut bytes[..4], &mut fds).expect("a message"), 4);
        assert_eq!(fds, [-1; PASSED]);
        assert_eq!(receive(there.as_fd(), &mut bytes, &mut fds).expect("the end"), 0);
    }
}
