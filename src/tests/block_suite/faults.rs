//! Each deliberate fault fails the trial, with a reason that names it; without
//! it the same scenario passes.
//!
//! Neighbours: `planted` has the subjects, `meter` runs them.

use libtest_mimic::{Failed, Trial};
use wallgrind::block::faults::{Fault, Target};

use super::meter::run;
use super::planted::{Liar, Lie, Memory};

/// Scenario, lie, and what the trial has to say.
const LIES: &[(&str, Lie, &str)] = &[
    ("qcow_read::n128", Lie::WrongByte, "wrong data"),
    ("qcow_read::n128", Lie::SilentlyShort, "wrong data"),
    ("qcow_read::n128", Lie::NotRead, "wrong data"),
    ("qcow_read::n128", Lie::Failed, "EIO"),
    ("qcow_write::n128", Lie::LostWrite, "wrong data"),
    ("qcow_write::n128", Lie::Misplaced, "wrong data"),
    ("qcow_cow_write::n128", Lie::LostWrite, "wrong data"),
    ("qcow_punch_hole::n128", Lie::NotDiscarded, "wrong data"),
    ("qcow_fsync::n128", Lie::NotFlushed, "in the file"),
    ("qcow_async_read::n128", Lie::Short, "of 65536 bytes"),
    ("qcow_async_read::n128", Lie::Failed, "Read failed"),
    ("raw_aio_drain::n128", Lie::Short, "4095 of 4096 bytes"),
    ("raw_aio_drain::n128", Lie::Failed, "Write failed"),
    ("qcow_batch_read::n128", Lie::Lost, "127 of 128 operations were completed"),
    ("qcow_batch_read::n128", Lie::Twice, "was completed twice"),
];

/// Scenario, whose call goes wrong in memory, and what the trial has to say.
const FAULTS: &[(&str, Target, Fault, &str)] = &[
    ("qcow_read::n128", Target::Read, Fault::Errno(libc::EIO), "Input/output error"),
    ("qcow_write::n128", Target::Write, Fault::Errno(libc::ENOSPC), "No space left"),
    ("qcow_fsync::n128", Target::Sync, Fault::Errno(libc::EIO), "Input/output error"),
    ("raw_rand_read::warm_sync_qd032", Target::Read, Fault::Errno(libc::EIO), "Input/output error"),
    ("raw_rand_write::warm_sync_qd032", Target::Write, Fault::Torn(512), "Input/output error"),
];

pub fn trials() -> Vec<Trial> {
    let lies = LIES.iter().map(|&(name, lie, said)| {
        let about = format!("lie::{}::{lie:?}", name.replace("::", "_"));
        Trial::test(about, move || {
            passes(run(Liar(Lie::Truth), name, 1))?;
            // More than one iteration: a sample of what was written is read back later on.
            fails(run(Liar(lie), name, 2), said)
        })
    });
    let faults = FAULTS.iter().map(|&(name, target, fault, said)| {
        let about = format!("fault::{}::{target:?}", name.replace("::", "_"));
        Trial::test(about, move || {
            let reads = matches!(target, Target::Read);
            let at = if target == Target::Sync { 0 } else { 50 };
            // What is written stays in memory, so only scenarios that read pass as a whole.
            if reads || name.starts_with("raw") {
                passes(run(Memory { target, at, fault: None }, name, 2))?;
            }
            fails(run(Memory { target, at, fault: Some(fault) }, name, 1), said)
        })
    });
    lies.chain(faults).collect()
}

fn passes(result: anyhow::Result<()>) -> Result<(), Failed> {
    result.map_err(|error| format!("it fails without a fault: {error:#}").into())
}

fn fails(result: anyhow::Result<()>, said: &str) -> Result<(), Failed> {
    match result {
        Ok(()) => Err("the fault went unnoticed".into()),
        Err(error) if format!("{error:#}").contains(said) => Ok(()),
        Err(error) => Err(format!("{said:?} is not in: {error:#}").into()),
    }
}
