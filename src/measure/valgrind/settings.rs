//! What a plan means for Valgrind: tool, method, options.
//!
//! Neighbours: `counter` resolves it once a run.

use super::protocol::Method;
use super::stacks;
use super::tool::{Tool, Version, WITH_REQUESTS};
use crate::error::{Error, Kind, Result};
use crate::plan::{CacheGeometry, Mode, Region, Valgrind};

/// Bytes held apart while the heap is measured: more than any set-up holds.
const BALLAST: usize = 1 << 30;
/// Iterations before the region, in each child.
const WARM: usize = 1;

/// What is the same for all children of a run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub mode: Mode,
    pub method: Method,
    /// The tool of Valgrind.
    pub tool: &'static str,
    /// Its options.
    pub options: Vec<String>,
    pub warm: usize,
    pub ballast: usize,
    pub cache_sim: Option<[CacheGeometry; 3]>,
    /// Stacks of calls are kept.
    pub stacks: bool,
}

impl Settings {
    /// Resolves the method for the Valgrind that is there.
    ///
    /// # Errors
    /// What was asked for is not to be had.
    pub(super) fn resolve(mode: Mode, wanted: &Valgrind, tool: &Tool) -> Result<Self> {
        let method = method(mode, wanted.region, tool.version)?;
        let name = match (mode, method) {
            (Mode::Dhat, _) => "dhat",
            (_, Method::Toggle) => "callgrind",
            _ => "cachegrind",
        };
        let heap = mode == Mode::Dhat;
        let (options, cache_sim) = match name {
            "dhat" => (heap_options(), None),
            _ => (simulation(wanted, method), wanted.cache_sim),
        };
        let ballast = if heap { BALLAST } else { 0 };
        let stacks = wanted.stacks && name == "callgrind";
        Ok(Self { mode, method, tool: name, options, warm: WARM, ballast, cache_sim, stacks })
    }
}

fn heap_options() -> Vec<String> {
    [
        // Of each block the places that lead to it are looked up for each snapshot.
        "--num-callers=4",
        // At the end of a process the C library would give back what it holds,
        // which a snapshot must find held.
        "--run-libc-freeres=no",
        "--run-cxx-freeres=no",
    ]
    .map(String::from)
    .into()
}

fn method(mode: Mode, region: Region, version: Version) -> Result<Method> {
    match (mode, region) {
        (Mode::Dhat, _) | (_, Region::Difference) => Ok(Method::Difference),
        (_, Region::Toggle) => Ok(Method::Toggle),
        (_, Region::Auto) if version < WITH_REQUESTS => Ok(Method::Difference),
        (_, Region::Requests) if version < WITH_REQUESTS => Err(Error::new(
            Kind::Missing,
            format!("valgrind {version} has no requests to start and stop cachegrind: it would ignore them"),
        )
        .hint(format!("use --region difference or toggle, or valgrind {WITH_REQUESTS} or later"))),
        (_, Region::Auto | Region::Requests) => Ok(Method::Requests),
    }
}

/// Everything is stated, since defaults differ between versions and machines.
fn simulation(wanted: &Valgrind, method: Method) -> Vec<String> {
    let yes_no = |on| if on { "yes" } else { "no" };
    let mut options = vec![
        format!("--cache-sim={}", yes_no(wanted.cache_sim.is_some())),
        format!("--branch-sim={}", yes_no(wanted.branch_sim)),
    ];
    for (level, cache) in ["I1", "D1", "LL"].into_iter().zip(wanted.cache_sim.iter().flatten()) {
        options.push(format!("--{level}={},{},{}", cache.size, cache.ways, cache.line));
    }
    match method {
        Method::Difference => {}
        Method::Requests => options.push("--instr-at-start=no".into()),
        Method::Toggle => options.extend(["--instr-atstart=no".into(), "--collect-atstart=no".into()]),
    }
    if wanted.stacks && method == Method::Toggle {
        options.extend(stacks::options());
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_used_where_they_exist_and_never_where_they_would_be_ignored() {
        let old = Version { major: 3, minor: 21 };
        let new = Version { major: 3, minor: 22 };
        let method = |region, version| method(Mode::Cachegrind, region, version).map_err(|e| e.report());
        assert_eq!(method(Region::Auto, old), Ok(Method::Difference));
        assert_eq!(method(Region::Auto, new), Ok(Method::Requests));
        assert!(method(Region::Requests, old).is_err_and(|e| e.contains("ignore")));
        assert_eq!(method(Region::Difference, new), Ok(Method::Difference));
        assert_eq!(method(Region::Toggle, old), Ok(Method::Toggle));
    }
}
