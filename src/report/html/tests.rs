//! The page as text: what can be judged without a browser. The rest is
//! `src/tests/pages`.

use super::html;
use super::text::{escaped, json};
use crate::report::entries::{Sources, entries};
use crate::samples::{Sample, Series};
use crate::store::{Metric, Record, Status};
use crate::units::{Direction, Unit};

pub(in crate::report) fn record(scenario: &str, ns: &[u64]) -> Record {
    let series = Series {
        metric: "wall_time".into(),
        party: None,
        unit: Unit::Nanoseconds,
        direction: Direction::LowerIsBetter,
        samples: ns.iter().map(|total| Sample { iterations: 1, total: *total }).collect(),
    };
    Record {
        run_id: "r".into(),
        suite: "s".into(),
        started: "2026-01-01T00:00:00.5Z".into(),
        elapsed_ns: 1,
        metrics: Metric::new(series, 1).into_iter().collect(),
        ..Record::new(scenario, "walltime")
    }
}

pub(in crate::report) fn sources(records: &[Record]) -> Sources<'_> {
    Sources { run: "a run", records, against: None, history: &[] }
}

fn made(sources: &Sources<'_>) -> String {
    html(sources, &entries(sources))
}

#[test]
fn no_text_can_be_markup() {
    let bad = "</script><b>\"'&\u{1b}[31mred\u{0}\n";
    assert_eq!(escaped(bad), "&lt;/script&gt;&lt;b&gt;&quot;&#39;&amp;red");
    assert!(!json(&bad).contains('<'));
    assert_eq!(serde_json::from_str::<String>(&json(&bad)).expect("JSON"), bad);
    let mut bad_record = record(bad, &[1, 2, 3]);
    bad_record.notes.push(bad.into());
    bad_record.identity.insert(bad.into(), bad.into());
    let records = [bad_record];
    let page = made(&Sources { run: bad, ..sources(&records) });
    assert_eq!(page.matches("</script>").count(), 2, "its own two, and no other");
    assert!(!page.contains("<b>\"") && !page.contains('\u{1b}') && !page.contains('\u{0}'));
}

#[test]
fn what_rows_share_is_there_once() {
    let with = |scenario: &str, commit: &str| {
        let mut record = record(scenario, &[1, 2, 3]);
        record.identity.insert("commit".into(), commit.into());
        record
    };
    let page = made(&sources(&[with("a::x", "c0ffee"), with("a::y", "c0ffee"), with("a::z", "decade")]));
    assert_eq!((page.matches("c0ffee").count(), page.matches("decade").count()), (1, 1));
    let data = page.split("id=\"data\">\n").nth(1).expect("data");
    let lines: Vec<serde_json::Value> =
        data.lines().take(4).map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    // The last line is what they share.
    assert_eq!(lines[3][1].as_array().map(Vec::len), Some(2), "two tables of identities");
    assert_eq!([0, 1, 2].map(|i| lines[i][3].as_u64().expect("a number")), [0, 0, 1]);
    // The titles of the table of metrics: written out in the first row, then in the shared list.
    let titles = |i: usize| &lines[i][2][0][1];
    assert!(titles(0).is_array() && titles(1).is_u64() && titles(1) == titles(2), "{}", lines[1]);
    let at = titles(1).as_u64().expect("a number") as usize;
    assert_eq!(&lines[3][0][at], titles(0));
}

#[test]
fn the_page_names_nothing_of_the_network() {
    let page = made(&sources(&[record("a::x", &[1, 2, 3])]));
    // The namespace of SVG is a name; nothing is fetched from there.
    assert_eq!(page.matches("://").count(), page.matches("http://www.w3.org/2000/svg").count());
    for word in ["src=", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn the_last_attempt_is_shown_and_smoke_is_not() {
    let failed =
        Record { status: Status::Failed("first".into()), metrics: Vec::new(), ..record("a::x", &[]) };
    let again = Record { attempt: 2, ..record("a::x", &[7, 7]) };
    let smoke = record("a::y", &[]);
    let records = [failed, again, smoke];
    let all = entries(&sources(&records));
    assert_eq!(all.iter().map(|e| (e.scenario, e.word())).collect::<Vec<_>>(), [("a::x", "measured")]);
    assert_eq!(all[0].after.expect("a record").attempt, 2);
}
