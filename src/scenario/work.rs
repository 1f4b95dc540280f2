//! The two forms of [`Work`]: closures for one party, and a pair of parties
//! that take turns, in one process or with one of them behind a wire.
//!
//! Neighbours: `bencher` makes them, a meter runs them.

use std::hint::black_box;

use anyhow::{Context, Result, bail, ensure};

use super::meter::{Seat, Site, Wire, Work};
use super::ops::Ops;
use super::party::{Party, Turn};
use super::pipe::Pipe;

/// Bytes that one direction of a link holds: four times the largest TLS
/// record, so that a bulk sender fills it in one turn and it stays in cache.
const PIPE_BOUND: usize = 64 * 1024 + 4096;

/// Turns of both parties in a row in which no byte moves, after which they
/// are taken to be stuck: a bug must end in an error, not in a hang.
pub(super) const IDLE_TURNS: u32 = 16;

/// Set-up, routine and check of a scenario with one party.
pub(super) struct Closures<I, O, S, R, C> {
    setup: S,
    routine: R,
    check: C,
    inputs: Vec<I>,
    outputs: Vec<O>,
    ops: Ops,
    /// Whether the routine marks operations.
    has_ops: bool,
}

impl<I, O, S, R, C> Closures<I, O, S, R, C>
where
    S: FnMut() -> Result<I>,
    R: FnMut(I, &mut Ops) -> O,
    C: FnMut(O) -> Result<()>,
{
    pub(super) fn new(setup: S, routine: R, check: C) -> Self {
        let ops = Ops::default();
        Self { setup, routine, check, inputs: Vec::new(), outputs: Vec::new(), ops, has_ops: false }
    }

    /// The routine marks operations.
    pub(super) fn with_ops(self) -> Self {
        Self { has_ops: true, ..self }
    }
}

impl<I, O, S, R, C> Work for Closures<I, O, S, R, C>
where
    S: FnMut() -> Result<I>,
    R: FnMut(I, &mut Ops) -> O,
    C: FnMut(O) -> Result<()>,
{
    fn prepare(&mut self, n: usize, _site: &mut dyn Site) -> Result<()> {
        self.outputs.reserve(n);
        self.inputs.reserve(n);
        for _ in 0..n {
            self.inputs.push((self.setup)()?);
        }
        // The region takes them from the end; set-ups are in the order of use.
        self.inputs.reverse();
        Ok(())
    }

    fn run(&mut self, n: usize, _site: &mut dyn Site) -> Result<()> {
        for _ in 0..n {
            let Some(input) = self.inputs.pop() else {
                bail!("the meter ran more iterations than it had prepared");
            };
            self.outputs.push(black_box((self.routine)(black_box(input), &mut self.ops)));
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        for output in self.outputs.drain(..) {
            (self.check)(output)?;
        }
        self.inputs.clear();
        Ok(())
    }

    fn ops(&mut self) -> Option<&mut Ops> {
        self.has_ops.then_some(&mut self.ops)
    }
}

/// Two parties of a scenario, made anew for each iteration.
pub(super) struct Pair<A, B, F, G> {
    first: F,
    second: G,
    firsts: Vec<A>,
    seconds: Vec<B>,
    done: usize,
    link: Link,
}

/// The two directions between the parties.
struct Link {
    to_first: Pipe,
    to_second: Pipe,
}

impl<A, B, F, G> Pair<A, B, F, G>
where
    A: Party,
    B: Party,
    F: FnMut() -> Result<A>,
    G: FnMut() -> Result<B>,
{
    pub(super) fn new(first: F, second: G) -> Self {
        let link = Link { to_first: Pipe::new(PIPE_BOUND), to_second: Pipe::new(PIPE_BOUND) };
        Self { first, second, firsts: Vec::new(), seconds: Vec::new(), done: 0, link }
    }
}

impl<A, B, F, G> Work for Pair<A, B, F, G>
where
    A: Party,
    B: Party,
    F: FnMut() -> Result<A>,
    G: FnMut() -> Result<B>,
{
    fn prepare(&mut self, n: usize, site: &mut dyn Site) -> Result<()> {
        self.firsts.reserve(n);
        self.seconds.reserve(n);
        for _ in 0..n {
            match site.seat() {
                Seat::Both => {
                    let (mut a, mut b) = ((self.first)()?, (self.second)()?);
                    drive_both(
                        &mut self.link,
                        site,
                        |received, to_send| a.ready(received, to_send),
                        |received, to_send| b.ready(received, to_send),
                    )?;
                    self.firsts.push(a);
                    self.seconds.push(b);
                }
                Seat::One(0, wire) => {
                    let mut a = (self.first)()?;
                    drive_one(&mut self.link, wire, |received, to_send| a.ready(received, to_send))?;
                    self.firsts.push(a);
                }
                Seat::One(_, wire) => {
                    let mut b = (self.second)()?;
                    drive_one(&mut self.link, wire, |received, to_send| b.ready(received, to_send))?;
                    self.seconds.push(b);
                }
            }
            self.link.must_be_empty()?;
        }
        Ok(())
    }

    fn run(&mut self, n: usize, site: &mut dyn Site) -> Result<()> {
        let prepared = self.firsts.len().max(self.seconds.len());
        ensure!(self.done + n <= prepared, "the meter ran more iterations than it had prepared");
        for i in self.done..self.done + n {
            match site.seat() {
                Seat::Both => {
                    let (a, b) = (&mut self.firsts[i], &mut self.seconds[i]);
                    drive_both(
                        &mut self.link,
                        site,
                        |received, to_send| a.turn(received, to_send),
                        |received, to_send| b.turn(received, to_send),
                    )?;
                }
                Seat::One(0, wire) => {
                    let a = &mut self.firsts[i];
                    drive_one(&mut self.link, wire, |received, to_send| a.turn(received, to_send))?;
                }
                Seat::One(_, wire) => {
                    let b = &mut self.seconds[i];
                    drive_one(&mut self.link, wire, |received, to_send| b.turn(received, to_send))?;
                }
            }
        }
        self.done += n;
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.link.must_be_empty()?;
        for a in self.firsts.iter_mut().take(self.done) {
            a.check()?;
        }
        for b in self.seconds.iter_mut().take(self.done) {
            b.check()?;
        }
        self.firsts.clear();
        self.seconds.clear();
        self.done = 0;
        Ok(())
    }
}

impl Link {
    fn moved(&self) -> u64 {
        self.to_first.moved() + self.to_second.moved()
    }

    fn must_be_empty(&self) -> Result<()> {
        let left = self.to_first.len() + self.to_second.len();
        ensure!(left == 0, "{left} bytes were sent and never read by the party they were meant for");
        Ok(())
    }
}

/// One unmeasured iteration, checked.
pub(super) fn exchange(work: &mut dyn Work, site: &mut dyn Site) -> Result<()> {
    work.prepare(1, site)?;
    work.run(1, site)?;
    work.check()
}

/// Lets two parties of this process take turns until both are done.
fn drive_both(
    link: &mut Link,
    site: &mut dyn Site,
    mut first: impl FnMut(&mut Pipe, &mut Pipe) -> Result<Turn>,
    mut second: impl FnMut(&mut Pipe, &mut Pipe) -> Result<Turn>,
) -> Result<()> {
    let (mut a, mut b) = (Turn::More, Turn::More);
    let mut idle = 0;
    let mut moved = link.moved();
    while a != Turn::Done || b != Turn::Done {
        if a != Turn::Done {
            site.turn_of(0);
            a = first(&mut link.to_first, &mut link.to_second).context("first party")?;
        }
        if b != Turn::Done {
            site.turn_of(1);
            b = second(&mut link.to_second, &mut link.to_first).context("second party")?;
        }
        idle = if link.moved() == moved { idle + 1 } else { 0 };
        moved = link.moved();
        if idle >= IDLE_TURNS {
            stuck(a, b)?;
        }
    }
    Ok(())
}

/// Says who waits for what when nothing moves any more.
#[cold]
fn stuck(a: Turn, b: Turn) -> Result<()> {
    match (a, b) {
        (Turn::Done, _) => bail!("end of file: the first party has finished, and the second wants more"),
        (_, Turn::Done) => bail!("end of file: the second party has finished, and the first wants more"),
        _ => bail!("no byte has moved in {IDLE_TURNS} turns of both parties: they are stuck"),
    }
}

/// Drives one party against a wire until it is done.
fn drive_one(
    link: &mut Link,
    wire: &mut dyn Wire,
    mut party: impl FnMut(&mut Pipe, &mut Pipe) -> Result<Turn>,
) -> Result<()> {
    let (received, to_send) = (&mut link.to_first, &mut link.to_second);
    let mut idle = 0;
    loop {
        let before = received.moved() + to_send.moved();
        let turn = party(received, to_send)?;
        let moved = received.moved() + to_send.moved() != before;
        if !to_send.is_empty() {
            wire.send(to_send.readable())?;
            to_send.consume(to_send.len());
        }
        match turn {
            Turn::Done => return Ok(()),
            // What is left unread is part of a message whose rest is still to come.
            Turn::Wait if received.is_empty() || !moved => {
                ensure!(received.room() >= wire.piece(), "the party waits for more than a pipe holds");
                wire.receive(received)?;
                idle = 0;
            }
            Turn::Wait | Turn::More => {
                idle = if moved { 0 } else { idle + 1 };
                ensure!(idle < IDLE_TURNS, "the party has moved no byte in {IDLE_TURNS} turns: it is stuck");
            }
        }
    }
}
