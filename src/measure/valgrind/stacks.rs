//! Stacks of calls in a region, from callgrind: each function is counted apart
//! for each chain of callers (`--separate-callers`), so that a count belongs
//! to a whole stack, and nothing has to be shared out along a graph of calls.
//!
//! What is kept of them is the folded form that flame-graph programs read: a
//! line a stack, the outermost frame first, and its instructions.
//!
//! Neighbours: `settings` asks for the options, `readings` for the rest.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::profile::{Costs, Profile};

/// Callers that are kept of each function. What is deeper has lost its
/// outermost frames, so that recursion without end has one bounded form.
pub(super) const DEEPEST: usize = 250;
/// What stands in place of the frames that were lost.
const LOST: &str = "(deeper)";
/// Callgrind's event for a system call.
const SYSTEM_CALL: &str = "sysCount";
/// The function that marks the region, whose callees are the region.
const MARK: &str = "::valgrind::child::Marked::between_";
/// What carries bytes from one party's process to the other's.
const WIRE: &str = "::valgrind::wire::";

/// What callgrind is told besides.
pub(super) fn options() -> [String; 3] {
    // By default the second round of a recursion is a function of its own.
    [format!("--separate-callers={DEEPEST}"), "--separate-recs=1".into(), "--collect-systime=yes".into()]
}

/// Stacks, the outermost frame first, with their costs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Stacks {
    events: Vec<String>,
    of: BTreeMap<Vec<String>, Costs>,
}

/// Takes the callers off the names of a profile, and gives them as stacks.
pub(super) fn take(profile: &mut Profile) -> Stacks {
    let mut stacks = Stacks { events: profile.events.clone(), of: BTreeMap::new() };
    for ((file, chain), lines) in std::mem::take(&mut profile.places) {
        let frames = split(&chain);
        let function = frames.first().copied().unwrap_or_default().to_string();
        let merged = profile.places.entry((file, function)).or_default();
        let stack = within_the_region(&frames);
        for (line, costs) in lines {
            if let Some(stack) = &stack {
                add(stacks.of.entry(stack.clone()).or_default(), &costs);
            }
            add(merged.entry(line).or_default(), &costs);
        }
    }
    stacks
}

fn add(sum: &mut Costs, costs: &[u64]) {
    sum.resize(sum.len().max(costs.len()), 0);
    sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
}

/// The frames of a chain, the innermost first. Callgrind puts `'` between
/// them, which also begins the name of a lifetime: that is always in brackets.
fn split(chain: &str) -> Vec<&str> {
    let (mut frames, mut depth, mut start, mut before) = (Vec::new(), 0_i32, 0, ' ');
    for (at, c) in chain.char_indices() {
        match c {
            // C++: a name, no bracket.
            '<' | '>' if chain[..at].trim_end_matches(['<', '>']).ends_with("operator") => {}
            '<' | '(' | '[' | '{' => depth += 1,
            // An arrow is no bracket.
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth -= 1,
            '\'' if depth <= 0 => {
                frames.push(&chain[start..at]);
                (start, depth) = (at + 1, 0);
            }
            _ => {}
        }
        before = c;
    }
    frames.push(&chain[start..]);
    frames
}

/// The stack inside of the mark, the outermost frame first; `None` for the mark itself.
fn within_the_region(frames: &[&str]) -> Option<Vec<String>> {
    let mark = frames.iter().position(|frame| frame.contains(MARK));
    let inside = &frames[..mark.unwrap_or(frames.len())];
    if inside.is_empty() || (mark.is_some() && inside.iter().all(|frame| frame.contains("::valgrind::roi::")))
    {
        return None;
    }
    // A semicolon parts frames; types such as `[u8; 4]` have one, too.
    let mut stack: Vec<String> = inside.iter().rev().map(|frame| frame.replace(';', ":")).collect();
    if mark.is_none() && frames.len() > DEEPEST {
        stack.insert(0, LOST.into());
    }
    Some(stack)
}

impl Stacks {
    /// Lines of the folded form, with the instructions of all iterations.
    pub(super) fn folded(&self) -> String {
        let mut text = String::new();
        let Some(at) = self.events.iter().position(|event| event == "Ir") else { return text };
        for (stack, costs) in &self.of {
            let cost = costs.get(at).copied().unwrap_or(0);
            if cost > 0 {
                let _ = writeln!(text, "{} {cost}", stack.join(";"));
            }
        }
        text
    }

    /// System calls in the region, without those of the wire between two
    /// parties' processes; `None` where they were not counted.
    pub(super) fn system_calls(&self) -> Option<u64> {
        let at = self.events.iter().position(|event| event == SYSTEM_CALL)?;
        let own = self.of.iter().filter(|(stack, _)| !stack.iter().any(|frame| frame.contains(WIRE)));
        Some(own.filter_map(|(_, costs)| costs.get(at)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# callgrind format\nversion: 1\npositions: line\nevents: Ir sysCount\n\
        fl=(1) a.rs\nfn=(1) w::valgrind::child::Marked::between_toggles\n1 30\ncalls=1 1\n2 77\n\
        fn=(2) run'w::valgrind::child::Marked::between_toggles\n3 7 1\n\
        fn=(3) <[u8; 4] as F<'_>>::f'run'w::valgrind::child::Marked::between_toggles\n4 20\n5 1\n\
        fn=(4) <[u8; 4] as F<'_>>::f'g'run'w::valgrind::child::Marked::between_toggles\n4 40\n\
        fn=(5) read'w::valgrind::wire::Framed::receive'run'w::valgrind::child::Marked::between_toggles\n9 9 4\n\
        totals: 107 5\n";

    #[test]
    fn a_stack_is_counted_apart_for_each_chain_of_callers() {
        let mut profile = Profile::parse(TEXT).expect("a whole file");
        let stacks = take(&mut profile);
        let folded = stacks.folded();
        assert_eq!(
            folded,
            "run 7\nrun;<[u8: 4] as F<'_>>::f 21\nrun;g;<[u8: 4] as F<'_>>::f 40\n\
             run;w::valgrind::wire::Framed::receive;read 9\n"
        );
        assert_eq!(stacks.system_calls(), Some(1), "those of the wire are not the body's");
        let functions = profile.functions();
        assert_eq!(functions[0], ("<[u8; 4] as F<'_>>::f".to_string(), 61), "{functions:?}");
        assert_eq!(functions.len(), 4);
        assert_eq!(functions.iter().map(|(_, n)| n).sum::<u64>(), profile.totals[0]);
    }

    #[test]
    fn names_are_told_from_lifetimes() {
        for (chain, frames) in [
            ("a'b'c", &["a", "b", "c"][..]),
            ("core::str::Split<'a, P>::next'main", &["core::str::Split<'a, P>::next", "main"]),
            ("<dyn for<'a> Fn(&'a T) -> U>::call'b", &["<dyn for<'a> Fn(&'a T) -> U>::call", "b"]),
            ("(below main)", &["(below main)"]),
            ("ns::operator<<'b'c<'_>", &["ns::operator<<", "b", "c<'_>"]),
        ] {
            assert_eq!(split(chain), frames);
        }
    }

    #[test]
    fn a_recursion_without_end_has_a_bounded_form() {
        let chain = vec!["f"; DEEPEST + 1];
        let stack = within_the_region(&chain).expect("a stack");
        assert_eq!((stack.len(), stack[0].as_str()), (DEEPEST + 2, LOST));
        assert_eq!(within_the_region(&["f", "g"]), Some(vec!["g".into(), "f".into()]));
        assert_eq!(within_the_region(&["x::valgrind::child::Marked::between_toggles", "main"]), None);
    }
}
