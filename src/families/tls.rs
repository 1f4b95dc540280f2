//! The TLS suite.
use crate::scenario::Suite;

/// Registers all TLS scenarios.
pub fn register(_suite: &mut Suite) {}
