//! Contracts of disks in qcow2 images, over every engine: what a disk adds to
//! an engine, and what it shares with the image's own calls.
//!
//! Neighbours: `guest` makes the disks; the other contracts hold for them as well.

use std::os::fd::AsFd;
use std::sync::Arc;

use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::faulty_driver::Release;
use wallgrind::block::qcow2::{GuestOffset, Image, Source};
use wallgrind::block::sys::counters::{self, Call, Counts};
use wallgrind::block::sys::eventfd;
use wallgrind::block::{AlignedBuf, Completion, ErrorKind, Op};

use crate::Contract;
use crate::subject::{Place, Rig, Skip, Subject, UNIT, Way, full, must, pattern};

pub const CONTRACTS: &[Contract<Subject>] = &[
    ("overlapping_writes_take_turns", overlapping_writes_take_turns, is_disk),
    ("calls_do_not_wait_for_their_own_thread", calls_do_not_wait_for_their_own_thread, is_disk),
    ("calls_of_another_thread_wait", calls_of_another_thread_wait, is_disk),
    ("completions_without_io_are_told", completions_without_io_are_told, is_disk),
    ("cached_operations_are_one_call", cached_operations_are_one_call, is_real_disk),
    ("several_extents_are_one_read", several_extents_are_one_read, is_disk),
    ("batched_writes_get_clusters_in_a_row", batched_writes_get_clusters_in_a_row, is_disk),
    ("clusters_taken_ahead_are_given_back", clusters_taken_ahead_are_given_back, is_disk),
    ("copies_leave_snapshots_alone", copies_leave_snapshots_alone, is_disk),
    ("a_fault_at_each_step_of_a_copy", a_fault_at_each_step_of_a_copy, is_disk),
    ("a_fault_at_each_step_of_a_long_read", a_fault_at_each_step_of_a_long_read, is_disk),
    ("zeroes_and_discards_read_as_zeroes", zeroes_and_discards_read_as_zeroes, is_disk),
    ("a_flush_with_nothing_else_to_do_is_the_engines", a_flush_with_nothing_else_is_the_engines, is_disk),
    ("dropped_disks_carry_out_what_waits", dropped_disks_carry_out_what_waits, is_disk),
];

fn is_disk(subject: &Subject) -> bool {
    subject.qcow2
}

fn is_real_disk(subject: &Subject) -> bool {
    subject.qcow2 && subject.is_real()
}

const SECTOR: u64 = 512;

fn sector(byte: u8) -> AlignedBuf {
    let mut buf = must(AlignedBuf::new(SECTOR as usize, 8));
    buf.fill(byte);
    buf
}

fn image(rig: &Rig) -> Arc<Image> {
    Arc::clone(must(rig.image.as_ref().ok_or("a disk in an image")))
}

fn bytes(done: &Completion) -> Vec<u8> {
    done.buffers().as_slice().iter().flat_map(|buf| buf.to_vec()).collect()
}

/// The image is sound, and nothing leaks.
fn sound(rig: &Rig) {
    let report = must(image(rig).check());
    assert!(report.is_clean(), "{report:?}");
}

/// Three writes to one cluster: each is sent when the one before it is done.
fn overlapping_writes_take_turns(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    rig.gate.close();
    for (tag, byte) in [(1, 11), (2, 12), (3, 13)] {
        rig.submit(Op::write(tag, UNIT, full(1, byte)));
    }
    rig.submit(Op::write(4, 3 * UNIT, full(1, 14)));
    assert_eq!((rig.gate.held(), rig.engine.in_flight()), (2, 4), "two clusters, one write each");
    for expected in [4, 1, 2, 3] {
        let which = if expected == 4 { Release::Last } else { Release::First };
        rig.gate.release(which);
        assert_eq!(rig.wait(1)[0].tag(), expected);
    }
    assert_eq!(rig.peek(UNIT, UNIT), *full(1, 13), "the last one stands");
    sound(&rig);
    Ok(())
}

fn calls_do_not_wait_for_their_own_thread(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    let image = image(&rig);
    rig.gate.close();
    rig.submit(Op::write(1, UNIT, full(1, 9)));
    let busy = |result: wallgrind::block::Result<()>| result.err().map(|error| error.kind());
    let same = image.write(UNIT + 7, &[1; 8]);
    assert_eq!(busy(same), Some(ErrorKind::Busy), "it would wait for ever");
    assert_eq!(busy(image.create_snapshot("s").map(drop)), Some(ErrorKind::Busy));
    assert_eq!(busy(image.check().map(drop)), Some(ErrorKind::Busy));
    must(image.write(5 * UNIT, &[1; 8]));
    must(image.flush());
    assert!(image.is_writable());
    rig.gate.open();
    rig.wait(1);
    must(image.write(UNIT + 7, &[1; 8]));
    assert_eq!(rig.peek(UNIT + 6, 3), [9, 1, 1]);
    Ok(())
}

fn calls_of_another_thread_wait(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    let image = image(&rig);
    rig.gate.close();
    rig.submit(Op::write(1, UNIT, full(1, 9)));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| image.write(UNIT + 7, &[1; 8]));
        let other = scope.spawn(|| image.write(4 * UNIT, &[1; 8]));
        must(must(other.join()));
        assert!(!call.is_finished());
        rig.gate.open();
        rig.wait(1);
        must(must(call.join()));
    });
    assert_eq!(rig.peek(UNIT + 6, 3), [9, 1, 1], "after the write, not before it");
    Ok(())
}

/// Reads of what is not there, zeroes, discards, a flush: nothing goes to the
/// engine, and who polls is told all the same.
fn completions_without_io_are_told(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(1, 1))?;
    let notifier = must(must(rig.engine.notifier()).try_clone_to_owned());
    let ops: [fn() -> Op; 4] = [
        || Op::read(1, 100 * UNIT, full(3, 0xff)),
        || Op::write_zeroes(1, 200 * UNIT, 2 * UNIT),
        || Op::discard(1, 0, UNIT),
        || Op::flush(1),
    ];
    for op in ops {
        let expected = op().kind();
        rig.submit(op());
        must(eventfd::wait_readable(notifier.as_fd()));
        must(eventfd::drain(notifier.as_fd()));
        let mut out = Vec::new();
        assert_eq!(must(rig.engine.reap_many(&mut out, usize::MAX)), 1, "{expected:?}");
        assert!(out[0].errno().is_none() && bytes(&out[0]).iter().all(|&byte| byte == 0));
    }
    sound(&rig);
    Ok(())
}

/// Checks what a batch of mapped operations cost: one call for submission, at
/// most one to wait (under direct I/O as many as there are completions).
fn one_call(subject: &Subject, counts: Counts, submitted: Counts, n: u64) {
    let (submits, waits) = match subject.way {
        Way::Uring => (submitted.of(Call::RingEnter), counts.of(Call::RingEnter)),
        Way::Aio => (submitted.of(Call::AioSubmit), counts.of(Call::AioWait) + 1),
        _ => (1, 1),
    };
    assert_eq!(submits, 1, "{submitted:?}");
    let most = if subject.place == Place::Direct { n + 1 } else { 2 };
    assert!(waits <= most, "{counts:?}");
    let beside = [Call::Notify, Call::Stat, Call::Truncate, Call::Sync, Call::Setup, Call::Fallocate];
    assert!(beside.iter().all(|call| counts.of(*call) == 0), "{counts:?}");
    let transfers = counts.of(Call::Read) + counts.of(Call::Write);
    assert_eq!(transfers, if subject.way == Way::Sync { n } else { 0 }, "{counts:?}");
}

/// As many reads of one cluster as the queue is deep; then writes in place.
fn cached_operations_are_one_call(subject: &Subject) -> Result<(), Skip> {
    let n = 32u64;
    let mut rig = subject.rig(n as u32, &pattern(64, 1))?;
    rig.run(Op::read(1, 0, full(1, 0)));
    must(image(&rig).flush());
    if subject.way != Way::Sync {
        // The kernel tells who polls; the synchronous engine has to do that itself.
        must(rig.engine.notifier());
    }
    let read: fn(u64) -> Op = |tag| Op::read(tag, 7 * UNIT, full(1, 0));
    let write: fn(u64) -> Op = |tag| Op::write(tag, 2 * tag * UNIT, full(1, 9));
    for op in [read, write] {
        let mut ops: Vec<Op> = (0..n).map(op).collect();
        let before = counters::thread();
        must(rig.engine.submit_batch(&mut ops));
        let submitted = counters::thread() - before;
        let done = rig.wait(n as usize);
        let counts = counters::thread() - before;
        assert!(done.iter().all(|done| done.errno().is_none()));
        one_call(subject, counts, submitted, n);
    }
    Ok(())
}

/// Data, zeroes, nothing, compressed data and data again, read at once into
/// buffers whose edges are elsewhere.
fn several_extents_are_one_read(subject: &Subject) -> Result<(), Skip> {
    let mut model = pattern(40, 1).to_vec();
    let mut rig = subject.rig(4, &model)?;
    let image = image(&rig);
    let unit = UNIT as usize;
    for cluster in [9, 10, 20] {
        let text: Vec<u8> = (0..unit).map(|at| (at / 97) as u8).collect();
        must(image.write_compressed(cluster as u64 * UNIT, &text));
        model[cluster * unit..(cluster + 1) * unit].copy_from_slice(&text);
    }
    must(image.discard(3 * UNIT, 2 * UNIT));
    must(image.write_zeroes(6 * UNIT, UNIT, false));
    model[3 * unit..5 * unit].fill(0);
    model[6 * unit..7 * unit].fill(0);
    for (start, len) in [(0, 40 * unit), (700, 21 * unit), (9 * unit + 5, 300), (10 * unit, unit)] {
        for cut in [1, 4097, 9 * unit] {
            let cut = cut.min(len - 1);
            let parts = [cut, len - cut].map(|len| {
                let mut buf = must(AlignedBuf::new(len, 8));
                buf.fill(0xff);
                buf
            });
            let done = rig.run(Op::readv(1, start as u64, parts.into()));
            assert_eq!(must(done.result()), len as u64);
            assert!(bytes(&done) == model[start..start + len], "{len} bytes at {start}");
        }
    }
    sound(&rig);
    Ok(())
}

fn batched_writes_get_clusters_in_a_row(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(32, &pattern(1, 1))?;
    // A hole in the file, so that not any allocation comes out in a row.
    let image = image(&rig);
    must(image.write(100 * UNIT, &[1; 3 * UNIT as usize]));
    must(image.discard(101 * UNIT, UNIT));
    must(image.flush());
    let write = |tag: u64| Op::write(tag, (8 + tag) * UNIT, pattern(1, tag));
    let mut ops: Vec<Op> = (0..32).map(write).collect();
    must(rig.engine.submit_batch(&mut ops));
    rig.wait(32).iter().for_each(|done| assert_eq!(must(done.result()), UNIT));
    for tag in 0..32 {
        assert_eq!(rig.peek((8 + tag) * UNIT, UNIT), *pattern(1, tag));
    }
    let extents = must(image.map(GuestOffset(8 * UNIT), 32 * UNIT));
    assert!(extents.len() <= 2, "{extents:?}");
    assert!(extents.iter().all(|extent| matches!(extent.source, Source::Data(_))));
    sound(&rig);
    Ok(())
}

/// Clusters are allocated for the whole of a batch, but one of its writes has to wait: what was
/// taken for it does not leak.
fn clusters_taken_ahead_are_given_back(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(4, 1))?;
    for behind in [1, 2] {
        rig.gate.close();
        let write = |tag: u64| Op::write(tag, (20 * behind + tag) * UNIT, pattern(1, tag));
        rig.submit(Op::write(100, (20 * behind + 1) * UNIT, full(1, 9)));
        let mut ops: Vec<Op> = (0..=behind).map(write).collect();
        must(rig.engine.submit_batch(&mut ops));
        rig.gate.open();
        rig.wait(2 + behind as usize).iter().for_each(|done| assert_eq!(must(done.result()), UNIT));
        for tag in 0..=behind {
            assert_eq!(rig.peek((20 * behind + tag) * UNIT, UNIT), *pattern(1, tag));
        }
        sound(&rig);
    }
    Ok(())
}

/// Parts of clusters that a snapshot shares are written: the rest is copied.
fn copies_leave_snapshots_alone(subject: &Subject) -> Result<(), Skip> {
    let mut model = pattern(16, 1).to_vec();
    let mut rig = subject.rig(16, &model)?;
    let image = image(&rig);
    must(image.create_snapshot("before"));
    let places: Vec<u64> = (0..12).map(|n| n * UNIT + n * 300).collect();
    let mut ops: Vec<Op> = (0..12).map(|n| Op::write(n, places[n as usize], sector(n as u8 + 1))).collect();
    must(rig.engine.submit_batch(&mut ops));
    for done in rig.wait(12) {
        assert_eq!(must(done.result()), SECTOR);
        assert_eq!(bytes(&done), [done.tag() as u8 + 1; 512], "the guest's buffer is back");
    }
    for (n, at) in places.iter().enumerate() {
        model[*at as usize..][..512].fill(n as u8 + 1);
    }
    assert!(rig.peek(0, 16 * UNIT) == model);
    // One write over many shared clusters, from the middle of one to the middle of another.
    let long = pattern(4, 9);
    let data =
        vec![must(AlignedBuf::from_slice(&long[..5000], 8)), must(AlignedBuf::from_slice(&long[5000..], 8))];
    rig.run(Op::writev(1, 11 * UNIT + 77, data));
    model[11 * UNIT as usize + 77..][..4 * UNIT as usize].copy_from_slice(&long);
    assert!(rig.peek(0, 16 * UNIT) == model);
    sound(&rig);
    must(image.apply_snapshot("before"));
    assert!(rig.peek(0, 16 * UNIT) == *pattern(16, 1));
    Ok(())
}

/// A write that copies reads, then writes: where either fails the guest is
/// told, its clusters are free again, and the disk is as it was.
fn a_fault_at_each_step_of_a_copy(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    let image = image(&rig);
    must(image.create_snapshot("shared"));
    let write = || Op::write(1, UNIT + SECTOR, sector(9));
    let mut failures = 0;
    for step in 0.. {
        for errno in [libc::EIO, libc::ENOSPC] {
            rig.faults.reset();
            rig.faults.at(Target::Any, step, Fault::Errno(errno));
            let done = rig.run(write());
            assert_eq!(bytes(&done), [9; 512], "the buffer is back");
            if done.errno().is_none() {
                assert!(failures >= 4, "a read and a write at least");
                sound(&rig);
                return Ok(());
            }
            failures += 1;
            assert_eq!(done.errno(), Some(errno), "step {step}");
            assert_eq!(rig.peek(0, 8 * UNIT), *pattern(8, 1));
            sound(&rig);
        }
        rig.faults.reset();
        rig.faults.at(Target::Any, step, Fault::Torn(UNIT as usize / 4));
        let done = rig.run(write());
        if done.errno().is_some() {
            assert_eq!(rig.peek(0, 8 * UNIT), *pattern(8, 1), "torn at step {step}");
            sound(&rig);
        }
    }
    Ok(())
}

fn a_fault_at_each_step_of_a_long_read(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(8, 1))?;
    must(image(&rig).write_zeroes(2 * UNIT, UNIT, false));
    must(image(&rig).write_zeroes(5 * UNIT, UNIT, false));
    let model = rig.peek(0, 8 * UNIT);
    for step in 0..3 {
        rig.faults.reset();
        rig.faults.at(Target::Read, step, Fault::Errno(libc::EIO));
        let done = rig.run(Op::read(1, 0, full(8, 0xff)));
        assert_eq!((done.errno(), done.into_buffers().total()), (Some(libc::EIO), 8 * UNIT));
        rig.faults.reset();
        rig.faults.at(Target::Read, step, Fault::Short(UNIT as usize));
        let done = rig.run(Op::read(1, 0, full(8, 0xff)));
        assert!(done.errno().is_none() && bytes(&done) == model, "a short read goes on");
    }
    Ok(())
}

fn zeroes_and_discards_read_as_zeroes(subject: &Subject) -> Result<(), Skip> {
    let mut model = pattern(16, 1).to_vec();
    let mut rig = subject.rig(8, &model)?;
    let ranges = [(0, 100), (UNIT + 10, UNIT), (4 * UNIT, 2 * UNIT), (8 * UNIT - 1, 3 * UNIT + 2)];
    for (discard, shift) in [(false, 0), (true, 200)] {
        for (at, len) in ranges {
            let at = at + shift;
            let op = if discard { Op::discard(1, at, len) } else { Op::write_zeroes(1, at, len) };
            assert_eq!(must(rig.run(op).result()), len);
            model[at as usize..(at + len) as usize].fill(0);
            assert!(rig.peek(0, 16 * UNIT) == model, "{len} bytes at {at}");
        }
    }
    must(rig.run(Op::flush(1)).result());
    sound(&rig);
    Ok(())
}

fn a_flush_with_nothing_else_is_the_engines(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(4, &pattern(4, 1))?;
    rig.run(Op::write(1, 50 * UNIT, full(1, 9)));
    rig.gate.close();
    rig.submit(Op::flush(1));
    must(rig.wait(1)[0].result());
    rig.gate.open();
    rig.run(Op::write(1, 50 * UNIT, full(1, 8)));
    rig.gate.close();
    rig.submit(Op::flush(2));
    assert_eq!((rig.gate.held(), rig.engine.in_flight()), (1, 1));
    rig.gate.open();
    must(rig.wait(1)[0].result());
    rig.faults.reset();
    rig.faults.at(Target::Sync, 0, Fault::Errno(libc::EIO));
    assert_eq!(rig.run(Op::flush(3)).errno(), Some(libc::EIO));
    Ok(())
}

fn dropped_disks_carry_out_what_waits(subject: &Subject) -> Result<(), Skip> {
    let mut rig = subject.rig(8, &pattern(4, 1))?;
    must(image(&rig).create_snapshot("shared"));
    for n in 0..6 {
        rig.submit(Op::write(n, UNIT + n * SECTOR, sector(n as u8 + 1)));
    }
    rig.engine = Box::new(crate::lifetimes::idle());
    for n in 0..6 {
        assert_eq!(rig.peek(UNIT + n * SECTOR, SECTOR), [n as u8 + 1; 512], "write {n}");
    }
    assert!(image(&rig).is_writable());
    sound(&rig);
    Ok(())
}
