//! How the page looks, and that it can be read without looking.
//!
//! Neighbours: `shows` has what it says.

use serde_json::json;

use super::browser::{Visit, ask_in_peace};
use super::scene::Scene;
use super::{Test, same};

pub const TESTS: &[Test] = &[
    ("light_and_dark_are_both_readable", colours),
    ("a_narrow_window_needs_no_scrolling_sideways", narrow),
    ("a_screen_reader_finds_names_for_everything", names),
];

/// The contrast that WCAG 2.2 demands of text, 1.4.3.
const READABLE: f64 = 4.5;

fn colours() -> Result<(), String> {
    let script = r##"
        all("#rows button").find((b) => b.textContent === "disk::read").click();
        const rgb = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);
        const behind = (element) => {
            for (let at = element; at; at = at.parentElement) {
                const colour = getComputedStyle(at).backgroundColor;
                if (colour !== "rgba(0, 0, 0, 0)" && colour !== "transparent") return rgb(colour);
            }
            return [255, 255, 255];
        };
        const texts = all("h1, p, small, caption, .verdict, th button, .limit, .totals li, figcaption, .note, .detail td, .detail th, summary");
        const pairs = texts.filter((e) => e.textContent.trim() && e.offsetParent)
            .map((e) => [rgb(getComputedStyle(e).color), behind(e), e.textContent.slice(0, 20)]);
        const drawn = all("figure svg text").map((e) => [rgb(getComputedStyle(e).fill), behind(e), e.textContent]);
        return { paper: rgb(getComputedStyle(document.body).backgroundColor), pairs: pairs.concat(drawn) };
    "##;
    let mut papers = Vec::new();
    for dark in [false, true] {
        let seen = ask_in_peace(&Scene::new().page(), Visit { dark, ..Visit::default() }, script)?;
        let pairs = seen["pairs"].as_array().ok_or("no texts")?;
        same("many texts were looked at", pairs.len() > 60, true)?;
        for pair in pairs {
            let (ink, paper) = (luminance(&pair[0]), luminance(&pair[1]));
            let contrast = (ink.max(paper) + 0.05) / (ink.min(paper) + 0.05);
            if contrast < READABLE {
                return Err(format!("{} has a contrast of {contrast:.2}, dark: {dark}: {pair}", pair[2]));
            }
        }
        papers.push(luminance(&seen["paper"]));
    }
    same("light is light and dark is dark", papers[0] > 0.9 && papers[1] < 0.1, true)
}

/// The relative luminance of a colour (WCAG 2.2).
fn luminance(colour: &serde_json::Value) -> f64 {
    let channel = |i: usize| {
        let v = colour[i].as_f64().unwrap_or_default() / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
}

fn narrow() -> Result<(), String> {
    let script = r##"
        all("#rows button").find((b) => b.textContent === "disk::read").click();
        const scroll = document.querySelector("main > .scroll");
        const page = document.documentElement;
        const end = scroll.getBoundingClientRect().left + scroll.clientWidth;
        const wide = all("#table *").filter((e) => e.getBoundingClientRect().right > end && !e.closest(".detail .scroll"))
            .map((e) => `${e.className} ${e.getBoundingClientRect().right - end} ${e.textContent.slice(0, 40)}`);
        return [page.scrollWidth - page.clientWidth, scroll.scrollWidth - scroll.clientWidth,
            all("figure").every((f) => f.getBoundingClientRect().right <= innerWidth), wide];
    "##;
    for width in [500, 800, 1_300] {
        let seen = ask_in_peace(&Scene::new().page(), Visit { width, ..Visit::default() }, script)?;
        same(&format!("at {width}: pixels too wide, and what is"), seen, json!([0, 0, true, []]))?;
    }
    Ok(())
}

fn names() -> Result<(), String> {
    let script = r##"
        all("#rows button").forEach((b) => b.click());
        const nameless = all("input, select, button").filter((e) => !(e.textContent.trim() || e.labels?.length || e.ariaLabel));
        const opened = all("#rows th > button[aria-expanded=true]");
        const pictures = all("svg[role=img]");
        return {
            nameless: nameless.map((e) => e.outerHTML),
            controls: opened.every((b) => document.getElementById(b.getAttribute("aria-controls"))),
            rows: opened.length,
            silent: pictures.filter((svg) => svg.getAttribute("aria-label").length < 40).map((svg) => svg.getAttribute("aria-label")),
            told: pictures.map((svg) => svg.getAttribute("aria-label")).find((text) => text.startsWith("Samples over time")),
            others: all("svg:not([role=img])").every((svg) => svg.getAttribute("aria-hidden") === "true"),
            scopes: all("th").every((th) => th.scope),
            language: document.documentElement.lang,
            live: document.getElementById("count").getAttribute("role"),
            // What scrolls can be reached by keys.
            scrolls: all(".scroll").every((e) => e.tabIndex === 0 && e.ariaLabel),
        };
    "##;
    let seen = ask_in_peace(&Scene::new().page(), Visit::default(), script)?;
    let told = seen["told"].as_str().unwrap_or_default().to_string();
    let expected = json!({
        "nameless": [], "controls": true, "rows": 9, "silent": [], "told": told, "others": true, "scopes": true,
        "language": "en", "live": "status", "scrolls": true
    });
    same("what a screen reader is told", seen, expected)?;
    let words = "before: 41 samples, median 200.0 µs";
    same("a plot in words", told.contains(words), true)
}
