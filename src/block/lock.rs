//! Taking a mutex without a panic: the data of this layer is consistent
//! between any two statements that hold a lock, so a poisoned lock is taken
//! all the same.
//!
//! Neighbours: every module of [`crate::block`] that shares state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, poisoned or not.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
