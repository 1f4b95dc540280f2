//! The endpoints of `tls` as parties of a scenario.
//!
//! Neighbours: `bodies` makes them; `scenario` drives them.

use anyhow::Result;

use crate::scenario::{Party, Pipe, Turn};
use crate::tls::{
    Dialogue, Endpoint, Expected, Inbox, Incoming, Outbox, Outgoing, Progress, Side, Unbuffered,
    UnbufferedSide,
};

impl Inbox for Pipe {
    fn waiting(&mut self) -> &mut [u8] {
        self.readable_mut()
    }

    fn take(&mut self, n: usize) {
        self.consume(n);
    }
}

impl Outbox for Pipe {
    fn room(&self) -> usize {
        Pipe::room(self)
    }

    fn space(&mut self, n: usize) -> &mut [u8] {
        Pipe::space(self, n)
    }

    fn filled(&mut self, n: usize) {
        self.commit(n);
    }
}

impl From<Progress> for Turn {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::More => Self::More,
            Progress::Wait => Self::Wait,
            Progress::Done => Self::Done,
        }
    }
}

/// An endpoint of either of rustls' interfaces.
pub(super) trait Peer {
    fn handshake(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Progress>;
    fn check(&mut self, expected: &Expected) -> Result<()>;
}

impl<S: Side> Peer for Endpoint<S> {
    fn handshake(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Progress> {
        Endpoint::handshake(self, received, to_send)
    }

    fn check(&mut self, expected: &Expected) -> Result<()> {
        Endpoint::check(self, expected)
    }
}

impl<S: UnbufferedSide> Peer for Unbuffered<S> {
    fn handshake(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Progress> {
        Unbuffered::handshake(self, received, to_send)
    }

    fn check(&mut self, expected: &Expected) -> Result<()> {
        Unbuffered::check(self, expected)
    }
}

/// What a peer does once its handshake is over.
pub(super) trait Task<P> {
    fn turn(&mut self, peer: &mut P, received: &mut Pipe, to_send: &mut Pipe) -> Result<Progress>;
    fn check(&self) -> Result<()>;
}

impl<S: Side> Task<Endpoint<S>> for Outgoing {
    fn turn(&mut self, peer: &mut Endpoint<S>, _: &mut Pipe, to_send: &mut Pipe) -> Result<Progress> {
        peer.send(self, to_send)
    }

    fn check(&self) -> Result<()> {
        Outgoing::check(self)
    }
}

impl<S: Side> Task<Endpoint<S>> for Incoming {
    fn turn(&mut self, peer: &mut Endpoint<S>, received: &mut Pipe, _: &mut Pipe) -> Result<Progress> {
        peer.receive(self, received)
    }

    fn check(&self) -> Result<()> {
        Incoming::check(self)
    }
}

impl<S: Side> Task<Endpoint<S>> for Dialogue {
    fn turn(&mut self, peer: &mut Endpoint<S>, received: &mut Pipe, to_send: &mut Pipe) -> Result<Progress> {
        peer.converse(self, received, to_send)
    }

    fn check(&self) -> Result<()> {
        Dialogue::check(self)
    }
}

impl<S: UnbufferedSide> Task<Unbuffered<S>> for Outgoing {
    fn turn(
        &mut self,
        peer: &mut Unbuffered<S>,
        received: &mut Pipe,
        to_send: &mut Pipe,
    ) -> Result<Progress> {
        peer.send(self, received, to_send)
    }

    fn check(&self) -> Result<()> {
        Outgoing::check(self)
    }
}

impl<S: UnbufferedSide> Task<Unbuffered<S>> for Incoming {
    fn turn(
        &mut self,
        peer: &mut Unbuffered<S>,
        received: &mut Pipe,
        to_send: &mut Pipe,
    ) -> Result<Progress> {
        peer.receive(self, received, to_send)
    }

    fn check(&self) -> Result<()> {
        Incoming::check(self)
    }
}

/// The handshake is the region.
pub(super) struct Shaking<P> {
    peer: P,
    expected: Expected,
}

impl<P: Peer> Shaking<P> {
    pub(super) fn new(peer: P, expected: Expected) -> Self {
        Self { peer, expected }
    }
}

impl<P: Peer> Party for Shaking<P> {
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        self.peer.handshake(received, to_send).map(Turn::from)
    }

    fn check(&mut self) -> Result<()> {
        self.peer.check(&self.expected)
    }
}

/// The handshake comes before the region, which is a task.
pub(super) struct Working<P, T> {
    peer: P,
    expected: Expected,
    task: T,
}

impl<P: Peer, T: Task<P>> Working<P, T> {
    pub(super) fn new(peer: P, expected: Expected, task: T) -> Self {
        Self { peer, expected, task }
    }
}

impl<P: Peer, T: Task<P>> Party for Working<P, T> {
    fn ready(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        self.peer.handshake(received, to_send).map(Turn::from)
    }

    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        self.task.turn(&mut self.peer, received, to_send).map(Turn::from)
    }

    fn check(&mut self) -> Result<()> {
        self.peer.check(&self.expected)?;
        self.task.check()
    }
}
