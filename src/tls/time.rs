//! A clock that stands still, so that tickets and certificates are treated
//! alike in every run and no fixture expires while it is measured.
//!
//! Neighbours: `setup` gives it to both configurations.

use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// The time at which everything happens, in seconds since 1970: the first
/// second of 2026 (UTC), within the validity of all fixtures.
pub const NOW: u64 = 1_767_225_600;

/// It is always [`NOW`].
#[derive(Debug)]
pub struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(NOW)))
    }
}
