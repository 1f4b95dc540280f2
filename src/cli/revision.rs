//! The commands `bench-rev` and `ab`: a git revision is built in a worktree of
//! its own and kept as a baseline; `ab` then measures the present tree
//! against it, in turn.
//!
//! Neighbours: `commands` calls it; `store` keeps the executables.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::linker::{COUNTS, LAYOUTS, LINKER};
use super::place;
use super::term::say;
use crate::error::{Error, Kind, Result};
use crate::machine;
use crate::store::{Baselines, layouts_of};

/// The folder of worktrees and of what is built in them.
const FOLDER: &str = ".revisions";

/// How cargo builds what it would run, and says what came of it.
const BUILD: [&str; 3] = ["bench", "--no-run", "--message-format=json-render-diagnostics"];

/// What is built and measured.
#[derive(Debug, clap::Args)]
pub struct Revisions {
    /// Git revisions; each is kept as a baseline named after its commit
    #[arg(required = true, value_name = "REV")]
    revisions: Vec<String>,
    /// The bench target [all]
    #[arg(long, value_name = "NAME")]
    bench: Option<String>,
    /// Cargo features, as cargo takes them
    #[arg(long, value_name = "LIST")]
    features: Option<String>,
    /// Link each build N times, its functions in another order each time, and draw one for each
    /// pair of processes, so that where code lies makes nothing slower [32 when N is left out]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "32",
          value_parser = clap::value_parser!(u32).range(i64::from(*COUNTS.start())..=i64::from(*COUNTS.end())))]
    layouts: Option<u32>,
    /// Arguments for the bench targets
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

/// Builds each revision, measures it, and keeps it as a baseline. One that
/// does not build is said, with what the compiler said; the rest goes on.
///
/// # Errors
/// There is no git repository here, or one of the revisions failed.
pub fn bench_rev(out: &Path, wanted: &Revisions) -> Result<()> {
    let out = &absolute(out)?;
    each(wanted, |revision| {
        let built = build(out, revision, wanted)?;
        for program in &built.programs {
            say(&format!("measuring {revision}: {}", place::suite(program)));
            let mut command = Command::new(program);
            command.args(["--bench", "--save-baseline", &built.name]).arg("--out").arg(out);
            succeed(command.args(&wanted.arguments).current_dir(&built.package), "measuring it failed")?;
        }
        say(&format!("{revision} is kept as baseline {}", built.name));
        Ok(())
    })
}

/// Builds each revision and measures the present tree against it.
///
/// # Errors
/// There is no git repository here, or one of the revisions or comparisons failed.
pub fn ab(out: &Path, wanted: &Revisions) -> Result<()> {
    let out = &absolute(out)?;
    each(wanted, |revision| {
        let built = build(out, revision, wanted)?;
        for program in &built.programs {
            let suite = place::suite(program);
            let identity = machine::identity_of(program);
            Baselines::of(out).save((&built.name, &suite), program, &[], &identity)?;
        }
        say(&format!("{revision} is kept as baseline {}; measuring against it", built.name));
        laid_out(&mut cargo(&BUILD, wanted), "this tree", out, wanted)?;
        let mut bench = cargo(&["bench"], wanted);
        with_layouts(&mut bench, out, wanted)?;
        bench.args(["--", "--against", &built.name]).arg("--out").arg(out).args(&wanted.arguments);
        succeed(&mut bench, "this tree is beyond its limits, or failed")
    })
}

/// The folder for records, also for processes that start elsewhere.
fn absolute(out: &Path) -> Result<PathBuf> {
    let failed = |error| Error::new(Kind::Io, format!("the folder {}", out.display())).source(error);
    std::path::absolute(out).map_err(failed)
}

/// Does the same with each revision, and fails at the end if one failed.
fn each(wanted: &Revisions, mut act: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let mut failed = Vec::new();
    for revision in &wanted.revisions {
        if let Err(error) = act(revision) {
            say(&error.report());
            failed.push(revision.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let total = wanted.revisions.len();
    Err(Error::new(
        Kind::Format,
        format!("{} of {total} revisions failed: {}", failed.len(), failed.join(", ")),
    )
    .hint("the lines above say why"))
}

/// A revision that was built.
struct Built {
    /// The name of its baseline: `rev-` and the commit.
    name: String,
    programs: Vec<PathBuf>,
    package: PathBuf,
    /// Goes with this.
    _tree: Worktree,
}

/// A worktree, which the user's repository knows only as long as this lives.
struct Worktree {
    top: PathBuf,
    path: PathBuf,
}

impl Worktree {
    fn add(top: PathBuf, path: PathBuf, commit: &str) -> Result<Self> {
        // One that was left behind by a killed process would be in the way.
        git(&top, &["worktree", "prune"])?;
        let tree = Self { top, path };
        if !tree.path.join(".git").exists() {
            git(
                &tree.top,
                &["worktree", "add", "--detach", "--force", &tree.path.to_string_lossy(), commit],
            )?;
        }
        Ok(tree)
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        // What cannot be removed is used again by the next one.
        let _ = git(&self.top, &["worktree", "remove", "--force", &self.path.to_string_lossy()]);
    }
}

/// Builds the bench targets of a revision in a worktree of its own. The
/// dependencies that were built for one revision are used again for the next.
fn build(out: &Path, revision: &str, wanted: &Revisions) -> Result<Built> {
    let top = PathBuf::from(git(Path::new("."), &["rev-parse", "--show-toplevel"])?);
    let within = git(Path::new("."), &["rev-parse", "--show-prefix"])?;
    let commit =
        git(Path::new("."), &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
            .map_err(|error| error.hint("give a commit, a branch or a tag of this repository"))?;
    let tree = Worktree::add(top, out.join(FOLDER).join(&commit), &commit)?;
    let package = tree.path.join(within);
    say(&format!("building {revision} ({}) in {}", &commit[..12], tree.path.display()));
    let mut build = cargo(&BUILD, wanted);
    build.current_dir(&package).env("CARGO_TARGET_DIR", target_of(out, wanted.layouts));
    let programs = laid_out(&mut build, revision, out, wanted)?;
    Ok(Built { name: format!("rev-{}", &commit[..12]), programs, package, _tree: tree })
}

/// Builds the bench targets of the package here, and gives their executables.
///
/// # Errors
/// Cargo cannot be started, or it does not build.
pub(super) fn build_here(bench: Option<&str>) -> Result<Vec<PathBuf>> {
    let mut build = cargo_bench(&BUILD, bench);
    programs(&mut build, "this tree")
}

fn cargo_bench(arguments: &[&str], bench: Option<&str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    match bench {
        Some(name) => command.args(["--bench", name]),
        None => command.arg("--benches"),
    };
    command
}

fn cargo(arguments: &[&str], wanted: &Revisions) -> Command {
    let mut command = cargo_bench(arguments, wanted.bench.as_deref());
    if let Some(list) = &wanted.features {
        command.args(["--features", list]);
    }
    command
}

/// The folder of what is built for revisions: one for each number of layouts,
/// which cargo does not know of.
fn target_of(out: &Path, layouts: Option<u32>) -> PathBuf {
    out.join(FOLDER).join(layouts.map_or("target".into(), |count| format!("layouts-{count}")))
}

/// Has cargo link with layouts, if they are wanted. Another linker makes cargo
/// build everything anew, so this tree is built where the revisions are, too.
fn with_layouts(cargo: &mut Command, out: &Path, wanted: &Revisions) -> Result<()> {
    let Some(count) = wanted.layouts else { return Ok(()) };
    let target = env!("WALLGRIND_BUILD_TARGET").replace('-', "_").to_uppercase();
    let linker = format!("CARGO_TARGET_{target}_LINKER");
    let this = std::env::current_exe().map_err(|error| {
        Error::new(Kind::Io, "this program, which would be the linker, cannot be found").source(error)
    })?;
    cargo.env("CARGO_TARGET_DIR", target_of(out, wanted.layouts)).env(LAYOUTS, count.to_string());
    if let Some(before) = std::env::var_os(&linker) {
        cargo.env(LINKER, before);
    }
    cargo.env(linker, this);
    Ok(())
}

/// Builds, and sees to it that each executable has as many layouts as are wanted.
fn laid_out(build: &mut Command, what: &str, out: &Path, wanted: &Revisions) -> Result<Vec<PathBuf>> {
    with_layouts(build, out, wanted)?;
    let found = programs(build, what)?;
    for program in found.iter().filter(|_| wanted.layouts.is_some()) {
        let count = layouts_of(program)?.len();
        if wanted.layouts != Some(count as u32) {
            let text = format!("{what} has {count} layouts in {}", program.display());
            return Err(Error::new(Kind::Missing, text).hint(
                "a linker that rustflags name goes before ours: take it out of them, or leave --layouts out",
            ));
        }
    }
    Ok(found)
}

/// Runs cargo, whose diagnostics go to standard error, and gives the bench
/// executables that it names.
fn programs(build: &mut Command, revision: &str) -> Result<Vec<PathBuf>> {
    let no_cargo = |error| {
        Error::new(Kind::Missing, "cargo cannot be started")
            .source(error)
            .hint("run it where `cargo bench` works")
    };
    let mut child = build.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(no_cargo)?;
    let lines = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let found: Vec<PathBuf> =
        lines.map_while(std::result::Result::ok).filter_map(|line| bench(&line)).collect();
    let status = child.wait().map_err(no_cargo)?;
    if !status.success() {
        return Err(Error::new(Kind::Format, format!("{revision} does not build"))
            .hint("what the compiler said stands above"));
    }
    if found.is_empty() {
        return Err(Error::new(Kind::Missing, format!("{revision} has no such bench target")));
    }
    Ok(found)
}

/// The executable of a bench target, in a line of cargo's.
fn bench(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let kinds = message["target"]["kind"].as_array()?;
    let is_bench = message["reason"] == "compiler-artifact" && kinds.iter().any(|kind| kind == "bench");
    is_bench.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
}

/// What git says, or why it does not.
fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    let failed = |what: String| Error::new(Kind::Io, format!("git {}: {what}", arguments.join(" ")));
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(failed(if said.is_empty() { "there is no such thing".into() } else { said }));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn succeed(command: &mut Command, otherwise: &str) -> Result<()> {
    let status = command.status().map_err(|error| {
        Error::new(Kind::Missing, format!("{} cannot be started", command.get_program().to_string_lossy()))
            .source(error)
    })?;
    if status.success() { Ok(()) } else { Err(Error::new(Kind::Format, format!("{otherwise} ({status})"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bench_executables_are_taken_from_cargos_lines() {
        let line = |kind: &str, reason: &str, executable: &str| {
            format!(r#"{{"reason":"{reason}","target":{{"kind":["{kind}"]}},"executable":{executable}}}"#)
        };
        let found = bench(&line("bench", "compiler-artifact", "\"/x/tls-1\""));
        assert_eq!(found, Some(PathBuf::from("/x/tls-1")));
        for other in [
            line("bin", "compiler-artifact", "\"/x/y\""),
            line("bench", "compiler-artifact", "null"),
            line("bench", "build-script-executed", "\"/x/y\""),
            "running 3 tests".into(),
        ] {
            assert_eq!(bench(&other), None, "{other}");
        }
    }
}
