//! The child's side of two builds in turn: one body, which takes a step
//! whenever the parent says so; and what both say to each other.
//!
//! A line of text each way. The child may be of another build than its
//! parent, so the first line has a version, and whatever is added to a run's
//! settings reaches it by the environment alone, where an older one passes
//! by what it does not know.
//!
//! ```text
//! child:  wallgrind-steps 1 NAME PRECISION_NS
//! child:  ready ITERATIONS BATCHES STEP_NS
//! parent: take ITERATIONS BATCHES        child: took ITERATIONS NS [NS NS]   (again and again)
//! parent: end                            child: ended
//! child:  failed "WHY" (a JSON string)   at any time, as its last line
//! ```
//!
//! The two times behind that of the whole are those of the parties. A parent that
//! knows nothing of them passes by them, and a child may leave them out.
//!
//! Neighbours: `stepper` is the parent's side, `turns` goes from pair to pair.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use anyhow::{Result as Anyhow, bail, ensure};

use super::body::message;
use super::isolate::PARENT;
use crate::error::{Error, Kind, Result};
use crate::measure::{self, ClockFacts, Conductor, Failure, Step, Taken, Tempo};
use crate::plan::Plan;
use crate::samples::Sample;
use crate::scenario::Scenario;
use crate::sys;

/// Raised with every change of what is said.
pub const VERSION: u32 = 1;

/// The variable whose length moves the stack of the main thread, the stack of
/// the body and the heap, from pair to pair.
pub const PADDING: &str = "WALLGRIND_PADDING";

/// What a child says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// It has begun; its version, scenario, and the precision of its clock in nanoseconds.
    Hello(u32, String, f64),
    /// It is warm.
    Ready(Tempo, u64),
    /// It has taken a step.
    Took(Taken),
    /// Its body has ended well.
    Ended,
    /// Its body has failed.
    Failed(String),
}

impl Said {
    /// The line for it.
    pub fn line(&self) -> String {
        match self {
            Self::Hello(version, name, precision) => {
                format!("wallgrind-steps {version} {name} {precision}\n")
            }
            Self::Ready(tempo, ns) => format!("ready {} {} {ns}\n", tempo.iterations, tempo.batches),
            Self::Took(Taken { sample, parties }) => {
                let parties = parties.map(|[a, b]| format!(" {a} {b}")).unwrap_or_default();
                format!("took {} {}{parties}\n", sample.iterations, sample.total)
            }
            Self::Ended => "ended\n".into(),
            Self::Failed(why) => format!("failed {}\n", serde_json::json!(why)),
        }
    }

    /// What a line says, if it says anything.
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\n')?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let tempo = || {
            let (iterations, batches) = (number(0)?.try_into().ok()?, number(1)?.try_into().ok()?);
            (iterations > 0 && batches > 0).then_some(Tempo { iterations, batches })
        };
        Some(match word {
            "wallgrind-steps" => {
                Self::Hello(words[0].parse().ok()?, words.get(1)?.to_string(), words.get(2)?.parse().ok()?)
            }
            "ready" => Self::Ready(tempo()?, number(2)?),
            "took" => {
                let sample = Sample { iterations: number(0)?, total: number(1)? };
                let parties = number(2).zip(number(3)).map(|(a, b)| [a, b]);
                (sample.iterations > 0).then_some(Self::Took(Taken { sample, parties }))?
            }
            "ended" => Self::Ended,
            "failed" => Self::Failed(serde_json::from_str(rest).ok()?),
            _ => return None,
        })
    }
}

/// The parent's line for a step.
pub fn order(step: Step) -> String {
    match step {
        Step::Take(Tempo { iterations, batches }) => format!("take {iterations} {batches}\n"),
        Step::End => "end\n".into(),
    }
}

fn step(line: &str) -> Option<Step> {
    let mut words = line.trim_end().split(' ');
    match words.next()? {
        "end" => Some(Step::End),
        "take" => {
            let tempo =
                Tempo { iterations: words.next()?.parse().ok()?, batches: words.next()?.parse().ok()? };
            (tempo.iterations > 0 && tempo.batches > 0).then_some(Step::Take(tempo))
        }
        _ => None,
    }
}

/// The parent, as the body's thread sees it.
struct Parent {
    orders: BufReader<File>,
    out: File,
}

impl Parent {
    fn say(&mut self, said: &Said) -> Anyhow<()> {
        Ok(self.out.write_all(said.line().as_bytes())?)
    }
}

impl Conductor for Parent {
    fn ready(&mut self, own: Tempo, step_ns: u64) -> Anyhow<()> {
        self.say(&Said::Ready(own, step_ns))
    }

    fn next(&mut self) -> Anyhow<Step> {
        let mut line = String::new();
        ensure!(self.orders.read_line(&mut line)? > 0, "the parent has gone");
        let Some(step) = step(&line) else { bail!("the parent said {line:?}") };
        Ok(step)
    }

    fn took(&mut self, taken: Taken) -> Anyhow<()> {
        self.say(&Said::Took(taken))
    }
}

/// The child: runs one body in steps.
///
/// # Errors
/// The trial is not in this suite, or the parent cannot be heard.
pub fn child(scenarios: &'static [Scenario], plan: &Plan, name: &str) -> Result<()> {
    let refused = |error| Error::new(Kind::Missing, "the trial's process cannot be set up").source(error);
    let parent = std::env::var(PARENT).ok().and_then(|pid| pid.parse().ok());
    sys::die_with_parent(parent.unwrap_or(0)).map_err(refused)?;
    let orders = BufReader::new(sys::take_stdin().map_err(refused)?);
    let out = sys::take_stdout().map_err(refused)?;
    let mut parent = Parent { orders, out };
    let clock = ClockFacts::measure();
    let hello = Said::Hello(VERSION, name.to_string(), clock.precision_ns);
    let lost = |error: anyhow::Error| Error::new(Kind::Io, "the parent cannot be reached").source(error);
    parent.say(&hello).map_err(lost)?;
    let scenario = scenarios.iter().find(|s| s.id().as_str() == name).ok_or_else(|| {
        Error::new(Kind::Usage, format!("there is no trial {name} here"))
            .hint("--wallgrind-steps is for wallgrind's own use")
    })?;
    let padding = std::env::var_os(PADDING).map_or(0, |padding| padding.len());
    let settings = plan.walltime.clone();
    let body = move || {
        // The heap of this thread begins as much further on. Never freed: it stays moved.
        std::mem::forget(std::hint::black_box(vec![1_u8; 16 * (padding % 256) + 16]));
        let run = || {
            let mut run = || measure::steps(scenario, &settings, &clock, &mut parent);
            deeper(padding % 16, &mut run)
        };
        let ended = catch_unwind(AssertUnwindSafe(run));
        let said = match ended {
            Ok(Ok(())) => Said::Ended,
            Ok(Err(failure)) => Said::Failed(failure.reason().to_string()),
            Err(panic) => Said::Failed(message(&*panic)),
        };
        // A parent that has gone hears nothing, and that is that.
        let _ = parent.say(&said);
    };
    let thread = thread::Builder::new().name(name.to_string()).stack_size(super::body::STACK);
    // Whatever went wrong has been said; a thread that panicked outside of the body has, too.
    let _ = thread.spawn(body).map_err(refused)?.join();
    Ok(())
}

/// Calls `run` so many frames deeper on the stack, some 256 bytes each.
#[inline(never)]
fn deeper(
    frames: usize,
    run: &mut dyn FnMut() -> std::result::Result<(), Failure>,
) -> std::result::Result<(), Failure> {
    let room = std::hint::black_box([0_u8; 240]);
    let ended = if frames == 0 { run() } else { deeper(frames - 1, run) };
    std::hint::black_box(&room);
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard() {
        let tempo = Tempo { iterations: 3, batches: 7 };
        let sample = Sample { iterations: 21, total: 4_000 };
        let all = [
            Said::Hello(1, "a::b".into(), 29.5),
            Said::Ready(tempo, 12),
            Said::Took(Taken { sample, parties: None }),
            Said::Took(Taken { sample, parties: Some([3_000, 900]) }),
            Said::Ended,
            Said::Failed("two\nlines \"and\" more".into()),
        ];
        for said in all {
            let line = said.line();
            assert_eq!((line.matches('\n').count(), Said::parse(&line)), (1, Some(said)));
        }
        assert_eq!(step(&order(Step::Take(tempo))), Some(Step::Take(tempo)));
        assert_eq!(step(&order(Step::End)), Some(Step::End));
        for bad in ["", "take", "take 0 1\n", "take 1 x\n", "stop\n"] {
            assert_eq!(step(bad), None, "{bad:?}");
        }
        // A child of a later version may say more.
        let more = Said::parse("took 21 4000 3000 900 and more\n");
        assert_eq!(more, Some(Said::Took(Taken { sample, parties: Some([3_000, 900]) })));
        let lines = [
            "",
            "ended",
            "took 0 5\n",
            "took 1\n",
            "ready 0 1 2\n",
            "hello\n",
            "wallgrind-steps\n",
            "failed x\n",
        ];
        for bad in lines {
            assert_eq!(Said::parse(bad), None, "{bad:?}");
        }
    }
}
