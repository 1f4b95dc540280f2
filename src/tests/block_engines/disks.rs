//! Contracts of a disk over any engine: a guest's 512-byte requests on a file
//! that demands 4 KiB, in order, within the capacity.
//!
//! Neighbours: `subject` opens the engines; `stores` has the same for storage.

use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::faulty_driver::Release;
use wallgrind::block::{AlignedBuf, Engine, ErrorKind, Op, RawDisk};

use crate::subject::{Rig, Skip, Subject, UNIT, full, must, pattern};
use crate::{Contract, all};

pub const CONTRACTS: &[Contract<Subject>] = &[
    ("guests_may_ask_for_sectors", guests_may_ask_for_sectors, all),
    ("sectors_of_one_block_do_not_lose_each_other", sectors_of_one_block_do_not_lose_each_other, all),
    ("the_capacity_is_kept", the_capacity_is_kept, Subject::is_plain),
    ("a_fault_at_each_step_of_a_bounced_write", a_fault_at_each_step_of_a_bounced_write, Subject::is_plain),
    ("disks_refuse_what_engines_refuse", disks_refuse_what_engines_refuse, all),
    ("a_failed_wait_leaves_nothing_unsent", a_failed_wait_leaves_nothing_unsent, Subject::is_plain_direct),
    ("dropped_disks_carry_out_their_writes", dropped_disks_carry_out_their_writes, Subject::is_plain_direct),
];

const SECTOR: u64 = 512;

fn disk(rig: Rig) -> (RawDisk<Box<dyn Engine>>, Rig) {
    let mut rig = rig;
    let engine = std::mem::replace(&mut rig.engine, Box::new(crate::lifetimes::idle()));
    (must(RawDisk::new(engine, std::sync::Arc::clone(&rig.file))), rig)
}

/// `len` bytes of `byte` at an address that suits no direct I/O.
fn sectors(len: u64, byte: u8) -> AlignedBuf {
    let mut buf = must(AlignedBuf::new(len as usize, 8));
    buf.fill(byte);
    buf
}

fn run(disk: &mut impl Engine, op: Op) -> wallgrind::block::Completion {
    must(disk.submit(op));
    let mut out = Vec::new();
    must(disk.wait(1, &mut out));
    must(out.pop().ok_or("one completion"))
}

/// The steps of a small generator (constants of Knuth's MMIX).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Any mix of requests leaves what they say, on any alignment.
fn guests_may_ask_for_sectors(subject: &Subject) -> Result<(), Skip> {
    let mut model = pattern(24, 1).to_vec();
    let (mut disk, rig) = disk(subject.rig(4, &model)?);
    let mut state = 7;
    for step in 0..200u64 {
        let len = (random(&mut state) % 20 + 1) * SECTOR;
        let offset = random(&mut state) % (24 * UNIT / SECTOR) * SECTOR;
        let len = len.min(24 * UNIT - offset);
        let range = offset as usize..(offset + len) as usize;
        let byte = step as u8 | 1;
        match random(&mut state) % 8 {
            0..3 => {
                let half = (len / SECTOR / 2 * SECTOR).max(1);
                let parts = vec![sectors(half, byte), sectors(len - half, byte)];
                must(run(&mut disk, Op::writev(step, offset, parts)).result());
                model[range].fill(byte);
            }
            3..6 => {
                let done = run(&mut disk, Op::read(step, offset, sectors(len, 0xee)));
                assert_eq!(must(done.result()), len);
                assert!(*done.buffers().as_slice()[0] == model[range], "step {step}");
            }
            6 => {
                must(run(&mut disk, Op::write_zeroes(step, offset, len)).result());
                model[range].fill(0);
            }
            _ => {
                must(run(&mut disk, Op::discard(step, offset, len)).result());
                model[range].fill(0);
            }
        }
    }
    must(run(&mut disk, Op::flush(1)).result());
    assert!(rig.peek(0, 25 * UNIT) == model);
    Ok(())
}

/// Eight writes to the eight sectors of one block, all in flight: each reads
/// the block, changes its part, and writes it.
fn sectors_of_one_block_do_not_lose_each_other(subject: &Subject) -> Result<(), Skip> {
    let (mut disk, rig) = disk(subject.rig(32, &pattern(4, 1))?);
    for round in 0..10u8 {
        let write = |n: u64| Op::write(n, UNIT + n * SECTOR, sectors(SECTOR, round ^ n as u8));
        let mut ops: Vec<Op> = (0..8).map(write).collect();
        ops.push(Op::write(100, 2 * UNIT, full(1, round)));
        ops.push(Op::read(101, 0, sectors(3 * UNIT, 0)));
        must(disk.submit_batch(&mut ops));
        assert_eq!(disk.in_flight(), 10);
        let mut out = Vec::new();
        must(disk.wait(10, &mut out));
        assert!(out.iter().all(|done| done.errno().is_none()));
        for n in 0..8 {
            let sector = rig.peek(UNIT + n * SECTOR, SECTOR);
            assert_eq!(sector, [round ^ n as u8; 512], "round {round}, sector {n}");
        }
        assert_eq!(rig.peek(2 * UNIT, UNIT), *full(1, round));
    }
    assert_eq!(rig.peek(0, UNIT), *pattern(1, 1));
    Ok(())
}

/// A disk that ends within a block: its end is its end, also in the file.
fn the_capacity_is_kept(subject: &Subject) -> Result<(), Skip> {
    let capacity = UNIT + 3 * SECTOR;
    let content = &pattern(2, 1)[..capacity as usize];
    let (mut disk, rig) = disk(subject.rig(4, content)?);
    assert_eq!(disk.capacity(), capacity);
    must(run(&mut disk, Op::write(1, capacity - SECTOR, sectors(SECTOR, 9))).result());
    assert_eq!(must(rig.view.len()), capacity, "not rounded up to the block");
    let done = run(&mut disk, Op::read(1, UNIT, sectors(3 * SECTOR, 0)));
    let mut model = content[UNIT as usize..].to_vec();
    model[2 * SECTOR as usize..].fill(9);
    assert_eq!(*done.buffers().as_slice()[0], *model);

    for op in [
        Op::read(1, capacity - SECTOR, sectors(2 * SECTOR, 0)),
        Op::write(1, capacity, sectors(1, 0)),
        Op::discard(1, 0, capacity + 1),
    ] {
        let refused = must(disk.submit(op).err().ok_or("past the end"));
        assert_eq!(refused.error.kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(must(rig.view.len()), capacity);
    Ok(())
}

/// Read, then write: where either fails, the guest is told, and the bytes
/// around its sector stay.
fn a_fault_at_each_step_of_a_bounced_write(subject: &Subject) -> Result<(), Skip> {
    let (mut disk, rig) = disk(subject.rig(4, &pattern(2, 1))?);
    rig.faults.reset();
    must(run(&mut disk, Op::write(1, SECTOR, sectors(SECTOR, 9))).result());
    let steps = rig.faults.calls(Target::Any);
    let before = rig.peek(0, 2 * UNIT);
    for step in 0..steps {
        for errno in [libc::EIO, libc::ENOSPC] {
            rig.faults.reset();
            rig.faults.at(Target::Any, step, Fault::Errno(errno));
            let done = run(&mut disk, Op::write(1, 2 * SECTOR, sectors(SECTOR, 3)));
            assert_eq!(done.errno(), Some(errno), "step {step}");
            assert_eq!(done.into_buffers().total(), SECTOR, "the buffer is back");
            assert_eq!(rig.peek(0, 2 * UNIT), before);
        }
        rig.faults.reset();
        rig.faults.at(Target::Any, step, Fault::Errno(libc::EINTR));
        must(run(&mut disk, Op::write(1, SECTOR, sectors(SECTOR, 9))).result());
        assert_eq!(rig.peek(0, 2 * UNIT), before);
    }
    rig.faults.reset();
    must(run(&mut disk, Op::write(1, 2 * SECTOR, sectors(SECTOR, 3))).result());
    assert_eq!(rig.peek(2 * SECTOR, SECTOR), [3; 512]);
    Ok(())
}

fn disks_refuse_what_engines_refuse(subject: &Subject) -> Result<(), Skip> {
    let (mut disk, rig) = disk(subject.rig(4, &pattern(2, 1))?);
    let kind = |result: wallgrind::block::Result<()>| result.err().map(|error| error.kind());
    let write = |tag| Op::write(tag, tag * SECTOR, sectors(SECTOR, 9));
    let mut twice = vec![write(1), write(2), write(1)];
    assert_eq!(kind(disk.submit_batch(&mut twice)), Some(ErrorKind::Busy));
    let mut many: Vec<Op> = (0..5).map(write).collect();
    assert_eq!(kind(disk.submit_batch(&mut many)), Some(ErrorKind::Busy));
    assert_eq!((twice.len(), many.len(), disk.in_flight()), (3, 5, 0));
    assert_eq!(rig.peek(0, 2 * UNIT), *pattern(2, 1));
    many.pop();
    must(disk.submit_batch(&mut many));
    assert!(disk.submit(write(7)).is_err(), "full");
    let mut out = Vec::new();
    assert_eq!(kind(disk.wait(5, &mut out)), Some(ErrorKind::InvalidInput));
    must(disk.wait(3, &mut out));
    assert_eq!((out.len(), disk.in_flight()), (3, 1));
    must(disk.wait(1, &mut out));
    Ok(())
}

/// The read for a bounced write comes back, then waiting fails: the write goes to the engine all the same,
/// since nobody would ask for it later.
fn a_failed_wait_leaves_nothing_unsent(subject: &Subject) -> Result<(), Skip> {
    let (mut disk, rig) = disk(subject.rig(4, &pattern(4, 1))?);
    rig.gate.close();
    rig.gate.release(Release::First);
    let mut ops = vec![Op::write(1, 10, sectors(100, 9)), Op::read(2, 2 * UNIT, sectors(UNIT, 0))];
    let mut out = Vec::new();
    assert!(disk.submit_and_wait(&mut ops, 2, &mut out).is_err(), "the gate holds one");
    assert_eq!((ops.len(), out.len(), disk.in_flight()), (0, 0, 2));
    assert_eq!(rig.gate.held(), 2, "the write as well");
    rig.gate.open();
    must(disk.wait(2, &mut out));
    assert!(out.iter().all(|done| done.errno().is_none()));
    assert_eq!(rig.peek(10, 100), [9; 100]);
    Ok(())
}

fn dropped_disks_carry_out_their_writes(subject: &Subject) -> Result<(), Skip> {
    let (mut disk, rig) = disk(subject.rig(8, &pattern(2, 1))?);
    for n in 0..4 {
        must(disk.submit(Op::write(n, n * SECTOR, sectors(SECTOR, 9))));
    }
    drop(disk);
    assert_eq!(rig.peek(0, 4 * SECTOR), [9; 2048]);
    Ok(())
}
