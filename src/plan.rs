//! The settings of a run as plain data, with nothing left to be guessed:
//! `cli` resolves arguments and environment into it, everything else reads it.
//!
//! Neighbours: `cli::resolve` makes it; `measure`, `trial` and `flow` obey it.

use std::path::PathBuf;
use std::time::Duration;

use crate::compare::Rule;

/// What to do with the selected trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Print their names.
    List,
    /// Run each body once and check it; no number is taken.
    Smoke,
    /// Measure them.
    Measure,
}

/// Which meter measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Wall-time loops in this process.
    Walltime,
    /// Instruction counts under Valgrind's cachegrind.
    Cachegrind,
    /// Heap use under Valgrind's DHAT.
    Dhat,
}

impl Mode {
    /// The name, as typed and stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Walltime => "walltime",
            Self::Cachegrind => "cachegrind",
            Self::Dhat => "dhat",
        }
    }
}

/// Which trials to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// A trial is taken when one of these matches, or when there are none.
    pub filters: Vec<String>,
    /// A trial is left out when one of these matches.
    pub skip: Vec<String>,
    /// Filters and skips match the whole name, not a part of it.
    pub exact: bool,
    /// Take those that are ignored: not (the default is to report them), only, or too.
    pub ignored: Ignored,
}

/// Which part of the selected trials a machine takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which of them, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// The run, folder or baseline whose durations weigh the trials; without one all weigh the same.
    pub by: Option<String>,
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// What to do with ignored trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// Report them as ignored.
    #[default]
    Skip,
    /// Take only them (`--ignored`).
    Only,
    /// Take them like the others (`--include-ignored`).
    Include,
}

/// Settings of the wall-time meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Walltime {
    /// Budget of one scenario, warm-up included.
    pub time: Duration,
    /// At least this many samples, even beyond the budget.
    pub min_samples: usize,
    /// At most this many samples.
    pub max_samples: usize,
    /// The processor to pin to; `None` leaves placement to the system.
    pub cpu: Option<usize>,
    /// Restrict the processor features to those that Valgrind shows, as far as providers allow.
    pub valgrind_features: bool,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// How the region is told apart from the rest under Valgrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Requests where Valgrind has them (3.22 and later), else the difference.
    Auto,
    /// Cachegrind's start and stop requests.
    Requests,
    /// The difference of two runs.
    Difference,
    /// Callgrind's toggle.
    Toggle,
}

/// Size, associativity and line size of one simulated cache, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGeometry {
    /// Size in bytes.
    pub size: u64,
    /// Number of ways.
    pub ways: u64,
    /// Line size in bytes.
    pub line: u64,
}

/// Settings of the meters that run under Valgrind.
#[derive(Clone, Debug, PartialEq)]
pub struct Valgrind {
    /// How the region is told apart.
    pub region: Region,
    /// Simulate caches with this geometry (I1, D1, LL).
    pub cache_sim: Option<[CacheGeometry; 3]>,
    /// Keep stacks of calls; only with [`Region::Toggle`].
    pub stacks: bool,
    /// Simulate branch prediction.
    pub branch_sim: bool,
    /// How many seeds of the repeatable world to measure.
    pub seeds: u32,
    /// How often to measure each scenario, to see whether counts are equal.
    pub repeat: u32,
    /// Children at a time.
    pub jobs: usize,
}

/// What a run is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum With {
    /// The records of a stored baseline.
    Stored(String),
    /// Another build, measured in this run: a baseline by name, or an executable by path.
    InTurn(String),
}

/// What a run keeps for later comparisons, and what it is compared with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compare {
    /// Keep the records and the executable under this name.
    pub save: Option<String>,
    /// The other side.
    pub with: Option<With>,
    /// The rule of the verdicts.
    pub rule: Rule,
    /// The folder of a history, from which limits are learnt.
    pub history: Option<PathBuf>,
    /// A trial beyond its limits is reported, and does not fail.
    pub no_fail: bool,
    /// What was set for measuring, as variables, for children of another build.
    pub settings: Vec<(String, String)>,
}

/// The whole plan of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What to do.
    pub action: Action,
    /// The meter.
    pub mode: Mode,
    /// The trials to take.
    pub selection: Selection,
    /// The part of them that this machine takes; `None` is all.
    pub shard: Option<Shard>,
    /// Settings of the wall-time meter.
    pub walltime: Walltime,
    /// Settings of the meters under Valgrind.
    pub valgrind: Valgrind,
    /// What it is compared with.
    pub compare: Compare,
    /// How long a trial may take beyond its budget; [`Duration::MAX`] is no limit.
    pub timeout: Duration,
    /// A trial that took longer than this has failed (`--ensure-time`).
    pub test_time: Option<Duration>,
    /// A process of its own for each trial.
    pub isolate: bool,
    /// Stop after the first failure.
    pub fail_fast: bool,
    /// Seed of the order; `None` keeps the order of registration.
    pub shuffle: Option<u64>,
    /// Folder under which run folders are made.
    pub out: PathBuf,
    /// Folder under which the scratch folder of the run is made.
    pub scratch: PathBuf,
    /// The file whose lock keeps processes from measuring at once; `None` takes no lock.
    pub lock: Option<PathBuf>,
    /// Joins the records of one run, also across processes.
    pub run_id: String,
    /// Attempt of a trial that a client retries, from 1.
    pub attempt: u32,
}
