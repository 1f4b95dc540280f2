//! Where an image's bytes live: positional, synchronous access that several
//! threads may use at once. qcow2 metadata always goes through here; guest
//! data may go through an engine instead.
//!
//! Neighbours: a file (`raw`) and the memory store of the tests
//! (`engine_mem`) implement it; `qcow2` is written against it.

use std::io::{IoSlice, IoSliceMut};

use super::error::Result;

/// Positional access to the bytes of an image.
///
/// Reads and writes are complete or an error: implementations loop over short
/// transfers and EINTR. All offsets and lengths are in bytes.
pub trait Storage: Send + Sync {
    /// Reads into `bufs` from `offset`. Returns the bytes read, which is less
    /// than asked for only at the end of the file.
    fn readv_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize>;

    /// Writes all of `bufs` at `offset`, growing the file where needed.
    fn writev_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()>;

    /// Makes `[offset, offset + len)` read as zeroes and gives its space back
    /// where the host can; the file's length stays.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;

    /// Makes `[offset, offset + len)` read as zeroes, keeping space reserved
    /// where the host can; grows the file where the range ends past its end.
    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()>;

    /// Reserves space for `[offset, offset + len)` and grows the file to cover it.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Barrier: what was written before is on stable storage when this returns.
    fn sync(&self) -> Result<()>;

    /// Length of the file.
    fn len(&self) -> Result<u64>;

    /// Whether the file is empty.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Where data begins, at `offset` or behind it; `None` where only a hole is left, which reads as
    /// zeroes. Storage that does not know its holes has none.
    fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        Ok(Some(offset))
    }

    /// Sets the length of the file.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Says that somebody else (an engine) has written the file up to `end`, for storage that keeps
    /// the length itself.
    fn written_elsewhere(&self, _end: u64) {}

    /// Whether writes go into memory first (a page cache), so that one write of a whole cluster costs
    /// less than many small ones.
    fn is_cached(&self) -> bool {
        false
    }

    /// Reads into one buffer; see [`Storage::readv_at`].
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.readv_at(&mut [IoSliceMut::new(buf)], offset)
    }

    /// Writes all of one buffer; see [`Storage::writev_at`].
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.writev_at(&[IoSlice::new(buf)], offset)
    }
}
