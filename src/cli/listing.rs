//! The list of trials, in the form that each client takes. Pure.
//!
//! Neighbours: `flow` writes it.

use serde_json::json;

use super::resolve::Format;
use super::select::Selected;

/// `NAME: benchmark` on a line each: nextest takes nothing else, and fails as
/// a whole on anything else. Pretty adds libtest's totals; JSON is libtest's
/// `discovered` events.
pub fn listing(selected: &Selected<'_>, format: Format) -> String {
    let total = selected.trials.len();
    if format == Format::Json {
        return discovery(selected);
    }
    let mut text: String = selected.names().iter().map(|name| format!("{name}: benchmark\n")).collect();
    if format == Format::Pretty {
        let plural = if total == 1 { "" } else { "s" };
        text.push_str(&format!("\n0 tests, {total} benchmark{plural}\n"));
    }
    text
}

fn discovery(selected: &Selected<'_>) -> String {
    let mut events = vec![json!({"type": "suite", "event": "discovery"})];
    for (scenario, missing) in &selected.trials {
        events.push(json!({
            "type": "benchmark",
            "event": "discovered",
            "name": scenario.id().as_str(),
            "ignore": missing.is_some(),
            "ignore_message": missing.as_deref().unwrap_or_default(),
        }));
    }
    let (total, ignored) =
        (selected.trials.len(), selected.trials.iter().filter(|(_, m)| m.is_some()).count());
    events.push(json!({
        "type": "suite", "event": "completed",
        "tests": 0, "benchmarks": total, "total": total, "ignored": ignored,
    }));
    events.iter().map(|event| format!("{event}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::select;
    use crate::plan::Selection;
    use crate::scenario::Suite;

    #[test]
    fn terse_is_names_alone() {
        let mut suite = Suite::new();
        suite.bench("a::one", |b| b.iter(|| 1));
        suite.bench("a::two", |b| b.iter(|| 1));
        let scenarios = suite.finish().expect("valid names");
        let missing = |s: &crate::scenario::Scenario| s.id().as_str().ends_with("two").then(|| "no".into());
        let selected = select(&scenarios, &Selection::default(), None, missing);
        assert_eq!(listing(&selected, Format::Terse), "a::one: benchmark\na::two: benchmark\n");
        assert!(listing(&selected, Format::Pretty).ends_with("\n\n0 tests, 2 benchmarks\n"));
        let events: Vec<serde_json::Value> = listing(&selected, Format::Json)
            .lines()
            .map(|line| serde_json::from_str(line).expect("an object a line"))
            .collect();
        assert_eq!(events[2]["ignore"], true);
        assert_eq!(events[3]["ignored"], 1);
    }
}
