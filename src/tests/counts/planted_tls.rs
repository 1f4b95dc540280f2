//! One block of SHA-256 more in the client of a TLS handshake shows as exactly
//! its cost in the client's count, and not at all in the server's.
//!
//! Neighbours: `toys` registers these scenarios with its own.

use std::hint::black_box;

use anyhow::{Result, ensure};
use rustls::CipherSuite;
use sha2::{Digest, Sha256};
use wallgrind::plan::Mode;
use wallgrind::tls::keys::KeyKind;
use wallgrind::tls::{ClientSide, Endpoint, Expected, Progress, Provider, ServerSide, Setup, Side};
use wallgrind::{Bencher, Party, Pipe, Suite, Turn};

use crate::Test;
use crate::driver::{outcomes, plan, total};

pub const TESTS: &[Test] =
    &[("one_block_of_sha_256_in_a_handshake_shows_as_exactly_its_cost", exactly_its_cost)];

pub fn register(suite: &mut Suite) {
    for blocks in [0, 1] {
        suite
            .bench(format!("tls_planted::blocks_{blocks}"), move |b| handshake(b, blocks))
            .parties("client", "server")
            .param("blocks", blocks);
        suite.bench(format!("tls_planted::alone_{blocks}"), move |b| b.iter(|| digest(black_box(blocks))));
    }
}

/// Digests that many messages of 55 bytes, which are one block with their padding.
#[inline(never)]
fn digest(blocks: u32) -> u8 {
    (0..blocks).fold(0, |sum, _| sum ^ Sha256::digest(black_box([7_u8; 55]))[0])
}

struct Hand<S: Side> {
    endpoint: Endpoint<S>,
    expected: Expected,
    /// Blocks still to be digested in the first turn; `None` from then on.
    blocks: Option<u32>,
}

impl<S: Side> Party for Hand<S> {
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        if let Some(blocks) = self.blocks.take() {
            black_box(digest(black_box(blocks)));
        }
        Ok(match self.endpoint.handshake(received, to_send)? {
            Progress::More => Turn::More,
            Progress::Wait => Turn::Wait,
            Progress::Done => Turn::Done,
        })
    }

    fn check(&mut self) -> Result<()> {
        self.endpoint.check(&self.expected)
    }
}

fn handshake(b: &mut Bencher<'_>, blocks: u32) -> Result<()> {
    let setup = Setup::new(Provider::NoCrypto, CipherSuite::TLS13_AES_128_GCM_SHA256, KeyKind::EcdsaP256);
    let (client, server) = (ClientSide::new(&setup)?, ServerSide::new(&setup)?);
    let expected = setup.expected(false);
    b.pair(
        || Ok(Hand { endpoint: Endpoint::new(client.clone()), expected, blocks: Some(blocks) }),
        || Ok(Hand { endpoint: Endpoint::new(server.clone()), expected, blocks: Some(0) }),
    )
}

fn exactly_its_cost() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let names =
        ["tls_planted::blocks_0", "tls_planted::blocks_1", "tls_planted::alone_0", "tls_planted::alone_1"];
    let mut found = Vec::new();
    for (name, outcome) in names.iter().zip(outcomes(&plan(Mode::Cachegrind, folder.path().into()), &names)?)
    {
        found.push(outcome.map_err(|failure| anyhow::anyhow!("{name}: {failure:?}"))?);
    }
    let by = |series: &str, a: usize, b: usize| -> Result<i64> {
        Ok(total(&found[b], series)? as i64 - total(&found[a], series)? as i64)
    };
    let cost = by("instructions", 2, 3)?;
    ensure!(cost > 500, "a block costs {cost} instructions");
    let (client, server) = (by("instructions.client", 0, 1)?, by("instructions.server", 0, 1)?);
    ensure!((client, server) == (cost, 0), "a block costs {cost}, but client {client}, server {server}");
    Ok(())
}
