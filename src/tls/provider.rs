//! The providers of cryptography that were compiled in.
//!
//! Neighbours: `setup` narrows them down to one suite and a few groups.

use std::sync::Arc;

use anyhow::Result;
use rustls::crypto::CryptoProvider;
use rustls::server::ProducesTickets;

use super::no_crypto;
#[cfg(feature = "rustcrypto")]
use super::suite_ticketer::SuiteTicketer;

/// A provider. Those behind a feature exist only when it is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// ring.
    #[cfg(feature = "ring")]
    Ring,
    /// aws-lc-rs.
    #[cfg(feature = "aws-lc-rs")]
    AwsLcRs,
    /// graviola.
    #[cfg(feature = "graviola")]
    Graviola,
    /// The RustCrypto crates.
    #[cfg(feature = "rustcrypto")]
    RustCrypto,
    /// Ours, whose cryptography does nothing.
    NoCrypto,
}

impl Provider {
    /// All that were compiled in, in the order of the suite.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "ring")]
        Self::Ring,
        #[cfg(feature = "aws-lc-rs")]
        Self::AwsLcRs,
        #[cfg(feature = "graviola")]
        Self::Graviola,
        #[cfg(feature = "rustcrypto")]
        Self::RustCrypto,
        Self::NoCrypto,
    ];

    /// The word for it in names and parameters.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "ring")]
            Self::Ring => "ring",
            #[cfg(feature = "aws-lc-rs")]
            Self::AwsLcRs => "aws_lc_rs",
            #[cfg(feature = "graviola")]
            Self::Graviola => "graviola",
            #[cfg(feature = "rustcrypto")]
            Self::RustCrypto => "rustcrypto",
            Self::NoCrypto => "no_crypto",
        }
    }

    /// Whether its cryptography does anything.
    pub fn has_crypto(self) -> bool {
        self != Self::NoCrypto
    }

    /// All that it can do.
    pub fn crypto(self) -> CryptoProvider {
        match self {
            #[cfg(feature = "ring")]
            Self::Ring => rustls::crypto::ring::default_provider(),
            #[cfg(feature = "aws-lc-rs")]
            Self::AwsLcRs => rustls::crypto::aws_lc_rs::default_provider(),
            #[cfg(feature = "graviola")]
            Self::Graviola => rustls_graviola::default_provider(),
            #[cfg(feature = "rustcrypto")]
            Self::RustCrypto => rustls_rustcrypto::provider(),
            Self::NoCrypto => no_crypto::provider(),
        }
    }

    /// A ticketer with new keys.
    ///
    /// # Errors
    /// There is no randomness for the keys.
    pub fn ticketer(self) -> Result<Arc<dyn ProducesTickets>> {
        Ok(match self {
            #[cfg(feature = "ring")]
            Self::Ring => rustls::crypto::ring::Ticketer::new()?,
            #[cfg(feature = "aws-lc-rs")]
            Self::AwsLcRs => rustls::crypto::aws_lc_rs::Ticketer::new()?,
            #[cfg(feature = "graviola")]
            Self::Graviola => rustls_graviola::Ticketer::new()?,
            #[cfg(feature = "rustcrypto")]
            Self::RustCrypto => Arc::new(SuiteTicketer::new(&self.crypto())?),
            Self::NoCrypto => no_crypto::ticketer(),
        })
    }
}
