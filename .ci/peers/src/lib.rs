//! The four bodies that all harnesses wrap, and the knob that plants more work.
//!
//! The knob is set when this is built, so that a planted slowdown is a build
//! of its own, as it is in life: `PEERS_EXTRA` gives for each body how many
//! rounds of a chain of additions follow its work. `PEERS_MOVED` builds the
//! same work into an executable whose code lies elsewhere.
//! Neighbours: the bench targets, one a harness; `compare` builds and runs them.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::pki_types::ServerName;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ConnectionCommon, ProtocolVersion, ServerConfig,
    ServerConnection,
};
use wallgrind::block::qcow2::{CreateOptions, Image, OpenOptions};
use wallgrind::tls::keys::KeyKind;
use wallgrind::tls::{Provider, Setup};

/// A body that is ready to be called again and again.
pub type Body = Box<dyn FnMut() -> u64 + Send>;

/// The names of the bodies.
pub const NAMES: [&str; 4] = ["handshake_full", "handshake_no_crypto", "qcow2_read", "checksum"];

/// Rounds of the chain that the checksum is.
pub const ROUNDS: u64 = 4_000;

/// The body called `name`, with what is planted behind it.
///
/// # Panics
/// There is no such body, or it cannot be set up: this is a benchmark of benchmarks.
pub fn body(name: &str) -> Body {
    try_body(name, extra(name)).unwrap_or_else(|error| panic!("{name}: {error:#}"))
}

/// The same with so many rounds behind it.
///
/// # Errors
/// There is no such body, or it cannot be set up.
pub fn try_body(name: &str, extra: u64) -> Result<Body> {
    let mut work: Body = match name {
        "handshake_full" => {
            handshake(Setup::new(Provider::Ring, CipherSuite::TLS13_AES_128_GCM_SHA256, KeyKind::EcdsaP256))?
        }
        "handshake_no_crypto" => handshake(Setup::no_crypto(ProtocolVersion::TLSv1_3))?,
        "qcow2_read" => qcow2_read()?,
        "checksum" => {
            let words: Vec<u64> = (0..512).collect();
            Box::new(move || chain(&words, ROUNDS))
        }
        other => anyhow::bail!("there is no body {other}"),
    };
    let words: Vec<u64> = (0..512).collect();
    Ok(Box::new(move || work().wrapping_add(chain(&words, extra))))
}

/// What `PEERS_EXTRA` says of a body: `NAME=ROUNDS,NAME=ROUNDS`.
fn extra(name: &str) -> u64 {
    let all = option_env!("PEERS_EXTRA").unwrap_or_default();
    let of = all.split(',').find_map(|part| part.split_once('=').filter(|(key, _)| *key == name));
    of.and_then(|(_, rounds)| rounds.parse().ok()).unwrap_or(0)
}

/// A chain of additions and rotations over 4 KiB.
#[inline(never)]
fn chain(words: &[u64], rounds: u64) -> u64 {
    (0..black_box(rounds)).fold(1, |sum: u64, i| sum.rotate_left(5).wrapping_add(words[(i % 512) as usize]))
}

fn handshake(setup: Setup) -> Result<Body> {
    let configs: (Arc<ClientConfig>, Arc<ServerConfig>) = (setup.client()?, setup.server()?);
    let mut wire = Vec::with_capacity(65_536);
    connect(&configs, &mut wire)?;
    // It went well once, and does the same each time.
    Ok(Box::new(move || connect(&configs, &mut wire).map_or(0, |()| 1)))
}

fn connect(configs: &(Arc<ClientConfig>, Arc<ServerConfig>), wire: &mut Vec<u8>) -> Result<()> {
    let name = ServerName::try_from("localhost")?;
    let mut client = ClientConnection::new(Arc::clone(&configs.0), name)?;
    let mut server = ServerConnection::new(Arc::clone(&configs.1))?;
    while client.is_handshaking() || server.is_handshaking() {
        pass(&mut client, &mut server, wire)?;
        pass(&mut server, &mut client, wire)?;
    }
    black_box((&client, &server));
    Ok(())
}

fn pass<A, B>(
    from: &mut ConnectionCommon<A>,
    to: &mut ConnectionCommon<B>,
    wire: &mut Vec<u8>,
) -> Result<()> {
    while from.wants_write() {
        from.write_tls(wire)?;
    }
    let mut rest = &wire[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest)?;
        to.process_new_packets()?;
    }
    wire.clear();
    Ok(())
}

/// 4 KiB reads of a warm image of 8 MiB, one after the other.
fn qcow2_read() -> Result<Body> {
    const SIZE: u64 = 8 << 20;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("image.qcow2");
    Image::create(&path, &CreateOptions::new(SIZE)).context("an image")?;
    let image = Image::open(&path, &OpenOptions::new().writable(true))?;
    let data = vec![7_u8; 1 << 16];
    (0..SIZE >> 16).try_for_each(|at| image.write(at << 16, &data))?;
    image.flush()?;
    drop(image);
    let image = Image::open(&path, &OpenOptions::new())?;
    let (mut buf, mut at) = (vec![0_u8; 4096], 0);
    image.read(0, &mut buf)?;
    ensure!(buf.iter().all(|byte| *byte == 7), "the image holds something else");
    Ok(Box::new(move || {
        // Goes with the body.
        black_box(folder.path());
        at = (at + 37 * 4096) % SIZE;
        image.read(at, &mut buf).map_or(0, |()| u64::from(buf[0]))
    }))
}

/// Of no use but to move what is linked behind it.
pub fn moved() -> usize {
    if option_env!("PEERS_MOVED").is_none() {
        return 0;
    }
    (0..std::env::args().count()).map(|n| format!("{n:?} is {:#x}", n * 3).repeat(3).len()).sum()
}
