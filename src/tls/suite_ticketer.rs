//! A ticketer for providers that come without one: tickets sealed by the
//! provider's own ChaCha20-Poly1305, as records of TLS 1.3 are.
//!
//! Neighbours: `provider` uses it for RustCrypto.

use std::fmt;

use anyhow::{Context, Result, anyhow};
use rustls::crypto::cipher::{AeadKey, InboundOpaqueMessage, Iv, OutboundChunks, OutboundPlainMessage};
use rustls::crypto::{CryptoProvider, SecureRandom};
use rustls::server::ProducesTickets;
use rustls::{CipherSuite, ContentType, ProtocolVersion, SupportedCipherSuite, Tls13CipherSuite};

/// Length of the nonce that is sent along (RFC 8439: 12 bytes).
const NONCE_LEN: usize = 12;

/// Length of the header of a record, which a ticket goes without.
const HEADER_LEN: usize = 5;

pub(super) struct SuiteTicketer {
    suite: &'static Tls13CipherSuite,
    random: &'static dyn SecureRandom,
    key: [u8; 32],
}

impl SuiteTicketer {
    pub(super) fn new(crypto: &CryptoProvider) -> Result<Self> {
        let suite = crypto.cipher_suites.iter().find_map(|suite| match suite {
            SupportedCipherSuite::Tls13(suite)
                if suite.common.suite == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 =>
            {
                Some(*suite)
            }
            _ => None,
        });
        let suite = suite.context("the provider has no ChaCha20-Poly1305 to seal tickets with")?;
        let mut key = [0; 32];
        crypto
            .secure_random
            .fill(&mut key)
            .map_err(|_| anyhow!("there is no randomness for the key of tickets"))?;
        Ok(Self { suite, random: crypto.secure_random, key })
    }

    fn key(&self) -> AeadKey {
        AeadKey::from(self.key)
    }
}

impl ProducesTickets for SuiteTicketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // Seconds; what the ticketers that come with rustls say.
        12 * 60 * 60
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let message = OutboundPlainMessage {
            typ: ContentType::ApplicationData,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(plain),
        };
        let mut aead = self.suite.aead_alg.encrypter(self.key(), Iv::from(nonce));
        let sealed = aead.encrypt(message, 0).ok()?.encode();
        Some([&nonce, &sealed[HEADER_LEN..]].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = ticket.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let message =
            InboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, &mut sealed);
        let mut aead = self.suite.aead_alg.decrypter(self.key(), Iv::from(*nonce));
        aead.decrypt(message, 0).ok().map(|plain| plain.payload.to_vec())
    }
}

impl fmt::Debug for SuiteTicketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuiteTicketer").finish_non_exhaustive()
    }
}
