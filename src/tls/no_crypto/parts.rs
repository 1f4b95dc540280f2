//! The parts put together: provider, verifier of certificates, ticketer.
//!
//! Neighbours: the other files of this folder make one part each.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::server::ProducesTickets;

use super::suites::{TLS12_SUITE, TLS13_SUITE};
use super::{kx, random, sign};

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
    Arc::new(super::ticketer::Clear)
}
