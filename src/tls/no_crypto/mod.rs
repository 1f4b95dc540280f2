//! A provider whose cryptography does nothing, so that the protocol code of
//! rustls stands alone. What goes over the wire has the form and the length of
//! the real thing: X25519 key shares of 32 bytes, AES-128-GCM records with
//! explicit nonce (TLS 1.2) and tag of 16 bytes, ECDSA signatures of 71 bytes,
//! SHA-256 outputs of 32 bytes, tickets like those of other providers.
//!
//! Nothing is secret, nothing is checked but lengths and fixed patterns, and
//! random numbers are a counter's: for measurements only.

mod aead;
mod hash;
mod kx;
mod random;
mod sign;
mod suites;
mod ticketer;

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::server::ProducesTickets;

pub use suites::{TLS12_SUITE, TLS13_SUITE};

/// The provider: one suite for TLS 1.2, one for TLS 1.3, and two groups.
pub fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![TLS13_SUITE, TLS12_SUITE],
        kx_groups: vec![&kx::X25519, &kx::P256],
        signature_verification_algorithms: WebPkiSupportedAlgorithms { all: &[], mapping: &[] },
        secure_random: &random::Counter,
        key_provider: &sign::Keys,
    }
}

/// Accepts any chain, and signatures that this provider made.
pub fn verifier() -> Arc<dyn ServerCertVerifier> {
    Arc::new(sign::Verifier)
}

/// Tickets in the clear, in the form of sealed ones.
pub fn ticketer() -> Arc<dyn ProducesTickets> {
    Arc::new(ticketer::Clear)
}
