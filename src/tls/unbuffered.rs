//! One side of a connection of rustls' unbuffered API as a state machine:
//! records are decrypted where they arrived and encrypted where they leave.
//!
//! Neighbours: `endpoint` is its buffered counterpart, `transfer` counts what
//! is sent and received.

use anyhow::{Context, Result, anyhow, bail};
use rustls::unbuffered::{ConnectionState, EncodeTlsData, ReadTraffic, UnbufferedStatus, WriteTraffic};

use super::link::{Inbox, Outbox, Progress};
use super::setup::Expected;
use super::side::UnbufferedSide;
use super::transfer::{Incoming, Outgoing, RECORD_OVERHEAD};

/// One side of an unbuffered connection that is made in its first turn.
pub struct Unbuffered<S: UnbufferedSide> {
    side: S,
    conn: Option<S::Conn>,
}

/// What became of one state of the connection.
enum Step {
    /// There may be another one at once.
    Next,
    /// The connection wants more to arrive.
    Starved,
    /// What is to be encoded next has no room.
    Full,
    /// Application data may be sent, and nothing else is to be done.
    Idle,
}

/// What may be done with application data in a turn.
enum Data<'d> {
    None,
    Send(&'d mut Outgoing),
    Receive(&'d mut Incoming),
}

impl<S: UnbufferedSide> Unbuffered<S> {
    /// An endpoint without a connection.
    pub fn new(side: S) -> Self {
        Self { side, conn: None }
    }

    /// One turn of the handshake; the first one makes the connection.
    ///
    /// # Errors
    /// The handshake failed.
    pub fn handshake(&mut self, inbox: &mut impl Inbox, outbox: &mut impl Outbox) -> Result<Progress> {
        if self.conn.is_none() {
            self.conn = Some(self.side.open()?);
        }
        match self.steps(&mut Data::None, inbox, outbox)? {
            Step::Full => Ok(Progress::More),
            _ if self.is_settled() => Ok(Progress::Done),
            _ => Ok(Progress::Wait),
        }
    }

    /// One turn of sending application data.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send(
        &mut self,
        data: &mut Outgoing,
        inbox: &mut impl Inbox,
        outbox: &mut impl Outbox,
    ) -> Result<Progress> {
        let mut data = Data::Send(data);
        match self.steps(&mut data, inbox, outbox)? {
            Step::Idle => Ok(Progress::Done),
            _ => Ok(Progress::More),
        }
    }

    /// One turn of receiving application data.
    ///
    /// # Errors
    /// The connection failed, or something else came than was sent.
    pub fn receive(
        &mut self,
        data: &mut Incoming,
        inbox: &mut impl Inbox,
        outbox: &mut impl Outbox,
    ) -> Result<Progress> {
        self.steps(&mut Data::Receive(data), inbox, outbox)?;
        Ok(if data.is_complete() { Progress::Done } else { Progress::Wait })
    }

    /// Compares what was negotiated with what was to be.
    ///
    /// # Errors
    /// Says what differs.
    pub fn check(&mut self, expected: &Expected) -> Result<()> {
        expected.check(self.conn.as_ref().context("there was no handshake")?, S::IS_SERVER)
    }

    fn is_settled(&self) -> bool {
        self.conn.as_ref().is_some_and(|conn| !conn.is_handshaking() && self.side.settled(conn))
    }

    /// Goes from state to state until nothing more can be done in this turn.
    fn steps(
        &mut self,
        data: &mut Data<'_>,
        inbox: &mut impl Inbox,
        outbox: &mut impl Outbox,
    ) -> Result<Step> {
        let conn = self.conn.as_mut().context("there was no handshake")?;
        loop {
            let UnbufferedStatus { discard, state } = S::process(conn, inbox.waiting());
            let step = match state? {
                ConnectionState::EncodeTlsData(encode) => put(encode, outbox)?,
                ConnectionState::TransmitTlsData(transmit) => {
                    transmit.done();
                    Step::Next
                }
                ConnectionState::ReadTraffic(records) => read(records, data)?,
                ConnectionState::WriteTraffic(traffic) => write(traffic, data, outbox)?,
                ConnectionState::BlockedHandshake => Step::Starved,
                other => bail!("unexpected state of the connection: {other:?}"),
            };
            inbox.take(discard);
            if !matches!(step, Step::Next) {
                return Ok(step);
            }
        }
    }
}

/// Encodes a message of the handshake.
fn put<D>(mut encode: EncodeTlsData<'_, D>, outbox: &mut impl Outbox) -> Result<Step> {
    // Its size is known only when it is too large for the space given; the
    // flights of our handshakes are far smaller than an outbox.
    let room = outbox.room();
    let written = encode.encode(outbox.space(room)).map_err(|error| anyhow!("{error}"))?;
    outbox.filled(written);
    Ok(Step::Next)
}

/// Takes the records that were decrypted.
fn read<D>(mut records: ReadTraffic<'_, '_, D>, data: &mut Data<'_>) -> Result<Step> {
    while let Some(record) = records.next_record() {
        match data {
            Data::Receive(incoming) => incoming.take(record?.payload)?,
            _ => bail!("application data arrived where none was to come"),
        }
    }
    Ok(Step::Next)
}

/// Encrypts as many whole records as there is room for.
fn write<D>(mut traffic: WriteTraffic<'_, D>, data: &mut Data<'_>, outbox: &mut impl Outbox) -> Result<Step> {
    let Data::Send(outgoing) = data else { return Ok(Step::Idle) };
    loop {
        let piece = outgoing.next_piece();
        if piece.is_empty() {
            return Ok(Step::Idle);
        }
        let space = piece.len() + RECORD_OVERHEAD;
        if outbox.room() < space {
            return Ok(Step::Full);
        }
        let written = traffic.encrypt(piece, outbox.space(space)).map_err(|error| anyhow!("{error}"))?;
        outbox.filled(written);
        outgoing.advance(piece.len());
    }
}
