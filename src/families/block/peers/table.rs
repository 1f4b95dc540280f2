//! Measures ours, the peers and the floor in turns, and lays the result out.
//!
//! Neighbours: `rows` says what is measured; a bench target prints the text.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::floor::Floor;
use super::imago::Imago;
use super::qcow2_rs::Qcow2Rs;
use super::qemu;
use super::rows::{Row, rows};
use crate::families::block::place;
use crate::families::block::run::Stage;
use crate::families::block::template::template;
use crate::families::block::{Case, Fate, Ours, Subject};

/// Names of the columns.
const COLUMNS: [&str; 5] = ["floor", "wallgrind", "imago", "qcow2_rs", "qemu"];

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Columns beside the floor, by name; empty for all.
    pub subjects: Vec<String>,
    /// Rounds; in each, every subject has its turn.
    pub rounds: usize,
    /// A row is taken when its label contains this.
    pub filter: String,
}

impl Comparison {
    /// Measures, and gives the table.
    ///
    /// # Errors
    /// A subject that is not there, or a wrong result of one that is.
    pub fn table(&self) -> Result<String> {
        for name in &self.subjects {
            if !COLUMNS.contains(&name.as_str()) {
                bail!("no subject {name:?}: there are all, {}", COLUMNS.join(", "));
            }
        }
        let dir = tempfile::tempdir()?;
        let (mut text, mut failures) = (String::new(), Vec::new());
        let (file_system, rounds) = (place::file_system(dir.path()), self.rounds);
        writeln!(
            text,
            "µs an operation, median of {rounds} rounds in turn, and the ratio to bare system calls; lower is \
             better\nfile system: {file_system}; page cache: warm"
        )?;
        write!(text, "{:42}", "")?;
        COLUMNS.iter().try_for_each(|name| write!(text, "{name:>18}"))?;
        text.push('\n');
        for row in rows().iter().filter(|row| row.label.contains(&self.filter)) {
            let medians = self.medians(row, dir.path(), &mut failures).context(row.label)?;
            text.push_str(&line(row, &medians));
        }
        failures.iter().for_each(|failure| text.push_str(&format!("failed: {failure}\n")));
        Ok(text)
    }

    fn wants(&self, name: &str) -> bool {
        name == "floor" || self.subjects.is_empty() || self.subjects.iter().any(|wanted| wanted == name)
    }

    /// Median time of a turn of each column, in nanoseconds; `None` for what cannot do it, or
    /// fails. Where the floor or ours fails, there is no table.
    fn medians(&self, row: &Row, folder: &Path, failures: &mut Vec<String>) -> Result<Vec<Option<u64>>> {
        let subjects: [&dyn Subject; 4] = [&Floor, &Ours, &Imago, &Qcow2Rs];
        let mut stages = Vec::new();
        for subject in subjects {
            let case = if subject.name() == "floor" { &row.floor } else { &row.case };
            let can = case.features().iter().all(|feature| subject.supports(&case.setting, *feature).is_ok());
            let wanted = self.wants(subject.name()) && can;
            stages.push(if wanted { Some(Stage::new(folder, subject, case)?) } else { None });
        }
        let qemu = row.qemu.filter(|_| self.wants("qemu") && qemu::is_there());
        let mut times: Vec<Vec<u64>> = vec![Vec::new(); COLUMNS.len()];
        for round in 0..=self.rounds {
            for (column, place) in stages.iter_mut().enumerate() {
                let Some(stage) = place else { continue };
                let name = subjects[column].name();
                match stage.once() {
                    // The first round warms up.
                    Ok(ns) => times[column].extend((round > 0).then_some(ns / row.operations)),
                    Err(error) if column < 2 => return Err(error.context(name.to_owned())),
                    Err(error) => {
                        failures.push(format!("{}: {name}: {error:#}", row.label));
                        times[column].clear();
                        *place = None;
                    }
                }
            }
            if let (Some(bench), true) = (&qemu, round > 0) {
                times[4].push(best_of_qemu(folder, &row.case, bench)?);
            }
        }
        Ok(times.into_iter().map(median).collect())
    }
}

/// The better of its depths, on the image or a copy of it.
fn best_of_qemu(folder: &Path, case: &Case, bench: &qemu::Bench) -> Result<u64> {
    let template = template(folder, &case.recipe)?;
    let mut best = u64::MAX;
    for depth in qemu::DEPTHS {
        let copy =
            if case.setting.writable || case.fate == Fate::Fresh { Some(template.copy()?) } else { None };
        let path = copy.as_ref().map_or(template.path(), |copy| copy.path());
        best = best.min(qemu::run(path, bench, depth)?);
    }
    Ok(best)
}

fn median(mut times: Vec<u64>) -> Option<u64> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

fn line(row: &Row, medians: &[Option<u64>]) -> String {
    let floor = medians.first().copied().flatten().unwrap_or(0).max(1) as f64;
    let mut line = format!("{:42}", row.label);
    for median in medians {
        let cell = match median {
            Some(ns) => format!("{:.2} ({:.2})", *ns as f64 / 1e3, *ns as f64 / floor),
            None => "-".to_owned(),
        };
        line.push_str(&format!("{cell:>18}"));
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_one_and_what_was_not_measured_is_a_dash() {
        let row = rows().remove(0);
        let text = line(&row, &[Some(2_000), Some(3_000), None, None, Some(20_000)]);
        assert!(
            text.contains("2.00 (1.00)") && text.contains("3.00 (1.50)") && text.contains("20.00 (10.00)")
        );
        assert!(text.contains(" - "));
    }

    /// Each row, on the floor and ours, with everything compared.
    #[test]
    fn every_row_runs_and_is_checked() {
        let all = Comparison { subjects: vec!["wallgrind".into()], rounds: 1, filter: String::new() };
        let text = all.table().expect("a table");
        assert_eq!(text.lines().count(), 3 + rows().len(), "{text}");
        let unknown = Comparison { subjects: vec!["nobody".into()], rounds: 1, filter: String::new() };
        assert!(unknown.table().is_err());
    }
}
