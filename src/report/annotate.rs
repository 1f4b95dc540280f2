//! Where the instructions of a trial go: its functions, from its record alone.
//!
//! Neighbours: `wallgrind annotate` prints it.

use crate::units::grouped;
use std::fmt::Write as _;

use crate::store::Record;

/// The `top` functions of a record with a count, largest first, as a table:
/// instructions of all counted iterations, share of the party's total, name.
/// `None` when the record has no functions.
pub fn annotate(record: &Record, top: usize) -> Option<String> {
    if record.functions.is_empty() {
        return None;
    }
    let iterations = record.facts.get("iterations").map_or("1", String::as_str);
    let mut text = format!("{}, instructions of {iterations} iteration(s), by function\n", record.scenario);
    for party in parties(record) {
        let of_party: Vec<_> = record.functions.iter().filter(|(name, _)| party_of(name) == party).collect();
        let total: u64 = of_party.iter().map(|(_, n)| n).sum();
        let _ = writeln!(text, "\n{:>14}  100.0 %  {}", grouped(total), party.unwrap_or("all"));
        for (name, n) in of_party.iter().take(top) {
            let share = 100.0 * *n as f64 / total.max(1) as f64;
            let name = party.map_or(name.as_str(), |p| &name[p.len() + 3..]);
            let _ = writeln!(text, "{:>14}  {share:>5.1} %  {name}", grouped(*n));
        }
        let rest: u64 = of_party.iter().skip(top).map(|(_, n)| n).sum();
        if rest > 0 {
            let share = 100.0 * rest as f64 / total.max(1) as f64;
            let _ = writeln!(text, "{:>14}  {share:>5.1} %  ({} more)", grouped(rest), of_party.len() - top);
        }
    }
    Some(text)
}

/// Names of functions begin with their party in brackets, where there are two.
fn party_of(name: &str) -> Option<&str> {
    name.strip_prefix('[')?.split_once("] ").map(|(party, _)| party)
}

fn parties(record: &Record) -> Vec<Option<&str>> {
    let mut named: Vec<&str> = record.metrics.iter().filter_map(|m| m.series.party.as_deref()).collect();
    named.dedup();
    let mut unique: Vec<Option<&str>> = Vec::new();
    for party in named {
        if !unique.contains(&Some(party)) {
            unique.push(Some(party));
        }
    }
    if unique.is_empty() { vec![None] } else { unique }
}

#[cfg(test)]
mod tests {
    use super::annotate;
    use crate::report::exchange::{Import, import};

    #[test]
    fn lists_the_functions_of_each_party_and_sums_up_the_rest() {
        let files = Import { icounts: Some("x_client,1100\nx_server,9\n"), ..Import::default() };
        let mut record = import(&files, &|_| Some("tls::x".into())).expect("a valid file").remove(0);
        assert_eq!(annotate(&record, 2), None);
        let functions =
            [("[client] f", 1_000), ("[client] <a as b>::g", 75), ("[client] h", 25), ("[server] f", 9)];
        record.functions = functions.map(|(name, n)| (name.to_string(), n)).into();
        let text = annotate(&record, 2).expect("there are functions");
        for line in [
            "         1,100  100.0 %  client",
            "         1,000   90.9 %  f",
            "            75    6.8 %  <a as b>::g",
            "            25    2.3 %  (1 more)",
            "             9  100.0 %  server",
        ] {
            assert!(text.lines().any(|l| l == line), "{line:?} is missing in\n{text}");
        }
    }
}
