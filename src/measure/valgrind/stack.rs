//! A stack of one's own for a measured body: page-aligned, and the same
//! distance from everything whatever the environment and the arguments are,
//! which lie on the stack that the system gives.
//!
//! Neighbours: `child` runs a scenario on it.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

/// Bytes; pages that are never touched cost nothing.
#[cfg(not(miri))]
const SIZE: usize = 64 << 20;

/// Calls `body` on a stack of its own. A panic goes through to the caller.
///
/// # Errors
/// The system gives no memory for the stack.
#[cfg(not(miri))]
pub(super) fn on_own_stack<T>(body: impl FnOnce() -> T) -> io::Result<thread::Result<T>> {
    // SAFETY: a new private mapping, which nothing else refers to.
    let base = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        libc::mmap(std::ptr::null_mut(), SIZE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the lowest page of the mapping becomes its guard.
    unsafe { libc::mprotect(base, 4096, libc::PROT_NONE) };
    let caught = || panic::catch_unwind(AssertUnwindSafe(body));
    // SAFETY: the mapping is aligned to pages, SIZE long, and stays until the
    // call is over; a panic is caught before it could cross the boundary.
    let result = unsafe { psm::on_stack(base.cast(), SIZE, caught) };
    // SAFETY: nothing on the stack is in use any more.
    unsafe { libc::munmap(base, SIZE) };
    Ok(result)
}

/// Miri, which tests other parts of this crate, has one stack only.
#[cfg(miri)]
pub(super) fn on_own_stack<T>(body: impl FnOnce() -> T) -> io::Result<thread::Result<T>> {
    Ok(panic::catch_unwind(AssertUnwindSafe(body)))
}

#[cfg(test)]
mod tests {
    use super::on_own_stack;

    #[test]
    fn gives_back_results_and_panics() {
        assert_eq!(on_own_stack(|| 7).expect("memory").ok(), Some(7));
        let panicked = on_own_stack(|| assert_eq!(1, 2, "planted")).expect("memory");
        assert!(panicked.is_err());
    }
}
