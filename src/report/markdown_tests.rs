//! The comment, read by a parser of Markdown: what a reader sees of it.

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::html::tests::{record, sources};
use super::*;
use crate::compare::{Kinship, Rule, compare};
use crate::report::entries::entries;
use crate::store::Record;
use crate::units::Throughput;

fn made(sources: &Sources<'_>) -> String {
    markdown(sources, &entries(sources))
}

/// The texts of the cells of all tables, row by row, as they are rendered.
fn cells(text: &str) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::TableRow) => rows.push(Vec::new()),
            Event::Text(text) => {
                if let Some(row) = rows.last_mut() {
                    row.push(text.to_string());
                }
            }
            Event::Start(
                tag @ (Tag::Link { .. } | Tag::Image { .. } | Tag::Emphasis | Tag::Strikethrough),
            ) => {
                panic!("markup out of a name: {tag:?}")
            }
            _ => {}
        }
    }
    rows
}

/// Markup of every kind that a comment knows.
const HOSTILE: &str = "a|b\\|c `d` *e* _f_ ~~g~~ <b>h</b> &amp; [i](http://j) ![k](l) @all #12 https://m.n";

#[test]
fn names_stay_names() {
    let records = [record(HOSTILE, &[1_000, 1_001, 1_002])];
    let text = made(&Sources { run: HOSTILE, ..sources(&records) });
    let rows = cells(&text);
    assert!(rows[0].concat().contains(HOSTILE), "{rows:?}\n{text}");
    for sign in ["@all", " #12", "https://", "a|b"] {
        assert!(!text.contains(sign), "{sign} in\n{text}");
    }
}

#[test]
fn what_is_done_in_a_second_stands_by_the_time() {
    let done = |ns| {
        let mut record = record("a::x", &[ns, ns, ns]);
        record.throughput = vec![Throughput::Bytes(1 << 20), Throughput::Elements(3)];
        vec![record]
    };
    let (before, after) = (done(4_000_000), done(2_000_000));
    let text = made(&sources(&after));
    assert!(text.contains("<br>500 MiB/s<br>1.50 k/s | 3 |"), "{text}");
    let rule = Rule::default();
    let comparison = compare(&before, &after, Kinship::Stored, &rule);
    let against = Against { label: "main", records: &before, comparison: &comparison, rule: &rule };
    let text = made(&Sources { against: Some(against), ..sources(&after) });
    assert!(text.contains("2.000 ms<br>500 MiB/s<br>1.50 k/s |"), "{text}");
}

fn comparison(count: usize) -> String {
    let name = |i: usize| format!("suite::group_{}::scenario_{i:05}", i % 7);
    let side = |of: fn(usize) -> u64| -> Vec<Record> {
        (0..count).map(|i| record(&name(i), &[of(i), of(i) + 1, of(i) + 2])).collect()
    };
    // A tenth is slower by half and more, a tenth is faster.
    let before = side(|_| 1_000_000);
    let after = side(|i| match i % 10 {
        0 => 2_500_000 + i as u64,
        1 => 300_000,
        _ => 1_000_000,
    });
    let rule = Rule::default();
    let comparison = compare(&before, &after, Kinship::Stored, &rule);
    let against = Against { label: "main", records: &before, comparison: &comparison, rule: &rule };
    made(&Sources { run: "now", records: &after, against: Some(against), history: &[] })
}

#[test]
fn what_is_slower_stands_first_and_the_rest_is_folded() {
    let text = comparison(40);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is missing in\n{text}"));
    assert!(
        text.starts_with(
            "<!-- wallgrind report -->\n### Benchmarks: ▲ 4 slower, ▼ 4 faster, ? 32 not known\n"
        )
    );
    assert!(at("**▲ 4 slower**") < at("**▼ 4 faster**"));
    assert!(at("**▼ 4 faster**") < at("<details><summary>? 32 not known</summary>"));
    let rows = cells(&text);
    let first = rows[0].concat();
    assert!(first.contains("suite::group_2::scenario_00030") && first.contains("+150.0 %"), "{first}");
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
}

#[test]
fn a_comment_is_never_too_long_and_no_row_is_cut() {
    for count in [500, 2_000, 10_000] {
        let text = comparison(count);
        assert!(text.len() <= MOST_MARKDOWN, "{} bytes", text.len());
        assert!(text.len() > MOST_MARKDOWN - 2_000, "only {} bytes are used", text.len());
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("scenario_")).collect();
        for row in &rows {
            assert!(row.starts_with("| ") && row.ends_with(" |") && row.matches(" | ").count() == 5, "{row}");
        }
        let last = text.lines().last().expect("a line");
        let left_out: usize =
            last.split(' ').next().expect("a word").replace(',', "").parse().expect("a number");
        assert_eq!(rows.len() + left_out, count);
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        // What is slower comes before anything is left out of it.
        assert!(rows.len() < count / 10 || rows[count / 10 - 1].contains("slower"), "{count}");
    }
}

#[test]
fn one_run_has_no_verdicts() {
    let records = [record("a::x", &[1_000, 1_010, 1_020])];
    let text = made(&sources(&records));
    assert!(text.contains("| • measured | <code>a::x</code> | 1.010 ± 0.010 µs | 3 |"), "{text}");
}
