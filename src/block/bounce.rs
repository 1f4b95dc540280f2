//! Requests that a file under O_DIRECT does not take as they are: widened to
//! its alignment and passed through an aligned buffer, with read, modify and
//! write serialised by range.
//!
//! Neighbours: `raw` sends such requests here; `align` does the arithmetic.
//! `raw_disk` does the same for requests in flight on an engine.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};

use super::align::{Alignment, Span, round_down, round_up};
use super::buf::{AlignedBuf, BufPool};
use super::io::{FileIo, read_full, retry, write_full};
use super::lock::lock;

/// Bytes that pass through one bounce buffer at a time; at least one block of any file.
const BOUNCE: usize = 256 << 10;
/// Bounce buffers kept for reuse.
const KEPT: usize = 4;

/// Ranges of a file that someone is writing.
#[derive(Debug, Default)]
struct RangeLocks {
    held: Mutex<Vec<Span>>,
    released: Condvar,
}

/// A held range.
struct Held<'a> {
    locks: &'a RangeLocks,
    span: Span,
}

impl RangeLocks {
    /// Waits until nobody holds a byte of `span`, and holds it.
    fn hold(&self, span: Span) -> Held<'_> {
        let mut held = lock(&self.held);
        while held.iter().any(|other| other.overlaps(span)) {
            held = self.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.push(span);
        Held { locks: self, span }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = lock(&self.locks.held);
        if let Some(index) = held.iter().position(|span| *span == self.span) {
            held.swap_remove(index);
        }
        self.locks.released.notify_all();
    }
}

/// The state of direct I/O on one file, which must have no other writer.
///
/// An unaligned write at the end makes the file longer than it should be, up
/// to the next block. The true length is kept here, shown to readers at once,
/// and given to the file at the next sync.
#[derive(Debug)]
pub(crate) struct Bounce {
    align: Alignment,
    locks: RangeLocks,
    pool: BufPool,
    /// The length that callers see.
    len: AtomicU64,
    /// The length that the file has, where that is more.
    physical: AtomicU64,
}

impl Bounce {
    /// For a file that demands `align` and has `len` bytes.
    pub fn new(align: Alignment, len: u64) -> Self {
        let memory = align.memory().max(4096);
        let size = BOUNCE.max(align.offset() as usize);
        Self {
            align,
            locks: RangeLocks::default(),
            pool: BufPool::new(size, memory, KEPT),
            len: AtomicU64::new(len),
            physical: AtomicU64::new(len),
        }
    }

    /// The length that callers see.
    pub fn len(&self) -> u64 {
        self.len.load(SeqCst)
    }

    /// Reads; returns the bytes before the end of the file.
    pub fn read(&self, io: &impl FileIo, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let total: usize = bufs.iter().map(|buf| buf.len()).sum();
        let visible = self.len().saturating_sub(offset).min(total as u64) as usize;
        let fits = self.align.fits_range(offset, 0)
            && bufs.iter().all(|buf| self.align.fits_memory(buf.as_ptr().addr(), buf.len()));
        if fits {
            return Ok(read_full(io, bufs, offset)?.min(visible));
        }
        let mut target = Cursor::new(bufs);
        let mut done = 0;
        let mut bounce = self.pool.take().map_err(no_memory)?;
        while done < visible {
            let piece = self.piece(offset + done as u64, visible - done)?;
            let got = read_block(io, &mut bounce, piece.span)?.saturating_sub(piece.skip);
            let count = piece.count.min(got);
            target.put(&bounce[piece.skip..piece.skip + count]);
            done += count;
            if count < piece.count {
                break;
            }
        }
        self.pool.give(bounce);
        Ok(done)
    }

    /// Writes all of `bufs`, aligned or not.
    pub fn write(&self, io: &impl FileIo, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let total: u64 = bufs.iter().map(|buf| buf.len() as u64).sum();
        let _held = self.locks.hold(self.span(offset, total)?);
        self.write_held(io, bufs, offset, total)
    }

    fn write_held(&self, io: &impl FileIo, bufs: &[IoSlice<'_>], offset: u64, total: u64) -> io::Result<()> {
        let fits = self.align.fits_range(offset, 0)
            && bufs.iter().all(|buf| self.align.fits_memory(buf.as_ptr().addr(), buf.len()));
        if fits {
            write_full(io, bufs, offset)?;
            self.grown(offset + total, offset + total);
            return Ok(());
        }
        let mut bounce = self.pool.take().map_err(no_memory)?;
        let mut source = Source::new(bufs);
        let mut done = 0;
        while done < total {
            let piece = self.piece(offset + done, (total - done) as usize)?;
            self.fill_edges(io, &mut bounce, &piece)?;
            source.get(&mut bounce[piece.skip..piece.skip + piece.count]);
            write_full(io, &[IoSlice::new(&bounce)], piece.span.start)?;
            done += piece.count as u64;
            self.grown(offset + done, piece.span.end);
        }
        self.pool.give(bounce);
        Ok(())
    }

    /// Puts into `bounce` what stands around the piece in the file.
    fn fill_edges(&self, io: &impl FileIo, bounce: &mut AlignedBuf, piece: &Piece) -> io::Result<()> {
        let len = piece.span.len() as usize;
        bounce.set_len(len).map_err(no_memory)?;
        let block = self.align.offset() as usize;
        let end = piece.skip + piece.count;
        let head = piece.skip > 0 || end < block;
        let tail = end < len && (len > block || !head);
        if head {
            read_padded(io, &mut bounce[..block], piece.span.start)?;
        }
        if tail {
            read_padded(io, &mut bounce[len - block..], piece.span.end - block as u64)?;
        }
        Ok(())
    }

    /// Runs `change`, a zeroing or an allocation of `[offset, offset + len)`,
    /// while no write overlaps it. `grows`: it makes the file cover the range.
    pub fn change(
        &self,
        offset: u64,
        len: u64,
        grows: bool,
        change: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let _held = self.locks.hold(self.span(offset, len)?);
        change()?;
        if grows {
            self.grown(offset + len, offset + len);
        }
        Ok(())
    }

    /// Writes zeroes within [`Bounce::change`].
    pub fn write_in_change(&self, io: &impl FileIo, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_held(io, &[IoSlice::new(data)], offset, data.len() as u64)
    }

    /// Sets the length.
    pub fn set_len(&self, io: &impl FileIo, len: u64) -> io::Result<()> {
        let start = len.min(self.len());
        let _held = self.locks.hold(self.to_the_end(start));
        retry(|| io.truncate(len))?;
        self.len.store(len, SeqCst);
        self.physical.store(len, SeqCst);
        Ok(())
    }

    /// Gives the file its true length, where an unaligned write made it longer.
    pub fn trim(&self, io: &impl FileIo) -> io::Result<()> {
        if self.physical.load(SeqCst) <= self.len() {
            return Ok(());
        }
        // Nobody writes near the end while it is cut.
        let _held = self.locks.hold(self.to_the_end(0));
        let len = self.len();
        if self.physical.load(SeqCst) > len {
            retry(|| io.truncate(len))?;
            self.physical.store(len, SeqCst);
        }
        Ok(())
    }

    /// Notes that the file has at least `len` bytes, and `physical` with the rest of its last block.
    pub fn grown(&self, len: u64, physical: u64) {
        self.len.fetch_max(len, SeqCst);
        self.physical.fetch_max(physical, SeqCst);
    }

    fn span(&self, offset: u64, len: u64) -> io::Result<Span> {
        self.align.widen(offset, len).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
    }

    fn to_the_end(&self, start: u64) -> Span {
        Span { start: round_down(start, self.align.offset()), end: u64::MAX }
    }

    /// The part of a request at `offset` that fits one bounce buffer.
    fn piece(&self, offset: u64, len: usize) -> io::Result<Piece> {
        let block = self.align.offset();
        let start = round_down(offset, block);
        let skip = (offset - start) as usize;
        let count = len.min(self.pool.size() - skip);
        let end = round_up(offset + count as u64, block)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let span = Span { start, end };
        Ok(Piece { span, skip, count })
    }
}

/// A piece of a request: the aligned span around it, and where in it the
/// request's bytes are.
#[derive(Debug)]
struct Piece {
    span: Span,
    skip: usize,
    count: usize,
}

fn no_memory(error: super::error::Error) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, error)
}

/// Reads `span` into the start of `bounce`; returns the bytes before the end of the file.
fn read_block(io: &impl FileIo, bounce: &mut AlignedBuf, span: Span) -> io::Result<usize> {
    bounce.set_len(span.len() as usize).map_err(no_memory)?;
    read_full(io, &mut [IoSliceMut::new(bounce)], span.start)
}

/// Reads all of `buf`, with zeroes past the end of the file.
fn read_padded(io: &impl FileIo, buf: &mut [u8], offset: u64) -> io::Result<()> {
    let read = read_full(io, &mut [IoSliceMut::new(buf)], offset)?;
    buf[read..].fill(0);
    Ok(())
}

/// Fills a list of slices in order.
struct Cursor<'a, 'b> {
    bufs: &'a mut [IoSliceMut<'b>],
    index: usize,
    at: usize,
}

impl<'a, 'b> Cursor<'a, 'b> {
    fn new(bufs: &'a mut [IoSliceMut<'b>]) -> Self {
        Self { bufs, index: 0, at: 0 }
    }

    fn put(&mut self, mut data: &[u8]) {
        while let Some(buf) = self.bufs.get_mut(self.index) {
            let count = data.len().min(buf.len() - self.at);
            buf[self.at..self.at + count].copy_from_slice(&data[..count]);
            data = &data[count..];
            self.at += count;
            if self.at < buf.len() {
                break;
            }
            (self.index, self.at) = (self.index + 1, 0);
        }
    }
}

/// Empties a list of slices in order.
struct Source<'a> {
    bufs: &'a [IoSlice<'a>],
    index: usize,
    at: usize,
}

impl<'a> Source<'a> {
    fn new(bufs: &'a [IoSlice<'a>]) -> Self {
        Self { bufs, index: 0, at: 0 }
    }

    fn get(&mut self, mut target: &mut [u8]) {
        while let Some(buf) = self.bufs.get(self.index) {
            let count = target.len().min(buf.len() - self.at);
            target[..count].copy_from_slice(&buf[self.at..self.at + count]);
            target = &mut target[count..];
            self.at += count;
            if self.at < buf.len() {
                break;
            }
            (self.index, self.at) = (self.index + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::io::Fallocate;
    use crate::block::mem::file::MemFile;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::thread::{self, ThreadId};

    /// A file that sees whether a block is changed between someone's read
    /// of it and their write, and gives others every chance to do so.
    struct Watch {
        file: MemFile,
        writers: AtomicUsize,
        changing: Mutex<Option<ThreadId>>,
        disturbed: AtomicBool,
    }

    impl Watch {
        fn call(&self, opens: bool) {
            let me = thread::current().id();
            let mut changing = lock(&self.changing);
            if changing.is_some_and(|other| other != me) {
                self.disturbed.store(true, SeqCst);
            }
            *changing = opens.then_some(me);
        }
    }

    impl FileIo for Watch {
        fn preadv(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
            self.call(true);
            while self.writers.load(SeqCst) < 2 {
                thread::yield_now();
            }
            (0..500).for_each(|_| thread::yield_now());
            self.file.preadv(bufs, offset)
        }

        fn pwritev(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
            self.call(false);
            self.file.pwritev(bufs, offset)
        }

        fn fallocate(&self, how: Fallocate, offset: u64, len: u64) -> io::Result<()> {
            self.file.fallocate(how, offset, len)
        }

        fn fdatasync(&self) -> io::Result<()> {
            self.file.fdatasync()
        }

        fn truncate(&self, len: u64) -> io::Result<()> {
            self.file.truncate(len)
        }

        fn size(&self) -> io::Result<u64> {
            self.file.size()
        }

        fn alignment(&self) -> Alignment {
            self.file.alignment()
        }
    }

    #[test]
    fn nobody_writes_between_the_read_and_the_write_of_a_block() {
        let align = Alignment::new(512, 4096).expect("powers of two");
        let watch = Watch {
            file: MemFile::new().with_alignment(align),
            writers: AtomicUsize::new(0),
            changing: Mutex::new(None),
            disturbed: AtomicBool::new(false),
        };
        let bounce = Bounce::new(align, 0);
        thread::scope(|scope| {
            for part in 0..2u8 {
                let (watch, bounce) = (&watch, &bounce);
                scope.spawn(move || {
                    watch.writers.fetch_add(1, SeqCst);
                    let data = [part + 1; 512];
                    let offset = u64::from(part) * 512;
                    bounce.write(watch, &[IoSlice::new(&data)], offset)
                });
            }
        });
        assert!(!watch.disturbed.load(SeqCst));
        let mut bytes = [0; 1024];
        watch.file.content().read(&mut bytes, 0);
        assert_eq!((bytes[0], bytes[1023]), (1, 2), "neither lost the other's bytes");
    }
}
