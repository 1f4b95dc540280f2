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
mod parts;
mod random;
mod sign;
mod suites;
mod ticketer;

pub use parts::{provider, ticketer, verifier};
pub use suites::{TLS12_SUITE, TLS13_SUITE};
