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

/// How often dropping is tried: pages on which reads ahead are under way stay.
const TRIES: u32 = 50;

/// Brings the file to its device and drops it from the page cache; returns the
/// pages that are there all the same.
///
/// # Errors
///
/// With errno.
pub fn drop_cache(file: &File) -> io::Result<usize> {
    file.sync_all()?;
    let mut left = 0;
    for _ in 0..TRIES {
        // SAFETY: no pointer is passed.
        match unsafe { libc::posix_fadvise64(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
            0 => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
        left = cached_pages(file)?;
        if left == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(left)
}

/// A mapping, which goes away with this.
struct Mapped(*mut libc::c_void, usize);

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped in `cached_pages` with this length; nothing points into it.
        unsafe { libc::munmap(self.0, self.1) };
    }
}

/// Pages of the file that are in the page cache. Asking brings none there.
///
/// # Errors
///
/// With errno.
pub fn cached_pages(file: &File) -> io::Result<usize> {
    let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if len == 0 {
        return Ok(0);
    }
    let fd = file.as_raw_fd();
    // Nobody may read it: tools that look into what a program maps would bring pages there.
    // SAFETY: a new mapping at an address of the kernel's choice, which is never accessed.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, libc::MAP_SHARED, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mapped = Mapped(start, len);
    // SAFETY: no pointer is passed.
    let page = check(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })? as usize;
    let mut present = vec![0u8; len.div_ceil(page)];
    // SAFETY: the mapping has that length, and the vector a byte for each of its pages.
    check(unsafe { libc::mincore(mapped.0, len, present.as_mut_ptr()) }.into())?;
    Ok(present.iter().filter(|page| **page & 1 == 1).count())
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
        assert!(cached_pages(&file).expect("it tells") > 0, "just written");
        let left = drop_cache(&file).expect("dropped");
        if let Ok("ext4" | "xfs" | "btrfs") = crate::block::probe::file_system_of(&path).as_deref() {
            // Elsewhere memory is the device.
            assert_eq!((left, cached_pages(&file).expect("it tells")), (0, 0));
        }
    }
}
