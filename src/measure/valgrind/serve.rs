//! The server inside of Valgrind: this program, started once and standing still
//! right before the first scenario, from which each measured child is forked
//! with all that starting took, translations included.
//!
//! Between two children the server makes a fixed sequence of system calls on a
//! fixed place of its stack: it allocates nothing, opens nothing and starts no
//! thread, so that every child finds the same process, whichever came before.
//!
//! Neighbours: `server` speaks for the parent; `child` does the forked job.

use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use super::protocol::{CONTROL, FORK, FRAME, PASSED, READY, VERSION, WAIT, frame, numbers};
use super::sys;

/// Serves until the parent is gone (`None`), or until this process is a forked
/// child: then its socket to the parent.
///
/// # Errors
/// There is no parent, or a child cannot take its place.
pub(super) fn serve() -> io::Result<Option<OwnedFd>> {
    let parent = sys::inherited(CONTROL)?;
    // From here on the end of the socket says that the parent is gone.
    sys::outlive_starter()?;
    send(&parent, [READY, VERSION as i32])?;
    loop {
        let mut passed = [-1; PASSED];
        let mut frame = [0; FRAME];
        let received = sys::receive(parent.as_fd(), &mut frame, &mut passed)?;
        if received == 0 {
            return Ok(None);
        }
        let [what, value] = numbers(frame);
        let answer = match what {
            FORK => match sys::fork(value) {
                Ok(0) => return become_child(parent, passed).map(Some),
                forked => {
                    sys::close(&passed);
                    [forked.unwrap_or_else(|e| -e.raw_os_error().unwrap_or(1)), 0]
                }
            },
            WAIT => sys::ended(value),
            _ => [-1, 0],
        };
        send(&parent, answer)?;
    }
}

/// In the forked child: puts the descriptors that were handed over where a
/// measured child has them.
fn become_child(parent: OwnedFd, [control, input, output, errors]: [RawFd; PASSED]) -> io::Result<OwnedFd> {
    drop(parent);
    for (stream, fd) in [input, output, errors].into_iter().enumerate() {
        sys::redirect(sys::inherited(fd)?.as_fd(), stream as RawFd)?;
    }
    sys::duplicate(sys::inherited(control)?.as_fd(), CONTROL)
}

fn send(parent: &OwnedFd, numbers: [i32; 2]) -> io::Result<()> {
    sys::send(parent.as_fd(), &frame(numbers), &[])
}
