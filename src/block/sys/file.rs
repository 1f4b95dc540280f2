//! One open file or block device: positional system calls, and what direct
//! I/O on it demands, asked of the kernel and not assumed.
//!
//! Neighbours: [`crate::block::raw`] and the engines do their I/O on it;
//! [`crate::block::probe`] reports what it finds.

use std::fs::OpenOptions;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::counters::{Call, count, count_read_call, count_write_call};
use crate::block::align::Alignment;
use crate::block::error::{Error, ErrorKind, Result};
use crate::block::io::{Fallocate, FileIo};

/// The most slices that one vectored call takes (`IOV_MAX`).
pub(crate) const MAX_SLICES: usize = 1024;

/// Assumed where a file system takes O_DIRECT but does not say its alignment.
const DIRECT_FALLBACK: u32 = 4096;

/// How to open a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// For writing as well.
    pub write: bool,
    /// Create it if it is not there; needs `write`.
    pub create: bool,
    /// Cut it to length 0; needs `write`.
    pub truncate: bool,
    /// Past the page cache (O_DIRECT); verified, not assumed.
    pub direct: bool,
}

/// An open regular file or block device.
#[derive(Debug)]
pub struct BlockFile {
    fd: OwnedFd,
    path: PathBuf,
    alignment: Alignment,
    writable: bool,
}

impl BlockFile {
    /// Opens `path`, which must be a regular file or a block device.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] with errno from the system, [`ErrorKind::Unsupported`]
    /// for another type of file, [`ErrorKind::Missing`] where O_DIRECT is
    /// asked for and the file system has none.
    pub fn open(path: &Path, options: FileOptions) -> Result<Self> {
        // O_NONBLOCK: opening a FIFO must not wait for its other end.
        let direct = if options.direct { libc::O_DIRECT } else { 0 };
        count(Call::Setup);
        let file = OpenOptions::new()
            .read(true)
            .write(options.write)
            .create(options.create)
            .truncate(options.truncate)
            .custom_flags(direct | libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| open_error(error, options.direct).with_path(path))?;
        refuse_other_types(&file).map_err(|error| error.with_path(path))?;
        let fd = OwnedFd::from(file);
        let flags = settle_flags(fd.as_fd())
            .map_err(|e| Error::io("cannot read back the flags of the file", e).with_path(path))?;
        if options.direct && flags & libc::O_DIRECT == 0 {
            return Err(Error::new(ErrorKind::Missing, "O_DIRECT did not take effect").with_path(path));
        }
        let alignment = if options.direct { direct_alignment(fd.as_fd()) } else { Alignment::NONE };
        Ok(Self { fd, path: path.to_owned(), alignment, writable: options.write })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it goes past the page cache.
    pub fn is_direct(&self) -> bool {
        !self.alignment.is_none()
    }

    /// Whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for BlockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn open_error(error: io::Error, direct: bool) -> Error {
    if direct && error.raw_os_error() == Some(libc::EINVAL) {
        return Error::new(ErrorKind::Missing, "this file system has no O_DIRECT");
    }
    Error::io("cannot open", error)
}

fn refuse_other_types(file: &std::fs::File) -> Result<()> {
    count(Call::Stat);
    let kind =
        file.metadata().map_err(|error| Error::io("cannot find the type of the file", error))?.file_type();
    if kind.is_file() || kind.is_block_device() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsupported, "neither a regular file nor a block device"))
}

/// Clears O_NONBLOCK (io_uring would fail requests with EAGAIN for it) and
/// returns the flags that the kernel then reports.
fn settle_flags(fd: BorrowedFd<'_>) -> io::Result<i32> {
    count(Call::Setup);
    // SAFETY: F_GETFL takes no pointer.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) }.into())? as i32;
    count(Call::Setup);
    // SAFETY: F_SETFL takes an integer.
    let set = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) };
    check(set.into())?;
    count(Call::Setup);
    // SAFETY: F_GETFL takes no pointer.
    Ok(check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) }.into())? as i32)
}

/// What the kernel says direct I/O on `fd` demands (`STATX_DIOALIGN`), `None`
/// where it says nothing.
pub fn reported_alignment(fd: BorrowedFd<'_>) -> Option<Alignment> {
    let mut stat = MaybeUninit::<libc::statx>::zeroed();
    count(Call::Stat);
    // SAFETY: the path is an empty C string, and `stat` has room for a statx.
    let result = unsafe {
        libc::statx(
            fd.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            stat.as_mut_ptr(),
        )
    };
    // SAFETY: zeroes are a valid statx, and so is what the kernel writes.
    let stat = unsafe { stat.assume_init() };
    let answered = result == 0 && stat.stx_mask & libc::STATX_DIOALIGN != 0;
    answered.then(|| Alignment::new(stat.stx_dio_mem_align, stat.stx_dio_offset_align)).flatten()
}

fn direct_alignment(fd: BorrowedFd<'_>) -> Alignment {
    reported_alignment(fd)
        .or_else(|| Alignment::new(DIRECT_FALLBACK, DIRECT_FALLBACK))
        .unwrap_or(Alignment::NONE)
}

/// The number that `statfs` gives for the file system of `fd`.
pub fn file_system(fd: BorrowedFd<'_>) -> io::Result<i64> {
    let mut stat = MaybeUninit::<libc::statfs>::zeroed();
    count(Call::Stat);
    // SAFETY: `stat` has room for a statfs.
    check(unsafe { libc::fstatfs(fd.as_raw_fd(), stat.as_mut_ptr()) }.into())?;
    // SAFETY: zeroes are a valid statfs, and so is what the kernel writes.
    Ok(unsafe { stat.assume_init() }.f_type)
}

/// A result of libc, -1 turned into errno.
pub(crate) fn check(result: i64) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn signed(value: u64) -> io::Result<i64> {
    i64::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

impl FileIo for BlockFile {
    fn preadv(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let offset = signed(offset)?;
        let result = if let [buf] = bufs {
            // SAFETY: the slice is ours to write and as long as said.
            unsafe { libc::pread64(self.raw_fd(), buf.as_mut_ptr().cast(), buf.len(), offset) }
        } else {
            let slices = bufs.len().min(MAX_SLICES) as i32;
            // SAFETY: an IoSliceMut has the layout of an iovec, and its bytes are ours to write.
            unsafe { libc::preadv64(self.raw_fd(), bufs.as_ptr().cast(), slices, offset) }
        };
        // -1 moved nothing.
        count_read_call(u64::try_from(result).unwrap_or(0));
        Ok(check(result as i64)? as usize)
    }

    fn pwritev(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let offset = signed(offset)?;
        let result = if let [buf] = bufs {
            // SAFETY: the slice is readable and as long as said.
            unsafe { libc::pwrite64(self.raw_fd(), buf.as_ptr().cast(), buf.len(), offset) }
        } else {
            let slices = bufs.len().min(MAX_SLICES) as i32;
            // SAFETY: an IoSlice has the layout of an iovec, and its bytes are readable.
            unsafe { libc::pwritev64(self.raw_fd(), bufs.as_ptr().cast(), slices, offset) }
        };
        count_write_call(u64::try_from(result).unwrap_or(0));
        Ok(check(result as i64)? as usize)
    }

    fn fallocate(&self, how: Fallocate, offset: u64, len: u64) -> io::Result<()> {
        let (offset, len) = (signed(offset)?, signed(len)?);
        count(Call::Fallocate);
        // SAFETY: no pointer is passed.
        let result = unsafe { libc::fallocate64(self.raw_fd(), fallocate_mode(how), offset, len) };
        check(result.into()).map(drop)
    }

    fn fdatasync(&self) -> io::Result<()> {
        count(Call::Sync);
        // SAFETY: no pointer is passed.
        check(unsafe { libc::fdatasync(self.raw_fd()) }.into()).map(drop)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let len = signed(len)?;
        count(Call::Truncate);
        // SAFETY: no pointer is passed.
        check(unsafe { libc::ftruncate64(self.raw_fd(), len) }.into()).map(drop)
    }

    fn size(&self) -> io::Result<u64> {
        count(Call::Stat);
        // SAFETY: no pointer is passed. The file's position is used by nobody;
        // unlike fstat this answers for block devices too.
        check(unsafe { libc::lseek64(self.raw_fd(), 0, libc::SEEK_END) })
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        count(Call::Stat);
        // SAFETY: no pointer is passed. The file's position is used by nobody.
        match check(unsafe { libc::lseek64(self.raw_fd(), signed(offset)?, libc::SEEK_DATA) }) {
            Ok(data) => Ok(Some(data)),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            // A device, or a file system that keeps no account of its holes.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Some(offset)),
            Err(error) => Err(error),
        }
    }

    fn alignment(&self) -> Alignment {
        self.alignment
    }
}

/// The mode bits of `fallocate`.
pub(crate) fn fallocate_mode(how: Fallocate) -> i32 {
    match how {
        Fallocate::Allocate => 0,
        Fallocate::Punch => libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
        Fallocate::Zero => libc::FALLOC_FL_ZERO_RANGE,
    }
}
