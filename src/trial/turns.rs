//! Two builds in turn: pairs of fresh processes, in lock-step, small steps in
//! a seeded and balanced order (ABBA, BAAB), until the answer is clear or the
//! time is used.
//!
//! The pair of processes is what varies by chance (the memory that a process
//! happens to get is one draw, the layout of its code another), so a pair gives
//! one number, and many short pairs say more than a few long ones. Both processes of a pair sit on one
//! processor; environment, stack and heap are moved alike in both, and
//! differently from pair to pair.
//!
//! Neighbours: `stepper` is one process, `compare` says when to stop, `runner`
//! waits for the end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::body::Verdict;
use super::stepper::{Alive, Start, Stepper};
use crate::compare::{self, BASELINE_SUFFIX, is_settled, next_look};
use crate::measure::{ClockFacts, Failure, Outcome, Taken as Step, Tempo};
use crate::plan::Plan;
use crate::samples::{Sample, Series};
use crate::stats::Look;
use crate::units::{Direction, Unit};

/// How long the steps of a pair may take together, warm-up aside.
const PAIR: Duration = Duration::from_millis(60);

/// Steps of each process in a pair, at least and at most; even, for ABBA.
const STEPS: (usize, usize) = (4, 24);

/// Pairs that are taken whatever the time is.
const LEAST_PAIRS: usize = 5;

/// The longest environment padding, in bytes.
const PADDING: usize = 4096;

/// The two builds, and how they are run.
#[derive(Clone, Debug)]
pub struct Duel {
    /// The executables of the other build and of this one: one, or its layouts,
    /// of which each pair of processes draws one.
    pub builds: [Vec<PathBuf>; 2],
    /// Settings for both, as variables.
    pub variables: Vec<(String, OsString)>,
    /// The processors to use in turn; empty leaves it to the system.
    pub cpus: Vec<usize>,
    /// Tests in this run (parties apart), for the error of all of them.
    pub family: usize,
    /// What lives.
    pub alive: Alive,
}

/// What was taken so far.
#[derive(Default)]
struct Taken {
    /// The whole, and each party where both builds tell them apart.
    all: Vec<Of>,
    looks: Vec<Look>,
    pairs: usize,
    /// Pairs of executables; 1 where builds have one each.
    layouts: usize,
    /// Set by the first pair, and kept.
    tempo: Option<(Tempo, usize)>,
    precision: f64,
}

/// The steps of the whole, or of one party.
#[derive(Clone, Default)]
struct Of {
    /// Of the other and of this build.
    samples: [Vec<Sample>; 2],
    log_ratios: Vec<f64>,
}

impl Duel {
    /// Measures one scenario, whose parties have these names.
    ///
    /// # Errors
    /// A body failed, in this build or in the other.
    pub fn measure(&self, name: &str, parties: &[String], plan: &Plan, scratch: &Path) -> Verdict {
        let begin = Instant::now();
        let budget = plan.walltime.time;
        let mut rng = fastrand::Rng::with_seed(plan.walltime.seed);
        let draws = draws(&self.builds, &mut rng);
        let mut taken = Taken { layouts: draws.len(), ..Taken::default() };
        let mut look = next_look(0);
        loop {
            let programs = draws[taken.pairs % draws.len()];
            self.pair(name, programs, scratch, &mut rng, &mut taken).map_err(Failure::Failed)?;
            let (pairs, elapsed) = (taken.pairs, begin.elapsed());
            let last = elapsed + elapsed / pairs as u32 > budget && pairs >= LEAST_PAIRS;
            if pairs < look && !last {
                continue;
            }
            let share = if last { 1.0 } else { elapsed.as_secs_f64() / budget.as_secs_f64() };
            taken.looks.push(Look { n: pairs as f64, share: share.min(1.0) });
            look = next_look(pairs);
            if last || taken.turns().all(|turns| is_settled(&turns, &plan.compare.rule, self.family)) {
                return Ok(self.outcome(taken, parties, plan));
            }
        }
    }

    /// One pair of processes.
    fn pair(
        &self,
        name: &str,
        programs: [&Path; 2],
        scratch: &Path,
        rng: &mut fastrand::Rng,
        taken: &mut Taken,
    ) -> Result<(), String> {
        let (padding, cpu) =
            (rng.usize(..PADDING), self.cpus.get(taken.pairs % self.cpus.len().max(1)).copied());
        let scratch = tempfile::Builder::new().prefix("pair-").tempdir_in(scratch);
        let scratch = scratch.map_err(|error| format!("no folder for a pair of processes: {error}"))?;
        let start = |side: usize| {
            let program = programs[side];
            let start =
                Start { program, name, variables: &self.variables, cpu, padding, scratch: scratch.path() };
            Stepper::start(&start, &self.alive).and_then(|mut stepper| {
                let ready = stepper.ready()?;
                Ok((stepper, ready))
            })
        };
        let mut children = Vec::new();
        // One after the other: one that warms up must not disturb one that has.
        let first = usize::from(rng.bool());
        for side in [first, 1 - first] {
            children.push(start(side).map_err(|why| of_side(side, &why))?);
        }
        if first == 1 {
            children.swap(0, 1);
        }
        let (tempo, steps) = *taken.tempo.get_or_insert_with(|| plan_steps(&[children[0].1, children[1].1]));
        taken.precision = taken.precision.max(children[0].0.precision).max(children[1].0.precision);
        let mut steps_of = [Vec::with_capacity(steps), Vec::with_capacity(steps)];
        for side in order(steps, rng) {
            steps_of[side].push(children[side].0.take(tempo).map_err(|why| of_side(side, &why))?);
        }
        for (side, (child, _)) in children.into_iter().enumerate() {
            child.end().map_err(|why| of_side(side, &why))?;
        }
        taken.add(&steps_of);
        Ok(())
    }

    fn outcome(&self, taken: Taken, parties: &[String], plan: &Plan) -> Outcome {
        let (tempo, steps) = taken.tempo.unwrap_or((Tempo { iterations: 1, batches: 1 }, 1));
        let cpus: Vec<String> = self.cpus.iter().map(usize::to_string).collect();
        let facts = [
            ("method", "two builds in turn, in pairs of fresh processes".to_string()),
            ("clock", ClockFacts::SOURCE.into()),
            ("clock_precision_ns", taken.precision.to_string()),
            ("budget_ns", plan.walltime.time.as_nanos().to_string()),
            ("iterations_per_batch", tempo.iterations.to_string()),
            ("batches_per_sample", tempo.batches.to_string()),
            ("steps_per_pair", steps.to_string()),
            ("pairs", taken.pairs.to_string()),
            ("layouts", taken.layouts.to_string()),
            ("looks", compare::Turns::looks_in_words(&taken.looks)),
            (
                "cpu_pinned",
                if cpus.is_empty() { "no".into() } else { format!("in turn: {}", cpus.join(" ")) },
            ),
            ("bootstrap_seed", plan.walltime.seed.to_string()),
        ];
        let facts: BTreeMap<String, String> = facts.map(|(key, value)| (key.to_string(), value)).into();
        let names = std::iter::once(None).chain(parties.iter().map(Some));
        let of = |(name, of): (Option<&String>, Of)| {
            let [before, after] = of.samples;
            let metrics = [("wall_time".into(), after), (format!("wall_time{BASELINE_SUFFIX}"), before)];
            metrics.map(|(metric, samples)| Series {
                metric,
                party: name.cloned(),
                unit: Unit::Nanoseconds,
                direction: Direction::LowerIsBetter,
                samples,
            })
        };
        let series = names.zip(taken.all).flat_map(of).collect();
        Outcome { series, facts, ..Outcome::default() }
    }
}

/// The executables of each pair of processes, which come in turn: of both
/// builds a layout, each once, in an order that is drawn.
fn draws<'a>(builds: &'a [Vec<PathBuf>; 2], rng: &mut fastrand::Rng) -> Vec<[&'a Path; 2]> {
    let [other, this] = builds.each_ref().map(|build| {
        let mut order: Vec<&Path> = build.iter().map(PathBuf::as_path).collect();
        rng.shuffle(&mut order);
        order
    });
    other.into_iter().zip(this).map(|(other, this)| [other, this]).collect()
}

impl Taken {
    /// What the pairs say of the whole and of each party.
    fn turns(&self) -> impl Iterator<Item = compare::Turns> {
        let turns = |of: &Of| compare::Turns {
            log_ratios: of.log_ratios.clone(),
            looks: self.looks.clone(),
            layouts: self.layouts,
        };
        self.all.iter().map(turns)
    }

    /// Adds the steps of a pair, of the other and of this build.
    fn add(&mut self, steps: &[Vec<Step>; 2]) {
        // An older build does not tell its parties apart; one step without
        // them leaves the parties of the whole comparison out.
        let tells = steps.iter().flatten().all(|step| step.parties.is_some());
        let parts = if tells { 3 } else { 1 };
        if self.pairs == 0 {
            self.all = vec![Of::default(); parts];
        }
        self.all.truncate(parts);
        for (part, of) in self.all.iter_mut().enumerate() {
            let mut each = [Vec::new(), Vec::new()];
            for (side, steps) in steps.iter().enumerate() {
                let samples: Vec<Sample> = steps.iter().map(|step| sample_of(step, part)).collect();
                each[side] = samples.iter().map(|s| s.total as f64 / s.iterations as f64).collect();
                of.samples[side].extend(samples);
            }
            of.log_ratios.push(compare::Turns::log_ratio(&each[0], &each[1]));
        }
        self.pairs += 1;
    }
}

/// The whole of a step (part 0), or one of its parties.
fn sample_of(step: &Step, part: usize) -> Sample {
    let party = part.checked_sub(1).and_then(|at| step.parties.map(|parties| parties[at]));
    Sample { total: party.unwrap_or(step.sample.total), ..step.sample }
}

fn of_side(side: usize, why: &str) -> String {
    format!("{}: {why}", ["in the build it is compared with", "in this build"][side])
}

/// The tempo for both, and how many steps each takes in a pair: as many as the
/// time of a pair allows. The slower build sets it, and iterations are alike
/// in both, since more of them touch more memory.
fn plan_steps(ready: &[(Tempo, u64); 2]) -> (Tempo, usize) {
    let [(a, a_ns), (b, b_ns)] = ready;
    let tempo = Tempo { iterations: a.iterations.max(b.iterations), batches: a.batches.min(b.batches) };
    let both = Duration::from_nanos((a_ns + b_ns).max(1));
    let fit = (PAIR.as_nanos() / both.as_nanos()) as usize;
    (tempo, fit.clamp(STEPS.0, STEPS.1) / 2 * 2)
}

/// Whose step it is: blocks of ABBA and BAAB, drawn at random.
fn order(steps: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
    let block = |rng: &mut fastrand::Rng| if rng.bool() { [0, 1, 1, 0] } else { [1, 0, 0, 1] };
    (0..steps / 2).flat_map(|_| block(rng)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_balanced_and_that_of_its_seed() {
        let of = |seed| order(24, &mut fastrand::Rng::with_seed(seed));
        for seed in 0..20 {
            let order = of(seed);
            assert_eq!((order.len(), order.iter().sum::<usize>()), (48, 24));
            for block in order.chunks(4) {
                assert!([[0, 1, 1, 0], [1, 0, 0, 1]].contains(&[block[0], block[1], block[2], block[3]]));
            }
            assert_eq!(order, of(seed));
        }
        assert!((1..20).any(|seed| of(seed) != of(0)));
    }

    #[test]
    fn each_layout_of_both_builds_is_in_one_draw() {
        let named = |side: &str, n| (0..n).map(|at| PathBuf::from(format!("{side}{at}"))).collect::<Vec<_>>();
        let builds = [named("a", 9), named("b", 9)];
        let drawn = |seed| draws(&builds, &mut fastrand::Rng::with_seed(seed));
        for (side, build) in builds.iter().enumerate() {
            let mut seen: Vec<&Path> = drawn(1).iter().map(|draw| draw[side]).collect();
            seen.sort();
            assert_eq!(seen, build.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        }
        assert_eq!(drawn(1), drawn(1));
        assert!((2..9).any(|seed| drawn(seed) != drawn(1)));
        assert!(drawn(1).iter().any(|[a, b]| a.to_str().map(|a| &a[1..]) != b.to_str().map(|b| &b[1..])));
        // One that was linked once is no reason to draw: its seeds give what they gave.
        let mut rng = fastrand::Rng::with_seed(1);
        assert_eq!(draws(&[named("a", 1), named("b", 1)], &mut rng), [[Path::new("a0"), Path::new("b0")]]);
        assert_eq!(rng.u64(..), fastrand::Rng::with_seed(1).u64(..));
    }

    #[test]
    fn parties_are_kept_apart_as_long_as_both_builds_tell_them() {
        let step = |total, parties| Step { sample: Sample { iterations: 2, total }, parties };
        let both = [vec![step(10, Some([6, 4])); 4], vec![step(12, Some([6, 6])); 4]];
        let mut taken = Taken::default();
        taken.add(&both);
        let ratios: Vec<f64> = taken.turns().map(|turns| turns.log_ratios[0].exp()).collect();
        assert_eq!(ratios.len(), 3);
        for (ratio, expected) in ratios.iter().zip([1.2, 1.0, 1.5]) {
            assert!((ratio - expected).abs() < 1e-12, "{ratios:?}");
        }
        assert_eq!(taken.all[2].samples[1], vec![Sample { iterations: 2, total: 6 }; 4]);
        taken.add(&[vec![step(10, None); 4], vec![step(12, Some([6, 6])); 4]]);
        assert_eq!((taken.all.len(), taken.pairs, taken.all[0].log_ratios.len()), (1, 2, 2));
    }

    #[test]
    fn steps_fit_the_time_of_a_pair_within_bounds() {
        let tempo = |iterations, batches| Tempo { iterations, batches };
        let plan = |a, b| plan_steps(&[(tempo(10, 5), a), (tempo(8, 7), b)]);
        assert_eq!(plan(1_000_000, 1_000_000), (tempo(10, 5), 24));
        assert_eq!(plan(2_000_000, 3_000_000).1, 12);
        assert_eq!(plan(900_000_000, 900_000_000).1, 4);
        assert_eq!(plan(0, 0).1, 24);
    }
}
