//! One operation and its completion. The operation owns its buffers from
//! submission to completion, and the completion gives them back.
//!
//! Neighbours: `buf` for the buffers, `engine` takes operations and returns
//! completions, `sys::slab` keeps them in between.

use std::io;

use super::buf::AlignedBuf;
use super::error::{Error, ErrorKind, Result};
use super::io::Fallocate;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Fill the buffers; past the end of the file with zeroes.
    Read,
    /// Write the buffers.
    Write,
    /// Make a range read as zeroes, keeping its space reserved; may grow the file.
    WriteZeroes,
    /// Make a range read as zeroes, giving its space back; the length stays.
    Discard,
    /// What had completed before is on stable storage.
    Flush,
}

impl OpKind {
    /// The mode of `fallocate` that does it, where one does.
    pub(crate) fn fallocate(self) -> Option<Fallocate> {
        match self {
            Self::WriteZeroes => Some(Fallocate::Zero),
            Self::Discard => Some(Fallocate::Punch),
            Self::Read | Self::Write | Self::Flush => None,
        }
    }
}

/// The buffers of an operation.
#[derive(Debug, Default)]
pub enum Buffers {
    /// None: zeroes, discard, flush.
    #[default]
    None,
    /// One.
    One(AlignedBuf),
    /// Several, used in order.
    Many(Vec<AlignedBuf>),
}

impl Buffers {
    /// The buffers in order.
    pub fn as_slice(&self) -> &[AlignedBuf] {
        match self {
            Self::None => &[],
            Self::One(buf) => std::slice::from_ref(buf),
            Self::Many(bufs) => bufs,
        }
    }

    /// The buffers in order, to change.
    pub fn as_mut_slice(&mut self) -> &mut [AlignedBuf] {
        match self {
            Self::None => &mut [],
            Self::One(buf) => std::slice::from_mut(buf),
            Self::Many(bufs) => bufs,
        }
    }

    /// Length of all of them, in bytes.
    pub fn total(&self) -> u64 {
        self.as_slice().iter().map(|buf| buf.len() as u64).sum()
    }

    /// The only buffer, where there is just one.
    pub fn into_one(self) -> Option<AlignedBuf> {
        match self {
            Self::One(buf) => Some(buf),
            Self::Many(mut bufs) if bufs.len() == 1 => bufs.pop(),
            Self::Many(_) | Self::None => None,
        }
    }
}

/// An operation, to be submitted to an engine.
#[derive(Debug)]
pub struct Op {
    pub(crate) kind: OpKind,
    pub(crate) tag: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) bufs: Buffers,
}

impl Op {
    /// Reads at `offset` into `buf`.
    pub fn read(tag: u64, offset: u64, buf: AlignedBuf) -> Self {
        Self::with(OpKind::Read, tag, offset, Buffers::One(buf))
    }

    /// Reads at `offset` into `bufs`, in order.
    pub fn readv(tag: u64, offset: u64, bufs: Vec<AlignedBuf>) -> Self {
        Self::with(OpKind::Read, tag, offset, Buffers::Many(bufs))
    }

    /// Writes `buf` at `offset`.
    pub fn write(tag: u64, offset: u64, buf: AlignedBuf) -> Self {
        Self::with(OpKind::Write, tag, offset, Buffers::One(buf))
    }

    /// Writes `bufs` at `offset`, in order.
    pub fn writev(tag: u64, offset: u64, bufs: Vec<AlignedBuf>) -> Self {
        Self::with(OpKind::Write, tag, offset, Buffers::Many(bufs))
    }

    /// Makes `[offset, offset + len)` read as zeroes; see [`OpKind::WriteZeroes`].
    pub fn write_zeroes(tag: u64, offset: u64, len: u64) -> Self {
        Self { len, ..Self::with(OpKind::WriteZeroes, tag, offset, Buffers::None) }
    }

    /// Discards `[offset, offset + len)`; see [`OpKind::Discard`].
    pub fn discard(tag: u64, offset: u64, len: u64) -> Self {
        Self { len, ..Self::with(OpKind::Discard, tag, offset, Buffers::None) }
    }

    /// Makes what has completed stable; see [`OpKind::Flush`].
    pub fn flush(tag: u64) -> Self {
        Self::with(OpKind::Flush, tag, 0, Buffers::None)
    }

    /// An operation over `bufs`, whose length it takes.
    pub(crate) fn with(kind: OpKind, tag: u64, offset: u64, bufs: Buffers) -> Self {
        Self { kind, tag, offset, len: bufs.total(), bufs }
    }

    /// What it does.
    pub fn kind(&self) -> OpKind {
        self.kind
    }

    /// The caller's name for it, alone among those in flight.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Where it starts in the file, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that it covers.
    pub fn byte_len(&self) -> u64 {
        self.len
    }

    /// Its buffers, back.
    pub fn into_buffers(self) -> Buffers {
        self.bufs
    }

    /// Its buffers, to fill or to read where somebody else than an engine carries it out.
    pub fn buffers_mut(&mut self) -> &mut [AlignedBuf] {
        self.bufs.as_mut_slice()
    }

    /// What becomes of it when it is done, by whomever: `result` is bytes, or a negated errno.
    pub fn ended(self, result: i64) -> Completion {
        let Self { kind, tag, offset, bufs, .. } = self;
        Completion { kind, tag, offset, result, bufs }
    }

    /// Refuses what no file has: an end past 2^63 - 1.
    pub(crate) fn check(&self) -> Result<()> {
        match self.offset.checked_add(self.len) {
            Some(end) if end <= i64::MAX as u64 => Ok(()),
            _ => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{} bytes at {:#x} end past any file", self.len, self.offset),
            )),
        }
    }
}

/// An operation that is done, well or not.
#[derive(Debug)]
pub struct Completion {
    pub(crate) kind: OpKind,
    pub(crate) tag: u64,
    pub(crate) offset: u64,
    /// Bytes, or a negated errno.
    pub(crate) result: i64,
    pub(crate) bufs: Buffers,
}

impl Completion {
    /// The tag of the operation.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// What it did.
    pub fn kind(&self) -> OpKind {
        self.kind
    }

    /// Where the operation started in the file, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The errno that it failed with.
    pub fn errno(&self) -> Option<i32> {
        (self.result < 0).then(|| i32::try_from(-self.result).unwrap_or(libc::EIO))
    }

    /// The bytes that it covered, always all that were asked for: a read past
    /// the end of the file is filled with zeroes, a short write goes on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] (or `Exhausted` for ENOSPC) with errno and offset.
    pub fn result(&self) -> Result<u64> {
        match self.errno() {
            None => Ok(self.result.unsigned_abs()),
            Some(errno) => {
                Err(Error::io(format!("{:?} failed", self.kind), io::Error::from_raw_os_error(errno))
                    .with_host(self.offset))
            }
        }
    }

    /// Its buffers. After a failed read, what they hold is not specified.
    pub fn buffers(&self) -> &Buffers {
        &self.bufs
    }

    /// Its buffers, back.
    pub fn into_buffers(self) -> Buffers {
        self.bufs
    }
}
