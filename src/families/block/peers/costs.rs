//! What an operation costs beside its time: system calls, as strace sees them in
//! a turn, and instructions of this process, as the harness counts them.
//!
//! Neighbours: `rows` are registered as scenarios here, so that both meters take
//! them one by one; `table` shows the costs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::floor::Floor;
use super::imago::Imago;
use super::qcow2_rs::Qcow2Rs;
use super::rows::{Row, rows};
use crate::families::block::register::add;
use crate::families::block::run::Stage;
use crate::families::block::{Case, Ours, Subject};
use crate::scenario::Suite;

/// Who is measured in this process, in the order of the columns.
pub(super) const NAMES: [&str; 4] = ["floor", "wallgrind", "imago", "qcow2_rs"];

/// Where a turn begins and ends in a trace: a file that nobody looks for.
const MARK: &str = "/no/such/folder/of/wallgrind/turn";

/// The first part of the names of the rows as scenarios.
const PREFIX: &str = "block::rows";

/// What an operation takes; lower is better.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// System calls, of any kind.
    pub calls: Option<f64>,
    /// Instructions in user space.
    pub instructions: Option<f64>,
}

/// The subject of a column.
pub(super) fn subjects() -> [Arc<dyn Subject>; 4] {
    [Arc::new(Floor), Arc::new(Ours), Arc::new(Imago), Arc::new(Qcow2Rs)]
}

/// What a subject does for a row.
pub(super) fn case_for<'a>(row: &'a Row, subject: &dyn Subject) -> &'a Case {
    if subject.name() == NAMES[0] { &row.floor } else { &row.case }
}

/// Registers each row for each subject: `block::rows::random_read_4_kib::imago`.
pub fn register_rows(suite: &mut Suite) {
    for row in rows() {
        for (name, subject) in NAMES.iter().zip(subjects()) {
            let case = case_for(&row, &*subject).clone();
            add(suite, format!("{PREFIX}::{}::{name}", row.slug()), &subject, case, None);
        }
    }
}

/// Instructions of an operation by the name of the scenario, from one run of the
/// rows that `filter` takes, in another process.
///
/// # Errors
/// Valgrind is missing, or a row failed.
pub(super) fn instructions(rows: &[&Row], folder: &Path) -> Result<BTreeMap<String, f64>> {
    let out = folder.join("counts");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--bench", "--quiet", "--mode", "cachegrind", "--run-id", "rows"]);
    command.arg("--out").arg(&out).arg("--scratch-dir").arg(folder);
    command.args(rows.iter().map(|row| format!("{PREFIX}::{}::", row.slug())));
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.trim());
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(out.join("rows"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "json") {
            let record: Value =
                serde_json::from_slice(&std::fs::read(&path)?).with_context(|| path.display().to_string())?;
            found.extend(counted(&record));
        }
    }
    let operations = |name: &str| rows.iter().find(|row| name.contains(&format!("::{}::", row.slug())));
    let each = |(name, count): (String, f64)| {
        let operations = operations(&name)?.operations as f64;
        Some((name, count / operations))
    };
    Ok(found.into_iter().filter_map(each).collect())
}

/// The scenario and the instructions of an iteration in a record.
fn counted(record: &Value) -> Option<(String, f64)> {
    let name = record.get("scenario")?.as_str()?;
    let metrics = record.get("metrics")?.as_array()?;
    let is = |metric: &&Value| metric.get("metric").is_some_and(|name| name == "instructions");
    let count = metrics.iter().find(is)?.pointer("/summary/median")?.as_f64()?;
    Some((name.to_owned(), count))
}

/// The name of a row as a scenario.
pub(super) fn scenario(row: &Row, subject: &str) -> String {
    format!("{PREFIX}::{}::{subject}", row.slug())
}

/// Runs two turns of a row, with marks around the second one.
///
/// # Errors
/// No such row or subject, or the turn failed.
pub(super) fn one_turn(subject: &str, slug: &str, folder: &Path) -> Result<()> {
    let (all, rows) = (subjects(), rows());
    let row = rows.iter().find(|row| row.slug() == slug).with_context(|| format!("no row {slug:?}"))?;
    let at = NAMES.iter().position(|name| *name == subject).with_context(|| format!("no {subject:?}"))?;
    let mut stage = Stage::new(folder, &*all[at], case_for(row, &*all[at]))?;
    stage.once()?;
    // Looking for what is not there: a call that nobody else makes.
    stage.once_marked(|| drop(std::fs::metadata(MARK)))?;
    Ok(())
}

/// System calls of an operation, by strace; `None` where it is not there or may not trace.
pub(super) fn calls(row: &Row, subject: &str, folder: &Path) -> Result<Option<f64>> {
    let trace = folder.join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "0", "-o"]).arg(&trace).arg(std::env::current_exe()?);
    command.arg("--one-turn").args([subject, &row.slug()]).arg("--scratch-dir").arg(folder);
    let output = command.stdin(Stdio::null()).output();
    let Ok(output) = output else { return Ok(None) };
    let Ok(text) = std::fs::read_to_string(&trace) else { return Ok(None) };
    std::fs::remove_file(&trace)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.trim());
    Ok(between_marks(&text).map(|calls| calls as f64 / row.operations as f64))
}

/// Calls between the two marks of a trace.
fn between_marks(trace: &str) -> Option<u64> {
    let mut marks = trace.lines().enumerate().filter(|(_, line)| line.contains(MARK)).map(|(at, _)| at);
    let (from, to) = (marks.next()?, marks.next()?);
    let calls = trace.lines().take(to).skip(from + 1).filter(|line| {
        // "NUMBER call(...": a call that is resumed was counted when it began.
        let call = line.split_once(' ').map_or("", |(_, call)| call.trim_start());
        call.starts_with(|first: char| first.is_ascii_lowercase()) && call.contains('(')
    });
    Some(calls.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_between_the_marks() {
        let trace = format!(
            "7 openat(AT_FDCWD, \"x\") = 3\n7 statx(AT_FDCWD, \"{MARK}\") = -1 ENOENT\n\
             7 pread64(3, \"\"..., 4096, 0) = 4096\n8 fdatasync(3 <unfinished ...>\n\
             8 <... fdatasync resumed>) = 0\n7 --- SIGCHLD ---\n7 statx(AT_FDCWD, \"{MARK}\") = -1 ENOENT\n\
             7 close(3) = 0\n"
        );
        assert_eq!(between_marks(&trace), Some(2));
        assert_eq!(between_marks("7 close(3) = 0"), None);
    }

    #[test]
    fn every_row_is_a_scenario_of_each_subject() {
        let mut suite = Suite::new();
        register_rows(&mut suite);
        let scenarios = suite.finish().expect("a valid suite");
        let all = rows();
        assert_eq!(scenarios.len(), 4 * all.len());
        let wanted = scenario(&all[0], "imago");
        assert!(scenarios.iter().any(|found| found.id().as_str() == wanted), "{wanted}");
    }
}
