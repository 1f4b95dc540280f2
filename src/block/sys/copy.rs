//! Whole files: copies that share blocks where the file system can, and the
//! page cache of a file, dropped and looked at.
//!
//! Neighbours: benchmarks copy images with it for each iteration; nothing of
//! it is on the way of a request, and nothing here is counted.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::file::check;

/// How a copy was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// Both files share their blocks until one of them is written.
    Shared,
    /// The data was copied; holes stayed holes.
    Data,
}

impl Copied {
    /// The name to print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "reflink",
            Self::Data => "copy",
        }
    }
}

/// Bytes moved at a time where the kernel does not copy by itself.
const PIECE: usize = 1 << 20;

/// Copies the file at `from` to `to`, which must not exist.
///
/// # Errors
///
/// With errno; what was made of `to` is left behind.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<Copied> {
    let source = File::open(from)?;
    let target = File::options().write(true).create_new(true).open(to)?;
    // SAFETY: FICLONE takes a descriptor, which is open here.
    let shared = unsafe { libc::ioctl(target.as_raw_fd(), libc::FICLONE, source.as_raw_fd()) };
    if shared == 0 {
        return Ok(Copied::Shared);
    }
    let len = source.metadata()?.len();
    target.set_len(len)?;
    let mut at = 0;
    while let Some((start, end)) = next_data(source.as_fd(), at, len)? {
        copy_range(&source, &target, start, end)?;
        at = end;
    }
    Ok(Copied::Data)
}

/// The first range of data at or after `at`.
fn next_data(file: BorrowedFd<'_>, at: u64, len: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= len {
        return Ok(None);
    }
    match seek(file, at, libc::SEEK_DATA) {
        Ok(start) => Ok(Some((start, seek(file, start, libc::SEEK_HOLE)?.min(len)))),
        // Only a hole is left.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Some((at, len))),
        Err(error) => Err(error),
    }
}

fn seek(file: BorrowedFd<'_>, at: u64, whence: i32) -> io::Result<u64> {
    // SAFETY: no pointer is passed; the file's position is used by nobody.
    check(unsafe { libc::lseek64(file.as_raw_fd(), at as i64, whence) })
}

fn copy_range(source: &File, target: &File, start: u64, end: u64) -> io::Result<()> {
    let (mut from, mut to) = (start as i64, start as i64);
    while (from as u64) < end {
        let left = (end - from as u64) as usize;
        // SAFETY: both offsets are ours to write.
        let moved = unsafe {
            libc::copy_file_range(source.as_raw_fd(), &mut from, target.as_raw_fd(), &mut to, left, 0)
        };
        match check(moved as i64) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return copy_by_hand(source, target, from as u64, end),
        }
    }
    Ok(())
}

fn copy_by_hand(source: &File, target: &File, mut at: u64, end: u64) -> io::Result<()> {
    let mut buf = vec![0; PIECE.min((end - at) as usize)];
    while at < end {
        let piece = (end - at).min(buf.len() as u64) as usize;
        let read = source.read_at(&mut buf[..piece], at)?;
        if read == 0 {
            return Ok(());
        }
        target.write_all_at(&buf[..read], at)?;
        at += read as u64;
    }
    Ok(())
}

/// Brings the file to its device and drops it from the page cache.
///
/// # Errors
///
/// With errno.
pub fn drop_cache(file: &File) -> io::Result<()> {
    file.sync_all()?;
    // SAFETY: no pointer is passed.
    let result = unsafe { libc::posix_fadvise64(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    match result {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Whether the byte at `offset` can be read without the device.
///
/// # Errors
///
/// With errno, also where the file system cannot tell.
pub fn is_cached(file: &File, offset: u64) -> io::Result<bool> {
    let mut byte = 0u8;
    let slice = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the slice names one byte that is ours to write.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &slice, 1, offset as i64, libc::RWF_NOWAIT) };
    match check(read as i64) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Bytes that can still be written below the folder at `path`.
///
/// # Errors
///
/// With errno.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let folder = File::open(path)?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `stat` has room for a statvfs.
    check(unsafe { libc::fstatvfs(folder.as_raw_fd(), stat.as_mut_ptr()) }.into())?;
    // SAFETY: zeroes are a valid statvfs, and so is what the C library writes.
    let stat = unsafe { stat.assume_init() };
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// Data, a hole of 1 MiB, data, a hole at the end.
    fn sparse(path: &Path) -> Vec<u8> {
        let mut content = vec![0u8; 3 << 20];
        content[..5000].fill(1);
        content[(1 << 20) + 7..(1 << 20) + 70_000].fill(2);
        let file = File::create_new(path).expect("a file");
        file.set_len(content.len() as u64).expect("long");
        file.write_all_at(&content[..5000], 0).expect("written");
        file.write_all_at(&content[(1 << 20) + 7..(1 << 20) + 70_000], (1 << 20) + 7).expect("written");
        content
    }

    #[test]
    fn a_copy_is_equal_and_keeps_its_holes() {
        let dir = tempfile::tempdir().expect("a folder");
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        let content = sparse(&from);
        copy_file(&from, &to).expect("copied");
        assert!(std::fs::read(&to).expect("read") == content);
        assert!(std::fs::metadata(&to).expect("there").blocks() * 512 < 1 << 20);
        let again = copy_file(&from, &to).map_err(|error| error.kind());
        assert_eq!(again, Err(io::ErrorKind::AlreadyExists));
        let third = File::create_new(dir.path().join("c")).expect("a file");
        copy_by_hand(&File::open(&from).expect("open"), &third, 0, content.len() as u64).expect("copied");
        assert!(std::fs::read(dir.path().join("c")).expect("read") == content);
    }

    #[test]
    fn what_was_dropped_is_not_cached_where_there_is_a_device() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a");
        sparse(&path);
        let file = File::open(&path).expect("open");
        drop_cache(&file).expect("dropped");
        match (is_cached(&file, 0), crate::block::probe::file_system_of(&path).as_deref()) {
            (Ok(cached), Ok("ext4" | "xfs" | "btrfs")) => assert!(!cached),
            // Elsewhere memory is the device, or it does not tell.
            _ => return,
        }
        std::fs::read(&path).expect("read");
        assert!(is_cached(&file, 0).expect("it tells"));
    }

    #[test]
    fn there_is_space_or_a_reason() {
        assert!(free_space(Path::new("/")).is_ok());
        assert!(free_space(Path::new("/no/such/folder")).is_err());
    }
}
