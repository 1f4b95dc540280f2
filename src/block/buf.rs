//! Buffers for I/O: aligned, owned, reusable, and a pool of them.
//!
//! An operation owns its buffers until its completion gives them back, so the
//! memory that the kernel works on cannot be freed under it.
//!
//! Neighbours: `op` carries them, `sys::mem` allocates them, `engine_uring`
//! registers some with its ring.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use super::error::{Error, ErrorKind, Result};
use super::lock::lock;
use super::sys::mem::Region;

/// A place in the table of buffers registered with one ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registered {
    /// Number of the ring, unique in the process.
    pub ring: u32,
    /// Index in its table.
    pub index: u16,
}

/// An owned buffer at an aligned address. New ones hold zeroes.
pub struct AlignedBuf {
    region: Region,
    len: usize,
    registered: Option<Registered>,
}

impl AlignedBuf {
    /// A buffer of `len` zeroes at a multiple of `align` (a power of two), in bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a size or alignment that cannot be,
    /// [`ErrorKind::Exhausted`] without memory.
    pub fn new(len: usize, align: usize) -> Result<Self> {
        Ok(Self { region: Region::zeroed(len, align)?, len, registered: None })
    }

    /// A buffer with the bytes of `data` at a multiple of `align`, in bytes.
    ///
    /// # Errors
    ///
    /// As [`AlignedBuf::new`].
    pub fn from_slice(data: &[u8], align: usize) -> Result<Self> {
        let mut buf = Self::new(data.len(), align)?;
        buf.copy_from_slice(data);
        Ok(buf)
    }

    /// Bytes that the buffer can be made to hold by [`AlignedBuf::set_len`].
    pub fn capacity(&self) -> usize {
        self.region.len()
    }

    /// The alignment it was made with, in bytes.
    pub fn align(&self) -> usize {
        self.region.align()
    }

    /// Makes the buffer `len` bytes long; what is in the memory stays.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] past the capacity.
    pub fn set_len(&mut self, len: usize) -> Result<()> {
        if len > self.capacity() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{len} bytes in a buffer of {}", self.capacity()),
            ));
        }
        self.len = len;
        Ok(())
    }

    /// Where the bytes start, for the kernel.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.region.as_mut_ptr()
    }

    pub(crate) fn registered(&self) -> Option<Registered> {
        self.registered
    }

    pub(crate) fn set_registered(&mut self, place: Registered) {
        self.registered = Some(place);
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.region[..self.len]
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.region[..self.len]
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf")
            .field("len", &self.len)
            .field("align", &self.align())
            .finish_non_exhaustive()
    }
}

/// Buffers of one size and alignment, kept for reuse. Several threads may use it.
#[derive(Debug)]
pub struct BufPool {
    size: usize,
    align: usize,
    keep: usize,
    free: Mutex<Vec<AlignedBuf>>,
}

impl BufPool {
    /// A pool of buffers of `size` bytes at multiples of `align`, which keeps
    /// up to `keep` of them while they are not used. Allocates none yet.
    pub fn new(size: usize, align: usize, keep: usize) -> Self {
        Self { size, align, keep, free: Mutex::new(Vec::with_capacity(keep)) }
    }

    /// Size of its buffers, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A kept buffer, with what its last user left in it, or a new one with zeroes.
    ///
    /// # Errors
    ///
    /// As [`AlignedBuf::new`].
    pub fn take(&self) -> Result<AlignedBuf> {
        match lock(&self.free).pop() {
            Some(buf) => Ok(buf),
            None => AlignedBuf::new(self.size, self.align),
        }
    }

    /// Gives a buffer back. One of another size, or more than the pool keeps, is freed.
    pub fn give(&self, mut buf: AlignedBuf) {
        let ours = buf.capacity() == self.size.max(1) && buf.align() >= self.align;
        let mut free = lock(&self.free);
        if ours && free.len() < self.keep {
            buf.len = self.size;
            free.push(buf);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_resized_in_place() {
        for align in [1, 8, 512, 4096, 1 << 16] {
            let mut buf = AlignedBuf::new(1000, align).expect("memory");
            assert_eq!(buf.as_ptr().addr() % align, 0);
            assert!(buf.iter().all(|&byte| byte == 0));
            buf.fill(7);
            buf.set_len(10).expect("shorter");
            assert_eq!(*buf, [7; 10]);
            assert!(buf.set_len(1001).is_err());
        }
    }

    #[test]
    fn impossible_buffers_are_errors() {
        let kind = |len, align| AlignedBuf::new(len, align).map_err(|e| e.kind()).err();
        assert_eq!(kind(1, 3), Some(ErrorKind::InvalidInput));
        assert_eq!(kind(usize::MAX, 8), Some(ErrorKind::InvalidInput));
        assert_eq!(kind(0, 4096), None);
    }

    #[test]
    fn a_pool_reuses_its_own_and_keeps_no_more_than_told() {
        let pool = BufPool::new(4096, 512, 1);
        let mut first = pool.take().expect("memory");
        let second = pool.take().expect("memory");
        let address = first.as_ptr().addr();
        first.set_len(5).expect("shorter");
        pool.give(first);
        pool.give(second);
        pool.give(AlignedBuf::new(1, 1).expect("memory"));
        let again = pool.take().expect("memory");
        assert_eq!((again.as_ptr().addr(), again.len()), (address, 4096));
        assert_eq!(lock(&pool.free).len(), 0);
    }
}
