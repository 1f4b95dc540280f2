//! One positional system call at a time, as the kernel answers it: possibly
//! short, possibly EINTR. And the loops that make them whole.
//!
//! Neighbours: `sys::file` (a real file) and `mem` (a file in memory)
//! implement [`FileIo`], `faults` wraps either; `raw` and `engine_sync` are
//! written against it.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;

use super::align::Alignment;

/// What `fallocate` is asked to do with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallocate {
    /// Reserve space, and grow the file to cover the range.
    Allocate,
    /// Read as zeroes, give the space back, keep the length.
    Punch,
    /// Read as zeroes, keep the space reserved, grow the file to cover the range.
    Zero,
}

/// The system calls on one file that the block layer is built from. Offsets
/// and lengths are in bytes; errors carry errno.
pub trait FileIo: Send + Sync {
    /// One `preadv`: may be short; 0 is the end of the file.
    fn preadv(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize>;

    /// One `pwritev`: may be short.
    fn pwritev(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;

    /// One `fallocate`.
    fn fallocate(&self, how: Fallocate, offset: u64, len: u64) -> io::Result<()>;

    /// One `fdatasync`.
    fn fdatasync(&self) -> io::Result<()>;

    /// One `ftruncate`.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Length of the file, or of the device.
    fn size(&self) -> io::Result<u64>;

    /// Where data begins, at `offset` or behind it; `None` where only a hole is left. What does not
    /// know its holes has none.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(Some(offset))
    }

    /// What the calls above demand of offsets, lengths and addresses.
    fn alignment(&self) -> Alignment;
}

impl<I: FileIo + ?Sized> FileIo for Arc<I> {
    fn preadv(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        (**self).preadv(bufs, offset)
    }

    fn pwritev(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        (**self).pwritev(bufs, offset)
    }

    fn fallocate(&self, how: Fallocate, offset: u64, len: u64) -> io::Result<()> {
        (**self).fallocate(how, offset, len)
    }

    fn fdatasync(&self) -> io::Result<()> {
        (**self).fdatasync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        (**self).truncate(len)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        (**self).next_data(offset)
    }

    fn alignment(&self) -> Alignment {
        (**self).alignment()
    }
}

/// Repeats `call` while it is interrupted by a signal.
pub(crate) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads into all of `bufs`; returns less than their length only at the end of the file.
pub(crate) fn read_full(
    io: &(impl FileIo + ?Sized),
    mut bufs: &mut [IoSliceMut<'_>],
    offset: u64,
) -> io::Result<usize> {
    let total: usize = bufs.iter().map(|buf| buf.len()).sum();
    let step = io.alignment().offset();
    let mut done = 0;
    while done < total {
        let read = retry(|| io.preadv(bufs, offset + done as u64))?;
        done += read;
        // Direct reads end off the grid at the end of the file only.
        if read == 0 || done == total || done as u64 & (step - 1) != 0 {
            break;
        }
        IoSliceMut::advance_slices(&mut bufs, read);
    }
    Ok(done)
}

/// [`read_full`] into one buffer. Nearly all reads end with their first attempt, which is all there is here.
#[inline]
pub(crate) fn read_one(io: &(impl FileIo + ?Sized), buf: &mut [u8], offset: u64) -> io::Result<usize> {
    if buf.is_empty() {
        return Ok(0);
    }
    match io.preadv(&mut [IoSliceMut::new(buf)], offset) {
        Ok(read) if read == buf.len() => Ok(read),
        first => read_rest(io, buf, offset, first),
    }
}

/// Goes on after a first attempt that was not the last one, or was the end of the file.
#[cold]
fn read_rest(
    io: &(impl FileIo + ?Sized),
    buf: &mut [u8],
    offset: u64,
    first: io::Result<usize>,
) -> io::Result<usize> {
    let step = io.alignment().offset() as usize;
    let done = match first {
        Ok(read) if read == 0 || read & (step - 1) != 0 => return Ok(read),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        other => other?,
    };
    Ok(done + read_full(io, &mut [IoSliceMut::new(&mut buf[done..])], offset + done as u64)?)
}

/// Writes all of `bufs`.
pub(crate) fn write_full(io: &(impl FileIo + ?Sized), bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
    let total: usize = bufs.iter().map(|buf| buf.len()).sum();
    if total == 0 {
        return Ok(());
    }
    let written = retry(|| io.pwritev(bufs, offset))?;
    if written == total {
        return Ok(());
    }
    write_rest(io, bufs, offset, written, total)
}

/// The rare rest of a short write; only here is the list of slices copied.
#[cold]
fn write_rest(
    io: &(impl FileIo + ?Sized),
    bufs: &[IoSlice<'_>],
    offset: u64,
    written: usize,
    total: usize,
) -> io::Result<()> {
    let step = io.alignment().offset() as usize;
    let mut list = bufs.to_vec();
    let mut rest = list.as_mut_slice();
    let (mut done, mut last) = (0, written);
    while done + last < total {
        // Off the grid a direct write cannot go on: its last block is written again.
        let kept = (done + last) / step * step - done;
        if kept == 0 {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        IoSlice::advance_slices(&mut rest, kept);
        done += kept;
        last = retry(|| io.pwritev(rest, offset + done as u64))?;
    }
    Ok(())
}

/// Zeroes to write from.
pub(crate) static ZEROES: &[u8; 1 << 16] = &ZeroPage([0; 1 << 16]).0;

/// Aligned for any direct I/O.
#[repr(align(4096))]
struct ZeroPage([u8; 1 << 16]);

/// Whether `fallocate` said that this file or file system has no such mode.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::ENODEV))
}

/// What is needed where no `fallocate` makes zeroes.
#[derive(Clone, Copy)]
pub(crate) struct ByHand<'a> {
    /// Writes bytes at an offset.
    pub write: &'a dyn Fn(&[u8], u64) -> io::Result<()>,
    /// The length of the file.
    pub size: &'a dyn Fn() -> io::Result<u64>,
}

/// Makes a range read as zeroes and keeps it reserved, by the best way that
/// the file system has; grows the file to cover it.
pub(crate) fn zero_range(
    io: &(impl FileIo + ?Sized),
    offset: u64,
    len: u64,
    by_hand: ByHand<'_>,
) -> io::Result<()> {
    match retry(|| io.fallocate(Fallocate::Zero, offset, len)) {
        Err(error) if is_unsupported(&error) => zero_by_hole(io, offset, len, by_hand),
        other => other,
    }
}

/// [`zero_range`] where the file system has no such mode (tmpfs).
pub(crate) fn zero_by_hole(
    io: &(impl FileIo + ?Sized),
    offset: u64,
    len: u64,
    by_hand: ByHand<'_>,
) -> io::Result<()> {
    let holed = retry(|| io.fallocate(Fallocate::Punch, offset, len))
        .and_then(|()| retry(|| io.fallocate(Fallocate::Allocate, offset, len)));
    match holed {
        Err(error) if is_unsupported(&error) => write_zeroes(offset, len, by_hand),
        other => other,
    }
}

/// Makes a range read as zeroes and gives its space back where that is
/// possible; the length of the file stays.
pub(crate) fn punch_range(
    io: &(impl FileIo + ?Sized),
    offset: u64,
    len: u64,
    by_hand: ByHand<'_>,
) -> io::Result<()> {
    match retry(|| io.fallocate(Fallocate::Punch, offset, len)) {
        Err(error) if is_unsupported(&error) => {
            let len = (by_hand.size)()?.saturating_sub(offset).min(len);
            write_zeroes(offset, len, by_hand)
        }
        other => other,
    }
}

/// Writes zeroes, the last way to get them.
fn write_zeroes(offset: u64, len: u64, by_hand: ByHand<'_>) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let piece = (len - done).min(ZEROES.len() as u64) as usize;
        (by_hand.write)(&ZEROES[..piece], offset + done)?;
        done += piece as u64;
    }
    Ok(())
}

/// A result as the kernel's queues give it: bytes, or a negated errno.
pub(crate) fn raw_result(result: io::Result<usize>) -> i32 {
    match result {
        Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Zeroes a range in the ways that are left when `fallocate` has no mode for
/// `how`: 0 or a negated errno.
pub(crate) fn zero_otherwise(io: &impl FileIo, how: Fallocate, offset: u64, len: u64) -> i32 {
    let by_hand =
        ByHand { write: &|data, at| write_full(io, &[IoSlice::new(data)], at), size: &|| io.size() };
    let result = match how {
        Fallocate::Punch => punch_range(io, offset, len, by_hand),
        Fallocate::Zero | Fallocate::Allocate => zero_by_hole(io, offset, len, by_hand),
    };
    raw_result(result.map(|()| 0))
}
