//! An image's bytes in a file: [`FileStorage`], and [`IoStorage`], the same
//! over anything that answers positional system calls.
//!
//! Neighbours: `io` has the loops that make calls whole, `bounce` what direct
//! I/O needs, `sys::file` the real file; `mem` the one in memory.

use std::io::{self, IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};

use super::bounce::Bounce;
use super::error::{Error, Result};
use super::io::{ByHand, Fallocate, FileIo, punch_range, read_full, read_one, retry, write_full, zero_range};
use super::storage::Storage;
use super::sys::file::{BlockFile, FileOptions};

/// Storage over single system calls: loops over short transfers and EINTR,
/// falls back where `fallocate` has no such mode, and widens what direct I/O
/// does not take.
#[derive(Debug)]
pub struct IoStorage<I: FileIo> {
    io: I,
    path: Option<PathBuf>,
    bounce: Option<Bounce>,
}

/// An image in a file or on a block device.
///
/// Under O_DIRECT it keeps the true length of a file that ends within a block:
/// who else writes the file says so by [`Storage::written_elsewhere`].
pub type FileStorage = IoStorage<BlockFile>;

impl FileStorage {
    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// As [`BlockFile::open`].
    pub fn open(path: impl AsRef<Path>, options: FileOptions) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self::new(BlockFile::open(path, options)?).map_err(|error| error.with_path(path))?.with_path(path))
    }
}

impl<I: FileIo> IoStorage<I> {
    /// Storage over `io`.
    ///
    /// # Errors
    ///
    /// Where the length of a file under direct I/O cannot be had.
    pub fn new(io: I) -> Result<Self> {
        let len = match io.alignment().is_none() {
            true => 0,
            false => retry(|| io.size()).map_err(|e| Error::io("cannot find the length", e))?,
        };
        Ok(Self::with_len(io, len))
    }

    /// Storage over `io`, which has `len` bytes now.
    pub(crate) fn with_len(io: I, len: u64) -> Self {
        let align = io.alignment();
        Self { io, path: None, bounce: (!align.is_none()).then(|| Bounce::new(align, len)) }
    }

    /// Names the file in errors.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// What it does its system calls on.
    pub fn io(&self) -> &I {
        &self.io
    }

    #[cold]
    fn error(&self, what: &'static str, offset: u64, source: io::Error) -> Error {
        let error = Error::io(what, source).with_host(offset);
        match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        }
    }

    fn zeroing(&self, how: Fallocate, offset: u64, len: u64) -> io::Result<()> {
        let by_hand = ByHand {
            write: &|data, at| match &self.bounce {
                Some(bounce) => bounce.write_in_change(&self.io, data, at),
                None => write_full(&self.io, &[IoSlice::new(data)], at),
            },
            size: &|| match &self.bounce {
                Some(bounce) => Ok(bounce.len()),
                None => self.io.size(),
            },
        };
        let change = || match how {
            Fallocate::Allocate => retry(|| self.io.fallocate(how, offset, len)),
            Fallocate::Punch => punch_range(&self.io, offset, len, by_hand),
            Fallocate::Zero => zero_range(&self.io, offset, len, by_hand),
        };
        match &self.bounce {
            _ if len == 0 => Ok(()),
            Some(bounce) => bounce.change(offset, len, how != Fallocate::Punch, change),
            None => change(),
        }
    }
}

impl<I: FileIo> Storage for IoStorage<I> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        match &self.bounce {
            None => read_one(&self.io, buf, offset),
            Some(bounce) => bounce.read(&self.io, &mut [IoSliceMut::new(buf)], offset),
        }
        .map_err(|error| self.error("cannot read", offset, error))
    }

    fn readv_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        match &self.bounce {
            None => read_full(&self.io, bufs, offset),
            Some(bounce) => bounce.read(&self.io, bufs, offset),
        }
        .map_err(|error| self.error("cannot read", offset, error))
    }

    fn writev_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        match &self.bounce {
            None => write_full(&self.io, bufs, offset),
            Some(bounce) => bounce.write(&self.io, bufs, offset),
        }
        .map_err(|error| self.error("cannot write", offset, error))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.zeroing(Fallocate::Punch, offset, len)
            .map_err(|error| self.error("cannot punch a hole", offset, error))
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.zeroing(Fallocate::Zero, offset, len)
            .map_err(|error| self.error("cannot write zeroes", offset, error))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.zeroing(Fallocate::Allocate, offset, len)
            .map_err(|error| self.error("cannot reserve space", offset, error))
    }

    fn sync(&self) -> Result<()> {
        let trimmed = self.bounce.as_ref().map_or(Ok(()), |bounce| bounce.trim(&self.io));
        trimmed
            .and_then(|()| retry(|| self.io.fdatasync()))
            .map_err(|error| self.error("cannot sync", 0, error))
    }

    fn len(&self) -> Result<u64> {
        match &self.bounce {
            Some(bounce) => Ok(bounce.len()),
            None => retry(|| self.io.size()).map_err(|error| self.error("cannot find the length", 0, error)),
        }
    }

    fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        retry(|| self.io.next_data(offset))
            .map_err(|error| self.error("cannot find the next data", offset, error))
    }

    fn is_cached(&self) -> bool {
        self.bounce.is_none()
    }

    fn written_elsewhere(&self, end: u64) {
        if let Some(bounce) = &self.bounce {
            bounce.grown(end, end);
        }
    }

    fn set_len(&self, len: u64) -> Result<()> {
        match &self.bounce {
            Some(bounce) => bounce.set_len(&self.io, len),
            None => retry(|| self.io.truncate(len)),
        }
        .map_err(|error| self.error("cannot set the length", len, error))
    }
}

impl<I: FileIo> Drop for IoStorage<I> {
    fn drop(&mut self) {
        if let Some(bounce) = &self.bounce {
            // The sync that was not asked for has nobody to tell.
            let _ = bounce.trim(&self.io);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults::{Fault, Faults, FaultyIo, Target};
    use super::super::mem::file::MemFile;
    use super::*;

    #[test]
    fn a_read_that_ends_early_goes_on_to_the_end_of_the_file_and_no_call_further() {
        let file = MemFile::new();
        let faults = Faults::new();
        let storage = IoStorage::new(FaultyIo::new(file, faults.clone())).expect("storage");
        let content: Vec<u8> = (0..100).collect();
        storage.write_at(&content, 0).expect("written");
        let read = |at: u64, len: usize| {
            let mut buf = vec![0xff; len];
            let got = storage.read_at(&mut buf, at).map_err(|error| error.errno());
            (got, buf, faults.calls(Target::Read))
        };
        let cases: [(&[Fault], u64); 4] = [
            (&[], 1),
            (&[Fault::Short(7)], 2),
            (&[Fault::Errno(libc::EINTR), Fault::Short(60)], 3),
            (&[Fault::Short(1), Fault::Errno(libc::EINTR), Fault::Short(3)], 4),
        ];
        for (script, calls) in cases {
            faults.reset();
            for (n, fault) in script.iter().enumerate() {
                faults.at(Target::Read, n as u64, *fault);
            }
            assert_eq!(read(10, 80), (Ok(80), content[10..90].to_vec(), calls), "{script:?}");
        }
        faults.reset();
        let (got, buf, calls) = read(90, 20);
        assert_eq!((got, &buf[..10], buf[10], calls), (Ok(10), &content[90..], 0xff, 2));
        assert_eq!(read(100, 5).0, Ok(0));
        faults.reset();
        assert_eq!(read(0, 0), (Ok(0), Vec::new(), 0));
        faults.at(Target::Read, 0, Fault::Errno(libc::EIO));
        assert_eq!(read(0, 9).0, Err(Some(libc::EIO)));
    }
}
