//! The suites that come with wallgrind; this is their only list.

pub mod block;
pub mod tls;
