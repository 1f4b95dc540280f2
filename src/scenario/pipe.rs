//! One direction of the link between two parties: a bounded buffer that one
//! side appends to and the other reads from, with no copy in between.
//!
//! Neighbours: `party` (both ends), `work` (which drives two parties).

use std::io::{self, IoSlice, Read, Write};

/// A bounded first-in, first-out buffer of bytes.
///
/// Writing takes no more than there is [`room`](Pipe::room); reading from an
/// empty pipe is [`io::ErrorKind::WouldBlock`], or an end of file that is an
/// error once the writer is [closed](Pipe::close).
#[derive(Debug)]
pub struct Pipe {
    bytes: Box<[u8]>,
    read: usize,
    written: usize,
    moved: u64,
    closed: bool,
}

impl Pipe {
    /// An empty pipe that holds at most `bound` bytes; they are allocated here.
    pub fn new(bound: usize) -> Self {
        Self { bytes: vec![0; bound].into(), read: 0, written: 0, moved: 0, closed: false }
    }

    /// Bytes that can be read now.
    pub fn len(&self) -> usize {
        self.written - self.read
    }

    /// Whether there is nothing to read now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that can be written now.
    pub fn room(&self) -> usize {
        self.bytes.len() - self.len()
    }

    /// What can be read now, without taking it.
    pub fn readable(&self) -> &[u8] {
        &self.bytes[self.read..self.written]
    }

    /// What can be read now, to work on in place; take it with [`consume`](Pipe::consume).
    pub fn readable_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.read..self.written]
    }

    /// Takes `n` bytes, at most [`len`](Pipe::len).
    pub fn consume(&mut self, n: usize) {
        let n = n.min(self.len());
        self.read += n;
        self.moved += n as u64;
        if self.read == self.written {
            (self.read, self.written) = (0, 0);
        }
    }

    /// Space for `n` bytes, at most [`room`](Pipe::room), to be written in
    /// place; send them with [`commit`](Pipe::commit). What it holds is left
    /// over from before.
    pub fn space(&mut self, n: usize) -> &mut [u8] {
        let n = n.min(self.room());
        if self.written + n > self.bytes.len() {
            // Only when the reader lags: move what is unread to the front.
            self.bytes.copy_within(self.read..self.written, 0);
            (self.read, self.written) = (0, self.len());
        }
        &mut self.bytes[self.written..self.written + n]
    }

    /// Appends the first `n` bytes of what was written into the [`space`](Pipe::space).
    pub fn commit(&mut self, n: usize) {
        let n = n.min(self.bytes.len() - self.written);
        self.written += n;
        self.moved += n as u64;
    }

    /// Appends what there is room for; returns how many bytes that was.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let space = self.space(bytes.len());
        let n = space.len();
        space.copy_from_slice(&bytes[..n]);
        self.commit(n);
        n
    }

    /// The writer sends no more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Empties and opens the pipe again, keeping its memory.
    pub fn reset(&mut self) {
        (self.read, self.written) = (0, 0);
        self.closed = false;
    }

    /// Bytes written plus bytes read so far: unchanged when nothing moved.
    pub fn moved(&self) -> u64 {
        self.moved
    }
}

impl Read for Pipe {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.is_empty() && !buf.is_empty() {
            return Err(if self.closed {
                io::Error::new(io::ErrorKind::UnexpectedEof, "the other party has closed the pipe")
            } else {
                io::ErrorKind::WouldBlock.into()
            });
        }
        let n = buf.len().min(self.len());
        buf[..n].copy_from_slice(&self.readable()[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl Write for Pipe {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.room() == 0 && !buf.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(self.push(buf))
    }

    /// Takes as much of all of them as there is room for: TLS libraries hand
    /// over a flight as one buffer a record.
    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let wanted: usize = bufs.iter().map(|buf| buf.len()).sum();
        if self.room() == 0 && wanted > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(bufs.iter().map(|buf| self.push(buf)).sum())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_no_more_than_its_bound_and_keeps_the_order() {
        let mut pipe = Pipe::new(4);
        assert_eq!(pipe.write(b"abcdef").expect("room"), 4);
        assert_eq!(pipe.write(b"x").map_err(|e| e.kind()), Err(io::ErrorKind::WouldBlock));
        let mut two = [0; 2];
        pipe.read_exact(&mut two).expect("two bytes");
        assert_eq!(&two, b"ab");
        assert_eq!(pipe.push(b"efg"), 2);
        assert_eq!(pipe.readable(), b"cdef");
        assert_eq!(pipe.bytes.len(), 4);
    }

    #[test]
    fn space_is_written_in_place_and_nothing_is_lost_when_the_reader_lags() {
        let mut pipe = Pipe::new(6);
        pipe.space(4).copy_from_slice(b"abcd");
        assert_eq!(pipe.readable(), b"");
        pipe.commit(4);
        pipe.consume(3);
        pipe.space(9).copy_from_slice(b"efghi");
        pipe.commit(5);
        assert_eq!((pipe.readable(), pipe.room(), pipe.moved()), (&b"defghi"[..], 0, 12));
    }

    #[test]
    fn several_buffers_go_in_at_once_as_far_as_there_is_room() {
        let mut pipe = Pipe::new(4);
        let bufs = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")];
        assert_eq!(pipe.write_vectored(&bufs).expect("room"), 4);
        assert_eq!(pipe.readable(), b"abcd");
        assert_eq!(pipe.write_vectored(&bufs).map_err(|e| e.kind()), Err(io::ErrorKind::WouldBlock));
    }

    #[test]
    fn an_empty_pipe_would_block_and_a_closed_one_is_an_error() {
        let mut pipe = Pipe::new(4);
        assert_eq!(pipe.read(&mut [0]).map_err(|e| e.kind()), Err(io::ErrorKind::WouldBlock));
        pipe.push(b"z");
        pipe.close();
        assert_eq!(pipe.read(&mut [0]).expect("what was sent before the end"), 1);
        assert_eq!(pipe.read(&mut [0]).map_err(|e| e.kind()), Err(io::ErrorKind::UnexpectedEof));
    }
}
