//! One side of a scenario with two: a state machine that takes turns.
//!
//! Neighbours: `work` drives two of them in one process, or one of them
//! against a wire; `families` implements them.

use super::pipe::Pipe;

/// What a party says at the end of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It can go on without input, once what it sent has been taken.
    More,
    /// It needs input from the other party.
    Wait,
    /// It has finished this phase.
    Done,
}

/// One side of a scenario with two parties.
///
/// A party is made for each iteration. Its [`ready`](Party::ready) phase (a
/// handshake before a transfer, say) is driven to its end outside the region,
/// its [`turn`](Party::turn) phase is the region, and [`check`](Party::check)
/// comes after it. At the end of each phase both pipes must be empty.
pub trait Party {
    /// One turn of what comes before the region.
    ///
    /// # Errors
    /// Whatever goes wrong; it fails the trial.
    fn ready(&mut self, _received: &mut Pipe, _to_send: &mut Pipe) -> anyhow::Result<Turn> {
        Ok(Turn::Done)
    }

    /// One turn of the region: take what there is in `received`, put what is
    /// to be sent in `to_send`, as far as there is room.
    ///
    /// # Errors
    /// Whatever goes wrong; it fails the trial.
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> anyhow::Result<Turn>;

    /// Checks the outcome, outside the region.
    ///
    /// # Errors
    /// What is not as it should be; it fails the trial.
    fn check(&mut self) -> anyhow::Result<()>;
}
