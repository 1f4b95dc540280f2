//! What the scenarios ask of a machine, found once in a process.
//!
//! Neighbours: `register` attaches them.

use std::sync::OnceLock;

use super::case::Case;
use super::subject::{Io, PageCache};
use crate::block::probe;
use crate::block::sys::copy::drop_cache;
use crate::scenario::{Need, Scenario};

/// What was found.
type Found = Result<(), String>;

const AIO: Need = Need::new("Linux AIO", || {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(aio).clone()
});

const URING: Need = Need::new("io_uring", || {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| probe::io_uring().map(drop).map_err(|error| reason(&error))).clone()
});

const DIRECT: Need = Need::new("direct I/O", || {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(direct).clone()
});

const COLD: Need = Need::new("a page cache that can be dropped", || {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(cold).clone()
});

fn aio() -> Found {
    let budget = probe::aio_budget().map_err(|error| reason(&error))?;
    room(budget)
}

/// Whether the budget has room for a context.
fn room(budget: probe::AioBudget) -> Found {
    if budget.used < budget.max {
        return Ok(());
    }
    Err(format!("all {} operations that the system allows are taken (fs.aio-nr)", budget.max))
}

fn direct() -> Found {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    probe::direct(file.path()).map(drop).map_err(|error| reason(&error))
}

fn cold() -> Found {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    match std::fs::write(file.path(), [1; 4096]).and_then(|()| drop_cache(file.as_file())) {
        Ok(0) => Ok(()),
        Ok(_) => Err(format!("files in {} stay in memory", std::env::temp_dir().display())),
        Err(error) => Err(error.to_string()),
    }
}

/// Message and errno.
fn reason(error: &crate::block::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// States what a case needs.
pub(super) fn state(scenario: &mut Scenario, case: &Case) {
    match case.setting.io {
        Io::Sync => {}
        Io::Aio => drop(scenario.needs(AIO)),
        Io::Uring => drop(scenario.needs(URING)),
    }
    match case.setting.cache {
        PageCache::Warm => {}
        PageCache::Cold => drop(scenario.needs(COLD)),
        PageCache::Direct => drop(scenario.needs(DIRECT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_used_up_is_a_reason() {
        assert!(room(probe::AioBudget { used: 9, max: 10 }).is_ok());
        let full = room(probe::AioBudget { used: 10, max: 10 });
        assert!(full.is_err_and(|reason| reason.contains("all 10 operations")));
    }

    #[test]
    fn what_is_missing_is_said_with_its_errno() {
        let error = crate::block::Error::missing("no AIO", std::io::Error::from_raw_os_error(libc::ENOSYS));
        assert!(reason(&error).contains("not implemented"), "{}", reason(&error));
    }

    /// Each answer is found once, so it is the same again.
    #[test]
    fn every_need_has_an_answer() {
        for need in [AIO, URING, DIRECT, COLD] {
            assert_eq!(need.check(), need.check());
        }
    }
}
