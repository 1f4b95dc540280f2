//! Runs a body in this process, on a thread that is named after its trial:
//! `thread 'NAME' panicked at` is what editors and nextest look for.
//!
//! Neighbours: `runner` (waits for it), `isolate` (runs it in a child).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::measure::{self, ClockFacts, Failure, Outcome};
use crate::plan::{Action, Plan};
use crate::scenario::Scenario;

/// What a body gave; an empty outcome when it was not measured.
pub type Verdict = Result<Outcome, Failure>;

/// Stack of the thread of a body, in bytes: what a main thread usually has.
pub(super) const STACK: usize = 8 << 20;

/// Starts a body. `done` is called on its thread when it has ended.
///
/// # Errors
/// The thread cannot be started.
pub fn start(
    scenario: &'static Scenario,
    plan: Plan,
    clock: Option<ClockFacts>,
    done: impl FnOnce(Verdict) + Send + 'static,
) -> std::io::Result<()> {
    let thread = thread::Builder::new().name(scenario.id().to_string()).stack_size(STACK);
    thread.spawn(move || done(run(scenario, &plan, clock.as_ref()))).map(drop)
}

/// Runs a body in this thread.
pub fn run(scenario: &Scenario, plan: &Plan, clock: Option<&ClockFacts>) -> Verdict {
    let body = || match (plan.action, clock) {
        (Action::Measure, Some(clock)) => measure::walltime(scenario, &plan.walltime, clock),
        _ => measure::smoke(scenario).map(|()| Outcome::default()),
    };
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Failure::Panicked(message(&*panic))))
}

/// What a panic said.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.map_or_else(|| "panicked".to_string(), |text| format!("panicked: {text}"))
}
