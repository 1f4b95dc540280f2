//! The engines' contracts: each is written once and run over every engine, on
//! every kind of file; storage and disks likewise. What this machine lacks is
//! reported as ignored, with the reason.
//!
//! Neighbours: `wallgrind::block` is what is tested; the modules here hold the
//! subjects and the contracts by theme.

#[path = "block_engines/basics.rs"]
mod basics;
#[path = "block_engines/disks.rs"]
mod disks;
#[path = "block_engines/faults.rs"]
mod faults;
#[path = "block_engines/guest.rs"]
mod guest;
#[path = "block_engines/lifetimes.rs"]
mod lifetimes;
#[path = "block_engines/limits.rs"]
mod limits;
#[path = "block_engines/qcow2_disks.rs"]
mod qcow2_disks;
#[path = "block_engines/stores.rs"]
mod stores;
#[path = "block_engines/subject.rs"]
mod subject;
#[path = "block_engines/together.rs"]
mod together;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};
use subject::{Skip, Subject};

/// A contract: its name, its body, and which subjects it is about.
type Contract<S> = (&'static str, fn(&S) -> Result<(), Skip>, fn(&S) -> bool);

/// For contracts that are about every subject.
fn all<S>(_: &S) -> bool {
    true
}

/// A trial for each contract and subject.
fn trials<S: Clone + Send + ToString + 'static>(contracts: &[Contract<S>], subjects: &[S]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(name, contract, about) in contracts {
        for subject in subjects.iter().filter(|subject| about(subject)) {
            let full = format!("{name}::{}", subject.to_string());
            let subject = subject.clone();
            trials.push(Trial::ignorable_test(full, move || match contract(&subject) {
                Ok(()) => Ok(Completion::Completed),
                Err(Skip(reason)) => Ok(Completion::ignored_with(reason)),
            }));
        }
    }
    trials
}

fn main() -> ExitCode {
    let (plain, faulty) = (Subject::all(false), Subject::all(true));
    let mut list = trials(basics::CONTRACTS, &plain);
    list.extend(trials(limits::CONTRACTS, &plain));
    list.extend(trials(faults::CONTRACTS, &faulty));
    list.extend(trials(lifetimes::CONTRACTS, &faulty));
    list.extend(trials(together::CONTRACTS, &plain));
    list.extend(trials(together::CONTRACTS, &faulty));
    list.extend(trials(disks::CONTRACTS, &faulty));
    list.extend(trials(qcow2_disks::CONTRACTS, &faulty));
    list.extend(trials(stores::CONTRACTS, &stores::Store::all()));
    libtest_mimic::run(&Arguments::from_args(), list).exit_code()
}
