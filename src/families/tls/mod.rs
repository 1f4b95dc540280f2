//! The TLS suite: the 64 scenarios of rustls' own benchmark under names that
//! keep its words, and scenarios beyond it.
//!
//! The region of a handshake is making the connection and all turns until both
//! sides have sent and received everything, the tickets that follow included.
//! Configurations, the first handshake of a resumed one, the handshake before a
//! transfer, all checks and all drops are outside.

mod beyond;
pub mod bodies;
mod parties;
mod reference;
mod register;

pub use reference::{from_reference, reference_names, to_reference};
pub use register::register;
