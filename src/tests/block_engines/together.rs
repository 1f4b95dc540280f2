//! Contracts of the call that submits and waits in one: the right operations,
//! in an order and with calls that do not depend on when they end.
//!
//! Neighbours: `subject` opens engines with a gate; `limits` has the same
//! refusals for the calls by themselves.

use std::process::Command;

use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::faulty_driver::Release;
use wallgrind::block::sys::counters::{self, Call};
use wallgrind::block::{Completion, ErrorKind, Op};

use crate::subject::{Place, Rig, Skip, Subject, UNIT, Way, full, must, pattern};
use crate::{Contract, all};

pub const CONTRACTS: &[Contract<Subject>] = &[
    ("together_is_all_of_it_in_order", together_is_all_of_it_in_order, all),
    ("together_is_one_call_each_time", together_is_one_call_each_time, Subject::is_real),
    (
        "together_flushes_are_waited_for_in_the_kernel",
        flushes_are_waited_for_in_the_kernel,
        Subject::is_plain_aio,
    ),
    ("together_does_not_show_who_came_first", together_does_not_show_who_came_first, is_faulty),
    ("together_takes_what_was_submitted_before", together_takes_what_was_submitted_before, all),
    ("together_waits_for_no_more_than_asked", together_waits_for_no_more_than_asked, all),
    ("together_refuses_whole", together_refuses_whole, all),
    ("together_keeps_what_was_taken_before_a_failure", keeps_what_was_taken_before_a_failure, is_faulty),
    ("together_survives_faults", together_survives_faults, is_plain_and_faulty),
];

/// Whether there is a gate.
fn is_faulty(subject: &Subject) -> bool {
    subject.faulty
}

fn is_plain_and_faulty(subject: &Subject) -> bool {
    subject.faulty && subject.is_plain()
}

fn reads(tags: std::ops::Range<u64>) -> Vec<Op> {
    tags.map(|tag| Op::read(tag, tag * UNIT, full(1, 0xff))).collect()
}

fn tags(done: &[Completion]) -> Vec<u64> {
    done.iter().map(Completion::tag).collect()
}

/// Submits `ops` and waits for `n`.
fn together(rig: &mut Rig, mut ops: Vec<Op>, n: usize) -> Vec<Completion> {
    let mut out = Vec::new();
    must(rig.engine.submit_and_wait(&mut ops, n, &mut out));
    assert!(ops.is_empty(), "all were accepted");
    assert_eq!(out.len(), n);
    out
}

/// Each read has what is at its place.
fn check(done: &[Completion], content: &[u8]) {
    for one in done {
        let at = (one.tag() * UNIT) as usize;
        assert_eq!(must(one.result()), UNIT);
        assert!(*one.buffers().as_slice()[0] == content[at..at + UNIT as usize], "{}", one.tag());
    }
}

fn together_is_all_of_it_in_order(subject: &Subject) -> Result<(), Skip> {
    let content = pattern(16, 1);
    let mut rig = subject.rig(16, &content)?;
    for round in 0..20 {
        // What was free in another order does not change the next one.
        let some = 16 - round % 3;
        let done = together(&mut rig, reads(0..some), some as usize);
        assert_eq!(tags(&done), (0..some).collect::<Vec<_>>(), "round {round}");
        check(&done, &content);
        assert_eq!(rig.engine.in_flight(), 0);
    }
    let ops = (0..16).map(|tag| Op::write(tag, tag * UNIT, full(1, tag as u8 + 1))).collect();
    together(&mut rig, ops, 16);
    let written = (0..16).flat_map(|unit| full(1, unit + 1).to_vec()).collect::<Vec<_>>();
    let done = together(&mut rig, reads(0..16), 16);
    check(&done, &written);
    Ok(())
}

/// Set in a process that runs one contract.
const ALONE: &str = "WALLGRIND_TEST_ALONE";

/// Whether this process runs the contract `name` of `subject` and nothing else; if not, one that
/// does has passed. Engines of other threads share the AIO context, and would take completions
/// for this one.
fn alone(name: &str, subject: &Subject) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut child = Command::new(must(std::env::current_exe()));
    child.args(["--exact", &format!("{name}::{subject}"), "--test-threads=1"]).env(ALONE, "1");
    let output = must(child.output());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains(" 1 passed;"), "{said}");
    false
}

fn together_is_one_call_each_time(subject: &Subject) -> Result<(), Skip> {
    let content = pattern(16, 1);
    let mut rig = subject.rig(16, &content)?;
    if !alone("together_is_one_call_each_time", subject) {
        return Ok(());
    }
    together(&mut rig, reads(0..16), 16);
    for round in 0..40 {
        let before = counters::thread();
        together(&mut rig, reads(0..16), 16);
        let counts = counters::thread() - before;
        let expected = match (subject.way, subject.place) {
            (Way::Uring, _) => vec![(Call::RingEnter, 1)],
            (Way::Aio, Place::Direct) => vec![(Call::AioSubmit, 1), (Call::AioWait, 1)],
            (Way::Aio, _) => vec![(Call::AioSubmit, 1)],
            _ => vec![(Call::Read, 16)],
        };
        let made: Vec<_> = counts.calls().filter(|(_, count)| *count > 0).collect();
        assert_eq!(made, expected, "round {round}");
    }
    Ok(())
}

/// With the page cache in between a read has ended when `io_submit` returns; a flush has not.
fn flushes_are_waited_for_in_the_kernel(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(4, 1))?;
    if !alone("together_flushes_are_waited_for_in_the_kernel", subject) {
        return Ok(());
    }
    for round in 0..20 {
        let before = counters::thread();
        together(&mut rig, vec![Op::read(1, 0, full(1, 0)), Op::flush(2)], 2);
        let counts = counters::thread() - before;
        assert_eq!((counts.of(Call::AioWait), counts.total()), (1, 2), "round {round}");
    }
    Ok(())
}

fn together_does_not_show_who_came_first(subject: &Subject) -> Result<(), Skip> {
    use Release::{All, First, Last};
    let content = pattern(8, 1);
    for order in [[Last, First, Last, All], [Last, Last, Last, All], [First, Last, First, All]] {
        let mut rig = subject.rig(8, &content)?;
        rig.gate.close();
        for op in reads(0..6) {
            rig.submit(op);
        }
        order.into_iter().for_each(|which| rig.gate.release(which));
        let done = together(&mut rig, Vec::new(), 6);
        assert_eq!(tags(&done), (0..6).collect::<Vec<_>>(), "{order:?}");
        check(&done, &content);
        // Nor does the next batch show it.
        rig.gate.open();
        assert_eq!(tags(&together(&mut rig, reads(0..8), 8)), (0..8).collect::<Vec<_>>(), "{order:?}");
    }
    Ok(())
}

fn together_takes_what_was_submitted_before(subject: &Subject) -> Result<(), Skip> {
    let content = pattern(8, 1);
    let mut rig = subject.rig(8, &content)?;
    for op in reads(0..3) {
        rig.submit(op);
    }
    let done = together(&mut rig, reads(3..8), 8);
    assert_eq!(tags(&done), (0..8).collect::<Vec<_>>());
    check(&done, &content);
    for op in reads(0..8) {
        rig.submit(op);
    }
    check(&together(&mut rig, Vec::new(), 8), &content);
    assert_eq!(together(&mut rig, Vec::new(), 0).len(), 0);
    Ok(())
}

fn together_waits_for_no_more_than_asked(subject: &Subject) -> Result<(), Skip> {
    let content = pattern(8, 1);
    let mut rig = subject.rig(8, &content)?;
    let mut seen = tags(&together(&mut rig, reads(0..5), 2));
    assert_eq!(rig.engine.in_flight(), 3);
    together(&mut rig, reads(5..8), 0);
    assert_eq!(rig.engine.in_flight(), 6);
    let done = together(&mut rig, Vec::new(), 4);
    check(&done, &content);
    seen.extend(tags(&done));
    seen.extend(tags(&rig.wait(2)));
    seen.sort_unstable();
    assert_eq!(seen, (0..8).collect::<Vec<_>>());

    // One that is held is not waited for.
    rig.gate.close();
    rig.submit(Op::read(20, 0, full(1, 0)));
    if rig.gate.held() == 1 {
        let held = tags(&together(&mut rig, Vec::new(), 0));
        assert_eq!((held.len(), rig.gate.held()), (0, 1));
    }
    rig.gate.open();
    rig.wait(1);
    Ok(())
}

fn together_refuses_whole(subject: &Subject) -> Result<(), Skip> {
    let content = pattern(8, 1);
    let mut rig = subject.rig(4, &content)?;
    let mut out = Vec::new();
    let write = |tag, unit| Op::write(tag, unit * UNIT, full(1, 9));
    let cases = [
        (vec![write(1, 0), write(2, 1)], 3, ErrorKind::InvalidInput),
        (vec![write(1, 0), write(1, 1)], 2, ErrorKind::Busy),
        ((0..5).map(|n| write(n, n)).collect(), 5, ErrorKind::Busy),
        (vec![write(1, 0), Op::discard(2, u64::MAX, 1)], 2, ErrorKind::InvalidInput),
    ];
    for (mut ops, n, kind) in cases {
        let count = ops.len();
        let error = must(rig.engine.submit_and_wait(&mut ops, n, &mut out).err().ok_or("refused"));
        assert_eq!((error.kind(), ops.len(), out.len()), (kind, count, 0));
        assert_eq!(rig.engine.in_flight(), 0);
    }
    assert_eq!(rig.peek(0, 8 * UNIT), *content, "nothing was done");
    check(&together(&mut rig, reads(0..4), 4), &content);
    Ok(())
}

fn keeps_what_was_taken_before_a_failure(subject: &Subject) -> Result<(), Skip> {
    let content = pattern(8, 1);
    let mut rig = subject.rig(4, &content)?;
    rig.submit(Op::read(1, UNIT, full(1, 0)));
    rig.gate.close();
    rig.submit(Op::read(2, 2 * UNIT, full(1, 0)));
    let mut out = Vec::new();
    let error = must(rig.engine.submit_and_wait(&mut Vec::new(), 2, &mut out).err().ok_or("cannot end"));
    assert_eq!((error.kind(), tags(&out)), (ErrorKind::Busy, vec![1]));
    check(&out, &content);
    assert_eq!(rig.engine.in_flight(), 1);
    rig.gate.open();
    let done = together(&mut rig, reads(3..4), 2);
    check(&done, &content);

    rig.gate.break_waits();
    let mut ops = reads(0..3);
    assert!(rig.engine.submit_and_wait(&mut ops, 3, &mut out).is_err());
    assert!(ops.is_empty(), "they are in flight");
    Ok(())
}

/// Errors, interruptions and short transfers, some of a batch: all of it ends, each as it should.
fn together_survives_faults(subject: &Subject) -> Result<(), Skip> {
    let content = pattern(16, 1);
    let mut rig = subject.rig(8, &content)?;
    rig.faults.at(Target::Read, 1, Fault::Errno(libc::EIO));
    rig.faults.at(Target::Read, 3, Fault::Errno(libc::EINTR));
    rig.faults.at(Target::Read, 5, Fault::Short(UNIT as usize));
    let ops = (0..8).map(|tag| Op::read(tag, tag * UNIT, full(2, 0xff))).collect();
    let done = together(&mut rig, ops, 8);
    assert_eq!(tags(&done), (0..8).collect::<Vec<_>>());
    for one in &done {
        let at = (one.tag() * UNIT) as usize;
        match one.tag() {
            1 => assert_eq!(one.errno(), Some(libc::EIO)),
            tag => assert!(*one.buffers().as_slice()[0] == content[at..at + 2 * UNIT as usize], "{tag}"),
        }
    }
    assert_eq!(rig.faults.calls(Target::Read), 10, "one was interrupted, one was cut");
    Ok(())
}
