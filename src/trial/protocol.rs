//! What a trial in a process of its own tells its parent: one line of JSON,
//! with a version. Both sides are here.
//!
//! Neighbours: `isolate` writes and reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::body::Verdict;
use crate::measure::{Failure, Outcome};
use crate::samples::{Histogram, Sample, Series};
use crate::units::{Direction, Throughput, Unit};

/// Raised with every change of the form; both sides are of one executable,
/// but that may have been replaced while it ran.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
struct Message {
    wallgrind_trial: u32,
    scenario: String,
    verdict: VerdictForm,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VerdictForm {
    Ok(OutcomeForm),
    Failed(String),
    Panicked(String),
    TimedOut(String),
}

#[derive(Serialize, Deserialize)]
struct OutcomeForm {
    series: Vec<SeriesForm>,
    histograms: Vec<HistogramForm>,
    throughput: Vec<(String, u64)>,
    facts: BTreeMap<String, String>,
    notes: Vec<String>,
    functions: Vec<(String, u64)>,
}

#[derive(Serialize, Deserialize)]
struct SeriesForm {
    metric: String,
    party: Option<String>,
    unit: String,
    direction: String,
    /// Iterations and total of each sample.
    samples: Vec<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
struct HistogramForm {
    metric: String,
    unit: String,
    direction: String,
    digits: u8,
    /// Least and greatest value.
    ends: (u64, u64),
    buckets: Vec<(u64, u64)>,
}

/// The line for a verdict.
pub fn write(scenario: &str, verdict: Verdict) -> String {
    let verdict = match verdict {
        Ok(outcome) => VerdictForm::Ok(outcome_form(outcome)),
        Err(Failure::Failed(reason)) => VerdictForm::Failed(reason),
        Err(Failure::Panicked(reason)) => VerdictForm::Panicked(reason),
        Err(Failure::TimedOut(reason)) => VerdictForm::TimedOut(reason),
    };
    let message = Message { wallgrind_trial: VERSION, scenario: scenario.to_string(), verdict };
    // Plain data: writing it as JSON cannot fail; an empty line would be refused by the reader.
    serde_json::to_string(&message).unwrap_or_default() + "\n"
}

/// The verdict in a line; `Err` says what is wrong with the line.
pub fn read(scenario: &str, line: &str) -> Result<Verdict, String> {
    let message: Message =
        serde_json::from_str(line).map_err(|error| format!("it talked rubbish to its parent ({error})"))?;
    if message.wallgrind_trial != VERSION {
        let theirs = message.wallgrind_trial;
        return Err(format!("it speaks version {theirs} of the protocol, not {VERSION}: was it built anew?"));
    }
    if message.scenario != scenario {
        return Err(format!("it ran {} instead", message.scenario));
    }
    Ok(match message.verdict {
        VerdictForm::Ok(form) => Ok(outcome(form)?),
        VerdictForm::Failed(reason) => Err(Failure::Failed(reason)),
        VerdictForm::Panicked(reason) => Err(Failure::Panicked(reason)),
        VerdictForm::TimedOut(reason) => Err(Failure::TimedOut(reason)),
    })
}

fn outcome_form(outcome: Outcome) -> OutcomeForm {
    let throughput = outcome.throughput.into_iter().map(|done| match done {
        Throughput::Bytes(n) => ("bytes".to_string(), n),
        Throughput::Elements(n) => ("elements".to_string(), n),
    });
    OutcomeForm {
        series: outcome.series.into_iter().map(series_form).collect(),
        histograms: outcome.histograms.into_iter().map(histogram_form).collect(),
        throughput: throughput.collect(),
        facts: outcome.facts,
        notes: outcome.notes,
        functions: outcome.functions,
    }
}

fn series_form(series: Series) -> SeriesForm {
    SeriesForm {
        metric: series.metric,
        party: series.party,
        unit: series.unit.symbol().to_string(),
        direction: series.direction.word().to_string(),
        samples: series.samples.into_iter().map(|s| (s.iterations, s.total)).collect(),
    }
}

fn histogram_form(histogram: Histogram) -> HistogramForm {
    HistogramForm {
        metric: histogram.metric,
        unit: histogram.unit.symbol().to_string(),
        direction: histogram.direction.word().to_string(),
        digits: histogram.digits,
        ends: (histogram.min, histogram.max),
        buckets: histogram.buckets,
    }
}

fn outcome(form: OutcomeForm) -> Result<Outcome, String> {
    let throughput = form.throughput.into_iter().map(|(what, n)| match what.as_str() {
        "bytes" => Ok(Throughput::Bytes(n)),
        "elements" => Ok(Throughput::Elements(n)),
        other => Err(format!("it counts {other:?}, which is not known here")),
    });
    Ok(Outcome {
        series: form.series.into_iter().map(series).collect::<Result<_, _>>()?,
        histograms: form.histograms.into_iter().map(histogram).collect::<Result<_, _>>()?,
        throughput: throughput.collect::<Result<_, _>>()?,
        facts: form.facts,
        notes: form.notes,
        functions: form.functions,
    })
}

/// The unit and the direction in their words.
fn dimension(unit: &str, direction: &str) -> Result<(Unit, Direction), String> {
    let unknown = |what: &str| format!("it measures in {what:?}, which is not known here");
    Ok((
        Unit::from_symbol(unit).ok_or_else(|| unknown(unit))?,
        Direction::from_word(direction).ok_or_else(|| unknown(direction))?,
    ))
}

fn histogram(form: HistogramForm) -> Result<Histogram, String> {
    let (unit, direction) = dimension(&form.unit, &form.direction)?;
    let ((min, max), digits) = (form.ends, form.digits);
    Ok(Histogram { metric: form.metric, unit, direction, digits, min, max, buckets: form.buckets })
}

fn series(form: SeriesForm) -> Result<Series, String> {
    let (unit, direction) = dimension(&form.unit, &form.direction)?;
    let samples = form.samples.into_iter();
    Ok(Series {
        unit,
        direction,
        metric: form.metric,
        party: form.party,
        samples: samples.map(|(iterations, total)| Sample { iterations, total }).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Outcome {
        let series = Series {
            metric: "wall_time".into(),
            party: Some("client".into()),
            unit: Unit::Nanoseconds,
            direction: Direction::LowerIsBetter,
            samples: vec![Sample { iterations: 3, total: 4 }],
        };
        let histogram = Histogram {
            metric: "op_time".into(),
            unit: Unit::Nanoseconds,
            direction: Direction::LowerIsBetter,
            digits: 3,
            min: 1,
            max: 9,
            buckets: vec![(1, 2), (9, 1)],
        };
        Outcome {
            series: vec![series],
            histograms: vec![histogram],
            throughput: vec![Throughput::Bytes(5), Throughput::Elements(6)],
            facts: BTreeMap::from([("a".into(), "b".into())]),
            notes: vec!["note".into()],
            functions: vec![("f".into(), 7)],
        }
    }

    #[test]
    fn every_verdict_comes_through() {
        let failures =
            [Failure::Failed("a\nb".into()), Failure::Panicked("p".into()), Failure::TimedOut("t".into())];
        for verdict in failures.into_iter().map(Err).chain([Ok(full()), Ok(Outcome::default())]) {
            let line = write("x", verdict.clone());
            assert_eq!(line.matches('\n').count(), 1);
            assert_eq!(read("x", &line), Ok(verdict));
        }
    }

    #[test]
    fn rubbish_another_version_and_another_trial_are_refused() {
        let line = write("x", Ok(full()));
        assert!(read("y", &line).is_err_and(|wrong| wrong.contains("x instead")));
        let newer = line.replace("\"wallgrind_trial\":2", "\"wallgrind_trial\":3");
        assert!(read("x", &newer).is_err_and(|wrong| wrong.contains("version 3")));
        for bad in ["", "hello", &line[..line.len() / 2], &line.replace("\"ns\"", "\"long miles\"")] {
            assert!(read("x", bad).is_err(), "{bad:?} was taken");
        }
    }
}
