//! A file in memory that knows its last barrier: what was written since may
//! be lost, and `crash` says in which ways.
//!
//! Neighbours: `sparse` holds the bytes; `storage` and `engine_mem` do I/O on
//! it; `faults` wraps it.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex};

use super::sparse::Sparse;
use crate::block::align::Alignment;
use crate::block::io::{Fallocate, FileIo};
use crate::block::lock::lock;

/// The longest file: what a host file system takes for one (2^63 - 1 bytes).
const MAX_LEN: u64 = i64::MAX as u64;

/// Something done to the file since the last barrier.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Bytes written at an offset; may grow the file.
    Write(u64, Vec<u8>),
    /// Zeroes in `[offset, offset + len)`; the length stays.
    Zero(u64, u64),
    /// The file became at least this long.
    Grow(u64),
    /// The file became this long.
    SetLen(u64),
}

/// The content now, and what a crash can fall back to.
#[derive(Debug, Default)]
pub(super) struct State {
    pub now: Sparse,
    pub journal: Option<Journal>,
}

/// The content at the last barrier and what came after it.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub base: Sparse,
    pub changes: Vec<Change>,
}

impl State {
    fn apply(&mut self, change: Change) {
        apply(&mut self.now, &change);
        if let Some(journal) = &mut self.journal {
            journal.changes.push(change);
        }
    }

    fn barrier(&mut self) {
        if let Some(journal) = &mut self.journal {
            for change in journal.changes.drain(..) {
                apply(&mut journal.base, &change);
            }
        }
    }
}

/// Does `change` to `image`.
pub(super) fn apply(image: &mut Sparse, change: &Change) {
    match change {
        Change::Write(offset, data) => image.write(data, *offset),
        Change::Zero(offset, len) => image.punch(*offset, *len),
        Change::Grow(len) => image.grow(*len),
        Change::SetLen(len) => image.set_len(*len),
    }
}

/// A file in memory. Clones are the same file.
#[derive(Clone, Debug, Default)]
pub struct MemFile {
    pub(super) state: Arc<Mutex<State>>,
    alignment: Option<Alignment>,
}

impl MemFile {
    /// An empty file that keeps no journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// A file with this content, all of it on stable storage.
    pub fn from_sparse(content: Sparse) -> Self {
        let state = State { now: content, journal: None };
        Self { state: Arc::new(Mutex::new(state)), alignment: None }
    }

    /// From now on keeps what a crash can take back; the content so far counts as synced.
    pub fn start_journal(&self) {
        let mut state = lock(&self.state);
        state.journal = Some(Journal { base: state.now.clone(), changes: Vec::new() });
    }

    /// The same file, demanding `alignment` as a file under O_DIRECT does.
    #[must_use]
    pub fn with_alignment(&self, alignment: Alignment) -> Self {
        Self { state: Arc::clone(&self.state), alignment: Some(alignment) }
    }

    /// A copy of the content as the running program sees it.
    pub fn content(&self) -> Sparse {
        lock(&self.state).now.clone()
    }

    /// Length of the content, in bytes.
    pub fn content_len(&self) -> u64 {
        lock(&self.state).now.len()
    }

    /// Changes since the last barrier; 0 without a journal.
    pub fn unsynced(&self) -> usize {
        lock(&self.state).journal.as_ref().map_or(0, |journal| journal.changes.len())
    }

    fn demand(&self, offset: u64, fits: impl Iterator<Item = (usize, usize)>) -> io::Result<()> {
        let align = self.alignment();
        let mut fits = fits.map(|(address, len)| align.fits_memory(address, len));
        match align.fits_range(offset, 0) && fits.all(|fit| fit) {
            true => Ok(()),
            false => Err(errno(libc::EINVAL)),
        }
    }
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// The end of a range that a file can have.
fn end_of(offset: u64, len: u64) -> io::Result<u64> {
    offset.checked_add(len).filter(|&end| end <= MAX_LEN).ok_or_else(|| errno(libc::EFBIG))
}

impl FileIo for MemFile {
    fn preadv(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        self.demand(offset, bufs.iter().map(|buf| (buf.as_ptr().addr(), buf.len())))?;
        let state = lock(&self.state);
        let mut done = 0;
        for buf in bufs {
            let read = state.now.read(buf, offset.saturating_add(done as u64));
            done += read;
            if read < buf.len() {
                break;
            }
        }
        Ok(done)
    }

    fn pwritev(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.demand(offset, bufs.iter().map(|buf| (buf.as_ptr().addr(), buf.len())))?;
        let total: usize = bufs.iter().map(|buf| buf.len()).sum();
        end_of(offset, total as u64)?;
        let mut data = Vec::with_capacity(total);
        for buf in bufs {
            data.extend_from_slice(buf);
        }
        if total > 0 {
            lock(&self.state).apply(Change::Write(offset, data));
        }
        Ok(total)
    }

    fn fallocate(&self, how: Fallocate, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Err(errno(libc::EINVAL));
        }
        let end = end_of(offset, len)?;
        let mut state = lock(&self.state);
        if how != Fallocate::Allocate {
            state.apply(Change::Zero(offset, len));
        }
        if how != Fallocate::Punch && end > state.now.len() {
            state.apply(Change::Grow(end));
        }
        Ok(())
    }

    fn fdatasync(&self) -> io::Result<()> {
        lock(&self.state).barrier();
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        end_of(0, len)?;
        lock(&self.state).apply(Change::SetLen(len));
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(lock(&self.state).now.len())
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(lock(&self.state).now.next_data(offset))
    }

    fn alignment(&self) -> Alignment {
        self.alignment.unwrap_or(Alignment::NONE)
    }
}
