//! What goes wrong in a TLS scenario ends in an error that says what: a party
//! that is gone, parties that are stuck, bytes that were changed, a session
//! that was not resumed, something else negotiated than was to be.
//!
//! Neighbours: `tls_steps` is the same with nothing wrong.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

use anyhow::{Context, Result, ensure};
use rustls::{CipherSuite, HandshakeKind, NamedGroup};
use wallgrind::families::tls::bodies::{self, Load, Way};
use wallgrind::scenario::{Bencher, Meter, Pipe, Seat, Site, Wire, Work};
use wallgrind::tls::keys::KeyKind;
use wallgrind::tls::{ClientSide, Endpoint, Groups, Progress, Provider, Resumption, ServerSide, Setup};
use wallgrind::{Party, Turn};

fn setup() -> Setup {
    Setup::new(Provider::ALL[0], CipherSuite::TLS13_AES_128_GCM_SHA256, KeyKind::EcdsaP256)
}

fn client(setup: &Setup) -> Endpoint<ClientSide> {
    Endpoint::new(ClientSide::new(setup).expect("a client"))
}

fn server(setup: &Setup) -> Endpoint<ServerSide> {
    Endpoint::new(ServerSide::new(setup).expect("a server"))
}

/// Both in one process.
struct Once;

impl Site for Once {
    fn seat(&mut self) -> Seat<'_> {
        Seat::Both
    }

    fn turn_of(&mut self, _party: usize) {}
}

impl Meter for Once {
    fn site(&mut self) -> &mut dyn Site {
        self
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        work.prepare(1, self)?;
        work.run(1, self)?;
        work.check()
    }
}

struct Client(Endpoint<ClientSide>);

impl Party for Client {
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        self.0.handshake(received, to_send).map(Turn::from)
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Takes what it gets, and says the same each time.
struct Mute(Turn);

impl Party for Mute {
    fn turn(&mut self, received: &mut Pipe, _to_send: &mut Pipe) -> Result<Turn> {
        received.consume(received.len());
        Ok(self.0)
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

fn error_against(mute: Turn) -> String {
    let outcome = Bencher::new(&mut Once).pair(|| Ok(Client(client(&setup()))), || Ok(Mute(mute)));
    format!("{:#}", outcome.expect_err("nobody answers"))
}

#[test]
fn parties_that_wait_for_each_other_are_stuck() {
    assert!(error_against(Turn::Wait).contains("they are stuck"));
    assert!(error_against(Turn::More).contains("they are stuck"));
}

#[test]
fn a_party_that_has_finished_too_early_is_an_end_of_file() {
    let error = error_against(Turn::Done);
    assert_eq!(error, "end of file: the second party has finished, and the first wants more");
}

/// Sends what it is told into an OS pipe, and reads from another one.
struct Raw {
    from: PipeReader,
    to: PipeWriter,
}

impl Wire for Raw {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.to.write_all(bytes)?)
    }

    fn receive(&mut self, into: &mut Pipe) -> Result<()> {
        let mut piece = [0; 4096];
        let n = self.from.read(&mut piece)?;
        ensure!(n > 0, "the other party is gone");
        into.push(&piece[..n]);
        Ok(())
    }

    fn piece(&self) -> usize {
        4096
    }
}

struct Alone(Raw);

impl Site for Alone {
    fn seat(&mut self) -> Seat<'_> {
        Seat::One(0, &mut self.0)
    }

    fn turn_of(&mut self, _party: usize) {}
}

impl Meter for Alone {
    fn site(&mut self) -> &mut dyn Site {
        self
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        work.prepare(1, self)?;
        work.run(1, self)
    }
}

#[test]
fn an_end_in_the_middle_of_a_message_is_an_error() -> Result<()> {
    let (from, mut server_end) = io::pipe()?;
    let (_sink, to) = io::pipe()?;
    // The header of a record of 100 bytes, and the first four of them.
    server_end.write_all(&[22, 3, 3, 0, 100, 2, 0, 0, 96])?;
    drop(server_end);
    let mut meter = Alone(Raw { from, to });
    let load = Load { way: Way::Download, total: 1024, record: 1024 };
    let outcome = bodies::transfer(&mut Bencher::new(&mut meter), &setup(), load);
    let error = format!("{:#}", outcome.expect_err("the server is gone"));
    assert_eq!(error, "the other party is gone");
    Ok(())
}

/// The pipes between two endpoints that are driven by hand.
struct Link {
    to_client: Pipe,
    to_server: Pipe,
}

impl Link {
    fn new() -> Self {
        Self { to_client: Pipe::new(1 << 16), to_server: Pipe::new(1 << 16) }
    }

    fn shake(&mut self, client: &mut Endpoint<ClientSide>, server: &mut Endpoint<ServerSide>) -> Result<()> {
        for _ in 0..8 {
            let a = client.handshake(&mut self.to_client, &mut self.to_server).context("client")?;
            let b = server.handshake(&mut self.to_server, &mut self.to_client).context("server")?;
            if (a, b) == (Progress::Done, Progress::Done) {
                return Ok(());
            }
        }
        anyhow::bail!("no end after eight turns")
    }
}

#[test]
fn a_changed_byte_fails_the_handshake() -> Result<()> {
    let (mut client, mut server) = (client(&setup()), server(&setup()));
    let mut link = Link::new();
    client.handshake(&mut link.to_client, &mut link.to_server)?;
    server.handshake(&mut link.to_server, &mut link.to_client)?;
    let last = link.to_client.len() - 1;
    link.to_client.readable_mut()[last] ^= 1;
    let error = client.handshake(&mut link.to_client, &mut link.to_server).expect_err("a changed byte");
    assert!(format!("{error:#}").contains("decrypt"), "{error:#}");
    Ok(())
}

#[test]
fn a_session_that_the_server_does_not_know_is_seen() -> Result<()> {
    for (version, suite) in [
        ("1.3", CipherSuite::TLS13_AES_128_GCM_SHA256),
        ("1.2", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ] {
        for resumption in [Resumption::SessionId, Resumption::Tickets] {
            let setup = Setup { resumption, ..Setup::new(Provider::ALL[0], suite, KeyKind::EcdsaP256) };
            let side = ClientSide::new(&setup)?;
            for _ in 0..2 {
                let (mut client, mut server) = (Endpoint::new(side.clone()), server(&setup));
                Link::new().shake(&mut client, &mut server)?;
                for error in [client.check(&setup.expected(true)), server.check(&setup.expected(true))] {
                    let error = error.expect_err("the server is a new one").to_string();
                    assert_eq!(
                        error, "kind of handshake: expected Resumed, found Full",
                        "{version} {resumption:?}"
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn something_else_negotiated_is_seen() -> Result<()> {
    let setup = setup();
    let (mut client, mut server) = (client(&setup), server(&setup));
    assert_eq!(
        client.check(&setup.expected(false)).expect_err("too early").to_string(),
        "there was no handshake"
    );
    Link::new().shake(&mut client, &mut server)?;
    client.check(&setup.expected(false))?;
    server.check(&setup.expected(false))?;
    let other = Setup { suite: CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, ..setup };
    let error = client.check(&other.expected(false)).expect_err("another suite").to_string();
    assert!(
        error.starts_with("cipher suite: expected TLS13_CHACHA20_POLY1305_SHA256, found TLS13_AES"),
        "{error}"
    );
    let other = Setup { groups: Groups::Only(NamedGroup::secp384r1), ..setup };
    assert!(client.check(&other.expected(false)).is_err());
    let other = Setup { mutual: true, ..setup };
    let error = server.check(&other.expected(false)).expect_err("no client certificate").to_string();
    assert_eq!(error, "number of client certificates: expected 2, found 0");
    assert_eq!(
        Setup { groups: Groups::Retry, ..setup }.expected(false).kind,
        HandshakeKind::FullWithHelloRetryRequest
    );
    Ok(())
}

#[test]
fn what_a_provider_lacks_is_named() {
    let chacha = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    let setup = Setup::new(Provider::NoCrypto, chacha, KeyKind::EcdsaP256);
    let error = ClientSide::new(&setup).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("no_crypto has no TLS13_CHACHA20_POLY1305_SHA256"));
    let groups = Groups::Only(NamedGroup::X448);
    let setup = Setup { groups, ..setup_without_crypto() };
    let error = ServerSide::new(&setup).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("no_crypto lacks [X448]"));
}

fn setup_without_crypto() -> Setup {
    Setup::no_crypto(rustls::ProtocolVersion::TLSv1_3)
}
