//! Contracts of buffers: they are the operation's until its completion,
//! whatever is held, reordered or dropped meanwhile. Run under memcheck, these
//! show a use after free or a leak.
//!
//! Neighbours: `subject` opens engines with a gate.

use std::sync::Arc;

use wallgrind::block::faulty_driver::Release;
use wallgrind::block::sys::counters::{self, Call};
use wallgrind::block::{AioEngine, BlockFile, Engine, ErrorKind, FileOptions, Op};

use crate::subject::{Skip, Subject, UNIT, folder, full, must, or_skip, pattern};
use crate::{Contract, all};

pub const CONTRACTS: &[Contract<Subject>] = &[
    ("held_operations_keep_their_buffers", held_operations_keep_their_buffers, all),
    ("completions_come_in_any_order", completions_come_in_any_order, all),
    ("waiting_for_held_operations_is_an_error", waiting_for_held_operations_is_an_error, all),
    ("drop_drains_what_is_held", drop_drains_what_is_held, all),
    ("drop_parks_what_cannot_be_drained", drop_parks_what_cannot_be_drained, all),
    ("drop_waits_for_the_kernel", drop_waits_for_the_kernel, all),
    ("completions_outlive_the_engine", completions_outlive_the_engine, all),
    ("engines_share_one_context", engines_share_one_context, Subject::is_plain_aio),
    ("an_engine_moves_between_threads", an_engine_moves_between_threads, all),
];

fn held_operations_keep_their_buffers(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    rig.gate.close();
    for tag in 0..4 {
        rig.submit(Op::write(tag, tag * UNIT, full(1, tag as u8 + 1)));
    }
    assert!(must(rig.engine.reap()).is_none());
    assert_eq!((rig.gate.held(), rig.engine.in_flight()), (4, 4));
    assert_eq!(rig.peek(0, 8 * UNIT), *pattern(8, 1), "nothing has happened");
    let refused = rig.engine.submit(Op::flush(2));
    assert!(refused.is_err(), "its tag is in flight as long as it is held");
    rig.gate.open();
    for done in rig.wait(4) {
        must(done.result());
    }
    for unit in 0..4 {
        assert_eq!(rig.peek(unit * UNIT, UNIT), *full(1, unit as u8 + 1));
    }
    Ok(())
}

fn completions_come_in_any_order(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    rig.gate.close();
    for tag in 0..4 {
        rig.submit(Op::read(tag, tag * UNIT, full(1, 0xff)));
    }
    let mut order = Vec::new();
    for which in [Release::Last, Release::First, Release::Last, Release::All] {
        rig.gate.release(which);
        for done in rig.wait(1) {
            let at = (done.tag() * UNIT) as usize;
            let content = &pattern(8, 1)[at..at + UNIT as usize];
            order.push(done.tag());
            assert!(*done.buffers().as_slice()[0] == *content, "each with its own buffer");
        }
    }
    assert_eq!(order, [3, 0, 2, 1]);
    Ok(())
}

fn waiting_for_held_operations_is_an_error(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(4, 1))?;
    rig.submit(Op::read(1, 0, full(1, 0)));
    rig.gate.close();
    rig.submit(Op::read(2, 0, full(1, 0)));
    let mut out = Vec::new();
    let error = must(rig.engine.wait(2, &mut out).err().ok_or("cannot end"));
    assert_eq!((error.kind(), out.len()), (ErrorKind::Busy, 1), "what was taken is there");
    rig.gate.open();
    rig.wait(1);
    Ok(())
}

fn drop_drains_what_is_held(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(4, 1))?;
    rig.gate.close();
    rig.submit(Op::write(1, 0, full(2, 9)));
    rig.submit(Op::readv(2, 0, vec![full(1, 0), full(1, 0)]));
    rig.engine = Box::new(idle());
    assert_eq!(rig.peek(0, 2 * UNIT), *full(2, 9), "a slow kernel would still have done it");
    Ok(())
}

/// An engine to put into the place of one that is dropped.
pub fn idle() -> impl Engine {
    use wallgrind::block::MemEngine;
    use wallgrind::block::{faults::Faults, faulty_driver::Gate, mem::file::MemFile};
    must(MemEngine::open(MemFile::new(), 1, Faults::new(), Gate::new()))
}

fn drop_parks_what_cannot_be_drained(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(64, 1))?;
    rig.gate.break_waits();
    let mut ops: Vec<Op> = (0..4).map(|tag| Op::read(tag, 0, full(64, 0))).collect();
    must(rig.engine.submit_batch(&mut ops));
    rig.engine = Box::new(idle());
    // The kernel may write to the buffers now; they are somebody's still.
    let other: Vec<_> = (0..8).map(|_| full(64, 7)).collect();
    assert!(other.iter().all(|buf| buf.iter().all(|&byte| byte == 7)));
    Ok(())
}

/// With direct I/O the reads are truly in flight when the engine goes.
fn drop_waits_for_the_kernel(subject: &Subject) -> Result<(), Skip> {
    for _ in 0..4 {
        let mut rig = subject.rig(32, &pattern(256, 1))?;
        let read = |tag| Op::read(tag, tag * 8 * UNIT, full(8, 0));
        let mut ops: Vec<Op> = (0..32).map(read).collect();
        must(rig.engine.submit_batch(&mut ops));
        rig.engine = Box::new(idle());
        let others: Vec<_> = (0..32).map(|_| full(8, 7)).collect();
        assert!(others.iter().all(|buf| buf.iter().all(|&byte| byte == 7)));
    }
    Ok(())
}

fn completions_outlive_the_engine(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &pattern(2, 1))?;
    let done = rig.run(Op::read(1, 0, full(2, 0)));
    drop(rig);
    assert_eq!(*done.buffers().as_slice()[0], *pattern(2, 1));
    Ok(())
}

/// Engines in several threads on one AIO context: each gets its own
/// completions, and setting another up makes no context.
fn engines_share_one_context(subject: &Subject) -> Result<(), Skip> {
    let folder = folder(subject.place)?;
    let path = folder.path().join("image");
    let content = pattern(64, 1);
    must(std::fs::write(&path, &*content));
    let options =
        FileOptions { direct: subject.place == crate::subject::Place::Direct, ..FileOptions::default() };
    let file = Arc::new(or_skip(BlockFile::open(&path, options))?);
    let first = or_skip(AioEngine::open(Arc::clone(&file), 4))?;
    let before = counters::thread();
    let second = or_skip(AioEngine::open(Arc::clone(&file), 4))?;
    assert_eq!((counters::thread() - before).of(Call::Setup), 0, "no second io_setup");
    drop(second);
    assert_eq!((counters::thread() - before).total(), 0, "no io_destroy");

    std::thread::scope(|scope| {
        for seed in 0..4u64 {
            let (file, content) = (Arc::clone(&file), &content);
            scope.spawn(move || {
                let mut engine = must(AioEngine::open(file, 8));
                let mut out = Vec::new();
                for round in 0..30u64 {
                    let unit = |tag: u64| (tag * 7 + round * 5 + seed) % 64;
                    let read = |tag| Op::read(tag, unit(tag) * UNIT, full(1, 0xff));
                    let mut ops: Vec<Op> = (0..8).map(read).collect();
                    must(engine.submit_batch(&mut ops));
                    must(engine.wait(8, &mut out));
                    for done in out.drain(..) {
                        let at = (unit(done.tag()) * UNIT) as usize;
                        let buf = &done.buffers().as_slice()[0];
                        assert!(**buf == content[at..at + UNIT as usize]);
                    }
                }
            });
        }
    });
    drop(first);
    Ok(())
}

fn an_engine_moves_between_threads(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(4, 1))?;
    rig.submit(Op::read(1, 0, full(4, 0)));
    let mut rig = must(
        std::thread::spawn(move || {
            rig.submit(Op::read(2, 0, full(4, 0)));
            rig
        })
        .join(),
    );
    for done in rig.wait(2) {
        assert_eq!(*done.buffers().as_slice()[0], *pattern(4, 1));
    }
    Ok(())
}
