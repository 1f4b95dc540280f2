//! Ten thousand rows: the page stays of a size that a browser opens, and does
//! what a small one does.
//!
//! Neighbours: `scene` makes the records.

use serde_json::json;

use super::browser::{Visit, ask_in_peace};
use super::scene::{page_of, timed};
use super::{Test, same};
use wallgrind::store::Record;

pub const TESTS: &[Test] = &[("ten_thousand_rows_are_shown_a_part_at_a_time", many)];

/// Rows of the page.
const ROWS: usize = 10_000;

/// What a page may have for a row, in bytes: 1,775 are there when all rows
/// have the same samples, as here, and 2,500 when all differ.
const EACH: usize = 2_000;

fn many() -> Result<(), String> {
    let one = timed("one", 1_000);
    let record = |i: usize| {
        // Summing up ten thousand times is not what is tested.
        let mut record = Record { scenario: format!("group_{}::scenario_{i:05}", i % 100), ..one.clone() };
        record.metrics[0].summary.median = 1_000.0 + i as f64;
        record
    };
    let records: Vec<Record> = (0..ROWS).map(record).collect();
    let page = page_of(&records);
    if page.len() > ROWS * EACH {
        return Err(format!("the page has {} bytes", page.len()));
    }
    let script = r##"
        const count = () => document.getElementById("count").textContent;
        const more = document.getElementById("more");
        const seen = [[rows().length, count(), more.textContent]];
        more.click(); seen.push([rows().length]);
        type("scenario_0123"); seen.push([rows().length, names()[0], count(), more.hidden]);
        type("");
        all("th[data-key=value] button")[0].click();
        seen.push([names()[0], rows().length]);
        all("#rows button")[0].click();
        seen.push([all("figcaption").length]);
        return seen;
    "##;
    let seen = ask_in_peace(&page, Visit::default(), script)?;
    let expected = json!([
        [300, "10,000 of 10,000 trials match, the first 300 are shown", "Show 300 more"],
        [600],
        [10, "group_30::scenario_01230", "10 of 10,000 trials match", true],
        ["group_99::scenario_09999", 300],
        [4],
    ]);
    same("what is shown", seen, expected)
}
