//! What a run needs before its first trial: what the machine lacks, the lock
//! between processes, the folder of records.
//!
//! Neighbours: `run` (which goes through it), `list` (which asks what is missing).

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::cli::{Printer, Selected};
use crate::error::{Error, Kind, Result};
use crate::machine;
use crate::measure;
use crate::plan::{Action, Mode, Plan};
use crate::scenario::Scenario;
use crate::sys::{self, Held, Lock};
use crate::trial::{Waited, Watch};

/// Says what this machine lacks for a scenario under a plan. Valgrind is
/// looked for once, and only when it is needed.
pub fn missing(plan: &Plan) -> impl Fn(&Scenario) -> Option<String> {
    let valgrind = OnceCell::new();
    let counts = plan.mode != Mode::Walltime && plan.action != Action::Smoke;
    move |scenario| {
        let own = catch_unwind(AssertUnwindSafe(|| scenario.missing()));
        let own = own.unwrap_or_else(|_| Some("the probe of one of its needs panicked".to_string()));
        own.or_else(|| counts.then(|| valgrind.get_or_init(measure::valgrind::missing).clone()).flatten())
    }
}

/// Checks that the processor to pin to is one that this process may use.
///
/// # Errors
/// It is not.
pub fn check_cpu(plan: &Plan) -> Result<()> {
    let Some(cpu) = plan.walltime.cpu else { return Ok(()) };
    let allowed = sys::processors();
    if allowed.is_empty() || allowed.contains(&cpu) {
        return Ok(());
    }
    let list: Vec<String> = allowed.iter().map(usize::to_string).collect();
    Err(Error::new(Kind::Usage, format!("--cpu {cpu}: this process may not run on that processor"))
        .hint(format!("it may run on {}", list.join(", "))))
}

/// How many trials run at a time.
pub fn at_once(plan: &Plan) -> usize {
    let counts = plan.mode != Mode::Walltime && plan.action == Action::Measure;
    if counts { plan.valgrind.jobs } else { 1 }
}

/// What all results of a run depend on, with the file system of its scratch folder.
pub fn identity(scratch: &Path) -> BTreeMap<String, String> {
    let mut facts = machine::identity();
    facts.extend(machine::file_system(scratch));
    facts
}

/// Says which trials are ignored and why, once for each reason.
pub fn say_what_is_ignored(selected: &Selected<'_>, printer: &mut Printer) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (scenario, reason) in &selected.trials {
        if let Some(reason) = reason {
            reasons.entry(reason).or_default().push(scenario.id().as_str());
        }
    }
    for (reason, names) in reasons {
        let text = match names.as_slice() {
            [name] => format!("ignored: {name}: {reason}"),
            [first, .., last] => format!("ignored: {} trials ({first} to {last}): {reason}", names.len()),
            [] => continue,
        };
        printer.term.say(&text);
    }
}

/// Takes the lock that lets only one process measure at a time. Waiting for
/// it is said, and can be interrupted.
///
/// # Errors
/// A lock file that was asked for cannot be used.
pub fn lock(plan: &Plan, watch: &mut Watch, printer: &mut Printer) -> Result<Waited<Option<Held>>> {
    let Some(path) = &plan.lock else { return Ok(Waited::Done(None)) };
    let failed = |error: std::io::Error| {
        Error::new(Kind::Io, format!("the lock file {} cannot be used", path.display()))
            .source(error)
            .hint("--lock takes another path, or none when nothing else measures on this machine")
    };
    let taken = Lock::open(path).and_then(Lock::try_take);
    let lock = match taken {
        Ok(Ok(held)) => return Ok(Waited::Done(Some(held))),
        Ok(Err(lock)) => lock,
        // Where everybody looks there may be nothing that this user can read:
        // better to measure without company being kept off than not at all.
        Err(error) if *path == Lock::default_path() => {
            printer.term.say(&format!("warning: {}; measuring without it", failed(error).report()));
            return Ok(Waited::Done(None));
        }
        Err(error) => return Err(failed(error)),
    };
    let holder = lock.holder().map(|pid| format!(" (process {pid})")).unwrap_or_default();
    printer
        .term
        .say(&format!("waiting for another run that measures{holder}; lock: {}", lock.path().display()));
    let ticket = watch.ticket::<std::io::Result<Held>>();
    let waits = std::thread::Builder::new().name("lock".into()).spawn(move || ticket.done(lock.take()));
    waits.map_err(failed)?;
    Ok(match watch.wait::<std::io::Result<Held>>(None, &mut || ()) {
        Waited::Done(taken) => Waited::Done(Some(taken.map_err(failed)?)),
        Waited::Interrupted(signal) => Waited::Interrupted(signal),
        Waited::TimedOut => Waited::TimedOut,
    })
}
