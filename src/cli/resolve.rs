//! What the arguments and the environment mean: a [`Plan`] with nothing left
//! to be guessed, and how its events are to be shown.
//!
//! A flag beats its variable. An error names the flag or the variable.
//! Neighbours: `args` (what was typed), `value` (one parser a kind of value).

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::Args;
use super::env::Env;
use super::idle::idle;
use super::linker::{LAYOUTS, LINKER};
use super::names::nearest;
use super::place;
use super::term::Color;
use super::value::{self, Wrong};
use crate::compare::{Limits, Many, Rule};
use crate::error::{Error, Kind, Result};
use crate::plan::{Action, Compare, Ignored, Mode, Plan, Region, Selection, Shard, Valgrind, Walltime, With};

/// How events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A line a trial.
    #[default]
    Pretty,
    /// A character a trial that passes; a line with the name for all others.
    Terse,
    /// An object a line.
    Json,
}

/// How the run is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The form of events.
    pub format: Format,
    /// Whether to colour.
    pub color: Color,
    /// The terminal cannot move its cursor.
    pub dumb: bool,
    /// A file for one line a trial.
    pub logfile: Option<PathBuf>,
    /// Show how long each trial took.
    pub report_time: bool,
    /// In JSON, end a measured trial in a `test` event too: the client did not
    /// ask for benches, so it waits for one.
    pub ends_in_test: bool,
}

/// What this process is in its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that was started.
    Coordinator,
    /// It goes on with a run whose state is behind this descriptor.
    Resumed(i32),
    /// It runs one trial for its parent.
    Trial(String),
    /// It takes steps of one trial for its parent.
    Steps(String),
}

/// Everything that was asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to do.
    pub plan: Plan,
    /// How to show it.
    pub output: Output,
    /// What this process is in its run.
    pub role: Role,
    /// What should be said before anything else.
    pub warnings: Vec<String>,
}

/// Where the names of our variables begin.
const PREFIX: &str = "WALLGRIND_";

/// Samples taken at least and at most, when nothing is asked for.
const SAMPLES: (usize, usize) = (10, 1000);

/// The time for a scenario, alone and in turn with another build.
const ALONE: Duration = Duration::from_millis(500);
const IN_TURN: Duration = Duration::from_secs(10);

/// libtest's limit (`--ensure-time`) for a target that is no unit test.
const TEST_TIME: Duration = Duration::from_secs(120);

/// Makes a request of what was typed and of the environment. `exe` is the
/// running executable, from whose place the target folder is found.
///
/// # Errors
/// [`Kind::Usage`], naming the flag or the variable and what it takes.
pub fn resolve(args: &Args, env: &Env, exe: &Path) -> Result<Request> {
    let from = Source { args, env };
    refuse(args)?;
    let out = from.get("out", &args.out, path)?.unwrap_or_else(|| place::records(exe, env));
    let plan = Plan {
        action: action(args, env)?,
        mode: from.get("mode", &args.mode, value::mode)?.unwrap_or(Mode::Walltime),
        selection: selection(args),
        shard: shard(&from)?,
        walltime: walltime(&from)?,
        valgrind: valgrind(&from)?,
        timeout: from.get("timeout", &args.timeout, value::limit)?.unwrap_or(Duration::from_secs(60)),
        test_time: test_time(args, env)?,
        isolate: from.get("isolate", &args.isolate, value::yes_or_no)?.unwrap_or(false),
        fail_fast: args.fail_fast,
        shuffle: shuffle(&from)?,
        run_id: run_id(&from, &out)?,
        out,
        scratch: from
            .get("scratch-dir", &args.scratch_dir, path)?
            .unwrap_or_else(|| PathBuf::from(env.get("TMPDIR").unwrap_or("/tmp"))),
        compare: compare(&from)?,
        lock: from.get("lock", &args.lock, lock)?.unwrap_or_else(|| Some(crate::sys::Lock::default_path())),
        attempt: variable(env, "NEXTEST_ATTEMPT", value::count)?.unwrap_or(1),
    };
    let mut warnings = warnings(env);
    warnings.extend(idle(args, &plan));
    Ok(Request { output: output(args, env, &plan)?, role: role(args)?, warnings, plan })
}

/// Where values come from: the flag, or else the variable.
struct Source<'a> {
    args: &'a Args,
    env: &'a Env,
}

impl Source<'_> {
    /// The value of `--flag`, or of `WALLGRIND_FLAG`.
    fn get<T>(
        &self,
        flag: &str,
        typed: &Option<String>,
        parse: impl Fn(&str) -> std::result::Result<T, Wrong>,
    ) -> Result<Option<T>> {
        match typed {
            Some(text) => parse(text).map(Some).map_err(|wrong| usage(format!("--{flag}: {wrong}"))),
            None => variable(self.env, &twin(flag), parse),
        }
    }
}

/// The variable that says the same as a flag.
fn twin(flag: &str) -> String {
    format!("{PREFIX}{}", flag.replace('-', "_").to_ascii_uppercase())
}

fn variable<T>(
    env: &Env,
    name: &str,
    parse: impl Fn(&str) -> std::result::Result<T, Wrong>,
) -> Result<Option<T>> {
    let wrong = |wrong| usage(format!("the environment variable {name}: {wrong}"));
    env.get(name).map(|text| parse(text).map_err(wrong)).transpose()
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(Kind::Usage, message)
}

/// What is accepted for other programs' sake is still checked.
fn refuse(args: &Args) -> Result<()> {
    if let Some(option) = args.unstable.iter().find(|o| *o != "unstable-options") {
        return Err(usage(format!("-Z {option} is not known here")).hint("only -Z unstable-options is"));
    }
    match args.test_threads.as_deref().map(str::parse::<usize>) {
        Some(Ok(0)) => Err(usage("--test-threads 0: there must be a thread")
            .hint("trials run one at a time whatever is given: leave it out")),
        Some(Err(_)) => Err(usage("--test-threads: give a number from 1 on")
            .hint("trials run one at a time whatever is given: leave it out")),
        _ => Ok(()),
    }
}

fn action(args: &Args, env: &Env) -> Result<Action> {
    if args.list {
        return Ok(Action::List);
    }
    let words = [("smoke", Action::Smoke), ("measure", Action::Measure)];
    if let Some(action) = variable(env, "WALLGRIND_RUN", |text| value::word(text, &words))? {
        return Ok(action);
    }
    Ok(if args.bench && !args.test { Action::Measure } else { Action::Smoke })
}

fn selection(args: &Args) -> Selection {
    let ignored = match (args.include_ignored, args.ignored) {
        (true, _) => Ignored::Include,
        (false, true) => Ignored::Only,
        (false, false) => Ignored::Skip,
    };
    Selection { filters: args.filters.clone(), skip: args.skip.clone(), exact: args.exact, ignored }
}

/// The part of the trials that this machine takes. A process that nextest
/// starts for one trial has its part behind it: the list was divided.
fn shard(from: &Source<'_>) -> Result<Option<Shard>> {
    let args = from.args;
    let shard = from.get("shard", &args.shard, value::shard)?;
    let by = from.get("shard-by", &args.shard_by, text)?;
    if by.is_some() && shard.is_none() && args.shard_by.is_some() {
        return Err(usage("--shard-by says how parts are weighed, and no part is asked for")
            .hint("give --shard K/N as well"));
    }
    let one_of_a_list = from.env.get("NEXTEST_RUN_ID").is_some() && args.exact && !args.list;
    Ok(shard.filter(|_| !one_of_a_list).map(|(number, of)| Shard { number, of, by }))
}

fn walltime(from: &Source<'_>) -> Result<Walltime> {
    let args = from.args;
    let samples = from.get("samples", &args.samples, |text| value::samples(text, SAMPLES.1))?;
    let (min_samples, max_samples) = samples.unwrap_or(SAMPLES);
    let in_turn = from.get("against", &args.against, text)?.is_some();
    Ok(Walltime {
        time: from.get("time", &args.time, value::duration)?.unwrap_or(if in_turn { IN_TURN } else { ALONE }),
        min_samples,
        max_samples,
        cpu: from.get("cpu", &args.cpu, value::cpu)?,
        valgrind_features: from
            .get("cpu-features", &args.cpu_features, value::cpu_features)?
            .unwrap_or(false),
        seed: from.get("seed", &args.seed, value::number)?.unwrap_or(0),
    })
}

fn compare(from: &Source<'_>) -> Result<Compare> {
    let args = from.args;
    let stored = from.get("baseline", &args.baseline, value::folder_name)?;
    let with = match (stored, from.get("against", &args.against, text)?) {
        (Some(_), Some(_)) => {
            return Err(usage("--baseline and --against are two ways to compare").hint(
                "--baseline takes stored records, --against measures again, in turn: give one of them",
            ));
        }
        (stored, against) => stored.map(With::Stored).or(against.map(With::InTurn)),
    };
    let many = [("holm", Many::Holm), ("bh", Many::BenjaminiHochberg)];
    let default = Rule::default();
    let rule = Rule {
        margin: from.get("margin", &args.margin, value::share)?.unwrap_or(default.margin),
        level: from.get("level", &args.level, value::share)?.unwrap_or(default.level),
        many: from.get("many", &args.many, |text| value::word(text, &many))?.unwrap_or(default.many),
        limits: from.get("max-regress", &args.max_regress, Limits::parse)?.unwrap_or_default(),
        force: from.get("force", &args.force, value::yes_or_no)?.unwrap_or(false),
        ..default
    };
    Ok(Compare {
        save: from.get("save-baseline", &args.save_baseline, value::folder_name)?,
        with,
        rule,
        history: from.get("history", &args.history, path)?,
        no_fail: from.get("no-fail", &args.no_fail, value::yes_or_no)?.unwrap_or(false),
        settings: settings(),
    })
}

/// The measuring flags of this process as variables: a child of another build
/// takes what it knows of them.
fn settings() -> Vec<(String, String)> {
    use clap::CommandFactory;
    let Ok(matches) = Args::command().try_get_matches_from(std::env::args_os()) else { return Vec::new() };
    let command = Args::command();
    let measuring = command.get_arguments().filter(|arg| arg.get_help_heading() == Some("Measuring"));
    let typed = measuring.filter_map(|arg| {
        let value = matches.get_raw(arg.get_id().as_str())?.next_back()?;
        Some((twin(arg.get_long()?), value.to_str()?.to_string()))
    });
    typed.collect()
}

/// Any text but an empty one.
fn text(text: &str) -> std::result::Result<String, Wrong> {
    if text.is_empty() { Err("give a name or a path".into()) } else { Ok(text.to_string()) }
}

fn valgrind(from: &Source<'_>) -> Result<Valgrind> {
    let args = from.args;
    let jobs = from.get("jobs", &args.jobs, value::count)?;
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let stacks = from.get("stacks", &args.stacks, value::yes_or_no)?.unwrap_or(false);
    let region = match from.get("region", &args.region, value::region)?.unwrap_or(Region::Auto) {
        Region::Auto if stacks => Region::Toggle,
        Region::Requests | Region::Difference if stacks => {
            return Err(usage("--stacks: only callgrind has them")
                .hint("it goes with --region toggle, or leave --region out"));
        }
        region => region,
    };
    Ok(Valgrind {
        region,
        stacks,
        cache_sim: from.get("cache-sim", &args.cache_sim, value::caches)?.flatten(),
        branch_sim: from.get("branch-sim", &args.branch_sim, value::yes_or_no)?.unwrap_or(false),
        seeds: from.get("seeds", &args.seeds, value::count)?.unwrap_or(1),
        repeat: from.get("repeat", &args.repeat, value::count)?.unwrap_or(1),
        jobs: jobs.and_then(|n| usize::try_from(n).ok()).unwrap_or_else(processors),
    })
}

/// The limit of `--ensure-time`, in libtest's variable: `WARN,CRITICAL` in milliseconds.
fn test_time(args: &Args, env: &Env) -> Result<Option<Duration>> {
    let name = "RUST_TEST_TIME_INTEGRATION";
    let pair = |text: &str| {
        let critical = text.split_once(',').and_then(|(_, critical)| critical.trim().parse().ok());
        critical.ok_or_else(|| format!("{text:?} is not WARN,CRITICAL in milliseconds"))
    };
    if !args.ensure_time {
        return Ok(None);
    }
    Ok(Some(variable(env, name, pair)?.map_or(TEST_TIME, Duration::from_millis)))
}

fn shuffle(from: &Source<'_>) -> Result<Option<u64>> {
    let typed = &from.args.shuffle_seed;
    match from.get("shuffle-seed", typed, value::number)? {
        Some(seed) => Ok(Some(seed)),
        // Six digits are easy to type again, and orders enough.
        None => Ok(from.args.shuffle.then(|| fastrand::u64(..1_000_000))),
    }
}

fn path(text: &str) -> std::result::Result<PathBuf, Wrong> {
    if text.is_empty() { Err("give a path".into()) } else { Ok(PathBuf::from(text)) }
}

/// A lock file, or `none`.
fn lock(text: &str) -> std::result::Result<Option<PathBuf>, Wrong> {
    if text == "none" { Ok(None) } else { path(text).map(Some) }
}

fn run_id(from: &Source<'_>, out: &Path) -> Result<String> {
    if let Some(id) = from.get("run-id", &from.args.run_id, value::folder_name)? {
        return Ok(id);
    }
    if let Some(id) = variable(from.env, "NEXTEST_RUN_ID", value::folder_name)? {
        return Ok(id);
    }
    Ok(place::run_of_cargo(out, from.env).unwrap_or_else(place::new_run))
}

fn output(args: &Args, env: &Env, plan: &Plan) -> Result<Output> {
    let formats = [("pretty", Format::Pretty), ("terse", Format::Terse), ("json", Format::Json)];
    let format = match args.format.as_deref() {
        Some("junit") => {
            return Err(usage("--format junit is not written here").hint(
                "cargo nextest writes JUnit: cargo nextest run --benches (target/nextest/default/junit.xml)",
            ));
        }
        Some(text) => value::word(text, &formats).map_err(|wrong| usage(format!("--format: {wrong}")))?,
        None if args.quiet => Format::Terse,
        None => Format::Pretty,
    };
    let colors = [("auto", Color::Auto), ("always", Color::Always), ("never", Color::Never)];
    let color = match args.color.as_deref() {
        Some(text) => value::word(text, &colors).map_err(|wrong| usage(format!("--color: {wrong}")))?,
        None if env.get("NO_COLOR").is_some() => Color::Never,
        None => Color::Auto,
    };
    Ok(Output {
        format,
        color,
        dumb: env.get("TERM").is_none_or(|term| term == "dumb"),
        logfile: args.logfile.as_ref().map(PathBuf::from),
        report_time: args.report_time || args.ensure_time,
        ends_in_test: plan.action == Action::Measure && !args.bench,
    })
}

fn role(args: &Args) -> Result<Role> {
    if let Some(name) = &args.wallgrind_steps {
        return Ok(Role::Steps(name.clone()));
    }
    match (&args.wallgrind_trial, &args.wallgrind_resume) {
        (Some(name), _) => Ok(Role::Trial(name.clone())),
        (None, Some(fd)) => {
            let wrong = || usage("--wallgrind-resume is for wallgrind's own use");
            fd.parse().map(Role::Resumed).map_err(|_| wrong())
        }
        (None, None) => Ok(Role::Coordinator),
    }
}

/// Variables that look like ours and are not.
fn warnings(env: &Env) -> Vec<String> {
    let known = known_variables();
    // Without the prefix, which would make them all alike.
    let tails: Vec<&str> = known.iter().filter_map(|name| name.strip_prefix(PREFIX)).collect();
    let unknown = env.names(PREFIX).filter(|name| !known.iter().any(|k| k == name));
    unknown
        .filter_map(|name| {
            let near = nearest(&name[PREFIX.len()..], tails.iter().copied())?;
            Some(format!(
                "warning: the environment variable {name} is not known; did you mean {PREFIX}{near}?"
            ))
        })
        .collect()
}

/// Flags of the selection that have a variable.
const SELECTING: [&str; 4] = ["run", "shuffle-seed", "shard", "shard-by"];

/// All variables of ours: one for each measuring flag, and those of the selection.
fn known_variables() -> Vec<String> {
    use clap::CommandFactory;
    let command = Args::command();
    let ours = ["Measuring", "Comparing"];
    let measuring =
        command.get_arguments().filter(|arg| arg.get_help_heading().is_some_and(|h| ours.contains(&h)));
    let twins = measuring.filter_map(|arg| Some(twin(arg.get_long()?)));
    // Of a build that links many times; what it starts may see them too.
    twins.chain(SELECTING.map(twin)).chain([LAYOUTS, LINKER].map(String::from)).collect()
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
