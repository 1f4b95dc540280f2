//! What the scenarios ask of a machine.
//!
//! Neighbours: `register` attaches them.

use super::case::Case;
use super::subject::{Io, PageCache};
use crate::block::probe;
use crate::block::sys::copy::drop_cache;
use crate::scenario::{Need, Scenario};

const AIO: Need = Need::new("Linux AIO", || {
    let budget = probe::aio_budget().map_err(|error| error.to_string())?;
    if budget.used < budget.max {
        return Ok(());
    }
    Err(format!("all {} operations that the system allows are taken (fs.aio-nr)", budget.max))
});

const URING: Need = Need::new("io_uring", || probe::io_uring().map(drop).map_err(|error| reason(&error)));

const DIRECT: Need = Need::new("direct I/O", || {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    probe::direct(file.path()).map(drop).map_err(|error| reason(&error))
});

const COLD: Need = Need::new("a page cache that can be dropped", || {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    match std::fs::write(file.path(), [1; 4096]).and_then(|()| drop_cache(file.as_file())) {
        Ok(0) => Ok(()),
        Ok(_) => Err(format!("files in {} stay in memory", std::env::temp_dir().display())),
        Err(error) => Err(error.to_string()),
    }
});

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
