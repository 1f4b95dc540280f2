//! One side of a buffered connection as a state machine.
//!
//! Neighbours: `side` says which one; `transfer` and `dialogue` are what it
//! can do once the handshake is over.

use anyhow::{Context, Result};
use rustls::ConnectionCommon;

use super::dialogue::Dialogue;
use super::link::{Inbox, Outbox, Progress};
use super::setup::Expected;
use super::side::Side;
use super::transfer::{Incoming, Outgoing};

/// One side of a connection that is made in its first turn.
pub struct Endpoint<S: Side> {
    side: S,
    conn: Option<S::Conn>,
}

impl<S: Side> Endpoint<S> {
    /// An endpoint without a connection.
    pub fn new(side: S) -> Self {
        Self { side, conn: None }
    }

    /// One turn of the handshake; the first one makes the connection. It is
    /// done when all that belongs to it has been sent and received, the
    /// tickets of TLS 1.3 included, and takes nothing that comes after it.
    ///
    /// # Errors
    /// The handshake failed.
    pub fn handshake(&mut self, inbox: &mut impl Inbox, outbox: &mut impl Outbox) -> Result<Progress> {
        let conn = match &mut self.conn {
            Some(conn) => conn,
            none => none.insert(self.side.connect()?),
        };
        receive(conn, inbox)?;
        flush(conn, outbox)?;
        Ok(if conn.wants_write() {
            Progress::More
        } else if conn.is_handshaking() || !self.side.settled(conn) {
            Progress::Wait
        } else {
            Progress::Done
        })
    }

    /// One turn of sending application data.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send(&mut self, data: &mut Outgoing, outbox: &mut impl Outbox) -> Result<Progress> {
        data.turn(self.connected()?, outbox)
    }

    /// One turn of receiving application data.
    ///
    /// # Errors
    /// The connection failed, or something else came than was sent.
    pub fn receive(&mut self, data: &mut Incoming, inbox: &mut impl Inbox) -> Result<Progress> {
        data.turn(self.connected()?, inbox)
    }

    /// One turn of a dialogue.
    ///
    /// # Errors
    /// The connection failed, or something else came than was sent.
    pub fn converse(
        &mut self,
        dialogue: &mut Dialogue,
        inbox: &mut impl Inbox,
        outbox: &mut impl Outbox,
    ) -> Result<Progress> {
        dialogue.turn(self.connected()?, inbox, outbox)
    }

    /// Compares what was negotiated with what was to be.
    ///
    /// # Errors
    /// Says what differs.
    pub fn check(&mut self, expected: &Expected) -> Result<()> {
        expected.check(self.connected()?, S::IS_SERVER)
    }

    fn connected(&mut self) -> Result<&mut ConnectionCommon<S::Data>> {
        Ok(self.conn.as_mut().context("there was no handshake")?)
    }
}

/// Takes all that has arrived; there must be no application data in it.
fn receive<D>(conn: &mut ConnectionCommon<D>, inbox: &mut impl Inbox) -> Result<()> {
    while !inbox.waiting().is_empty() {
        conn.read_tls(inbox)?;
        conn.process_new_packets()?;
    }
    Ok(())
}

/// Sends what there is room for.
pub(super) fn flush<D>(conn: &mut ConnectionCommon<D>, outbox: &mut impl Outbox) -> Result<()> {
    while conn.wants_write() && outbox.room() > 0 {
        conn.write_tls(outbox)?;
    }
    Ok(())
}
