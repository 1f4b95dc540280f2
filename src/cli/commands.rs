//! The `wallgrind` command: thin calls to what reads records.
//!
//! Neighbours: `main` calls it; benches are run by `flow`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use super::baselines::{TwoRuns, Wanted, baselines, two_runs};
use super::doctor::{Doctor, doctor};
use super::env::Env;
use super::exchange;
use super::explain::{Explain, explain};
use super::formats::{self, Imported};
use super::history::{History, history};
use super::linker::as_linker;
use super::merge::{Merge, merge};
use super::names::nearest;
use super::place;
use super::report::{Report, report};
use super::revision::{Revisions, ab, bench_rev};
use super::shell;
use super::stubs::{Stubs, stubs};
use super::term::{self, Color, Out, Term, print};
use crate::error::{Error, Kind, Result};
use crate::report::{Look, table};
use crate::store::{Found, JSON_SCHEMA, Record, RunDir, Status};

/// Reads what benches recorded. To run them: cargo bench
#[derive(Debug, Parser)]
#[command(name = "wallgrind", version, arg_required_else_help = true)]
struct Cli {
    /// Folder with the records [WALLGRIND_OUT, or target/wallgrind]
    #[arg(long, value_name = "DIR", global = true)]
    out: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the runs that have records, the latest last
    Runs,
    /// Show the table of a run
    Show {
        /// The run, or a folder with records; the latest when left out
        run: Option<String>,
    },
    /// Show the functions in which a trial spent its instructions
    Annotate {
        /// The trial, by its whole name
        trial: String,
        /// The run, or a folder with records; the latest that counted it when left out
        #[arg(long)]
        run: Option<String>,
        /// How many functions
        #[arg(long, value_name = "N", default_value_t = 30)]
        top: usize,
    },
    /// Say why a trial costs what it costs, side by side, and draw its flame graph
    Explain(Explain),
    /// Compare two runs: slower, faster, same, or not known
    Compare(TwoRuns),
    /// Write a run as a page with plots, or as the comment of a pull request
    Report(Report),
    /// Join the runs of shards into one, and find what is missing or double
    Merge(Merge),
    /// List what --save-baseline has kept, show it, or delete it
    Baselines {
        /// What to do [list]
        #[command(subcommand)]
        wanted: Option<Wanted>,
    },
    /// Add runs of the main line to a history, and show what changed
    History {
        /// What to do
        #[command(subcommand)]
        wanted: History,
    },
    /// Build git revisions, measure them, and keep them as baselines
    BenchRev(Revisions),
    /// Build git revisions, and measure this tree against each, in turn
    Ab(Revisions),
    /// Say what this machine is, or (--determinism) which counts differ from run to run
    Doctor(Doctor),
    /// Write a run in the format of another tool
    Export {
        /// The format
        #[arg(value_parser = formats::NAMES)]
        format: String,
        /// The run, a folder with records, or a baseline
        run: String,
        /// The file to write (- for standard output), or the folder (rustls-ci, criterion)
        to: PathBuf,
    },
    /// Read results of another tool into a run
    Import(Imported),
    /// Print the JSON Schema of a record
    Schema,
    /// Print the script by which a shell completes this command
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write those of all commands and of bench targets
    Man {
        /// The folder for the pages, such as share/man/man1
        folder: Option<PathBuf>,
    },
    /// Write the functions by which test explorers find the scenarios listed on standard input
    Stubs(Stubs),
}

/// Runs the command and gives its exit code: 0, or 101 with a message.
pub fn command(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let argv: Vec<OsString> = argv.into_iter().collect();
    if let Some(code) = as_linker(argv.get(1..).unwrap_or_default()) {
        return code;
    }
    let cli = match Cli::try_parse_from(argv) {
        Ok(cli) => cli,
        Err(error) => return clap_exit(&with_the_way(error)),
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            term::say(&error.report());
            ExitCode::from(101)
        }
    }
}

/// Says how a run is named where a trial comes first: others take it as a
/// word of its own.
fn with_the_way(mut error: clap::Error) -> clap::Error {
    let text = |kind| error.get(kind).map(|value| value.to_string()).unwrap_or_default();
    let (word, usage) = (text(ContextKind::InvalidArg), text(ContextKind::Usage));
    if error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-') && usage.ends_with("<TRIAL>") {
        let tip = format!("one trial is named at a time, and its run by '--run {word}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Prints clap's error: help goes to standard output and is no failure.
pub fn clap_exit(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if error.use_stderr() {
        term::say(text.to_string().trim_end());
        return ExitCode::from(101);
    }
    Out::stdout().write(&text.to_string());
    ExitCode::SUCCESS
}

fn run(cli: &Cli) -> Result<()> {
    let out = cli.out.clone().unwrap_or_else(default_out);
    match &cli.command {
        Command::Runs => runs(&out),
        Command::Show { run } => show(&out, run.as_deref()),
        Command::Annotate { trial, run, top } => exchange::annotate(&out, trial, run.as_deref(), *top),
        Command::Explain(wanted) => explain(&out, wanted),
        Command::Compare(wanted) => two_runs(&out, wanted),
        Command::Report(wanted) => report(&out, wanted),
        Command::Merge(wanted) => merge(&out, wanted),
        Command::Baselines { wanted } => baselines(&out, wanted.as_ref()),
        Command::History { wanted } => history(&out, wanted),
        Command::BenchRev(wanted) => bench_rev(&out, wanted),
        Command::Ab(wanted) => ab(&out, wanted),
        Command::Doctor(wanted) => doctor(&out, wanted),
        Command::Export { format, run, to } => formats::export(&out, format, run, to),
        Command::Import(wanted) => formats::import(&out, wanted),
        Command::Schema => print(JSON_SCHEMA),
        Command::Completions { shell } => shell::completions(definition(), *shell),
        Command::Man { folder } => shell::man(definition(), folder.as_deref()),
        Command::Stubs(wanted) => stubs(wanted),
    }
}

/// The whole command line, for what is made of it.
pub(super) fn definition() -> clap::Command {
    Cli::command()
}

fn default_out() -> PathBuf {
    let env = Env::of_process();
    let exe = std::env::current_exe().unwrap_or_default();
    env.get("WALLGRIND_OUT").map_or_else(|| place::records(&exe, &env), PathBuf::from)
}

/// One line a run: its name, when it began, its meters, and how its trials ended.
fn runs(out: &Path) -> Result<()> {
    let mut text = String::new();
    let mut all_faults = Vec::new();
    for run in run_names(out)? {
        match RunDir::scan(&out.join(&run)) {
            Ok(found) if found.records.is_empty() && found.faults.is_empty() => {}
            Ok(found) => {
                text.push_str(&run_line(&run, &found.records));
                all_faults.extend(found.faults);
            }
            Err(error) => text.push_str(&format!("{run}  cannot be read: {error}\n")),
        }
    }
    print(&text)?;
    judge_faults(all_faults)
}

fn run_line(run: &str, records: &[Record]) -> String {
    let ok = records.iter().filter(|r| r.status == Status::Ok).count();
    let failed =
        records.iter().filter(|r| matches!(r.status, Status::Failed(_) | Status::TimedOut(_))).count();
    let distinct = |of: fn(&Record) -> &str| {
        let all: std::collections::BTreeSet<&str> = records.iter().map(of).collect();
        all.into_iter().collect::<Vec<_>>().join("+")
    };
    let started = records.iter().map(|r| r.started.as_str()).min().unwrap_or_default();
    format!(
        "{run}  {started}  {} {}  {ok} measured, {failed} failed, {} ignored\n",
        distinct(|r| &r.suite),
        distinct(|r| &r.mode),
        records.len() - ok - failed
    )
}

/// The folders under `out`, the one that was changed last at the end.
pub(super) fn run_names(out: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(out).map_err(|error| {
        Error::new(Kind::Io, format!("there are no records in {}", out.display()))
            .source(error)
            .hint("run cargo bench first, or name the folder with --out")
    })?;
    let mut runs: Vec<(std::time::SystemTime, String)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let data = entry.metadata().ok().filter(std::fs::Metadata::is_dir)?;
            let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
            Some((data.modified().ok()?, name))
        })
        .collect();
    runs.sort();
    Ok(runs.into_iter().map(|(_, name)| name).collect())
}

fn show(out: &Path, run: Option<&str>) -> Result<()> {
    let folder = folder_of(out, run)?;
    let Found { records, faults } = RunDir::scan(&folder)?;
    if records.is_empty() && faults.is_empty() {
        return Err(Error::new(Kind::Io, format!("{} holds no records", folder.display()))
            .hint("wallgrind runs lists the runs that do"));
    }
    let term = Term::new(Color::Auto, true, false);
    let color =
        Out::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    print(&table(&records, Look { width: term.width(), color }))?;
    judge_faults(faults)
}

/// What could not be read is said file by file, and fails the command, which
/// has done what it could with the rest.
pub(super) fn judge_faults(faults: Vec<Error>) -> Result<()> {
    let count = faults.len();
    for fault in faults {
        term::say(&fault.report());
    }
    match count {
        0 => Ok(()),
        _ => {
            let files = if count == 1 { "1 file".into() } else { format!("{count} files") };
            Err(Error::new(Kind::Format, format!("{files} of the run could not be read"))
                .hint("the lines above say why, and the way out of each"))
        }
    }
}

/// The folder of a run, by its name or its path; of the latest when left out.
pub(super) fn folder_of(out: &Path, run: Option<&str>) -> Result<PathBuf> {
    match run {
        Some(run) if Path::new(run).is_dir() => Ok(PathBuf::from(run)),
        Some(run) => known_run(out, run).map(|name| out.join(name)),
        None => latest(out).map(|name| out.join(name)),
    }
}

fn known_run(out: &Path, run: &str) -> Result<String> {
    let names = run_names(out)?;
    if let Some(name) = names.iter().find(|name| *name == run) {
        return Ok(name.clone());
    }
    let error = Error::new(Kind::Io, format!("there is no run {run} in {}", out.display()));
    Err(match nearest(run, names.iter().map(String::as_str)) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint("wallgrind runs lists them"),
    })
}

fn latest(out: &Path) -> Result<String> {
    let last = run_names(out)?.pop();
    last.ok_or_else(|| {
        Error::new(Kind::Io, format!("there are no records in {}", out.display()))
            .hint("run cargo bench first, or name the folder with --out")
    })
}
