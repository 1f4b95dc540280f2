//! Flags that mean nothing where they were typed: a meter's flag under another
//! meter, a rule of comparisons without one. They are said, since who typed
//! one believes that it did something.
//!
//! Variables are not: they are set once for runs of all kinds.
//! Neighbours: `resolve` asks.

use super::args::Args;
use crate::plan::{Action, Mode, Plan, With};

/// A warning for each flag that has no effect on this plan.
pub(super) fn idle(args: &Args, plan: &Plan) -> Vec<String> {
    if plan.action != Action::Measure {
        // A client may pass the same flags to all its runs.
        return Vec::new();
    }
    let times = plan.mode == Mode::Walltime;
    let in_turn = matches!(plan.compare.with, Some(With::InTurn(_)));
    let compares = plan.compare.with.is_some();
    let wall = "it is for --mode walltime";
    let alone = "it is for --mode walltime without --against";
    let counts = "it is for --mode cachegrind";
    let valgrind = "it is for --mode cachegrind and dhat";
    let verdicts = "it is for --baseline and --against";
    let of_times = "it is for --baseline and --against with --mode walltime";
    let rows = [
        ("time", &args.time, times, wall),
        ("samples", &args.samples, times && !in_turn, alone),
        ("isolate", &args.isolate, times && !in_turn, alone),
        ("cpu", &args.cpu, times, wall),
        ("cpu-features", &args.cpu_features, times, wall),
        ("region", &args.region, plan.mode == Mode::Cachegrind, counts),
        ("cache-sim", &args.cache_sim, plan.mode == Mode::Cachegrind, counts),
        ("branch-sim", &args.branch_sim, plan.mode == Mode::Cachegrind, counts),
        ("stacks", &args.stacks, plan.mode == Mode::Cachegrind, counts),
        ("seeds", &args.seeds, !times, valgrind),
        ("repeat", &args.repeat, !times, valgrind),
        ("jobs", &args.jobs, !times, valgrind),
        ("margin", &args.margin, compares && times, of_times),
        ("level", &args.level, compares && times, of_times),
        ("many", &args.many, compares && times, of_times),
        ("max-regress", &args.max_regress, compares, verdicts),
        ("history", &args.history, compares, verdicts),
        ("no-fail", &args.no_fail, compares, verdicts),
        ("force", &args.force, compares, verdicts),
    ];
    let idle = rows.into_iter().filter(|(_, typed, applies, _)| typed.is_some() && !applies);
    idle.map(|(flag, _, _, what)| format!("warning: --{flag} has no effect here: {what}")).collect()
}
