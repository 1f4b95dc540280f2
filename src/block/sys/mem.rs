//! Memory with a chosen alignment, zeroed when it is allocated.
//!
//! Neighbours: [`crate::block::buf`] builds its buffers from it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::block::error::{Error, ErrorKind, Result};

/// An allocation of `len` bytes at a multiple of its alignment.
pub struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a region owns its bytes alone, like a `Box<[u8]>`.
unsafe impl Send for Region {}
// SAFETY: shared access only reads.
unsafe impl Sync for Region {}

impl Region {
    /// Allocates `len` zeroes (at least one byte) at a multiple of `align`, a
    /// power of two. [`ErrorKind::InvalidInput`] for a size that cannot be,
    /// [`ErrorKind::Exhausted`] without memory.
    pub fn zeroed(len: usize, align: usize) -> Result<Self> {
        let layout = Layout::from_size_align(len.max(1), align).map_err(|_| {
            Error::new(ErrorKind::InvalidInput, format!("no buffer can have {len} bytes aligned to {align}"))
        })?;
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or_else(|| {
            Error::new(ErrorKind::Exhausted, format!("no memory for a buffer of {len} bytes"))
        })?;
        Ok(Self { start, layout })
    }

    /// Demanded alignment, in bytes.
    pub fn align(&self) -> usize {
        self.layout.align()
    }

    /// Where the region starts, for reading and writing through the pointer
    /// while no reference to the bytes is held.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the allocation has that many initialised bytes and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this very layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
