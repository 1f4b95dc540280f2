//! What the page shows, and what it does when it is used.
//!
//! Neighbours: `scene` has the numbers, `looks` the colours and the rest.

use serde_json::{Value, json};

use super::browser::{Visit, ask, ask_in_peace};
use super::scene::{Scene, bare, page_of, timed};
use super::{Test, same};
use wallgrind::store::Status;

pub const TESTS: &[Test] = &[
    ("the_browser_is_heard_when_it_complains", complaints_are_heard),
    ("each_row_has_its_verdict_and_numbers", rows),
    ("an_opened_row_has_all_plots_and_tables", opened),
    ("typing_and_ticking_filter", filters),
    ("titles_sort_both_ways", sorts),
    ("the_address_keeps_the_view", address),
    ("hostile_names_are_only_names", hostile),
    ("a_run_alone_has_no_verdicts", alone),
];

/// Without it, silence of the console would prove nothing.
fn complaints_are_heard() -> Result<(), String> {
    let broken =
        page_of(&[timed("a::x", 1_000)]).replace("\"use strict\";", "\"use strict\"; nothing_there();");
    let seen = ask(&broken, Visit::default(), "return 1")?;
    same("complaints", seen.complaints.iter().filter(|c| c.contains("nothing_there")).count(), 1)?;
    let loads =
        page_of(&[timed("a::x", 1_000)]).replace("</main>", "<img src=\"https://example.com/a.png\"></main>");
    let seen = ask(&loads, Visit::default(), "return 1")?;
    same(
        "loads from elsewhere are refused",
        seen.complaints.iter().any(|c| c.contains("Content Security")),
        true,
    )
}

fn rows() -> Result<(), String> {
    let script =
        "return rows().map((tr) => Array.from(tr.cells).slice(0, 7).map((c) => c.textContent.trim()))";
    let seen = ask_in_peace(&Scene::new().page(), Visit::default(), script)?;
    let expected = json!([
        ["✕ failed", "net::broken check: two bytes differ", "walltime", "", "", "", ""],
        [
            "▲ slower beyond its limit",
            "disk::read",
            "walltime",
            "200.0 µs",
            "500.0 ± 3.0 µs",
            "+150.0 %",
            "?"
        ],
        [
            "▲ slower beyond its limit",
            "net::send",
            "cachegrind",
            "5,000 instructions",
            "5,200 instructions",
            "+200 (+4.00 %)",
            ""
        ],
        ["▼ faster", "net::send", "walltime", "900.0 µs", "300.0 ± 1.8 µs", "-66.7 %", "?"],
        ["? not known", "net::receive", "walltime", "10.00 µs", "10.00 ± 0.06 µs", "0 %", "?"],
        ["∅ not compared", "net::added not there before", "walltime", "", "2.000 ± 0.012 µs", "", ""],
        ["= same", "net::receive", "cachegrind", "7,000 instructions", "7,000 instructions", "0 %", ""],
        ["− gone", "old::gone not there now", "walltime", "1.000 µs", "", "", ""],
        ["○ ignored", "net::absent needs io_uring", "walltime", "", "", "", ""],
    ]);
    let (found, wanted) = (seen.as_array().ok_or("no rows")?, expected.as_array().ok_or("no rows")?);
    for (found, wanted) in found.iter().zip(wanted) {
        for (cell, wanted) in
            found.as_array().into_iter().flatten().zip(wanted.as_array().into_iter().flatten())
        {
            // An interval is the affair of other tests; here it must be one around the change.
            let is_right = if wanted == "?" { is_interval(cell) } else { starts_alike(cell, wanted) };
            if !is_right {
                return Err(format!("{cell} instead of {wanted} in {found}"));
            }
        }
    }
    same("rows", found.len(), wanted.len())?;
    let totals = "return all('.totals li').map((li) => li.textContent)";
    let seen = ask_in_peace(&Scene::new().page(), Visit::default(), totals)?;
    let expected = json!([
        "✕ 1 failed",
        "▲ 2 slower",
        "▼ 1 faster",
        "? 1 not known",
        "∅ 1 not compared",
        "= 1 same",
        "− 1 gone",
        "○ 1 ignored",
        "2 beyond the limit"
    ]);
    same("totals", seen, expected)
}

/// Half-widths of intervals come out of a bootstrap: their last digits are not tested here.
fn starts_alike(cell: &Value, wanted: &Value) -> bool {
    let of =
        |value: &Value| value.as_str().map(|text| text.split('±').next().unwrap_or_default().to_string());
    let unit =
        |value: &Value| value.as_str().and_then(|text| text.split(' ').next_back().map(str::to_string));
    of(cell) == of(wanted) && unit(cell) == unit(wanted)
}

fn is_interval(cell: &Value) -> bool {
    let ends = cell.as_str().and_then(|text| text.split_once(" to "));
    ends.is_some_and(|(low, high)| low.ends_with('%') && high.ends_with('%') && low != high)
}

fn opened() -> Result<(), String> {
    let script = r##"
        all("#rows button").find((b) => b.textContent === "disk::read").click();
        all("#rows button").filter((b) => b.textContent === "net::send").forEach((b) => b.click());
        const seen = (at) => {
            const detail = all("#rows > tr.detail")[at];
            const of = (selector) => Array.from(detail.querySelectorAll(selector));
            return {
                plots: of("figcaption").map((f) => f.textContent),
                drawn: of("figure svg g").every((g) => g.querySelectorAll("path").length > 0),
                tables: of("h3, summary").map((h) => h.textContent),
                p99: of("tr").filter((tr) => tr.textContent.startsWith("99 %")).map((tr) => tr.textContent),
                functions: of("tr").filter((tr) => tr.textContent.includes("hot_loop")).map((tr) => tr.textContent),
                level: of("tr").filter((tr) => tr.textContent.includes("abc12")).map((tr) => tr.textContent),
                commit: of("tr.marked").filter((tr) => tr.textContent.includes("commit")).map((tr) => tr.textContent),
            };
        };
        return [seen(0), seen(1)];
    "##;
    let seen = ask_in_peace(&Scene::new().page(), Visit::default(), script)?;
    let all = [
        "Change with its interval",
        "Samples over time",
        "Density",
        "Cumulative share (ECDF)",
        "By party",
        "Latency of operations",
        "History",
    ];
    same("plots", &seen[0]["plots"], &json!(all))?;
    same("each plot has lines", &seen[0]["drawn"], &json!(true))?;
    let tables = [
        "All metrics, for one iteration",
        "Latency of one operation: no longer than",
        "When the level changed",
        "How it was measured",
        "Identity of both sides: 1 differ",
    ];
    same("tables", &seen[0]["tables"], &json!(tables))?;
    same("99th percentile", &seen[0]["p99"], &json!(["99 %100.0 µs300.0 µs"]))?;
    same("change of level", &seen[0]["level"], &json!(["2026-01-13T00:00:00Zabc12+50.0 %"]))?;
    same("identity that differs", &seen[0]["commit"], &json!(["commitc0ffeedecade"]))?;
    same("functions that moved", &seen[1]["functions"], &json!(["hot_loop4,9005,100+200"]))
}

fn filters() -> Result<(), String> {
    let script = r##"
        const seen = [];
        type("SEND"); seen.push([names(), document.getElementById("count").textContent]);
        type("net cachegrind"); seen.push([names()]);
        type(""); seen.push([rows().length, document.getElementById("count").textContent]);
        all("input[name=class]").find((box) => box.dataset.word === "slower").click();
        seen.push([names().includes("disk::read"), rows().length]);
        const mode = document.getElementById("mode");
        mode.value = "cachegrind"; mode.dispatchEvent(new Event("input", { bubbles: true }));
        seen.push([names()]);
        all("button[type=reset]")[0].click();
        seen.push([rows().length, mode.value]);
        return seen;
    "##;
    let seen = ask_in_peace(&Scene::new().page(), Visit::default(), script)?;
    let expected = json!([
        [["net::send", "net::send"], "2 of 9 trials match"],
        [["net::send", "net::receive"]],
        [9, "9 trials"],
        [false, 7],
        [["net::receive"]],
        [9, ""],
    ]);
    same("what is shown", seen, expected)
}

fn sorts() -> Result<(), String> {
    let script = r##"
        const press = (key) => all(`th[data-key=${key}] button`)[0].click();
        const sorted = (key) => all(`th[data-key=${key}]`)[0].getAttribute("aria-sort");
        const changes = () => rows().map((tr) => tr.dataset.change).map((v) => v === undefined ? null : Math.round(100 * v));
        const seen = [];
        press("change"); seen.push(changes(), sorted("change"));
        press("change"); seen.push(changes(), sorted("change"));
        press("name"); seen.push(names(), sorted("name"), sorted("change"));
        press("class"); seen.push(rows().map((tr) => Number(tr.dataset.class)));
        return seen;
    "##;
    let seen = ask_in_peace(&Scene::new().page(), Visit::default(), script)?;
    let expected = json!([
        [150, 4, 0, 0, -67, null, null, null, null],
        "descending",
        [-67, 0, 0, 4, 150, null, null, null, null],
        "ascending",
        [
            "disk::read",
            "net::absent",
            "net::added",
            "net::broken",
            "net::receive",
            "net::receive",
            "net::send",
            "net::send",
            "old::gone"
        ],
        "ascending",
        null,
        [0, 1, 1, 2, 3, 4, 5, 7, 8],
    ]);
    same("the order", seen, expected)
}

fn address() -> Result<(), String> {
    let page = Scene::new().page();
    let visit = Visit {
        hash: "#words=net&meter=walltime&hide=failed,gone&order=-name&open=walltime+net%3A%3Asend",
        ..Visit::default()
    };
    let script = "return [names(), all('#rows > tr.detail').length, document.getElementById('words').value, location.hash]";
    let seen = ask_in_peace(&page, visit, script)?;
    let names = ["net::send", "net::receive", "net::added", "net::absent"];
    same("the view", &json!([seen[0], seen[1], seen[2]]), &json!([names, 1, "net"]))?;
    let again = seen[3].as_str().unwrap_or_default();
    same("the address says so", again.contains("hide=failed%2Cgone") && again.contains("order=-name"), true)?;
    let seen_again = ask_in_peace(&page, Visit { hash: again, ..Visit::default() }, script)?;
    same("the view that was linked to", seen_again, seen)
}

fn hostile() -> Result<(), String> {
    let names = [
        "</script><script>window.taken=1</script>",
        "<img src=x onerror=window.taken=1>",
        "\" onclick=\"window.taken=1\" '",
        "<!--<script>",
        "a&amp;b\\u003c",
        "\u{202e}backwards",
        "__proto__",
        "𝄞 한국어",
    ];
    let mut records: Vec<_> = names.iter().map(|name| timed(name, 1_000)).collect();
    for record in &mut records {
        record.notes.push(record.scenario.clone());
        record.identity.insert(record.scenario.clone(), record.scenario.clone());
    }
    records.push(bare("a::failed", "walltime", Status::Failed(names[0].into())));
    let script = r##"
        all("#rows button").forEach((b) => b.click());
        const notes = all("#rows .notes li").map((li) => li.textContent);
        return [names().sort(), notes.sort(), window.taken ?? null, all("img").length];
    "##;
    let seen = ask_in_peace(&page_of(&records), Visit::default(), script)?;
    let sorted = |extra: &'static str| {
        let mut all: Vec<&str> = names.iter().copied().chain([extra]).collect();
        // As JavaScript sorts: by units of UTF-16.
        all.sort_by_key(|name| name.encode_utf16().collect::<Vec<_>>());
        all
    };
    same("names", &seen[0], &json!(sorted("a::failed")))?;
    same("notes", &seen[1], &json!(sorted(names[0])))?;
    same("nothing was run or loaded", &json!([seen[2], seen[3]]), &json!([null, 0]))
}

fn alone() -> Result<(), String> {
    let script = r##"
        return [
            all("thead th").map((th) => th.textContent),
            rows().map((tr) => Array.from(tr.cells).slice(0, 5).map((c) => c.textContent)),
        ];
    "##;
    let mut record = timed("a::x", 1_000_000);
    record.throughput.push(wallgrind::units::Throughput::Bytes(1 << 20));
    let seen = ask_in_peace(&page_of(&[record]), Visit::default(), script)?;
    same("titles", &seen[0], &json!(["state", "scenario", "meter", "median", "a second", "distribution"]))?;
    let cells = &seen[1][0];
    same("the row", &json!([cells[0], cells[1], cells[4]]), &json!(["• measured", "a::x", "0.98 GiB/s"]))?;
    same("the median", starts_alike(&cells[3], &json!("1.000 ± 0.006 ms")), true)
}
