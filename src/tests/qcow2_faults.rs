//! Single faults: each call of the workload fails once with EIO or ENOSPC, is
//! cut short, or is torn. The operation says so with a typed error, the image
//! stays consistent, and what comes later works.
//!
//! Neighbours: `qcow2/scene` has the workload, `wallgrind::block::faults` the faults.

#[path = "qcow2/scene.rs"]
#[allow(dead_code, reason = "shared with other test targets, which use other parts")]
mod scene;

use scene::{STEPS, Track};
use wallgrind::block::faults::{Fault, Target};
use wallgrind::block::qcow2::{CreateOptions, Image};
use wallgrind::block::{ErrorKind, MemStorage};

/// Runs the workload with `fault` at each of its calls in turn.
fn fail_everywhere(fault: Fault, kinds: &[ErrorKind], change: fn(&mut CreateOptions)) {
    let mut failures = 0;
    // Memcheck makes do with a part of them.
    let every = std::env::var("WALLGRIND_FAULTS_EVERY").ok().and_then(|text| text.parse().ok());
    for call in (0..).step_by(every.unwrap_or(1)) {
        let file = scene::fresh(change);
        let store = MemStorage::over(file.clone());
        let faults = store.faults().clone();
        let image = scene::open(store).expect("open");
        faults.reset();
        faults.at(Target::Any, call, fault);
        let mut track = Track::new();
        let mut failed = false;
        for (at, step) in STEPS.iter().enumerate() {
            let before = track.clone();
            let Err(error) = step(&image, &mut track) else {
                continue;
            };
            failed = true;
            failures += 1;
            assert!(kinds.contains(&error.kind()), "call {call}, step {at}: {error:?}");
            assert!(image.is_writable(), "call {call}, step {at}: frozen by {error}");
            // The same again has to work now.
            track.unsure = before.unsure;
            track.snapshots = before.snapshots;
            let again = if done_already(&image, &track, at) { Ok(()) } else { step(&image, &mut track) };
            again.unwrap_or_else(|error| panic!("call {call}, step {at} again: {error:?}"));
        }
        let calls = faults.calls(Target::Any);
        faults.reset();
        finish(&image, &mut track, call);
        if !failed && calls <= call {
            break;
        }
    }
    assert!(failures > 20 || kinds.is_empty() || every.is_some(), "only {failures} failures");
}

/// A snapshot operation that failed after its header was written is done.
fn done_already(image: &Image, track: &Track, at: usize) -> bool {
    let there = image.snapshots().len();
    let snapshot_steps = [6, 15, 17, 25];
    let expected = track.snapshots.len();
    snapshot_steps.contains(&at) && there != expected
}

fn finish(image: &Image, track: &mut Track, call: u64) {
    image.flush().unwrap_or_else(|error| panic!("call {call}: last flush: {error}"));
    let report = image.check().expect("check");
    assert_eq!((report.corruptions, report.check_errors), (0, 0), "call {call}: {report:?}");
    let mut disk = vec![1; image.size() as usize];
    image.read(0, &mut disk).expect("read");
    if let Some(why) = track.judge(&disk) {
        panic!("call {call}: {why}");
    }
}

#[test]
fn eio_anywhere_is_an_error_and_no_damage() {
    fail_everywhere(Fault::Errno(libc::EIO), &[ErrorKind::Io], |_| {});
}

#[test]
fn enospc_anywhere_is_an_error_and_no_damage() {
    fail_everywhere(Fault::Errno(libc::ENOSPC), &[ErrorKind::Exhausted], |o| {
        (o.cluster_size, o.refcount_bits) = (512, 64);
    });
}

#[test]
fn torn_transfers_are_errors_and_no_damage() {
    fail_everywhere(Fault::Torn(512), &[ErrorKind::Io], |o| {
        (o.cluster_size, o.extended_l2) = (16384, true);
    });
}

#[test]
fn short_transfers_and_interruptions_are_looped() {
    fail_everywhere(Fault::Short(100), &[], |_| {});
    fail_everywhere(Fault::Errno(libc::EINTR), &[], |_| {});
}
