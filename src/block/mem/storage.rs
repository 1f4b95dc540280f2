//! Storage in memory for tests: faults at any call, and the states that a
//! crash may leave.
//!
//! Neighbours: `file` and `crash` under it, `crate::block::raw` for the
//! loops over short transfers, `crate::block::faults` for the script.

use std::io::{IoSlice, IoSliceMut, Write};
use std::path::Path;

use super::crash::Crash;
use super::file::MemFile;
use super::sparse::Sparse;
use crate::block::align::Alignment;
use crate::block::error::{Error, Result};
use crate::block::faults::{Faults, FaultyIo};
use crate::block::raw::IoStorage;
use crate::block::storage::Storage;

/// An image in memory, with faults and crashes on demand.
#[derive(Debug)]
pub struct MemStorage {
    storage: IoStorage<FaultyIo<MemFile>>,
}

impl Default for MemStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl MemStorage {
    /// An empty file without a journal.
    pub fn new() -> Self {
        Self::over(MemFile::new())
    }

    /// A file with these bytes, all of them synced, without a journal.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut content = Sparse::default();
        content.write(bytes, 0);
        Self::over(MemFile::from_sparse(content))
    }

    /// The content of the file at `path`, all of it synced, without a journal.
    ///
    /// # Errors
    ///
    /// With errno, where the file cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::io("cannot read", e).with_path(path))?;
        let mut content = Sparse::default();
        for (index, chunk) in bytes.chunks(4096).enumerate() {
            if chunk.iter().any(|&byte| byte != 0) {
                content.write(chunk, index as u64 * 4096);
            }
        }
        content.set_len(bytes.len() as u64);
        Ok(Self::over(MemFile::from_sparse(content)))
    }

    /// Storage over `file`; several may share one.
    pub fn over(file: MemFile) -> Self {
        let len = file.content_len();
        let storage = IoStorage::with_len(FaultyIo::new(file, Faults::new()), len);
        Self { storage }
    }

    /// The same file, demanding `alignment` as under O_DIRECT, with new faults.
    #[must_use]
    pub fn with_alignment(&self, alignment: Alignment) -> Self {
        Self::over(self.file().with_alignment(alignment))
    }

    /// Keeps a journal from now on, for [`MemStorage::crash`]; the content so
    /// far counts as synced.
    #[must_use]
    pub fn journaled(self) -> Self {
        self.file().start_journal();
        self
    }

    /// The file under it.
    pub fn file(&self) -> &MemFile {
        self.storage.io().inner()
    }

    /// The script of its faults.
    pub fn faults(&self) -> &Faults {
        self.storage.io().faults()
    }

    /// What `crash` leaves: a new image that keeps a journal of its own and has no faults.
    #[must_use]
    pub fn crash(&self, crash: Crash) -> Self {
        Self::over(self.file().after(crash)).journaled()
    }

    /// Up to `limit` images that a crash now may leave, each with its way.
    pub fn crashes(&self, limit: usize) -> impl Iterator<Item = (Crash, Self)> + '_ {
        let ways = Crash::ways(self.file().unsynced(), limit);
        ways.into_iter().map(|way| (way, self.crash(way)))
    }

    /// A copy of the content, as the running program sees it; for files that fit memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let content = self.file().content();
        let mut bytes = vec![0; content.len() as usize];
        content.read(&mut bytes, 0);
        bytes
    }

    /// Writes the content to a new sparse file at `path`.
    ///
    /// # Errors
    ///
    /// With errno, where the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        save(&self.file().content(), path).map_err(|error| Error::io("cannot save", error).with_path(path))
    }
}

fn save(content: &Sparse, path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut file = std::fs::File::create(path)?;
    for (offset, bytes) in content.data() {
        file.write_all_at(bytes, offset)?;
    }
    file.set_len(content.len())?;
    file.flush()
}

impl Storage for MemStorage {
    fn readv_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        self.storage.readv_at(bufs, offset)
    }

    fn writev_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.storage.writev_at(bufs, offset)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.storage.punch(offset, len)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.storage.write_zeroes(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.storage.allocate(offset, len)
    }

    fn sync(&self) -> Result<()> {
        self.storage.sync()
    }

    fn len(&self) -> Result<u64> {
        self.storage.len()
    }

    fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        self.storage.next_data(offset)
    }

    fn is_cached(&self) -> bool {
        self.storage.is_cached()
    }

    fn written_elsewhere(&self, end: u64) {
        self.storage.written_elsewhere(end);
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.storage.set_len(len)
    }
}
