//! The result files of rustls' own benchmark (`ci-bench`): counts and memory
//! of each side, wall time, and profiles, under its names.
//!
//! Neighbours: `import` reads what this writes.

use crate::stats::summarize;
use crate::store::{Record, Status};

/// The parameter of a scenario that holds the reference's name.
pub(super) const NAME: &str = "reference";
/// The sides, in the order in which the reference writes them.
pub(super) const SIDES: [&str; 2] = ["server", "client"];
/// Metrics of a row of `memory.csv`.
pub(super) const MEMORY: [&str; 4] =
    ["heap_total_bytes", "heap_total_blocks", "heap_peak_bytes", "heap_peak_blocks"];

/// The files that the reference would have written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// `icounts.csv`: `name_side,count`, instructions of one iteration.
    pub icounts: String,
    /// `memory.csv`: `name_side,total_bytes,total_blocks,peak_bytes,peak_blocks`.
    pub memory: String,
    /// Wall time: `name,ns,ns,…`, a column a sample, nanoseconds of one iteration.
    pub walltime: String,
    /// Profiles for the folder `callgrind`: name there, path below the run's folder.
    pub profiles: Vec<(String, String)>,
    /// Records that the reference has no name for, or that hold no numbers.
    pub left_out: Vec<String>,
}

/// Writes records in the reference's formats, in the order of their names.
pub fn export(records: &[Record]) -> Export {
    let mut named: Vec<(&str, &Record)> = Vec::new();
    let mut out = Export::default();
    for record in records {
        let name = record.params.iter().find(|(key, _)| key == NAME);
        match (name, &record.status) {
            (Some((_, name)), Status::Ok) => named.push((name, record)),
            (None, _) => {
                out.left_out.push(format!("{}: the reference has no such scenario", record.scenario))
            }
            _ => out.left_out.push(format!("{} ({}): no numbers", record.scenario, record.mode)),
        }
    }
    // A later attempt counts; rows are in the order of names.
    named.sort_by(|a, b| (a.0, &a.1.mode, a.1.attempt).cmp(&(b.0, &b.1.mode, b.1.attempt)));
    for (index, (name, record)) in named.iter().enumerate() {
        let next = named.get(index + 1);
        if next.is_none_or(|(other, r)| other != name || r.mode != record.mode) {
            out.add(name, record);
        }
    }
    out
}

impl Export {
    fn add(&mut self, name: &str, record: &Record) {
        match record.mode.as_str() {
            "cachegrind" => {
                for side in SIDES {
                    let Some(count) = median(record, "instructions", Some(side)) else { continue };
                    self.icounts.push_str(&format!("{name}_{side},{count}\n"));
                    let tool = record.facts.get("tool").map_or("cachegrind", String::as_str);
                    let path = format!("valgrind/{}/{tool}.{side}.out", record.scenario.replace("::", "."));
                    self.profiles.push((format!("{name}_{side}"), path));
                }
            }
            "dhat" => {
                for side in SIDES {
                    let numbers: Option<Vec<_>> =
                        MEMORY.iter().map(|m| Some(median(record, m, Some(side))?.to_string())).collect();
                    if let Some(numbers) = numbers {
                        self.memory.push_str(&format!("{name}_{side},{}\n", numbers.join(",")));
                    }
                }
            }
            "walltime" => {
                let series = record.metrics.iter().map(|m| &m.series).find(|s| s.party.is_none());
                let times: Vec<String> =
                    series.into_iter().flat_map(|s| s.per_iteration()).map(|ns| format!("{ns:.0}")).collect();
                self.walltime.push_str(&format!("{name},{}\n", times.join(",")));
            }
            other => {
                self.left_out.push(format!("{} ({other}): the reference has no such mode", record.scenario))
            }
        }
    }
}

/// The median of a metric over its samples, for one iteration, as a whole number.
fn median(record: &Record, metric: &str, party: Option<&str>) -> Option<u64> {
    let series = record.metrics.iter().map(|m| &m.series);
    let series = series.into_iter().find(|s| s.metric == metric && s.party.as_deref() == party)?;
    let summary = summarize(&series.per_iteration(), 0)?;
    Some(summary.median.round() as u64)
}
