//! TLS endpoints over rustls as state machines, keys, and a provider whose
//! cryptography does nothing; written as if it were a crate of its own:
//! nothing here sees the benchmark harness.
//!
//! A [`Setup`] says which provider, version, cipher suite, key and kind of
//! resumption two endpoints use, makes their configurations, and says what
//! must have been negotiated in the end. An [`Endpoint`] is one side of a
//! buffered connection, an [`Unbuffered`] one of rustls' unbuffered API: both
//! take turns over an [`Inbox`] and an [`Outbox`] and never block.

mod content;
mod dialogue;
mod endpoint;
pub mod keys;
mod link;
pub mod no_crypto;
mod provider;
mod setup;
mod side;
#[cfg(feature = "rustcrypto")]
mod suite_ticketer;
mod time;
mod transfer;
mod unbuffered;

pub use content::Content;
pub use dialogue::{Dialogue, Messages};
pub use endpoint::Endpoint;
pub use link::{Inbox, Outbox, Progress};
pub use provider::Provider;
pub use setup::{Expected, Groups, Resumption, Setup};
pub use side::{ClientSide, ServerSide, Side, UnbufferedSide};
pub use time::{FixedTime, NOW};
pub use transfer::{Incoming, Outgoing};
pub use unbuffered::Unbuffered;
