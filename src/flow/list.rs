//! `--list`: names and nothing else, without a lock, a folder or a thread.
//!
//! Neighbours: `setup` says what the machine lacks, `cli` writes.

use std::process::ExitCode;

use super::setup::missing;
use crate::cli::{self, Format, Out, Request};
use crate::error::Result;
use crate::plan::Ignored;
use crate::scenario::Scenario;

/// Lists the selected trials. Needs are probed only when the answer depends on them.
///
/// # Errors
/// The run whose durations divide the list cannot be read.
pub fn list(scenarios: &[Scenario], request: &Request, suite: &str) -> Result<ExitCode> {
    let plan = &request.plan;
    let probes = plan.selection.ignored == Ignored::Only || request.output.format == Format::Json;
    let missing = missing(plan);
    let division = cli::divide(scenarios, plan, suite)?;
    division.iter().flat_map(|division| &division.warnings).for_each(|text| cli::say(text));
    let selected =
        cli::select(
            scenarios,
            &plan.selection,
            division.as_ref(),
            |s| if probes { missing(s) } else { None },
        );
    let none = division.as_ref().map_or(selected.trials.is_empty(), |division| division.all.is_empty());
    if none && plan.selection.ignored != Ignored::Only {
        let names: Vec<&str> = scenarios.iter().map(|s| s.id().as_str()).collect();
        cli::nothing_matches(suite, &plan.selection, &names).iter().for_each(|text| cli::say(text));
    }
    let mut out = Out::stdout();
    out.write(&cli::listing(&selected, request.output.format));
    Ok(match out.failure() {
        None => ExitCode::SUCCESS,
        Some(error) => {
            cli::say(&format!("error: the list could not be written: {error}"));
            ExitCode::from(super::FAILED)
        }
    })
}
