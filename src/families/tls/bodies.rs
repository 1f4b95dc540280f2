//! The bodies of the scenarios.
//!
//! Neighbours: `register` and `beyond` name them; `parties` are what they
//! hand to the Bencher.

use anyhow::Result;

use super::parties::{Peer, Shaking, Task, Working};
use crate::scenario::Bencher;
use crate::tls::{
    ClientSide, Dialogue, Endpoint, Incoming, Messages, Outgoing, Resumption, ServerSide, Setup, Unbuffered,
};
use crate::units::{Bytes, Elements};

/// Something that is made when it is first wanted: a process that runs one
/// party makes no configuration for the other one.
struct Kept<T, F> {
    made: Option<T>,
    make: F,
}

impl<T: Clone, F: Fn() -> Result<T>> Kept<T, F> {
    fn new(make: F) -> Self {
        Self { made: None, make }
    }

    fn get(&mut self) -> Result<T> {
        match &self.made {
            Some(made) => Ok(made.clone()),
            None => Ok(self.made.insert((self.make)()?).clone()),
        }
    }
}

/// One handshake: a full one, or one that resumes the session of a full one
/// that comes before the region.
///
/// # Errors
/// A handshake, a check or the meter failed.
pub fn handshake(b: &mut Bencher<'_>, setup: &Setup) -> Result<()> {
    b.throughput(Elements(1));
    let mut client = Kept::new(|| ClientSide::new(setup));
    let mut server = Kept::new(|| ServerSide::new(setup));
    let resumes = setup.resumption != Resumption::None;
    if resumes {
        let full = setup.expected(false);
        b.exchange(
            || Ok(Shaking::new(Endpoint::new(client.get()?), full)),
            || Ok(Shaking::new(Endpoint::new(server.get()?), full)),
        )?;
    }
    let expected = setup.expected(resumes);
    b.pair(
        || Ok(Shaking::new(Endpoint::new(client.get()?), expected)),
        || Ok(Shaking::new(Endpoint::new(server.get()?), expected)),
    )
}

/// One full handshake over rustls' unbuffered API.
///
/// # Errors
/// A handshake, a check or the meter failed.
pub fn unbuffered_handshake(b: &mut Bencher<'_>, setup: &Setup) -> Result<()> {
    b.throughput(Elements(1));
    let mut client = Kept::new(|| ClientSide::new(setup));
    let mut server = Kept::new(|| ServerSide::new(setup));
    let expected = setup.expected(false);
    b.pair(
        || Ok(Shaking::new(Unbuffered::new(client.get()?), expected)),
        || Ok(Shaking::new(Unbuffered::new(server.get()?), expected)),
    )
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the server to the client.
    Download,
    /// From the client to the server.
    Upload,
}

/// How much data goes which way, in which pieces.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Who sends.
    pub way: Way,
    /// Bytes in all.
    pub total: u64,
    /// Bytes of a record.
    pub record: usize,
}

impl Load {
    /// The largest record of TLS (RFC 8446, section 5.1).
    pub const LARGEST_RECORD: usize = 16 * 1024;

    fn outgoing(&self) -> Outgoing {
        Outgoing::new(self.total, self.record)
    }

    /// Makes the receiving ends. The first one, which warms up, compares every
    /// byte; that would be a good part of the time of the others, which compare
    /// length and both ends of each record.
    fn incoming(&self) -> impl FnMut() -> Incoming {
        let (total, mut thorough) = (self.total, true);
        move || Incoming::new(total, std::mem::replace(&mut thorough, false))
    }
}

/// Application data in one direction, after a full handshake.
///
/// # Errors
/// A handshake, a check or the meter failed.
pub fn transfer(b: &mut Bencher<'_>, setup: &Setup, load: Load) -> Result<()> {
    let mut client = Kept::new(|| ClientSide::new(setup));
    let mut server = Kept::new(|| ServerSide::new(setup));
    transfer_between(b, setup, load, || Ok(Endpoint::new(client.get()?)), || Ok(Endpoint::new(server.get()?)))
}

/// The same over rustls' unbuffered API.
///
/// # Errors
/// A handshake, a check or the meter failed.
pub fn unbuffered_transfer(b: &mut Bencher<'_>, setup: &Setup, load: Load) -> Result<()> {
    let mut client = Kept::new(|| ClientSide::new(setup));
    let mut server = Kept::new(|| ServerSide::new(setup));
    transfer_between(
        b,
        setup,
        load,
        || Ok(Unbuffered::new(client.get()?)),
        || Ok(Unbuffered::new(server.get()?)),
    )
}

fn transfer_between<C: Peer, S: Peer>(
    b: &mut Bencher<'_>,
    setup: &Setup,
    load: Load,
    mut client: impl FnMut() -> Result<C>,
    mut server: impl FnMut() -> Result<S>,
) -> Result<()>
where
    Incoming: Task<C> + Task<S>,
    Outgoing: Task<C> + Task<S>,
{
    b.throughput(Bytes(load.total));
    let expected = setup.expected(false);
    let mut incoming = load.incoming();
    match load.way {
        Way::Download => b.pair(
            || Ok(Working::new(client()?, expected, incoming())),
            || Ok(Working::new(server()?, expected, load.outgoing())),
        ),
        Way::Upload => b.pair(
            || Ok(Working::new(client()?, expected, load.outgoing())),
            || Ok(Working::new(server()?, expected, incoming())),
        ),
    }
}

/// Requests and responses one after the other, after a full handshake.
///
/// # Errors
/// A handshake, a check or the meter failed.
pub fn ping_pong(b: &mut Bencher<'_>, setup: &Setup, messages: Messages) -> Result<()> {
    b.throughput(Elements(u64::from(messages.rounds)));
    let mut client = Kept::new(|| ClientSide::new(setup));
    let mut server = Kept::new(|| ServerSide::new(setup));
    let expected = setup.expected(false);
    b.pair(
        || Ok(Working::new(Endpoint::new(client.get()?), expected, Dialogue::asking(messages))),
        || Ok(Working::new(Endpoint::new(server.get()?), expected, Dialogue::answering(messages))),
    )
}
