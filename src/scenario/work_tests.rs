//! How two parties are driven: in one process, against a wire, and into the
//! errors that end what would hang.

use std::collections::VecDeque;

use anyhow::{Result, bail};

use super::bencher::Bencher;
use super::meter::{Meter, Seat, Site, Wire, Work};
use super::ops::Ops;
use super::party::{Party, Turn};
use super::pipe::Pipe;
use super::work::{Closures, IDLE_TURNS, Pair, exchange};

/// A site that writes down whose turn it is.
#[derive(Default)]
struct Turns(Vec<usize>);

impl Site for Turns {
    fn seat(&mut self) -> Seat<'_> {
        Seat::Both
    }

    fn turn_of(&mut self, party: usize) {
        self.0.push(party);
    }
}

/// A party that plays what a closure says.
struct Player<F>(F);

impl<F: FnMut(&mut Pipe, &mut Pipe) -> Result<Turn>> Party for Player<F> {
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        (self.0)(received, to_send)
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Sends `question` once, and is done when it has `answer`.
fn asker(question: &'static [u8], answer: &'static [u8]) -> impl Party {
    let mut asked = false;
    Player(move |received: &mut Pipe, to_send: &mut Pipe| {
        if !std::mem::replace(&mut asked, true) {
            to_send.push(question);
        }
        if received.len() < answer.len() {
            return Ok(Turn::Wait);
        }
        assert_eq!(received.readable(), answer);
        received.consume(answer.len());
        Ok(Turn::Done)
    })
}

/// Waits for `question`, then sends `answer`.
fn answerer(question: &'static [u8], answer: &'static [u8]) -> impl Party {
    Player(move |received: &mut Pipe, to_send: &mut Pipe| {
        if received.len() < question.len() {
            return Ok(Turn::Wait);
        }
        assert_eq!(received.readable(), question);
        received.consume(question.len());
        to_send.push(answer);
        Ok(Turn::Done)
    })
}

fn waiter() -> impl Party {
    Player(|_: &mut Pipe, _: &mut Pipe| Ok(Turn::Wait))
}

fn done() -> impl Party {
    Player(|_: &mut Pipe, _: &mut Pipe| Ok(Turn::Done))
}

/// Runs one iteration of a pair; whose turns it took, or the error's chain.
fn play<A: Party, B: Party>(first: A, second: B) -> Result<Vec<usize>, String> {
    let (mut first, mut second) = (Some(first), Some(second));
    let mut pair = Pair::new(
        || first.take().ok_or_else(|| anyhow::anyhow!("one iteration")),
        || second.take().ok_or_else(|| anyhow::anyhow!("one iteration")),
    );
    let mut site = Turns::default();
    exchange(&mut pair, &mut site).map_err(|error| format!("{error:#}"))?;
    // The two turns of the phase before the region, in which both are done at once.
    Ok(site.0.split_off(2))
}

#[test]
fn parties_take_turns_until_both_are_done() {
    assert_eq!(play(asker(b"ping", b"pong"), answerer(b"ping", b"pong")), Ok(vec![0, 1, 0]));
    assert_eq!(play(done(), done()), Ok(vec![0, 1]));
    // The second one begins: the first has nothing to do before it.
    assert_eq!(play(answerer(b"ping", b"pong"), asker(b"ping", b"pong")), Ok(vec![0, 1, 0, 1]));
}

#[test]
fn two_that_wait_for_each_other_are_stuck() {
    let error = play(waiter(), waiter()).expect_err("they wait for each other");
    assert!(error.contains("they are stuck"), "{error}");
}

#[test]
fn one_that_wants_more_than_the_other_sends_has_reached_the_end_of_file() {
    let error = play(waiter(), done()).expect_err("the second has finished");
    assert!(error.contains("end of file: the second party has finished"), "{error}");
    let error = play(done(), waiter()).expect_err("the first has finished");
    assert!(error.contains("end of file: the first party has finished"), "{error}");
    // Some of what it wants is there, and still it is not enough.
    let error = play(asker(b"ping", b"pong!"), answerer(b"ping", b"pong")).expect_err("a byte is missing");
    assert!(error.contains("end of file"), "{error}");
}

#[test]
fn slow_progress_is_progress() {
    let sender = |mut left: u32, pause: u32| {
        let mut turn = 0;
        Player(move |_: &mut Pipe, to_send: &mut Pipe| {
            turn += 1;
            if turn % pause == 0 {
                to_send.push(b"x");
                left -= 1;
            }
            Ok(if left == 0 { Turn::Done } else { Turn::More })
        })
    };
    let receiver = |mut left: usize| {
        Player(move |received: &mut Pipe, _: &mut Pipe| {
            left -= received.len();
            received.consume(received.len());
            Ok(if left == 0 { Turn::Done } else { Turn::Wait })
        })
    };
    // A byte every 16th turn: after 15 idle ones. One idle turn more is too many.
    assert!(play(sender(3, IDLE_TURNS), receiver(3)).is_ok());
    let error = play(sender(3, IDLE_TURNS + 1), receiver(3)).expect_err("16 idle turns");
    assert!(error.contains("stuck"), "{error}");
}

#[test]
fn what_is_sent_and_never_read_is_an_error() {
    let careless = Player(|_: &mut Pipe, to_send: &mut Pipe| {
        to_send.push(b"unread");
        Ok(Turn::Done)
    });
    let error = play(careless, done()).expect_err("six bytes are left");
    assert!(error.contains("6 bytes were sent and never read"), "{error}");
}

#[test]
fn what_is_left_of_the_phase_before_the_region_is_an_error() {
    struct Early;
    impl Party for Early {
        fn ready(&mut self, _: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
            to_send.push(b"early");
            Ok(Turn::Done)
        }
        fn turn(&mut self, _: &mut Pipe, _: &mut Pipe) -> Result<Turn> {
            Ok(Turn::Done)
        }
        fn check(&mut self) -> Result<()> {
            Ok(())
        }
    }
    // The second party would read it in the region, where it does not belong.
    let error = play(Early, answerer(b"early", b"")).expect_err("five bytes are left");
    assert!(error.contains("5 bytes were sent and never read"), "{error}");
}

#[test]
fn an_error_names_the_party() {
    let failing = || Player(|_: &mut Pipe, _: &mut Pipe| -> Result<Turn> { bail!("out of luck") });
    assert_eq!(play(done(), failing()), Err("second party: out of luck".into()));
    assert_eq!(play(failing(), done()), Err("first party: out of luck".into()));
}

#[test]
fn parties_are_made_in_order_and_checked_after_their_turn() {
    struct Numbered(u32, bool);
    impl Party for Numbered {
        fn turn(&mut self, _: &mut Pipe, _: &mut Pipe) -> Result<Turn> {
            self.1 = true;
            Ok(Turn::Done)
        }
        fn check(&mut self) -> Result<()> {
            anyhow::ensure!(self.1, "party {} was checked before its turn", self.0);
            anyhow::ensure!(self.0 != 3, "party 3 is wrong");
            Ok(())
        }
    }
    let mut made = 0;
    let next = || {
        made += 1;
        Ok(Numbered(made, false))
    };
    let mut pair = Pair::new(next, || Ok(done()));
    let site = &mut Turns::default();
    pair.prepare(4, site).expect("four are made");
    pair.run(1, site).expect("one of them runs");
    pair.check().expect("the others have not run and are not checked");
    pair.prepare(1, site).expect("one is made");
    assert!(pair.run(2, site).is_err_and(|e| e.to_string().contains("more iterations than it had prepared")));
    assert_eq!(made, 5);
    let mut made = 0;
    let next = || {
        made += 1;
        Ok(Numbered(made, false))
    };
    let mut pair = Pair::new(next, || Ok(done()));
    pair.prepare(3, site).expect("three are made");
    pair.run(1, site).and_then(|()| pair.run(2, site)).expect("three run, in two pieces");
    assert_eq!(pair.check().map_err(|e| e.to_string()), Err("party 3 is wrong".into()));
}

/// A wire whose other end is scripted: pieces that come in, and what went out.
#[derive(Default)]
struct Scripted {
    incoming: VecDeque<Vec<u8>>,
    sent: Vec<u8>,
    piece: usize,
}

impl Wire for Scripted {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.sent.extend_from_slice(bytes);
        Ok(())
    }

    fn receive(&mut self, into: &mut Pipe) -> Result<()> {
        let Some(piece) = self.incoming.pop_front() else { bail!("end of file on the wire") };
        assert_eq!(into.push(&piece), piece.len(), "there was no room for a piece");
        Ok(())
    }

    fn piece(&self) -> usize {
        self.piece
    }
}

/// A site for one of two parties.
struct Alone(usize, Scripted);

impl Site for Alone {
    fn seat(&mut self) -> Seat<'_> {
        Seat::One(self.0, &mut self.1)
    }

    fn turn_of(&mut self, _party: usize) {}
}

/// Plays one party against pieces from a wire; gives what it sent.
fn alone<A: Party, B: Party>(
    seat: usize,
    first: impl FnOnce() -> A,
    second: impl FnOnce() -> B,
    incoming: &[&[u8]],
) -> Result<Vec<u8>, String> {
    let (mut first, mut second) = (Some(first), Some(second));
    let once = || anyhow::anyhow!("this party is not to be made here");
    let mut pair =
        Pair::new(|| Ok(first.take().ok_or_else(once)?()), || Ok(second.take().ok_or_else(once)?()));
    let incoming = incoming.iter().map(|piece| piece.to_vec()).collect();
    let mut site = Alone(seat, Scripted { incoming, piece: 4_096, ..Scripted::default() });
    exchange(&mut pair, &mut site).map_err(|error| format!("{error:#}"))?;
    assert!(site.1.incoming.is_empty(), "pieces were left on the wire");
    Ok(site.1.sent)
}

fn never() -> Player<fn(&mut Pipe, &mut Pipe) -> Result<Turn>> {
    unreachable!("the party behind the wire is made in another process")
}

#[test]
fn one_party_plays_against_a_wire_and_the_other_is_not_made() {
    assert_eq!(alone(0, || asker(b"ping", b"pong"), never, &[b"pong"]), Ok(b"ping".to_vec()));
    assert_eq!(alone(1, never, || answerer(b"ping", b"pong"), &[b"ping"]), Ok(b"pong".to_vec()));
    // A message in pieces is waited for, piece by piece.
    assert_eq!(alone(1, never, || answerer(b"ping", b"pong"), &[b"p", b"in", b"g"]), Ok(b"pong".to_vec()));
}

#[test]
fn a_wire_that_ends_or_brings_too_much_is_an_error() {
    let error = alone(0, || asker(b"ping", b"pong"), never, &[b"po"]).expect_err("two bytes are missing");
    assert!(error.contains("end of file on the wire"), "{error}");
    let error = alone(0, || asker(b"ping", b""), never, &[]).map(|sent| sent.len());
    assert_eq!(error, Ok(4));
    let unread = || {
        Player(|received: &mut Pipe, _: &mut Pipe| {
            Ok(if received.is_empty() { Turn::Wait } else { Turn::Done })
        })
    };
    let error = alone(0, unread, never, &[b"abc"]).expect_err("three bytes were not read");
    assert!(error.contains("3 bytes were sent and never read"), "{error}");
}

#[test]
fn a_party_alone_that_moves_nothing_is_stuck_or_waits_for_more_than_fits() {
    let idle = || Player(|_: &mut Pipe, _: &mut Pipe| Ok(Turn::More));
    let error = alone(0, idle, never, &[]).expect_err("it does nothing for ever");
    assert!(error.contains("it is stuck"), "{error}");
    // Pieces come in and are never taken, until the pipe is full.
    let piece = [0u8; 4_096];
    let error = alone(0, waiter, never, &[piece.as_slice(); 40]).expect_err("it takes nothing");
    assert!(error.contains("waits for more than a pipe holds"), "{error}");
}

#[test]
fn closures_run_in_order_with_their_own_input_and_each_result_is_checked() {
    let (mut next, mut seen) = (0, Vec::new());
    let site = &mut Turns::default();
    let setup = || {
        next += 1;
        Ok(next)
    };
    let check = |n: u32| {
        seen.push(n);
        anyhow::ensure!(n != 50, "5 squared twice");
        Ok(())
    };
    let mut work = Closures::new(setup, |n: u32, _: &mut Ops| n * n * 2, check);
    work.prepare(4, site).expect("set up");
    work.run(1, site).and_then(|()| work.run(3, site)).expect("run");
    work.check().expect("checked");
    assert!(work.run(1, site).is_err_and(|e| e.to_string().contains("more iterations than it had prepared")));
    work.prepare(1, site).and_then(|()| work.run(1, site)).expect("run");
    assert_eq!(work.check().map_err(|e| e.to_string()), Err("5 squared twice".into()));
    drop(work);
    assert_eq!(seen, [2, 8, 18, 32, 50]);
}

#[test]
fn a_future_is_run_by_the_callers_executor_once_an_iteration() {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// Is pending twice before it is done.
    async fn late(n: u32) -> u32 {
        let mut polls = 0;
        std::future::poll_fn(|_| {
            polls += 1;
            if polls < 3 { Poll::Pending } else { Poll::Ready(n * polls) }
        })
        .await
    }

    fn play(wrong: Option<u32>) -> (Result<(), String>, u32, Vec<u32>) {
        let (mut entered, mut seen, mut made) = (0, Vec::new(), 0);
        let mut meter = Counted(5);
        let mut bencher = Bencher::new(&mut meter);
        let ran = bencher.iter_async_full(
            |future| {
                entered += 1;
                let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
                loop {
                    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                        return output;
                    }
                }
            },
            || {
                made += 1;
                Ok(made)
            },
            late,
            |output| {
                seen.push(output);
                anyhow::ensure!(Some(output) != wrong, "{output} is wrong");
                Ok(())
            },
        );
        (ran.map_err(|e| e.to_string()), entered, seen)
    }
    assert_eq!(play(None), (Ok(()), 5, vec![3, 6, 9, 12, 15]));
    assert_eq!(play(Some(6)), (Err("6 is wrong".into()), 5, vec![3, 6]));
}

/// A meter that runs so many iterations.
struct Counted(usize);

impl Meter for Counted {
    fn site(&mut self) -> &mut dyn Site {
        unreachable!("nothing is exchanged")
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        let site = &mut Turns::default();
        work.prepare(self.0, site)?;
        work.run(self.0, site)?;
        work.check()
    }
}
