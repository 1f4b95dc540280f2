//! Contracts of what is refused: tags twice, batches beyond the depth, ranges
//! that no file has. What is refused has done nothing.
//!
//! Neighbours: `subject` opens the engines; `basics` has plain use.

use wallgrind::block::{ErrorKind, Op};

use crate::subject::{Skip, Subject, UNIT, Way, full, must, or_skip, pattern};
use crate::{Contract, all};

pub const CONTRACTS: &[Contract<Subject>] = &[
    ("a_tag_in_flight_is_refused", a_tag_in_flight_is_refused, all),
    ("a_tag_twice_in_a_batch_is_refused", a_tag_twice_in_a_batch_is_refused, all),
    ("a_batch_beyond_the_depth_is_refused_whole", a_batch_beyond_the_depth_is_refused_whole, all),
    ("exactly_n_are_waited_for", exactly_n_are_waited_for, all),
    ("ranges_past_any_file_are_refused", ranges_past_any_file_are_refused, all),
    ("a_refused_attempt_fails_alone", a_refused_attempt_fails_alone, Subject::is_real),
    ("unaligned_direct_requests_fail", unaligned_direct_requests_fail, Subject::is_plain_direct),
    ("depths_are_bounded", depths_are_bounded, Subject::is_plain),
    ("a_full_queue_runs_for_long", a_full_queue_runs_for_long, all),
];

fn kind<T>(result: Result<T, wallgrind::block::Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn a_tag_in_flight_is_refused(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(4, 1))?;
    rig.submit(Op::read(5, 0, full(1, 0)));
    // Its completion may have arrived, but nobody has taken it.
    let refused = rig.engine.submit(Op::write(5, UNIT, full(1, 9)));
    let refused = must(refused.err().ok_or("refused"));
    assert_eq!(refused.error.kind(), ErrorKind::Busy);
    assert_eq!((refused.op.tag(), refused.op.byte_len()), (5, UNIT), "given back");
    assert_eq!(rig.engine.in_flight(), 1);
    rig.wait(1);
    assert_eq!(rig.peek(0, 4 * UNIT), *pattern(4, 1));
    must(rig.run(Op::read(5, 0, full(1, 0))).result());
    Ok(())
}

fn a_tag_twice_in_a_batch_is_refused(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(4, 1))?;
    let write = |tag, unit| Op::write(tag, unit * UNIT, full(1, 9));
    let mut ops = vec![write(1, 0), write(2, 1), write(1, 2)];
    assert_eq!(kind(rig.engine.submit_batch(&mut ops)), Some(ErrorKind::Busy));
    assert_eq!((ops.len(), rig.engine.in_flight()), (3, 0));
    assert_eq!(rig.peek(0, 4 * UNIT), *pattern(4, 1), "nothing was done");
    ops.pop();
    must(rig.engine.submit_batch(&mut ops));
    assert!(ops.is_empty());
    rig.wait(2);
    Ok(())
}

fn a_batch_beyond_the_depth_is_refused_whole(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(8, 1))?;
    let batch = |count| (0..count).map(|n| Op::write(n, n * UNIT, full(1, 9))).collect::<Vec<_>>();
    let mut five = batch(5);
    assert_eq!(kind(rig.engine.submit_batch(&mut five)), Some(ErrorKind::Busy));
    assert_eq!((five.len(), rig.engine.in_flight()), (5, 0));
    assert_eq!(rig.peek(0, 8 * UNIT), *pattern(8, 1), "not even half was done");

    rig.submit(Op::read(77, 0, full(1, 0)));
    let mut four = batch(4);
    assert_eq!(kind(rig.engine.submit_batch(&mut four)), Some(ErrorKind::Busy));
    rig.wait(1);
    must(rig.engine.submit_batch(&mut four));
    let refused = rig.engine.submit(Op::flush(99));
    assert_eq!(refused.err().map(|refused| refused.error.kind()), Some(ErrorKind::Busy));
    rig.wait(4);
    assert_eq!(rig.peek(0, 4 * UNIT), *full(4, 9));
    Ok(())
}

fn exactly_n_are_waited_for(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    let mut ops: Vec<Op> = (0..8).map(|tag| Op::read(tag, tag * UNIT, full(1, 0))).collect();
    must(rig.engine.submit_batch(&mut ops));
    let mut tags: Vec<u64> = rig.wait(3).iter().map(|done| done.tag()).collect();
    assert_eq!(rig.engine.in_flight(), 5);
    let mut out = Vec::new();
    assert_eq!(kind(rig.engine.wait(6, &mut out)), Some(ErrorKind::InvalidInput));
    assert!(out.is_empty());
    must(rig.engine.wait(0, &mut out));
    tags.extend(rig.wait(5).iter().map(|done| done.tag()));
    tags.sort_unstable();
    assert_eq!(tags, (0..8).collect::<Vec<_>>());
    assert!(must(rig.engine.reap()).is_none());
    Ok(())
}

fn ranges_past_any_file_are_refused(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &[])?;
    let last = i64::MAX as u64;
    let ops = [
        Op::read(1, u64::MAX, full(1, 0)),
        Op::write(1, last - UNIT + 2, full(1, 0)),
        Op::discard(1, u64::MAX, u64::MAX),
        Op::write_zeroes(1, 1, last),
    ];
    for op in ops {
        let refused = rig.engine.submit(op);
        let error = must(refused.err().ok_or("refused")).error;
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    let mut ops = vec![Op::flush(1), Op::discard(2, u64::MAX, 1)];
    assert_eq!(kind(rig.engine.submit_batch(&mut ops)), Some(ErrorKind::InvalidInput));
    assert_eq!((ops.len(), rig.engine.in_flight()), (2, 0));
    Ok(())
}

/// A write to a file that is open for reading, amid reads: the kernel takes a
/// batch in parts.
fn a_refused_attempt_fails_alone(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig_with(16, &pattern(16, 1), false)?;
    let op = |tag| match tag {
        3 | 4 | 9 => Op::write(tag, 0, full(1, 9)),
        _ => Op::read(tag, tag * UNIT, full(1, 0)),
    };
    let mut ops: Vec<Op> = (0..12).map(op).collect();
    must(rig.engine.submit_batch(&mut ops));
    let content = pattern(16, 1);
    for done in rig.wait(12) {
        let tag = done.tag();
        match tag {
            3 | 4 | 9 => assert_eq!(done.errno(), Some(libc::EBADF), "{tag}"),
            _ => assert_eq!(must(done.result()), UNIT, "{tag}"),
        }
        let buf = must(done.into_buffers().into_one().ok_or("the buffer is back"));
        if !matches!(tag, 3 | 4 | 9) {
            let at = (tag * UNIT) as usize;
            assert_eq!(*buf, content[at..at + UNIT as usize], "{tag}");
        }
    }
    Ok(())
}

fn unaligned_direct_requests_fail(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &pattern(4, 1))?;
    assert!(!rig.engine.alignment().is_none());
    let done = rig.run(Op::read(1, 1, full(1, 0)));
    assert_eq!(done.errno(), Some(libc::EINVAL));
    assert_eq!(done.into_buffers().total(), UNIT);
    Ok(())
}

fn depths_are_bounded(subject: &Subject) -> Result<(), Skip> {
    use wallgrind::block::queue::MAX_DEPTH;
    use wallgrind::block::{AioEngine, BlockFile, FileOptions, SyncEngine, UringEngine};
    let folder = crate::subject::folder(subject.place)?;
    let path = folder.path().join("image");
    must(std::fs::write(&path, []));
    let file = std::sync::Arc::new(or_skip(BlockFile::open(&path, FileOptions::default()))?);
    for depth in [0, MAX_DEPTH + 1, u32::MAX] {
        let of = |_: ()| std::sync::Arc::clone(&file);
        let error = match subject.way {
            Way::Sync | Way::Mem => kind(SyncEngine::open(of(()), depth)),
            Way::Aio => kind(AioEngine::open(of(()), depth)),
            Way::Uring => kind(UringEngine::open(of(()), depth)),
        };
        assert_eq!(error, Some(ErrorKind::InvalidInput), "{depth}");
    }
    Ok(())
}

/// Slots, tags and rings go around many times, always full.
fn a_full_queue_runs_for_long(subject: &Subject) -> Result<(), Skip> {
    let depth = 7;
    let mut rig = subject.rig(depth as u32, &pattern(64, 3))?;
    let content = pattern(64, 3);
    let (mut next, mut taken) = (0u64, 0u64);
    let unit = |tag: u64| tag.wrapping_mul(2_654_435_761) % 64;
    let mut done = Vec::new();
    while taken < 400 {
        while rig.engine.in_flight() < depth && next < 400 {
            rig.submit(Op::read(next << 40, unit(next) * UNIT, full(1, 0xff)));
            next += 1;
        }
        let some = (taken as usize % depth).clamp(1, rig.engine.in_flight());
        must(rig.engine.wait(some, &mut done));
        for completion in done.drain(..) {
            let at = (unit(completion.tag() >> 40) * UNIT) as usize;
            let buf = must(completion.into_buffers().into_one().ok_or("the buffer is back"));
            assert!(*buf == content[at..at + UNIT as usize]);
            taken += 1;
        }
    }
    assert_eq!(rig.engine.in_flight(), 0);
    Ok(())
}
