//! The two suites, under the names of the AES-128-GCM ones that they have the
//! form of.
//!
//! Neighbours: `aead` and `hash` are what they are made of.

use rustls::crypto::{CipherSuiteCommon, KeyExchangeAlgorithm};
use rustls::{CipherSuite, SignatureScheme, SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite};

use super::aead::Clear;
use super::hash::{Derive, Sha256};

/// In the form of `TLS_AES_128_GCM_SHA256`.
pub const TLS13_SUITE: SupportedCipherSuite = SupportedCipherSuite::Tls13(&Tls13CipherSuite {
    common: CipherSuiteCommon {
        suite: CipherSuite::TLS13_AES_128_GCM_SHA256,
        hash_provider: &Sha256,
        confidentiality_limit: u64::MAX,
    },
    hkdf_provider: &Derive,
    aead_alg: &Clear,
    quic: None,
});

/// In the form of `TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256`.
pub const TLS12_SUITE: SupportedCipherSuite = SupportedCipherSuite::Tls12(&Tls12CipherSuite {
    common: CipherSuiteCommon {
        suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        hash_provider: &Sha256,
        confidentiality_limit: u64::MAX,
    },
    prf_provider: &Derive,
    kx: KeyExchangeAlgorithm::ECDHE,
    sign: &[SignatureScheme::ECDSA_NISTP256_SHA256],
    aead_alg: &Clear,
});
