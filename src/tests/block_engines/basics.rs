//! Contracts of plain use: what is written is read, zeroes are zeroes,
//! completions are the operations'.
//!
//! Neighbours: `subject` opens the engines; `limits` and `faults` go further.

use wallgrind::block::sys::counters::{self, Call};
use wallgrind::block::sys::eventfd;
use wallgrind::block::{AlignedBuf, Op, OpKind};

use crate::subject::{Place, Skip, Subject, UNIT, Way, full, must, pattern};
use crate::{Contract, all};

pub const CONTRACTS: &[Contract<Subject>] = &[
    ("writes_are_read", writes_are_read, all),
    ("vectors_keep_their_order", vectors_keep_their_order, all),
    ("long_vectors_are_whole", long_vectors_are_whole, all),
    ("reads_past_the_end_are_zeroes", reads_past_the_end_are_zeroes, all),
    ("zeroes_and_holes", zeroes_and_holes, Subject::is_plain),
    ("empty_operations", empty_operations, all),
    ("flushes_complete", flushes_complete, all),
    ("eventfd_tells_of_completions", eventfd_tells_of_completions, all),
    ("system_calls_of_a_batch", system_calls_of_a_batch, all),
    ("bytes_are_counted", bytes_are_counted, Subject::is_plain),
];

fn writes_are_read(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &[])?;
    for (tag, unit) in [(7, 3), (8, 0), (u64::MAX, 9)] {
        let done = rig.run(Op::write(tag, unit * UNIT, pattern(2, unit)));
        assert_eq!((done.tag(), done.kind()), (tag, OpKind::Write));
        assert_eq!(must(done.result()), 2 * UNIT);
        assert_eq!(rig.peek(unit * UNIT, 2 * UNIT), *pattern(2, unit));
    }
    let done = rig.run(Op::read(1, 3 * UNIT, full(2, 0xff)));
    assert_eq!(must(done.result()), 2 * UNIT);
    let buf = must(done.into_buffers().into_one().ok_or("the buffer is back"));
    assert_eq!(*buf, *pattern(2, 3));
    assert_eq!(rig.engine.in_flight(), 0);
    Ok(())
}

fn vectors_keep_their_order(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &[])?;
    let empty = must(AlignedBuf::new(0, 4096));
    let parts = vec![pattern(1, 1), empty, pattern(3, 2), pattern(1, 3)];
    let whole: Vec<u8> = parts.iter().flat_map(|buf| buf.to_vec()).collect();
    let done = rig.run(Op::writev(1, UNIT, parts));
    assert_eq!(must(done.result()), 5 * UNIT);
    assert_eq!(done.buffers().as_slice().len(), 4);
    assert_eq!(rig.peek(UNIT, 5 * UNIT), whole);

    let done = rig.run(Op::readv(2, UNIT, vec![full(2, 1), full(3, 2)]));
    let read: Vec<u8> = done.buffers().as_slice().iter().flat_map(|buf| buf.to_vec()).collect();
    assert_eq!(read, whole);
    Ok(())
}

/// More buffers than one system call takes.
fn long_vectors_are_whole(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(1, &[])?;
    let count = 1100;
    let size = rig.engine.alignment().offset().max(512) as usize;
    let buf = |seed: u64| {
        let mut buf = pattern(1, seed);
        must(buf.set_len(size));
        buf
    };
    let total = count * size as u64;
    let done = rig.run(Op::writev(1, 0, (0..count).map(buf).collect()));
    assert_eq!(must(done.result()), total);
    let done = rig.run(Op::readv(1, 0, (0..count).map(|_| buf(9999)).collect()));
    assert_eq!(must(done.result()), total);
    for (seed, read) in done.buffers().as_slice().iter().enumerate() {
        assert!(**read == *buf(seed as u64), "buffer {seed}");
    }
    Ok(())
}

fn reads_past_the_end_are_zeroes(subject: &Subject) -> Result<(), Skip> {
    let content = pattern(1, 5);
    let end = UNIT as usize + 700;
    let mut bytes = content.to_vec();
    bytes.extend_from_slice(&content[..700]);
    let mut rig = subject.rig(2, &bytes)?;
    let done = rig.run(Op::readv(1, 0, vec![full(1, 0xff), full(2, 0xff)]));
    assert_eq!(must(done.result()), 3 * UNIT);
    let read: Vec<u8> = done.buffers().as_slice().iter().flat_map(|buf| buf.to_vec()).collect();
    assert_eq!(read[..end], bytes[..]);
    assert!(read[end..].iter().all(|&byte| byte == 0));

    let done = rig.run(Op::read(1, 8 * UNIT, full(1, 0xff)));
    assert!(done.buffers().as_slice()[0].iter().all(|&byte| byte == 0));
    Ok(())
}

fn zeroes_and_holes(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &pattern(8, 1))?;
    assert_eq!(must(rig.run(Op::write_zeroes(1, UNIT, 2 * UNIT)).result()), 2 * UNIT);
    assert_eq!(must(rig.run(Op::discard(1, 4 * UNIT, UNIT)).result()), UNIT);
    let mut model = pattern(8, 1).to_vec();
    model[UNIT as usize..3 * UNIT as usize].fill(0);
    model[4 * UNIT as usize..5 * UNIT as usize].fill(0);
    assert_eq!(rig.peek(0, 9 * UNIT), model);

    assert_eq!(must(rig.run(Op::discard(1, 7 * UNIT, 4 * UNIT)).result()), 4 * UNIT);
    assert_eq!(must(rig.view.len()), 8 * UNIT, "a hole keeps the length");
    assert_eq!(must(rig.run(Op::write_zeroes(1, 9 * UNIT, UNIT)).result()), UNIT);
    assert_eq!(must(rig.view.len()), 10 * UNIT, "zeroes make the file longer");
    assert!(rig.peek(7 * UNIT, 3 * UNIT).iter().all(|&byte| byte == 0));
    Ok(())
}

fn empty_operations(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(1, 1))?;
    let empty = || must(AlignedBuf::new(0, 4096));
    let ops = [
        Op::read(1, 0, empty()),
        Op::write(2, UNIT, empty()),
        Op::readv(3, 0, Vec::new()),
        Op::discard(4, 0, 0),
        Op::write_zeroes(5, 0, 0),
    ];
    for op in ops {
        let tag = op.tag();
        let done = rig.run(op);
        assert_eq!((done.tag(), must(done.result())), (tag, 0));
    }
    assert_eq!(rig.peek(0, 2 * UNIT), *pattern(1, 1));
    Ok(())
}

fn flushes_complete(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &[])?;
    rig.run(Op::write(1, 0, pattern(1, 1)));
    must(rig.engine.flush(9));
    let done = rig.wait(1);
    assert_eq!((done[0].tag(), done[0].kind()), (9, OpKind::Flush));
    assert_eq!(must(done[0].result()), 0);
    Ok(())
}

fn eventfd_tells_of_completions(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    let notifier = must(must(rig.engine.notifier()).try_clone_to_owned());
    let notifier = std::os::fd::AsFd::as_fd(&notifier);
    assert_eq!(must(eventfd::drain(notifier)), None, "nothing has completed");
    for round in 0..3 {
        let mut ops: Vec<Op> = (0..5).map(|tag| Op::read(tag, tag * UNIT, full(1, 0))).collect();
        ops.push(Op::flush(100));
        ops.push(Op::discard(101, 0, UNIT));
        let mut done = Vec::new();
        must(rig.engine.submit_batch(&mut ops));
        while done.len() < 7 {
            must(eventfd::wait_readable(notifier));
            assert!(must(eventfd::drain(notifier)).is_some());
            must(rig.engine.reap_many(&mut done, usize::MAX));
        }
        assert!(done.iter().all(|completion| completion.errno().is_none()), "round {round}");
    }
    Ok(())
}

/// One call to submit a batch, at most one to wait for it, and none beside.
fn system_calls_of_a_batch(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(16, &pattern(16, 1))?;
    let batch = || (0..16).map(|tag| Op::read(tag, tag * UNIT, full(1, 0))).collect::<Vec<_>>();
    let (mut first, mut second) = (batch(), batch());
    must(rig.engine.submit_batch(&mut first));
    rig.wait(16);
    let before = counters::thread();
    must(rig.engine.submit_batch(&mut second));
    let submitted = counters::thread() - before;
    rig.wait(16);
    let counts = counters::thread() - before;
    let (submits, waits) = match subject.way {
        Way::Mem => (0, 0),
        Way::Sync => (counts.of(Call::Read), 0),
        Way::Aio => (counts.of(Call::AioSubmit), counts.of(Call::AioWait)),
        Way::Uring => (submitted.of(Call::RingEnter), counts.of(Call::RingEnter) - 1),
    };
    assert_eq!(counts.total(), submits + waits, "{counts:?}");
    assert_eq!(
        submits,
        match subject.way {
            Way::Mem => 0,
            Way::Sync => 16,
            Way::Aio | Way::Uring => 1,
        }
    );
    let at_most = if subject.place == Place::Direct { 16 } else { 1 };
    assert!(waits <= at_most, "{counts:?}");
    Ok(())
}

fn bytes_are_counted(subject: &Subject) -> Result<(), Skip> {
    if subject.way == Way::Mem {
        return Err(Skip("a file in memory moves no bytes by system calls".to_owned()));
    }
    let mut rig = subject.rig(4, &[])?;
    let before = counters::thread();
    rig.run(Op::write(1, 0, pattern(3, 1)));
    rig.run(Op::read(1, UNIT, full(1, 0)));
    let counts = counters::thread() - before;
    assert_eq!((counts.bytes_written(), counts.bytes_read()), (3 * UNIT, UNIT));
    Ok(())
}
