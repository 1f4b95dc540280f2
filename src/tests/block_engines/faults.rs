//! Contracts of faults, under every engine: errors keep their errno and give
//! the buffers back, interruptions and short transfers go unnoticed, and what
//! comes after works.
//!
//! Neighbours: `subject` opens engines with a script of faults; `lifetimes`
//! has what is held.

use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::{AlignedBuf, ErrorKind, Op, OpKind};

use crate::subject::{Rig, Skip, Subject, UNIT, full, must, pattern};
use crate::{Contract, all};

pub const CONTRACTS: &[Contract<Subject>] = &[
    ("errors_keep_errno_and_buffers", errors_keep_errno_and_buffers, Subject::is_plain),
    ("interruptions_go_unnoticed", interruptions_go_unnoticed, Subject::is_plain),
    ("short_transfers_go_on", short_transfers_go_on, all),
    ("a_fault_at_each_step_of_a_transfer", a_fault_at_each_step_of_a_transfer, all),
    ("writes_that_make_no_progress_fail", writes_that_make_no_progress_fail, all),
    ("torn_writes_fail_and_leave_a_part", torn_writes_fail_and_leave_a_part, all),
    ("zeroing_falls_back", zeroing_falls_back, Subject::is_plain),
];

/// An operation of each kind.
fn each_kind() -> Vec<Op> {
    vec![
        Op::read(1, 0, full(2, 0xff)),
        Op::write(2, 0, pattern(2, 2)),
        Op::readv(3, UNIT, vec![full(1, 0), full(1, 0)]),
        Op::writev(4, UNIT, vec![pattern(1, 3), pattern(1, 4)]),
        Op::write_zeroes(5, 2 * UNIT, UNIT),
        Op::discard(6, 3 * UNIT, UNIT),
        Op::flush(7),
    ]
}

fn errors_keep_errno_and_buffers(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(4, 1))?;
    for errno in [libc::EIO, libc::ENOSPC, libc::EAGAIN] {
        for op in each_kind() {
            let (tag, len, bytes) = (op.tag(), op.byte_len(), buffer_bytes(&op));
            rig.faults.reset();
            rig.faults.at(Target::Any, 0, Fault::Errno(errno));
            let done = rig.run(op);
            let error = must(done.result().err().ok_or("fails"));
            let kind = if errno == libc::ENOSPC { ErrorKind::Exhausted } else { ErrorKind::Io };
            assert_eq!((error.errno(), error.kind()), (Some(errno), kind), "{tag} {len}");
            assert_eq!(done.into_buffers().total(), bytes, "the buffers are back");
        }
    }
    assert_eq!(rig.peek(0, 4 * UNIT), *pattern(4, 1), "nothing was done");
    works(&mut rig);
    Ok(())
}

fn buffer_bytes(op: &Op) -> u64 {
    match op.kind() {
        OpKind::Read | OpKind::Write => op.byte_len(),
        _ => 0,
    }
}

/// The engine is as good as new.
fn works(rig: &mut Rig) {
    rig.faults.reset();
    must(rig.run(Op::write(1, 0, pattern(4, 8))).result());
    let done = rig.run(Op::read(1, 0, full(4, 0)));
    assert_eq!(*done.buffers().as_slice()[0], *pattern(4, 8));
}

fn interruptions_go_unnoticed(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(4, 1))?;
    for op in each_kind() {
        rig.faults.reset();
        for n in 0..3 {
            rig.faults.at(Target::Any, n, Fault::Errno(libc::EINTR));
        }
        let len = op.byte_len();
        assert_eq!(must(rig.run(op).result()), len);
        assert_eq!(rig.faults.calls(Target::Any), 4);
    }
    works(&mut rig);
    Ok(())
}

/// Lengths at which a transfer of `total` can be cut on this engine.
fn cuts(rig: &Rig, total: u64) -> Vec<usize> {
    let step = rig.align.offset();
    let wild = [1, 511, 512, 4095, 4096, 4097, 8191, 8192, total - 1];
    let fits = |cut: &u64| cut.is_multiple_of(step) && *cut > 0;
    wild.into_iter().filter(fits).map(|cut| cut as usize).collect()
}

fn vector() -> Vec<AlignedBuf> {
    vec![pattern(1, 5), pattern(2, 6), pattern(1, 7)]
}

fn bytes(bufs: &[AlignedBuf]) -> Vec<u8> {
    bufs.iter().flat_map(|buf| buf.to_vec()).collect()
}

fn short_transfers_go_on(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &[])?;
    let whole = bytes(&vector());
    for cut in cuts(&rig, 4 * UNIT) {
        must(rig.view.set_len(0));
        rig.faults.reset();
        rig.faults.from(Target::Any, 0, Fault::Short(cut));
        assert_eq!(must(rig.run(Op::writev(1, UNIT, vector())).result()), 4 * UNIT);
        assert_eq!(rig.peek(UNIT, 4 * UNIT), whole, "written {cut} at a time");
        let done = rig.run(Op::readv(1, UNIT, vec![full(3, 0xff), full(1, 0xff)]));
        assert_eq!(must(done.result()), 4 * UNIT);
        assert_eq!(bytes(done.buffers().as_slice()), whole, "read {cut} at a time");
        assert!(rig.faults.calls(Target::Any) > 2);
    }
    Ok(())
}

/// The transfer takes four attempts; one of them fails.
fn a_fault_at_each_step_of_a_transfer(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &[])?;
    let ops: [fn() -> Op; 2] = [|| Op::writev(1, 0, vector()), || Op::readv(1, 0, vec![full(4, 0xff)])];
    for op in ops {
        for step in 0..4 {
            for errno in [libc::EIO, libc::ENOSPC] {
                rig.faults.reset();
                rig.faults.at(Target::Any, step, Fault::Errno(errno));
                rig.faults.from(Target::Any, 0, Fault::Short(UNIT as usize));
                let done = rig.run(op());
                assert_eq!(done.errno(), Some(errno), "step {step}");
                assert_eq!(done.into_buffers().total(), 4 * UNIT);
                assert_eq!(rig.faults.calls(Target::Any), step + 1, "and no step after it");
            }
        }
        rig.faults.reset();
        rig.faults.from(Target::Any, 0, Fault::Short(UNIT as usize));
        must(rig.run(op()).result());
    }
    works(&mut rig);
    Ok(())
}

fn writes_that_make_no_progress_fail(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &pattern(4, 1))?;
    rig.faults.from(Target::Write, 0, Fault::Short(0));
    let done = rig.run(Op::write(1, 0, full(2, 9)));
    assert_eq!(done.errno(), Some(libc::EIO), "not an endless loop");
    works(&mut rig);
    Ok(())
}

fn torn_writes_fail_and_leave_a_part(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &pattern(4, 1))?;
    rig.faults.at(Target::Write, 0, Fault::Torn(UNIT as usize));
    let done = rig.run(Op::write(1, 0, full(2, 9)));
    assert_eq!(done.errno(), Some(libc::EIO));
    assert_eq!(rig.peek(0, UNIT), *full(1, 9));
    assert_eq!(rig.peek(UNIT, UNIT), pattern(4, 1)[UNIT as usize..2 * UNIT as usize]);
    works(&mut rig);
    Ok(())
}

/// Where `fallocate` lacks a mode, the range reads as zeroes all the same.
fn zeroing_falls_back(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(2, &pattern(4, 1))?;
    rig.faults.from(Target::Fallocate, 0, Fault::Errno(libc::EOPNOTSUPP));
    assert_eq!(must(rig.run(Op::write_zeroes(1, 0, UNIT)).result()), UNIT);
    assert_eq!(must(rig.run(Op::discard(1, 2 * UNIT, UNIT)).result()), UNIT);
    let mut model = pattern(4, 1).to_vec();
    model[..UNIT as usize].fill(0);
    model[2 * UNIT as usize..3 * UNIT as usize].fill(0);
    assert_eq!(rig.peek(0, 4 * UNIT), model);
    Ok(())
}
