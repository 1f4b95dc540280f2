//! Near names, for what was typed and matches nothing.
//!
//! Neighbours: `value` and `resolve` (words, variables), `flow` (filters), and
//! the commands that take the name of one trial.

use std::collections::BTreeSet;

use crate::plan::Selection;

/// How alike (Jaro-Winkler) a name must be to be suggested.
const ALIKE: f64 = 0.82;

/// How much less alike than the nearest one a further suggestion may be.
const CLOSE: f64 = 0.03;

/// Names that are suggested at most.
const SUGGESTIONS: usize = 3;

/// The candidate that is most like `text`, if one is near.
pub fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    near(text, candidates).into_iter().next()
}

/// The candidates that may have been meant, in words: those that contain
/// `text`, else the nearest one; `None` where none does and none is near.
pub fn meant<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let unique: BTreeSet<&str> = candidates.collect();
    let containing = || unique.iter().copied().filter(|name| !text.is_empty() && name.contains(text));
    let more = containing().count().saturating_sub(SUGGESTIONS);
    let named = match containing().take(SUGGESTIONS).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => nearest(text, unique.iter().copied())?.to_string(),
        named => named,
    };
    let more = if more > 0 { format!(" or {more} more") } else { String::new() };
    Some(format!("did you mean {named}{more}?"))
}

/// The near candidates, the nearest first, without doubles.
fn near<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let unique: BTreeSet<&str> = candidates.collect();
    let mut scored: Vec<(f64, &str)> = unique
        .into_iter()
        .map(|name| (strsim::jaro_winkler(text, name), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    let close = scored.into_iter().take_while(|(score, _)| best - score < CLOSE);
    close.map(|(_, name)| name).take(SUGGESTIONS).collect()
}

/// What to say when a selection leaves none of `names`; `None` when no filter
/// was given, so that there is nothing to be said.
pub fn nothing_matches(suite: &str, selection: &Selection, names: &[&str]) -> Option<String> {
    let Selection { filters, skip, exact, .. } = selection;
    if filters.is_empty() && skip.is_empty() {
        return None;
    }
    if filters.is_empty() {
        return Some(format!("--skip leaves none of the {} trials of {suite}", names.len()));
    }
    let quoted: Vec<String> = filters.iter().map(|f| format!("`{f}`")).collect();
    let mut text = format!("no trial of {suite} matches {}", quoted.join(" or "));
    if *exact {
        let within = names.iter().filter(|name| filters.iter().any(|f| name.contains(f.as_str()))).count();
        if within > 0 {
            text.push_str(&format!(" in full; without --exact, {within} would"));
            return Some(text);
        }
    }
    let parts: Vec<&str> = names.iter().flat_map(|name| parts(name)).collect();
    let suggested: BTreeSet<&str> =
        filters.iter().flat_map(|filter| near(filter, parts.iter().copied())).collect();
    if !suggested.is_empty() {
        let all: Vec<&str> = suggested.into_iter().collect();
        text.push_str(&format!("; did you mean {}?", all.join(" or ")));
    }
    Some(text)
}

/// What a filter may have meant: the whole name, each tail of its path, and
/// each segment.
fn parts(name: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = vec![name];
    parts.extend(name.match_indices("::").map(|(at, _)| &name[at + 2..]));
    parts.extend(name.match_indices("::").map(|(at, _)| &name[..at]));
    parts.extend(name.split("::"));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["tls::full::ring", "tls::full::aws", "tls::tickets::ring"];

    fn say(filters: &[&str], exact: bool) -> Option<String> {
        let filters = filters.iter().map(|f| f.to_string()).collect();
        nothing_matches("tls", &Selection { filters, exact, ..Selection::default() }, &NAMES)
    }

    #[test]
    fn what_contains_the_text_is_meant_before_what_is_near() {
        let meant = |text: &str| meant(text, NAMES.into_iter());
        let said = |names: &str| Some(format!("did you mean {names}?"));
        assert_eq!(meant("tickets"), said("tls::tickets::ring"));
        assert_eq!(meant("ring"), said("tls::full::ring, tls::tickets::ring"));
        assert_eq!(meant("tls::ful::ring"), said("tls::full::ring"));
        assert_eq!((meant("zzzz"), meant("")), (None, None));
        let many = (0..9).map(|i| format!("a::x{i}")).collect::<Vec<_>>();
        let many = super::meant("::x", many.iter().map(String::as_str));
        assert_eq!(many, said("a::x0, a::x1, a::x2 or 6 more"));
    }

    #[test]
    fn suggests_segments_paths_and_leaving_out_exact() {
        assert_eq!(say(&[], false), None);
        assert!(say(&["tikets"], false).is_some_and(|text| text.contains("did you mean tickets?")));
        assert!(say(&["tls::ful::ring"], false).is_some_and(|text| text.contains("tls::full::ring")));
        let exact = say(&["tls::full"], true);
        assert!(exact.is_some_and(|text| text.ends_with("without --exact, 2 would")));
        assert_eq!(say(&["zzzz"], false).as_deref(), Some("no trial of tls matches `zzzz`"));
    }
}
