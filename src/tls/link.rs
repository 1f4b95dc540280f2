//! The ends of the link between two endpoints, as the endpoints see them.
//! Whoever drives them implements these for its own buffers.
//!
//! Neighbours: `endpoint` (the `Read` and `Write` halves) and `unbuffered`
//! (the slices).

use std::io;

/// What has arrived and was not yet taken.
pub trait Inbox: io::Read {
    /// All that can be taken now, to be worked on in place.
    fn waiting(&mut self) -> &mut [u8];

    /// Takes the first `n` bytes of it.
    fn take(&mut self, n: usize);
}

/// Where to put what is to be sent.
pub trait Outbox: io::Write {
    /// Bytes that can be put there now.
    fn room(&self) -> usize;

    /// Space for `n` bytes at most [`room`](Outbox::room), to be written in place.
    fn space(&mut self, n: usize) -> &mut [u8];

    /// Sends the first `n` bytes of the [`space`](Outbox::space).
    fn filled(&mut self, n: usize);
}

/// How far an endpoint got in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It can go on as soon as there is room to send.
    More,
    /// It waits for something to arrive.
    Wait,
    /// It has done what it was to do, and sent all of it.
    Done,
}
