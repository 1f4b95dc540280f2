//! Output files as Valgrind 3.19 and 3.24 wrote them, shortened, and what is
//! wrong with others.
//!
//! Neighbours: `profile` reads them.

use super::Profile;

/// Cachegrind 3.19, with `--cache-sim=no`.
const OLD: &str = "desc: I1 cache:         32768 B, 64 B, 8-way associative\n\
    desc: D1 cache:         32768 B, 64 B, 8-way associative\n\
    desc: LL cache:         8388608 B, 64 B, 16-way associative\n\
    cmd: ./program\n\
    events: Ir \n\
    fl=./csu/../csu/libc-start.c\n\
    fn=(below main)\n\
    128 2\n134 3\n\
    fn=program::main\n\
    fl=src/main.rs\n\
    0 5\n7 10\n\
    fl=library/core.rs\n\
    fn=program::main\n\
    9 1\n\
    summary: 21 \n";

/// Cachegrind 3.24 with cache simulation; lines without accesses are short.
const NEW: &str = "cmd: ./program\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw \n\
    fl=a.c\nfn=f\n1 4 1 1 2 0 0 1 0 0\n2 3\nsummary: 7 1 1 2 0 0 1 0 0 \n";

/// Callgrind 3.19: shortened names and positions, calls with inclusive costs,
/// and a summary of 0 where it was switched on later.
const CALLS: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd:  ./program\npart: 1\n\n\n\
    desc: I1 cache: \ndesc: Trigger: Program termination\n\npositions: line\nevents: Ir\nsummary: 0\n\n\n\
    ob=(1) /usr/bin/program\nfl=(1) src/main.rs\nfn=(1) program::main\n7 10\n+2 3\n\
    cob=(2) /lib/libc.so.6\ncfi=(2) memcpy.S\ncfn=(2) memcpy\ncalls=1 30 \n* 50\n\
    fi=(3) library/core.rs\n-4 2\nfe=(1)\n* 1\n\n\
    ob=(2)\nfl=(2)\nfn=(2)\n30 50\n\ntotals: 66\n";

fn parse(text: &str) -> Profile {
    Profile::parse(text).unwrap_or_else(|reason| panic!("{reason}"))
}

fn functions(text: &str) -> Vec<(String, u64)> {
    parse(text).functions()
}

fn named(list: &[(&str, u64)]) -> Vec<(String, u64)> {
    list.iter().map(|(name, n)| (name.to_string(), *n)).collect()
}

#[test]
fn reads_what_cachegrind_and_callgrind_write() {
    assert_eq!(functions(OLD), named(&[("program::main", 16), ("(below main)", 5)]));
    assert_eq!(functions(CALLS), named(&[("memcpy", 50), ("program::main", 16)]));
    let totals: Vec<_> = parse(NEW).named_totals().map(|(name, n)| format!("{name} {n}")).collect();
    assert_eq!(totals[..4], ["Ir 7", "I1mr 1", "ILmr 1", "Dr 2"]);
}

#[test]
fn what_it_writes_is_read_the_same() {
    for text in [OLD, NEW, CALLS] {
        let profile = parse(text);
        assert_eq!(parse(&profile.to_cachegrind("x", "y")), profile);
    }
}

#[test]
fn subtracts_an_earlier_state_line_by_line() {
    let before = OLD.replace("7 10", "7 4").replace("summary: 21", "summary: 15");
    let left = parse(OLD).since(&parse(&before)).expect("a later state");
    assert_eq!((left.functions(), left.totals), (named(&[("program::main", 6)]), vec![6]));
    assert!(parse(&before).since(&parse(OLD)).is_err_and(|reason| reason.contains("less than")));
    assert!(parse(OLD).since(&parse(NEW)).is_err_and(|reason| reason.contains("different events")));
}

#[test]
fn a_miss_that_only_the_earlier_state_has_is_none_of_the_region() {
    let text = |first: &str, second: &str, sum: &str| {
        parse(&format!("events: Ir I1mr\nfl=a\nfn=end\n1 {first}\nfn=body\n2 {second}\nsummary: {sum}\n"))
    };
    let (before, after) = (text("4 3", "10 1", "14 4"), text("4 1", "30 6", "34 7"));
    let left = after.since(&before).expect("a later state");
    // The instructions of the end cancel out, and so do its misses.
    assert_eq!((left.functions(), left.totals), (named(&[("body", 20)]), vec![20, 5]));
    let fewer = text("3 1", "30 6", "33 7");
    assert!(fewer.since(&before).is_err_and(|reason| reason.contains("less than")));
}

#[test]
fn says_what_is_wrong_with_a_file() {
    let error = |text: &str| Profile::parse(text).expect_err("wrong");
    let cut = OLD.find("summary").expect("it is there");
    assert!(error(&OLD[..cut]).contains("cut short"));
    assert!(error(&CALLS[..CALLS.len() - 12]).contains("cut short"));
    assert!(error(&OLD.replace("7 10", "7 11")).contains("add up to 22, but it states 21"));
    assert!(error(&OLD.replace("7 10", "7 x")).contains("line 13: \"x\" is not a count"));
    assert!(error(&OLD.replace("7 10", "7 1 0")).contains("2 counts for 1 events"));
    assert!(error("").contains("names no events"));
    assert!(error("hello, world").contains("not understood"));
    assert!(error(&CALLS.replace("positions: line", "positions: instr line")).contains("positions"));
    assert!(error(&CALLS.replace("(2) memcpy\n", "(2)\n")).contains("has no name"));
}
