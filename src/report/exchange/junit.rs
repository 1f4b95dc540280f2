//! A run as a JUnit report, which CI systems show as tests: what failed and
//! why, what was ignored, how long each trial took. Numbers are properties.
//!
//! Neighbours: nextest writes one as well when it runs the trials; this one
//! is made of records, measured ones too.

use std::fmt::Write as _;

use crate::report::model::last_attempts;
use crate::report::terminal::plain;
use crate::store::{Record, Status};

/// The report; of a trial that was tried again the last attempt counts.
pub fn junit(records: &[Record]) -> String {
    let records = last_attempts(records);
    let mut suites: Vec<(String, Vec<&Record>)> = Vec::new();
    for record in records {
        let name = format!("{} ({})", record.suite, record.mode);
        match suites.iter_mut().find(|(known, _)| *known == name) {
            Some((_, records)) => records.push(record),
            None => suites.push((name, vec![record])),
        }
    }
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (name, records) in &suites {
        suite(&mut xml, name, records);
    }
    xml + "</testsuites>\n"
}

fn suite(xml: &mut String, name: &str, records: &[&Record]) {
    let count = |is: fn(&Status) -> bool| records.iter().filter(|record| is(&record.status)).count();
    let failures = count(|status| matches!(status, Status::Failed(_)));
    let errors = count(|status| matches!(status, Status::TimedOut(_)));
    let skipped = count(|status| matches!(status, Status::Ignored(_)));
    let started = records.iter().map(|record| record.started.as_str()).min().unwrap_or_default();
    // The form has no zone, and ours is always UTC.
    let started = started.split('.').next().unwrap_or_default().trim_end_matches('Z');
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" \
         time=\"{}\" timestamp=\"{}\">",
        text(name),
        records.len(),
        seconds(records.iter().map(|record| record.elapsed_ns).fold(0, u64::saturating_add)),
        text(started)
    );
    records.iter().for_each(|record| case(xml, record));
    xml.push_str("  </testsuite>\n");
}

fn case(xml: &mut String, record: &Record) {
    let (class, name) = record.scenario.rsplit_once("::").unwrap_or(("", &record.scenario));
    let class = if class.is_empty() { &record.suite } else { class };
    let time = seconds(record.elapsed_ns);
    let _ =
        writeln!(xml, "    <testcase name=\"{}\" classname=\"{}\" time=\"{time}\">", text(name), text(class));
    if !record.metrics.is_empty() {
        xml.push_str("      <properties>\n");
        for metric in &record.metrics {
            let party = metric.series.party.as_ref().map(|party| format!("{party} ")).unwrap_or_default();
            let key = format!("{party}{} ({})", metric.series.metric, metric.series.unit);
            let value = metric.summary.median;
            let _ = writeln!(xml, "        <property name=\"{}\" value=\"{value}\"/>", text(&key));
        }
        xml.push_str("      </properties>\n");
    }
    let _ = match &record.status {
        Status::Ok => Ok(()),
        Status::Failed(reason) => element(xml, "failure", reason),
        Status::TimedOut(reason) => element(xml, "error", reason),
        Status::Ignored(reason) => writeln!(xml, "      <skipped message=\"{}\"/>", text(reason)),
    };
    xml.push_str("    </testcase>\n");
}

fn element(xml: &mut String, name: &str, reason: &str) -> std::fmt::Result {
    let reason = text(reason);
    writeln!(xml, "      <{name} message=\"{reason}\" type=\"{name}\">{reason}</{name}>")
}

/// Seconds to the millisecond, as the form has them.
fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}

/// A text as it may stand in XML 1.0: without what that cannot hold at all.
fn text(raw: &str) -> String {
    let mut out = String::new();
    for c in plain(raw).chars().filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}')) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}
