//! The engine for tests, over a file in memory: it can hold operations, let
//! them go in any order, fail them, cut them short and tear writes; the file
//! knows what a crash may leave.
//!
//! Neighbours: `faulty_driver` has the gate and the faults, `mem` the file
//! and [`MemStorage`], the same file as storage.

use super::engine_sync::SyncDriver;
use super::error::Result;
use super::faults::Faults;
use super::faulty_driver::{FaultyDriver, Gate};
use super::mem::file::MemFile;
use super::queue::Queue;

pub use super::mem::storage::MemStorage;

/// An engine over a file in memory.
pub type MemEngine = Queue<FaultyDriver<SyncDriver<MemFile>>>;

impl MemEngine {
    /// An engine for up to `depth` operations on `file`, with these faults and this gate.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a depth that no queue has.
    pub fn open(file: MemFile, depth: u32, faults: Faults, gate: Gate) -> Result<Self> {
        let driver = SyncDriver::new(file, depth)?;
        Ok(Self::new(FaultyDriver::new(driver, faults, gate)))
    }
}
