//! Which scenarios gave other counts when they were repeated, from records alone.
//!
//! Neighbours: `wallgrind doctor --determinism` prints it.

use std::fmt::Write as _;

use crate::store::{Record, Status};

/// The note that the meter leaves on a count that differs although it should not.
const MARK: &str = "not deterministic: ";

/// What a set of records says about repeatability.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Determinism {
    /// Scenarios whose counts are equal.
    pub equal: Vec<String>,
    /// Scenarios that differ: name, and who, by how much, where, and the likely cause.
    pub differing: Vec<(String, String)>,
    /// Scenarios without a count, with the reason.
    pub uncounted: Vec<(String, String)>,
}

/// Sorts records of counts by whether their repetitions were equal.
pub fn determinism(records: &[Record]) -> Determinism {
    let mut found = Determinism::default();
    for record in records.iter().filter(|r| r.mode == "cachegrind" || r.mode == "dhat") {
        let name = format!("{} ({})", record.scenario, record.mode);
        match &record.status {
            Status::Ok => {
                let notes: Vec<&str> =
                    record.notes.iter().filter(|n| n.contains(MARK)).map(String::as_str).collect();
                if notes.is_empty() {
                    found.equal.push(name);
                } else {
                    found.differing.push((name, notes.join("; ")));
                }
            }
            Status::Failed(why) | Status::TimedOut(why) | Status::Ignored(why) => {
                found.uncounted.push((name, why.clone()));
            }
        }
    }
    found
}

impl Determinism {
    /// The findings as text, those that differ first.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (name, how) in &self.differing {
            let _ = writeln!(text, "differs    {name}: {how}");
        }
        for (name, why) in &self.uncounted {
            let _ = writeln!(text, "no count   {name}: {}", why.lines().next().unwrap_or_default());
        }
        let _ = writeln!(
            text,
            "{} scenarios equal to the last digit, {} differ, {} without a count",
            self.equal.len(),
            self.differing.len(),
            self.uncounted.len()
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::determinism;
    use crate::report::exchange::{Import, import};
    use crate::store::Status;

    #[test]
    fn tells_equal_counts_from_others_and_from_none() {
        let files = Import { icounts: Some("a_client,1\nb_client,2\nc_client,3\n"), ..Import::default() };
        let mut records = import(&files, &|name| Some(name.to_string())).expect("a valid file");
        records[1].notes.push("client: not deterministic: 2 to 4 in 3 runs; differs in f (by 2)".into());
        records[2].status = Status::Failed("no key\nand more".into());
        let found = determinism(&records);
        assert_eq!((found.equal.len(), found.differing.len(), found.uncounted.len()), (1, 1, 1));
        let text = found.report();
        assert!(text.starts_with("differs    b (cachegrind): client: not deterministic: 2 to 4"), "{text}");
        assert!(text.contains("no count   c (cachegrind): no key\n"), "{text}");
        assert!(
            text.ends_with("1 scenarios equal to the last digit, 1 differ, 1 without a count\n"),
            "{text}"
        );
    }
}
