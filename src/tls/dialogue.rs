//! Requests and responses, one after the other, over a buffered connection.
//!
//! Neighbours: `transfer` moves the bytes; `endpoint` calls it.

use anyhow::Result;
use rustls::ConnectionCommon;

use super::endpoint::flush;
use super::link::{Inbox, Outbox, Progress};
use super::transfer::{Incoming, Outgoing};

/// What a dialogue consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// How many requests, each with its response.
    pub rounds: u32,
    /// Bytes of a request (at most 16,384).
    pub request: usize,
    /// Bytes of a response (at most 16,384).
    pub response: usize,
}

/// One side of a dialogue.
#[derive(Debug)]
pub struct Dialogue {
    asks: bool,
    rounds: u64,
    ours: u64,
    theirs: u64,
    outgoing: Outgoing,
    incoming: Incoming,
}

impl Dialogue {
    /// The side that sends requests and waits for each response.
    pub fn asking(messages: Messages) -> Self {
        Self::new(true, messages, messages.request, messages.response)
    }

    /// The side that responds.
    pub fn answering(messages: Messages) -> Self {
        Self::new(false, messages, messages.response, messages.request)
    }

    fn new(asks: bool, messages: Messages, ours: usize, theirs: usize) -> Self {
        let rounds = u64::from(messages.rounds);
        let outgoing = Outgoing::new(rounds * ours as u64, ours);
        let incoming = Incoming::new(rounds * theirs as u64, true);
        Self { asks, rounds, ours: ours as u64, theirs: theirs as u64, outgoing, incoming }
    }

    pub(super) fn turn<D>(
        &mut self,
        conn: &mut ConnectionCommon<D>,
        inbox: &mut impl Inbox,
        outbox: &mut impl Outbox,
    ) -> Result<Progress> {
        self.incoming.turn(conn, inbox)?;
        let heard = self.incoming.got() / self.theirs;
        let due = (heard + u64::from(self.asks)).min(self.rounds);
        while self.outgoing.sent() < due * self.ours {
            self.outgoing.say(conn)?;
        }
        flush(conn, outbox)?;
        let over = due == self.rounds && self.incoming.is_complete();
        Ok(match (conn.wants_write(), over) {
            (true, _) => Progress::More,
            (false, true) => Progress::Done,
            (false, false) => Progress::Wait,
        })
    }

    /// # Errors
    /// Not all was said or heard.
    pub fn check(&self) -> Result<()> {
        self.outgoing.check()?;
        self.incoming.check()
    }
}
