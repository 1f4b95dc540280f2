//! The counter that tells of completions to who polls for them.
//!
//! Neighbours: the engines make one when asked for a notifier; the kernel
//! adds to it (AIO, io_uring), or the engine does, where an operation
//! completes without the kernel's queue.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::counters::{Call, count};
use super::file::check;
use crate::block::error::{Error, Result};

/// A non-blocking eventfd.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A new one, at 0.
    ///
    /// # Errors
    ///
    /// With errno, where the system has no more of them.
    pub fn new() -> Result<Self> {
        count(Call::Setup);
        // SAFETY: no pointer is passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        check(fd.into()).map_err(|error| Error::io("cannot create an eventfd", error))?;
        // SAFETY: a valid descriptor that nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds one. Never waits; a counter at its maximum is readable anyway.
    pub(crate) fn signal(&self) {
        count(Call::Notify);
        let one = 1u64;
        // SAFETY: eight readable bytes. The only failure is the full counter.
        let _ = unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until an eventfd's counter is above 0.
///
/// # Errors
///
/// With errno, where `fd` cannot be waited for.
pub fn wait(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut asked = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    crate::block::io::retry(|| {
        // SAFETY: one entry, which is ours to write.
        check(unsafe { libc::poll(&raw mut asked, 1, -1) }.into())
    })
    .map(drop)
}

/// Reads an eventfd's counter and sets it to 0; `None` where it is 0 already
/// and the descriptor does not block.
///
/// # Errors
///
/// With errno, where `fd` is no eventfd.
pub fn drain(fd: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    let mut value = 0u64;
    // SAFETY: eight writable bytes.
    let read = unsafe { libc::read(fd.as_raw_fd(), (&raw mut value).cast(), 8) };
    match check(read as i64) {
        Ok(_) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits until `fd` is readable.
///
/// # Errors
///
/// With errno.
pub fn wait_readable(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    crate::block::io::retry(|| {
        // SAFETY: one pollfd.
        check(unsafe { libc::poll(&raw mut poll, 1, -1) }.into()).map(drop)
    })
}
