//! What a disk over an engine keeps of the requests in flight: each request,
//! the parts of writes, and what each operation of the engine is for. Plain
//! tables and bytes; nothing here starts anything.
//!
//! Neighbours: `disk` owns the tables, `disk_read` and `disk_write` fill them.

use super::super::buf::AlignedBuf;
use super::super::error::{Error, ErrorKind};
use super::super::op::{Buffers, Completion, Op};
use super::entry::Compressed;
use super::plan::{Frame, Step};
use super::sync::Range;

/// Numbered places; a free one is used again.
#[derive(Debug)]
pub struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    /// Room for `count` without an allocation.
    pub fn with_capacity(count: usize) -> Self {
        Self { places: Vec::with_capacity(count), free: Vec::with_capacity(count) }
    }

    /// How many are taken.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Puts `value` into a place; returns its number.
    pub fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(value);
                number
            }
            None => {
                self.places.push(Some(value));
                self.places.len() - 1
            }
        }
    }

    /// What is at `number`.
    pub fn get(&self, number: usize) -> Option<&T> {
        self.places.get(number)?.as_ref()
    }

    /// What is at `number`, to change.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.places.get_mut(number)?.as_mut()
    }

    /// Takes out what is at `number`.
    pub fn remove(&mut self, number: usize) -> Option<T> {
        let value = self.places.get_mut(number)?.take()?;
        self.free.push(number);
        Some(value)
    }

    /// All that are taken, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }
}

/// A request of the guest.
#[derive(Debug)]
pub struct Job {
    /// The request; its buffers are elsewhere while the engine has them.
    pub op: Op,
    /// The side of the read gate that it is counted on.
    pub side: Option<usize>,
    /// The clusters that it holds.
    pub held: Option<Range>,
    /// What it still waits for: operations, parts, and its own start.
    pub open: usize,
    /// The errno that it fails with, 0 so far.
    pub errno: i32,
}

impl Job {
    /// A request that has not started.
    pub fn new(op: Op) -> Self {
        Self { op, side: None, held: None, open: 1, errno: 0 }
    }

    /// Notes a failure; the first one counts.
    pub fn fail(&mut self, errno: i32) {
        if self.errno == 0 {
            self.errno = errno;
        }
    }

    /// The completion for the guest.
    pub fn complete(self) -> Completion {
        let result = match self.errno {
            0 => self.op.len as i64,
            errno => (-errno).into(),
        };
        Completion {
            kind: self.op.kind,
            tag: self.op.tag,
            offset: self.op.offset,
            result,
            bufs: self.op.bufs,
        }
    }
}

/// A part of a write that has a place of its own in the file.
#[derive(Debug)]
pub struct Part {
    /// Whose it is.
    pub job: usize,
    /// How it is done.
    pub step: Step,
    /// What is written around its data, if it is placed.
    pub frame: Option<Frame>,
    /// Where its data starts in the request's buffers.
    pub from: usize,
    /// Its data is all of the request's.
    pub whole: bool,
    /// Padding before and after the data.
    pub pads: [Option<AlignedBuf>; 2],
    /// Reads for the padding that are not done, and the part's own start.
    pub reads: usize,
    /// The errno that it fails with, 0 so far.
    pub errno: i32,
}

impl Part {
    /// Its buffers for the engine: padding around `data`.
    pub fn buffers(&mut self, data: Buffers) -> Buffers {
        let [head, tail] = std::mem::take(&mut self.pads);
        match (head, data, tail) {
            (None, data, None) => data,
            (head, data, tail) => {
                let mut all = Vec::with_capacity(data.as_slice().len() + 2);
                all.extend(head);
                match data {
                    Buffers::None => {}
                    Buffers::One(buf) => all.push(buf),
                    Buffers::Many(bufs) => all.extend(bufs),
                }
                all.extend(tail);
                Buffers::Many(all)
            }
        }
    }
}

/// Where bytes that are read belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The buffers of a request.
    Job(usize),
    /// The padding of a part: 0 before its data, 1 after it.
    Pad(usize, usize),
}

/// Bytes on their way to their owner.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// Who gets them.
    pub owner: Owner,
    /// Where they start in the owner's buffers.
    pub at: usize,
    /// How many they are.
    pub len: usize,
    /// Where they are on the disk.
    pub guest: u64,
    /// They are compressed.
    pub packed: Option<Compressed>,
}

/// What an operation of the engine is for.
#[derive(Debug)]
pub enum Sub {
    /// All of a request, with its buffers, or a flush.
    Whole {
        /// Whose it is.
        job: usize,
    },
    /// A piece of what is read.
    Fetch(Fetch),
    /// Data and padding of a part.
    Put {
        /// The part.
        part: usize,
        /// The request's buffers are in it: how many of them, and whether they were a list.
        guest: Option<(usize, bool)>,
    },
}

/// The errno for a completion.
pub fn errno_of(error: &Error) -> i32 {
    error.errno().unwrap_or(match error.kind() {
        ErrorKind::Exhausted => libc::ENOSPC,
        ErrorKind::InvalidInput => libc::EINVAL,
        ErrorKind::Unsupported => libc::EOPNOTSUPP,
        ErrorKind::Busy => libc::EBUSY,
        _ => libc::EIO,
    })
}

/// Shows the bytes `at..at + len` of several buffers, each piece with its place in that range.
pub fn pieces<E>(
    bufs: &mut [AlignedBuf],
    at: usize,
    len: usize,
    mut see: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut start, end) = (0, at + len);
    for buf in bufs {
        let (from, to) = (at.max(start), end.min(start + buf.len()));
        if from < to {
            see(from - at, &mut buf[from - start..to - start])?;
        }
        start += buf.len();
    }
    Ok(())
}

/// Copies `data` to the bytes of several buffers from `at` on.
pub fn scatter(bufs: &mut [AlignedBuf], at: usize, data: &[u8]) {
    let copied = pieces(bufs, at, data.len(), |from, piece| {
        piece.copy_from_slice(&data[from..from + piece.len()]);
        Ok::<(), std::convert::Infallible>(())
    });
    match copied {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

/// Copies the bytes of several buffers from `at` on to `out`.
pub fn gather(bufs: &mut [AlignedBuf], at: usize, out: &mut [u8]) {
    let copied = pieces(bufs, at, out.len(), |from, piece| {
        out[from..from + piece.len()].copy_from_slice(piece);
        Ok::<(), std::convert::Infallible>(())
    });
    match copied {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_to_their_places_in_several_buffers() {
        let buf = |len| AlignedBuf::new(len, 1).expect("memory");
        let mut bufs = vec![buf(3), buf(0), buf(5), buf(2)];
        scatter(&mut bufs, 2, &[1, 2, 3, 4, 5, 6, 7]);
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.to_vec()).collect();
        assert_eq!(all, [0, 0, 1, 2, 3, 4, 5, 6, 7, 0]);
        let mut out = [9; 4];
        gather(&mut bufs, 6, &mut out);
        assert_eq!(out, [5, 6, 7, 0]);
    }

    #[test]
    fn places_are_used_again() {
        let mut slots = Slots::with_capacity(1);
        let (a, b) = (slots.insert('a'), slots.insert('b'));
        assert_eq!((slots.remove(a), slots.remove(a), slots.len()), (Some('a'), None, 1));
        assert_eq!((slots.insert('c'), slots.get(b)), (a, Some(&'b')));
        assert_eq!(slots.iter().collect::<String>(), "cb");
    }
}
