//! The command `explain`: why a trial costs what it costs, from stored records
//! and from what is measured for it, of one build or of two; and its flame graph.
//!
//! Neighbours: `commands` calls it; `evidence` finds and measures, `report` writes.

use std::path::{Path, PathBuf};

use super::evidence::{BUILDS, Finder, Side};
use super::formats::is_standard_output;
use super::names::meant;
use super::term::print;
use super::whole::write_whole;
use crate::error::{Error, Kind, Result};
use crate::report::{self, Evidence};
use crate::store::Baselines;

/// What is to be explained.
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The trial, by its whole name
    trial: String,
    /// The run, the folder with records, or the baseline; the latest runs that have it when left out
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Measure this bench target, which cargo builds, and take no stored runs
    #[arg(long, value_name = "NAME", conflicts_with = "run")]
    bench: Option<String>,
    /// Measure this bench executable, and take no stored runs
    #[arg(long, value_name = "PATH", conflicts_with_all = ["run", "bench"])]
    program: Option<PathBuf>,
    /// What to compare with: a baseline, a run, or a folder with records
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Compare with another build, which is measured: a baseline, or an executable by its path
    #[arg(long, value_name = "NAME|PATH", conflicts_with = "baseline")]
    against: Option<String>,
    /// How many functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Write a flame graph (SVG) of the region's instructions to this file; - is standard output.
    /// With --baseline or --against it shows what moved
    #[arg(long, value_name = "PATH")]
    flamegraph: Option<PathBuf>,
    /// Take what is stored, and measure nothing
    #[arg(long, conflicts_with = "again")]
    stored: bool,
    /// Measure everything anew, also what an earlier explain has measured
    #[arg(long)]
    again: bool,
    /// text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

/// Prints what is known, and writes the flame graph.
///
/// # Errors
/// There is no such trial, run or executable; a part could not be measured
/// (the others are printed); the flame graph cannot be drawn or written.
pub fn explain(out: &Path, wanted: &Explain) -> Result<()> {
    if let Some(path) = &wanted.flamegraph {
        report::can_draw()?;
        check_folder(path)?;
    }
    // Before minutes are spent on building the other side.
    let against = wanted.against.as_deref().map(|build| other_build(out, build)).transpose()?;
    let finder = Finder::new(out, &wanted.trial, !wanted.stored, wanted.again)?;
    let after = match (&wanted.run, &wanted.program, &wanted.bench) {
        (Some(run), ..) => finder.side(Side::Stored(run))?,
        (None, Some(program), _) => finder.side(Side::Program(program.clone()))?,
        (None, None, Some(bench)) => finder.side(Side::Bench(bench))?,
        // Stored runs may be of the other build, and of any tree.
        (None, None, None) if wanted.against.is_some() && !wanted.stored => finder.side(Side::Tree)?,
        (None, None, None) => finder.side(Side::Latest)?,
    };
    let before = match (&wanted.baseline, against) {
        (Some(name), _) => Some(finder.side(Side::Stored(name))?),
        (None, Some(build)) => Some(finder.side(build)?),
        (None, None) => None,
    };
    let explained = report::explain(&wanted.trial, before.as_ref(), &after, wanted.top);
    if explained.is_empty() {
        return Err(unknown(wanted, &after));
    }
    let takes_output = wanted.flamegraph.as_deref().is_some_and(is_standard_output);
    if !takes_output {
        print(&match wanted.format.as_str() {
            "json" => format!("{:#}\n", explained.json()),
            _ => explained.text(),
        })?;
    }
    if let Some(path) = &wanted.flamegraph {
        draw(&wanted.trial, before.as_ref(), &after, path)?;
    }
    let failed = before.iter().chain([&after]).map(|side| side.failed).sum::<usize>();
    if failed > 0 {
        let parts = if failed == 1 { "1 part".into() } else { format!("{failed} parts") };
        return Err(Error::new(Kind::Missing, format!("{parts} of {} could not be measured", wanted.trial))
            .hint("the last lines above say why; --stored takes what there is"));
    }
    Ok(())
}

/// The build of a baseline, or one by its path.
///
/// # Errors
/// There is neither.
fn other_build<'a>(out: &Path, build: &'a str) -> Result<Side<'a>> {
    let names = Baselines::of(out).names();
    if names.iter().any(|name| name == build) {
        return Ok(Side::BuildOf(build));
    }
    if Path::new(build).is_file() {
        return Ok(Side::Program(PathBuf::from(build)));
    }
    let error = Error::new(Kind::Io, format!("there is no executable or baseline {build}"));
    Err(match meant(build, names.iter().map(String::as_str)) {
        Some(meant) => error.hint(meant),
        None => error.hint(BUILDS),
    })
}

fn unknown(wanted: &Explain, side: &Evidence) -> Error {
    let text = format!("nothing is known of {}: {}", wanted.trial, side.gaps.join("; "));
    Error::new(Kind::Missing, text).hint(match wanted.stored {
        true => "without --stored, what is missing is measured",
        false => "--program or --bench measures an executable, or a bench target of this tree",
    })
}

/// Refuses a place where no file can be, before minutes are spent on what goes there.
fn check_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if is_standard_output(path) || (folder.is_dir() && !path.is_dir()) {
        return Ok(());
    }
    let error = Error::new(Kind::Io, format!("{} cannot be written", path.display()));
    Err(error.hint("--flamegraph takes a file in a folder that exists"))
}

fn draw(trial: &str, before: Option<&Evidence>, after: &Evidence, path: &Path) -> Result<()> {
    let svg = report::flame_graph(trial, before, after)?;
    if is_standard_output(path) {
        let text = String::from_utf8_lossy(&svg);
        return print(&text);
    }
    write_whole(path, &svg)?;
    // Standard output may hold JSON.
    super::term::say(&format!("flame graph: {}", path.display()));
    Ok(())
}
