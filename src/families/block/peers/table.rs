//! Measures ours, the peers and the floor in turns.
//!
//! Neighbours: `rows` says what is measured, `costs` what else an operation
//! takes, `layout` makes the text; a bench target prints it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::costs::{self, Cost, NAMES};
use super::layout::{Figures, Heading, Measured};
use super::qemu;
use super::rows::{Row, rows};
use crate::families::block::place;
use crate::families::block::run::Stage;
use crate::families::block::template::template;
use crate::families::block::{Case, Fate};

/// The column of `qemu-img bench`, after those of this process.
const QEMU: usize = NAMES.len();

/// Names of the columns.
pub(super) const COLUMNS: [&str; QEMU + 1] = ["floor", "wallgrind", "imago", "qcow2_rs", "qemu"];

/// What is to be compared.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Columns beside the floor, by name; empty for all.
    pub subjects: Vec<String>,
    /// Rounds; in each, every subject has its turn.
    pub rounds: usize,
    /// A row is taken when its label contains this.
    pub filter: String,
    /// Where the images are made; in the usual folder for temporary files without it.
    pub folder: Option<PathBuf>,
    /// Whether system calls and instructions are counted as well.
    pub costs: bool,
    /// A subject and a row that are run for a tracer; nothing else is done then.
    pub one_turn: Option<(String, String)>,
}

impl Comparison {
    /// Measures, and gives the tables as Markdown; nothing where a turn is run for a tracer.
    ///
    /// # Errors
    /// A subject or row that is not there, a wrong result of one that is, or no folder.
    pub fn table(&self) -> Result<String> {
        for name in &self.subjects {
            if !COLUMNS.contains(&name.as_str()) {
                bail!("no subject {name:?}: there are all, {}", COLUMNS.join(", "));
            }
        }
        let dir = match &self.folder {
            Some(folder) => {
                tempfile::tempdir_in(folder).with_context(|| format!("--scratch-dir {}", folder.display()))?
            }
            None => tempfile::tempdir()?,
        };
        if let Some((subject, slug)) = &self.one_turn {
            costs::one_turn(subject, slug, dir.path())?;
            return Ok(String::new());
        }
        let all = rows();
        let rows: Vec<&Row> = all.iter().filter(|row| row.label.contains(&self.filter)).collect();
        let labels: Vec<&str> = all.iter().map(|row| row.label).collect();
        ensure!(!rows.is_empty(), "no row contains {:?}: there are {}", self.filter, labels.join(", "));
        let mut failures = Vec::new();
        let mut figures = Vec::new();
        for row in &rows {
            self.progress(row.label);
            let times = self.times(row, dir.path(), &mut failures).context(row.label)?;
            figures.push(Figures { label: row.label, times, costs: Vec::new() });
        }
        if self.costs {
            self.count(&rows, &mut figures, dir.path(), &mut failures)?;
        }
        let heading = Heading { file_system: place::file_system(dir.path()), rounds: self.rounds };
        let lacking = rows.iter().flat_map(|row| self.lacking(row)).collect();
        Ok(Measured { heading, figures, lacking, failures }.to_string())
    }

    /// A line for who waits.
    fn progress(&self, what: &str) {
        use std::io::Write;
        // Nothing is lost with it.
        let _ = writeln!(std::io::stderr(), "{what}");
    }

    fn wants(&self, name: &str) -> bool {
        name == NAMES[0] || self.subjects.is_empty() || self.subjects.iter().any(|wanted| wanted == name)
    }

    /// Whether a subject of this process is to be measured and can do the row.
    fn takes(&self, row: &Row, column: usize) -> bool {
        self.wants(NAMES[column]) && cannot(row, column).is_none()
    }

    /// Why places of a row are empty.
    fn lacking(&self, row: &Row) -> Vec<String> {
        let wanted = (0..COLUMNS.len()).filter(|column| self.wants(COLUMNS[*column]));
        let reasons = wanted.filter_map(|column| {
            let reason = match (column, &row.qemu) {
                (QEMU, None) => Some("qemu-img bench has no such request".to_owned()),
                (QEMU, Some(_)) if !qemu::is_there() => Some("qemu-img is not installed".to_owned()),
                (QEMU, Some(_)) => None,
                _ => cannot(row, column),
            };
            Some(format!("{}, {}: {}", row.label, COLUMNS[column], reason?))
        });
        reasons.collect()
    }

    /// Times of the turns of each column, in nanoseconds an operation; none for what cannot do it, or
    /// fails. Where the floor or ours fails, there is no table.
    fn times(&self, row: &Row, folder: &Path, failures: &mut Vec<String>) -> Result<Vec<Vec<f64>>> {
        let subjects = costs::subjects();
        let mut stages = Vec::new();
        for (column, subject) in subjects.iter().enumerate() {
            let case = costs::case_for(row, &**subject);
            let taken = self.takes(row, column);
            stages.push(if taken { Some(Stage::new(folder, &**subject, case)?) } else { None });
        }
        let mut qemu = row.qemu.filter(|_| self.wants(COLUMNS[QEMU]) && qemu::is_there());
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); COLUMNS.len()];
        for round in 0..=self.rounds {
            for (column, place) in stages.iter_mut().enumerate() {
                let Some(stage) = place else { continue };
                match stage.once() {
                    // The first round warms up.
                    Ok(ns) => times[column].extend((round > 0).then_some(ns as f64 / row.operations as f64)),
                    Err(error) if column < 2 => return Err(error.context(NAMES[column])),
                    Err(error) => {
                        failures.push(format!("{}: {}: {error:#}", row.label, NAMES[column]));
                        times[column].clear();
                        *place = None;
                    }
                }
            }
            if let (Some(bench), true) = (qemu, round > 0) {
                match best_of_qemu(folder, &row.case, &bench) {
                    Ok(ns) => times[QEMU].push(ns),
                    Err(error) => {
                        failures.push(format!("{}: {error:#}", row.label));
                        times[QEMU].clear();
                        qemu = None;
                    }
                }
            }
        }
        Ok(times)
    }

    /// Adds system calls and instructions.
    fn count(
        &self,
        rows: &[&Row],
        figures: &mut [Figures],
        folder: &Path,
        failures: &mut Vec<String>,
    ) -> Result<()> {
        self.progress("instructions");
        let instructions = costs::instructions(rows, folder).unwrap_or_else(|error| {
            failures.push(format!("no instructions: {error:#}"));
            Default::default()
        });
        self.progress("system calls");
        for (row, figures) in rows.iter().zip(figures) {
            for (column, name) in NAMES.iter().enumerate() {
                let mut cost = Cost::default();
                if self.takes(row, column) {
                    cost.instructions = instructions.get(&costs::scenario(row, name)).copied();
                    cost.calls = costs::calls(row, name, folder).context(row.label)?;
                }
                figures.costs.push(cost);
            }
        }
        Ok(())
    }
}

/// Why a subject of this process cannot do a row, if so.
fn cannot(row: &Row, column: usize) -> Option<String> {
    let subject = &costs::subjects()[column];
    let case = costs::case_for(row, &**subject);
    case.features().into_iter().find_map(|feature| subject.supports(&case.setting, feature).err())
}

/// The better of its depths, on the image or a copy of it; nanoseconds an operation.
fn best_of_qemu(folder: &Path, case: &Case, bench: &qemu::Bench) -> Result<f64> {
    let template = template(folder, &case.recipe)?;
    let mut best = u64::MAX;
    for depth in qemu::DEPTHS {
        let copy =
            if case.setting.writable || case.fate == Fate::Fresh { Some(template.copy()?) } else { None };
        let path = copy.as_ref().map_or(template.path(), |copy| copy.path());
        best = best.min(qemu::run(path, bench, depth)?);
    }
    Ok(best as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row, on the floor and ours, with everything compared.
    #[test]
    fn every_row_runs_and_is_checked() {
        let all = Comparison { subjects: vec!["wallgrind".into()], rounds: 1, ..Comparison::default() };
        let text = all.table().expect("a table");
        rows().iter().for_each(|row| assert!(text.contains(row.label), "{}:\n{text}", row.label));
        let refused = |comparison: Comparison| comparison.table().expect_err("refused").to_string();
        let nobody = Comparison { subjects: vec!["nobody".into()], rounds: 1, ..Comparison::default() };
        assert!(refused(nobody).contains("qcow2_rs"));
        let no_row = Comparison { filter: "/dev/shm".into(), rounds: 1, ..Comparison::default() };
        assert!(refused(no_row).contains("4 KiB overwrite"));
        let no_folder = Comparison { folder: Some("/no/such".into()), rounds: 1, ..Comparison::default() };
        assert!(refused(no_folder).contains("/no/such"));
    }
}
