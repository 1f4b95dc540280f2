//! What was typed, and nothing more: no defaults, no environment, no check
//! of values.
//!
//! Neighbours: `resolve` makes a plan of it.

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;

/// The arguments of a bench target. Those of libtest come from cargo, nextest
/// and editors; the others are ours.
#[derive(Debug, Clone, Default, Parser)]
#[command(
    args_override_self = true,
    disable_version_flag = true,
    disable_help_flag = true,
    next_line_help = false,
    help_template = "{usage-heading} cargo bench -- [OPTIONS] [FILTER]...\n\n{all-args}\n{after-help}",
    after_help = "\
Every measuring flag has an environment variable, for clients that pass no flags: --time is\n\
WALLGRIND_TIME, --cache-sim is WALLGRIND_CACHE_SIM, and so on. The flag wins.\n\
WALLGRIND_RUN=smoke|measure overrides what the command line says about that.\n\
Events go to stdout; progress, warnings, what bodies print, and the table go to stderr.\n\
Accepted without a meaning here, since trials run one at a time and nothing is captured:\n\
--nocapture, --show-output, --test-threads, --exclude-should-panic, --force-run-in-process."
)]
pub struct Args {
    /// Run the trials whose names contain one of these; all when there are none
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,

    /// Measure (cargo bench passes this)
    #[arg(long, help_heading = "What to run")]
    pub bench: bool,
    /// Run every body once and check it, without measuring (also without --bench)
    #[arg(long, help_heading = "What to run")]
    pub test: bool,
    /// List the trials
    #[arg(long, help_heading = "What to run")]
    pub list: bool,
    /// Filters match whole names
    #[arg(long, help_heading = "What to run")]
    pub exact: bool,
    /// Leave out trials whose names contain this; may be repeated
    #[arg(long, value_name = "FILTER", action = ArgAction::Append, help_heading = "What to run")]
    pub skip: Vec<String>,
    /// Run only what is ignored because this machine lacks something
    #[arg(long, help_heading = "What to run")]
    pub ignored: bool,
    /// Run that too
    #[arg(long, help_heading = "What to run")]
    pub include_ignored: bool,
    /// Take one part of the trials, the K-th of N, for runs over many machines
    #[arg(long, value_name = "K/N", help_heading = "What to run")]
    pub shard: Option<String>,
    /// Weigh parts by what trials took in this run, folder or baseline, or in the latest [all weigh the same]
    #[arg(long, value_name = "RUN", help_heading = "What to run")]
    pub shard_by: Option<String>,
    /// Run in a random order
    #[arg(long, help_heading = "What to run")]
    pub shuffle: bool,
    /// Run in the random order of this seed
    #[arg(long, value_name = "SEED", help_heading = "What to run")]
    pub shuffle_seed: Option<String>,
    /// Stop after the first failure
    #[arg(long, help_heading = "What to run")]
    pub fail_fast: bool,

    /// pretty, terse or json
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub format: Option<String>,
    /// The same as --format terse
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// auto, always or never
    #[arg(long, value_name = "WHEN", help_heading = "Output")]
    pub color: Option<String>,
    /// Also write one line a trial to this file
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    pub logfile: Option<String>,
    /// Show how long each trial took
    #[arg(long, help_heading = "Output")]
    pub report_time: bool,
    /// Fail a trial that takes longer than 120 s, or than RUST_TEST_TIME_INTEGRATION says
    #[arg(long, help_heading = "Output")]
    pub ensure_time: bool,
    /// Show this
    #[arg(short, long, action = ArgAction::HelpLong, help_heading = "Output")]
    pub help: Option<bool>,

    /// Meter: walltime (the default), cachegrind or dhat
    #[arg(long, value_name = "MODE", help_heading = "Measuring")]
    pub mode: Option<String>,
    /// Time budget of a scenario, with warm-up [0.5s; 10s with --against]
    #[arg(long, value_name = "DURATION", help_heading = "Measuring")]
    pub time: Option<String>,
    /// Samples at least, and at most [10..1000]
    #[arg(long, value_name = "MIN[..MAX]", help_heading = "Measuring")]
    pub samples: Option<String>,
    /// End a trial that takes this much longer than its budget [60s]
    #[arg(long, value_name = "DURATION", help_heading = "Measuring")]
    pub timeout: Option<String>,
    /// Give each trial a process of its own
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = "Measuring")]
    pub isolate: Option<String>,
    /// Pin to this processor
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub cpu: Option<String>,
    /// native, or valgrind: only the processor features that Valgrind shows
    #[arg(long, value_name = "SET", help_heading = "Measuring")]
    pub cpu_features: Option<String>,
    /// Seed of the bootstrap [0]
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub seed: Option<String>,
    /// How counts of the region are taken: auto, requests, difference or toggle
    #[arg(long, value_name = "METHOD", help_heading = "Measuring")]
    pub region: Option<String>,
    /// Simulate caches: I1:D1:LL, each SIZE,WAYS,LINE [32768,8,64:32768,8,64:8388608,16,64]
    #[arg(long, value_name = "CACHES", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = "Measuring")]
    pub cache_sim: Option<String>,
    /// Simulate branch prediction
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = "Measuring")]
    pub branch_sim: Option<String>,
    /// Count under callgrind and keep the stacks of calls of the region's own thread; implies --region toggle
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = "Measuring")]
    pub stacks: Option<String>,
    /// Count with this many seeds of randomness [1]
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub seeds: Option<String>,
    /// Count each scenario this many times, and compare [1]
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub repeat: Option<String>,
    /// Children under Valgrind at a time [all processors]
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub jobs: Option<String>,
    /// Folder for records [target/wallgrind]
    #[arg(long, value_name = "DIR", help_heading = "Measuring")]
    pub out: Option<String>,
    /// Folder for the files of bodies: its file system is what they measure [TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR", help_heading = "Measuring")]
    pub scratch_dir: Option<String>,
    /// Joins the records of several processes [NEXTEST_RUN_ID, or a new one]
    #[arg(long, value_name = "ID", help_heading = "Measuring")]
    pub run_id: Option<String>,
    /// Lock between processes that measure: a file, or none
    #[arg(long, value_name = "PATH", help_heading = "Measuring")]
    pub lock: Option<String>,

    /// Keep the records and this executable as a baseline
    #[arg(long, value_name = "NAME", help_heading = "Comparing")]
    pub save_baseline: Option<String>,
    /// Compare with the records of a baseline
    #[arg(long, value_name = "NAME", help_heading = "Comparing")]
    pub baseline: Option<String>,
    /// Measure another build in turn with this one: a baseline, or an executable by its path
    #[arg(long, value_name = "NAME|PATH", help_heading = "Comparing")]
    pub against: Option<String>,
    /// Changes of a time up to this are none [1%]
    #[arg(long, value_name = "SHARE", help_heading = "Comparing")]
    pub margin: Option<String>,
    /// The chance of a false call, for all of the run together [1%]
    #[arg(long, value_name = "SHARE", help_heading = "Comparing")]
    pub level: Option<String>,
    /// What is done about many tests: holm, or bh (Benjamini and Hochberg) [holm]
    #[arg(long, value_name = "HOW", help_heading = "Comparing")]
    pub many: Option<String>,
    /// How much worse a metric may be: 0.1%, or ir=0.1%,wall=2%,peak_bytes=0 [counts 0, times the margin]
    #[arg(long, value_name = "LIMITS", help_heading = "Comparing")]
    pub max_regress: Option<String>,
    /// Folder of a history: changes that are usual in it do not fail a trial
    #[arg(long, value_name = "DIR", help_heading = "Comparing")]
    pub history: Option<String>,
    /// Report trials beyond their limits, without failing them
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = "Comparing")]
    pub no_fail: Option<String>,
    /// Compare what was measured under other conditions, and say so in each line
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", help_heading = "Comparing")]
    pub force: Option<String>,

    // From here on: what other programs pass.
    #[arg(long, hide = true, alias = "no-capture")]
    pub(super) nocapture: bool,
    #[arg(long, hide = true)]
    pub(super) show_output: bool,
    #[arg(short = 'Z', hide = true, value_name = "OPTION", action = ArgAction::Append)]
    pub(super) unstable: Vec<String>,
    #[arg(long, hide = true, value_name = "N")]
    pub(super) test_threads: Option<String>,
    #[arg(long, hide = true)]
    pub(super) exclude_should_panic: bool,
    #[arg(long, hide = true)]
    pub(super) force_run_in_process: bool,
    /// The descriptor with the state of a run that goes on in this process.
    #[arg(long, hide = true)]
    pub(super) wallgrind_resume: Option<String>,
    /// The one trial of which this process is to take steps for its parent.
    #[arg(long, hide = true)]
    pub(super) wallgrind_steps: Option<String>,
    /// The one trial that this process is to run for its parent.
    #[arg(long, hide = true)]
    pub(super) wallgrind_trial: Option<String>,
}

impl Args {
    /// Takes apart what was typed; the first item is the program.
    ///
    /// # Errors
    /// clap's own error; help that was asked for is one of them.
    pub fn parse_from_iter(argv: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches_from(argv)?;
        Self::from_arg_matches(&matches)
    }
}
