//! One direction of the link between two parties: a bounded buffer that one
//! side appends to and the other reads from, with no copy in between.
//!
//! Neighbours: `party` (both ends), `work` (which drives two parties).

use std::io::{self, Read, Write};

/// A bounded first-in, first-out buffer of bytes.
///
/// Writing takes no more than there is [`room`](Pipe::room); reading from an
/// empty pipe is [`io::ErrorKind::WouldBlock`], or an end of file that is an
/// error once the writer is [closed](Pipe::close).
#[derive(Debug)]
pub struct Pipe {
    bytes: Vec<u8>,
    read: usize,
    bound: usize,
    moved: u64,
    closed: bool,
}

impl Pipe {
    /// An empty pipe that holds at most `bound` bytes; they are allocated here.
    pub fn new(bound: usize) -> Self {
        Self { bytes: Vec::with_capacity(bound), read: 0, bound, moved: 0, closed: false }
    }

    /// Bytes that can be read now.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.read
    }

    /// Whether there is nothing to read now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that can be written now.
    pub fn room(&self) -> usize {
        self.bound - self.len()
    }

    /// What can be read now, without taking it.
    pub fn readable(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// What can be read now, to work on in place; take it with [`consume`](Pipe::consume).
    pub fn readable_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.read..]
    }

    /// Takes `n` bytes, at most [`len`](Pipe::len).
    pub fn consume(&mut self, n: usize) {
        let n = n.min(self.len());
        self.read += n;
        self.moved += n as u64;
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        }
    }

    /// Appends what there is room for; returns how many bytes that was.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.room());
        if self.bytes.len() + n > self.bound {
            // Only when the reader lags: move what is unread to the front.
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(&bytes[..n]);
        self.moved += n as u64;
        n
    }

    /// The writer sends no more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Empties and opens the pipe again, keeping its memory.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.read = 0;
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
        assert_eq!(pipe.bytes.capacity(), 4);
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
