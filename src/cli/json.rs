//! The events of libtest's JSON format: one object a line. Pure: what
//! happened in, text out.
//!
//! Neighbours: `events` (which writes them), `lines` (the formats for people).

use serde_json::{Value, json};

use super::events::{Ending, Tally};

/// One event on a line.
fn line(event: &Value) -> String {
    // IntelliJ takes a line with such a path in it for the start of a new
    // suite. A slash may be escaped in JSON; the text stays what it is.
    format!("{}\n", event.to_string().replace("/target/", "\\/target\\/"))
}

/// The suite begins.
pub fn suite_started(total: usize, shuffle: Option<u64>) -> String {
    let mut event = json!({"type": "suite", "event": "started", "test_count": total});
    if let Some(seed) = shuffle {
        event["shuffle_seed"] = json!(seed);
    }
    line(&event)
}

/// A trial begins.
pub fn started(name: &str) -> String {
    line(&json!({"type": "test", "event": "started", "name": name}))
}

/// A trial has ended. A measured one is a `bench` event; with `ends_in_test`
/// a `test` event follows, for clients that wait for one.
pub fn ended(name: &str, ending: &Ending<'_>, seconds: Option<f64>, ends_in_test: bool) -> String {
    let mut event = match ending {
        Ending::Passed => json!({"type": "test", "name": name, "event": "ok"}),
        Ending::Ignored(reason) => {
            json!({"type": "test", "name": name, "event": "ignored", "message": reason})
        }
        Ending::Failed { reason, timed_out } => {
            let text = format!("Error: {name}: {reason}\n");
            let mut event = json!({"type": "test", "name": name, "event": "failed", "stdout": text});
            if *timed_out {
                event["reason"] = json!("time limit exceeded");
            }
            event
        }
        Ending::Measured { median, deviation, unit } => json!({
            "type": "bench",
            "name": name,
            "median": whole(*median),
            "deviation": whole(*deviation),
            "unit": format!("{unit}/iter"),
        }),
    };
    if let Some(seconds) = seconds {
        event["exec_time"] = json!(seconds);
    }
    let mut text = line(&event);
    if ends_in_test && matches!(ending, Ending::Measured { .. }) {
        text.push_str(&self::ended(name, &Ending::Passed, seconds, false));
    }
    text
}

/// The suite has ended.
pub fn suite_ended(tally: &Tally, seconds: f64) -> String {
    line(&json!({
        "type": "suite",
        "event": if tally.failed > 0 { "failed" } else { "ok" },
        "passed": tally.passed,
        "failed": tally.failed,
        "ignored": tally.ignored,
        "measured": tally.measured,
        "filtered_out": tally.filtered_out,
        "exec_time": seconds,
    }))
}

/// libtest's numbers are whole, and its readers parse them so.
fn whole(number: f64) -> u64 {
    number.round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
    }

    #[test]
    fn a_measured_trial_is_a_bench_and_for_explorers_a_test_too() {
        let ending = Ending::Measured { median: 12.6, deviation: 0.4, unit: "instructions" };
        let events = parsed(&ended("a::b", &ending, None, false));
        assert_eq!(
            events,
            [
                json!({"type": "bench", "name": "a::b", "median": 13, "deviation": 0, "unit": "instructions/iter"})
            ]
        );
        let events = parsed(&ended("a::b", &ending, Some(0.5), true));
        assert_eq!(events[1], json!({"type": "test", "name": "a::b", "event": "ok", "exec_time": 0.5}));
    }

    #[test]
    fn texts_of_any_kind_stay_on_their_line_and_whole() {
        let reason = "line\n\"two\" at /x/target/y\u{7}";
        let text = ended("a", &Ending::Failed { reason, timed_out: true }, None, true);
        assert!(!text.contains("/target/"));
        let events = parsed(&text);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["stdout"], format!("Error: a: {reason}\n"));
        assert_eq!(events[0]["reason"], "time limit exceeded");
    }
}
