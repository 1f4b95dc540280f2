//! The process groups of all measured children that are alive, so that they
//! can be ended from wherever the end of this process is decided.
//!
//! Neighbours: `launch` enters and removes groups; the signal path of the
//! harness calls [`kill_all`].

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::sys;

struct Groups {
    alive: BTreeSet<i32>,
    closed: bool,
}

static GROUPS: Mutex<Groups> = Mutex::new(Groups { alive: BTreeSet::new(), closed: false });

fn groups() -> MutexGuard<'static, Groups> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all measured children and their groups, and lets no more be started.
/// For the way out after a signal; not for use inside a signal handler.
pub fn kill_all() {
    let mut groups = groups();
    groups.closed = true;
    for group in &groups.alive {
        sys::kill_group(*group);
    }
}

/// Ends all measured children; others can be started afterwards.
pub(super) fn kill_alive() {
    for group in &groups().alive {
        sys::kill_group(*group);
    }
}

/// A group that is ended when this is dropped.
pub(super) struct Group(i32);

impl Group {
    /// Starts the first process of a group and enters the group, in one step,
    /// so that [`kill_all`] can miss none. `None` when the end has been decided.
    pub(super) fn start<E>(spawn: impl FnOnce() -> Result<i32, E>) -> Option<Result<Self, E>> {
        let mut groups = groups();
        if groups.closed {
            return None;
        }
        Some(spawn().map(|group| {
            groups.alive.insert(group);
            Self(group)
        }))
    }

    pub(super) fn id(&self) -> i32 {
        self.0
    }

    pub(super) fn kill(&self) {
        sys::kill_group(self.0);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut groups = groups();
        self.kill();
        groups.alive.remove(&self.0);
    }
}
