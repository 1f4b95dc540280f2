//! All metrics of a run as a table of comma-separated values (RFC 4180), a
//! line a metric, for spreadsheets and data frames.
//!
//! Neighbours: the manual's page on formats lists the columns.

use crate::error::{Error, Kind, Result};
use crate::store::{Metric, Rate, Record, Status};
use crate::units::Direction;

/// The columns, in their order.
pub const COLUMNS: [&str; 21] = [
    "run_id",
    "suite",
    "scenario",
    "mode",
    "attempt",
    "status",
    "reason",
    "started",
    "metric",
    "party",
    "unit",
    "better",
    "samples",
    "median",
    "ci95_low",
    "ci95_high",
    "mad",
    "min",
    "max",
    "mean",
    "outliers",
];

/// The table. A trial without numbers has one line, with its reason. Texts
/// are as they are in the records, also where a spreadsheet would take one for
/// a formula: programs join tables by them.
///
/// # Errors
/// [`Kind::Format`], which does not come about: the text is made in memory.
pub fn csv(records: &[Record]) -> Result<String> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(Kind::Format, "the table cannot be written as CSV").source(error)
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(|error| failed(error.into()))?;
    for record in records {
        let metrics: Vec<Option<&Metric>> = match record.metrics.is_empty() {
            true => vec![None],
            false => record.metrics.iter().map(Some).collect(),
        };
        for metric in metrics {
            writer.write_record(line(record, metric)).map_err(|error| failed(error.into()))?;
        }
        for rate in record.rates() {
            writer.write_record(rate_line(record, &rate)).map_err(|error| failed(error.into()))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string().into()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.into()))
}

fn line(record: &Record, metric: Option<&Metric>) -> Vec<String> {
    let mut line = start(record);
    if let Some(Metric { series, summary }) = metric {
        line.extend([series.metric.clone(), series.party.clone().unwrap_or_default()]);
        line.extend([series.unit.symbol(), series.direction.word()].map(str::to_string));
        line.push(series.samples.len().to_string());
        let numbers = [
            summary.median,
            summary.median_ci.0,
            summary.median_ci.1,
            summary.mad,
            summary.min,
            summary.max,
            summary.mean,
        ];
        // The shortest text that is read back as the same number.
        line.extend(numbers.map(|number| number.to_string()));
        line.push(summary.outliers.to_string());
    }
    line.resize(COLUMNS.len(), String::new());
    line
}

/// What is done in a second, which has a median and its interval only.
fn rate_line(record: &Record, rate: &Rate) -> Vec<String> {
    let mut line = start(record);
    line.extend([rate.of.rate_name(), "", rate.of.rate_unit()].map(str::to_string));
    line.push(Direction::HigherIsBetter.word().into());
    line.push(record.metrics.first().map_or(0, |headline| headline.series.samples.len()).to_string());
    line.push(rate.median.to_string());
    line.extend(rate.median_ci.into_iter().flat_map(|(low, high)| [low.to_string(), high.to_string()]));
    line.resize(COLUMNS.len(), String::new());
    line
}

/// The columns that say what the line is of.
fn start(record: &Record) -> Vec<String> {
    let (status, reason) = match &record.status {
        Status::Ok => ("ok", ""),
        Status::Failed(reason) => ("failed", reason.as_str()),
        Status::TimedOut(reason) => ("timed_out", reason.as_str()),
        Status::Ignored(reason) => ("ignored", reason.as_str()),
    };
    let mut line: Vec<String> =
        [&record.run_id, &record.suite, &record.scenario, &record.mode].map(Clone::clone).into();
    line.extend([record.attempt.to_string(), status.into(), reason.into(), record.started.clone()]);
    line
}
