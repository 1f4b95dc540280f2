//! Records from the result files of rustls' own benchmark, so that its old
//! results can be compared with ours.
//!
//! Neighbours: `export` writes these files.

use std::collections::BTreeMap;

use super::export::{MEMORY, NAME, SIDES};
use crate::error::{Error, Kind, Result};
use crate::samples::{Sample, Series};
use crate::store::{Metric, Record};
use crate::units::{Direction, Unit};

/// Seed of the summaries' bootstrap.
const SEED: u64 = 0;

/// The texts of a result folder of the reference; what it lacks is `None`.
#[derive(Clone, Copy, Default)]
pub struct Import<'a> {
    /// `icounts.csv`.
    pub icounts: Option<&'a str>,
    /// `memory.csv`.
    pub memory: Option<&'a str>,
    /// Wall time, as it is printed.
    pub walltime: Option<&'a str>,
    /// The run that the records are to belong to.
    pub run_id: &'a str,
    /// When the files were written (RFC 3339, UTC).
    pub started: &'a str,
}

/// Makes a record of each scenario and mode, in the order of the files.
/// `ours` gives our name for one of the reference's; another name is kept in a
/// form that a scenario may have.
///
/// # Errors
/// [`Kind::Format`], with file and line: a row has the wrong number of
/// columns, something other than a count, no side, or is there twice.
pub fn import(files: &Import<'_>, ours: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    if let Some(text) = files.icounts {
        let rows = sides(rows("icounts.csv", text, Some(1))?)?;
        let metric = [("instructions", Unit::Instructions, true)];
        records.extend(rows.iter().map(|row| record(files, ours, "cachegrind", row, &metric)));
    }
    if let Some(text) = files.memory {
        let rows = sides(rows("memory.csv", text, Some(MEMORY.len()))?)?;
        let units = [(Unit::Bytes, true), (Unit::Blocks, true), (Unit::Bytes, false), (Unit::Blocks, false)];
        let metrics: Vec<_> =
            MEMORY.iter().zip(units).map(|(name, (unit, sum))| (*name, unit, sum)).collect();
        records.extend(rows.iter().map(|row| record(files, ours, "dhat", row, &metrics)));
    }
    if let Some(text) = files.walltime {
        for row in rows("wall time", text, None)? {
            records.push(times(files, ours, &row));
        }
    }
    Ok(records)
}

/// A row: where it is, its name, its numbers.
struct Row {
    place: String,
    name: String,
    numbers: Vec<u64>,
}

/// The numbers of both sides of a scenario.
struct Sides {
    name: String,
    of: BTreeMap<&'static str, Vec<u64>>,
}

fn rows(file: &str, text: &str, columns: Option<usize>) -> Result<Vec<Row>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| row(format!("{file}, line {}", index + 1), line, columns)).collect()
}

fn row(place: String, line: &str, columns: Option<usize>) -> Result<Row> {
    let wrong = |what: String| Error::new(Kind::Format, format!("{place}: {what}"));
    let mut words = line.trim_end().trim_end_matches(',').split(',');
    let name = words.next().unwrap_or_default().trim().to_string();
    let number = |word: &str| word.trim().parse().map_err(|_| wrong(format!("{word:?} is not a count")));
    let numbers: Vec<u64> = words.map(number).collect::<Result<_>>()?;
    let fits = columns.map_or(!numbers.is_empty(), |wanted| numbers.len() == wanted);
    if name.is_empty() || !fits {
        let wanted = columns.map_or("one or more".into(), |n| n.to_string());
        return Err(wrong(format!("a name and {wanted} numbers are due, but it is {line:?}")));
    }
    Ok(Row { place, name, numbers })
}

/// Joins the rows of both sides.
fn sides(rows: Vec<Row>) -> Result<Vec<Sides>> {
    let mut all: Vec<Sides> = Vec::new();
    for row in rows {
        let wrong = |what: &str| Error::new(Kind::Format, format!("{}: {} {what}", row.place, row.name));
        let found =
            SIDES.iter().find_map(|side| Some((*side, row.name.strip_suffix(side)?.strip_suffix('_')?)));
        let (side, name) = found.ok_or_else(|| wrong("ends in neither _client nor _server"))?;
        let at = all.iter().position(|s| s.name == name).unwrap_or_else(|| {
            all.push(Sides { name: name.to_string(), of: BTreeMap::new() });
            all.len() - 1
        });
        if all[at].of.insert(side, row.numbers.clone()).is_some() {
            return Err(wrong("is there twice"));
        }
    }
    Ok(all)
}

fn record(
    files: &Import<'_>,
    ours: &dyn Fn(&str) -> Option<String>,
    mode: &str,
    row: &Sides,
    metrics: &[(&str, Unit, bool)],
) -> Record {
    let mut all = Vec::new();
    for (column, (metric, unit, has_sum)) in metrics.iter().enumerate() {
        if *has_sum && row.of.len() == SIDES.len() {
            let sum = row.of.values().map(|numbers| numbers[column]).sum();
            all.push(series(metric, None, *unit, &[sum]));
        }
        for side in ["client", "server"] {
            if let Some(numbers) = row.of.get(side) {
                all.push(series(metric, Some(side), *unit, &numbers[column..=column]));
            }
        }
    }
    empty(files, ours, mode, &row.name, all)
}

fn times(files: &Import<'_>, ours: &dyn Fn(&str) -> Option<String>, row: &Row) -> Record {
    let all = vec![series("wall_time", None, Unit::Nanoseconds, &row.numbers)];
    empty(files, ours, "walltime", &row.name, all)
}

fn series(metric: &str, party: Option<&str>, unit: Unit, totals: &[u64]) -> Series {
    Series {
        metric: metric.to_string(),
        party: party.map(str::to_string),
        unit,
        direction: Direction::LowerIsBetter,
        samples: totals.iter().map(|total| Sample { iterations: 1, total: *total }).collect(),
    }
}

fn empty(
    files: &Import<'_>,
    ours: &dyn Fn(&str) -> Option<String>,
    mode: &str,
    name: &str,
    series: Vec<Series>,
) -> Record {
    Record {
        run_id: files.run_id.to_string(),
        suite: "rustls_ci".to_string(),
        params: vec![(NAME.to_string(), name.to_string())],
        started: files.started.to_string(),
        metrics: series.into_iter().filter_map(|series| Metric::new(series, SEED)).collect(),
        facts: BTreeMap::from([("source".to_string(), "rustls ci-bench".to_string())]),
        notes: vec![
            "imported from rustls' own benchmark, whose regions and build differ from ours".to_string(),
        ],
        ..Record::new(ours(name).unwrap_or_else(|| foreign(name)), mode)
    }
}

/// A name that a scenario may have, for one that ours does not have.
fn foreign(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    format!("rustls_ci::_{}", letters.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::{Export, export};
    use super::*;

    // Rows as the reference printed them in August 2026.
    const ICOUNTS: &str = "handshake_no_resume_1.3_no_crypto_server,61113\n\
                           handshake_no_resume_1.3_no_crypto_client,71363\n\
                           handshake_no_resume_aws_lc_rs_1.2_rsa_aes_server,10393327\n\
                           handshake_no_resume_aws_lc_rs_1.2_rsa_aes_client,1687979\n";
    const MEMORY: &str = "handshake_tickets_ring_1.3_rsa_aes_server,690380,4158,70539,220\n\
                          handshake_tickets_ring_1.3_rsa_aes_client,500,6,400,5\n";
    const WALLTIME: &str = "transfer_no_resume_ring_1.3_rsa_chacha,1200,1100,1300\n";

    fn files() -> Import<'static> {
        Import {
            icounts: Some(ICOUNTS),
            memory: Some(MEMORY),
            walltime: Some(WALLTIME),
            run_id: "r",
            started: "2026-08-01T00:00:00Z",
        }
    }

    fn read(files: &Import<'_>) -> std::result::Result<Vec<Record>, String> {
        import(files, &|name| Some(format!("tls::{}", name.replace('.', "_")))).map_err(|e| e.report())
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        let records = read(&files()).expect("valid files");
        assert_eq!(records.len(), 4);
        assert_eq!(records[0].metrics[0].series.samples[0].total, 61_113 + 71_363);
        let Export { icounts, memory, walltime, profiles, left_out } = export(&records);
        assert_eq!((icounts.as_str(), memory.as_str(), walltime.as_str()), (ICOUNTS, MEMORY, WALLTIME));
        assert_eq!(profiles[0].0, "handshake_no_resume_1.3_no_crypto_server");
        assert_eq!(left_out, Vec::<String>::new());
    }

    #[test]
    fn names_that_ours_lacks_stay_readable() {
        assert_eq!(foreign("0rtt_1.3-x"), "rustls_ci::_0rtt_1_3_x");
    }

    #[test]
    fn a_wrong_row_is_named() {
        let wrong =
            |icounts| read(&Import { icounts: Some(icounts), ..Import::default() }).expect_err("wrong");
        assert!(wrong("a_client,1\na_server,x\n").contains("icounts.csv, line 2: \"x\" is not a count"));
        assert!(wrong("a_client,1,2\n").contains("1 numbers are due"));
        assert!(wrong("a,1\n").contains("neither _client nor _server"));
        assert!(wrong("a_client,1\na_client,1\n").contains("twice"));
        assert!(wrong("a_client,-1\n").contains("not a count"));
    }
}
