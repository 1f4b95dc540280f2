//! One io_uring, its file registered, its opcodes probed.
//!
//! Neighbours: [`crate::block::engine_uring`] is the engine over it,
//! [`crate::block::probe`] reports what [`supported`] finds.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use io_uring::{IoUring, Probe, opcode, squeue, types};

use super::counters::{Call, count};
use super::file::fallocate_mode;
use super::slab::Request;
use crate::block::buf::{AlignedBuf, Registered};
use crate::block::error::{Error, ErrorKind, Result};
use crate::block::op::OpKind;

/// The opcodes that the engine uses, with their names.
pub const OPCODES: [(&str, u8); 8] = [
    ("READ", opcode::Read::CODE),
    ("WRITE", opcode::Write::CODE),
    ("READV", opcode::Readv::CODE),
    ("WRITEV", opcode::Writev::CODE),
    ("FSYNC", opcode::Fsync::CODE),
    ("FALLOCATE", opcode::Fallocate::CODE),
    ("READ_FIXED", opcode::ReadFixed::CODE),
    ("WRITE_FIXED", opcode::WriteFixed::CODE),
];

/// Without the first five there is no engine; the others have a way around them.
const NEEDED: usize = 5;

/// The most that one transfer moves, in bytes (`MAX_RW_COUNT`).
const MAX_TRANSFER: usize = 0x7fff_f000;

/// Buffers registered with one ring at most.
const MAX_REGISTERED: usize = 1 << 14;

/// Names of the opcodes of [`OPCODES`] that this kernel has.
///
/// # Errors
///
/// `Missing` with errno where io_uring is not there or not allowed.
pub fn supported() -> Result<Vec<&'static str>> {
    count(Call::Setup);
    let ring = IoUring::new(2).map_err(missing)?;
    let probe = probe(&ring)?;
    let there = OPCODES.iter().filter(|(_, code)| probe.is_supported(*code));
    Ok(there.map(|(name, _)| *name).collect())
}

fn missing(error: io::Error) -> Error {
    let reason = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring",
        Some(libc::EPERM) => "io_uring is not allowed here (kernel.io_uring_disabled, or a filter)",
        Some(libc::ENOMEM) => "no locked memory for an io_uring (RLIMIT_MEMLOCK)",
        _ => "cannot set up an io_uring",
    };
    Error::missing(reason, error)
}

fn probe(ring: &IoUring) -> Result<Probe> {
    let mut probe = Probe::new();
    count(Call::Setup);
    ring.submitter()
        .register_probe(&mut probe)
        .map_err(|error| Error::missing("this io_uring cannot say which opcodes it has", error))?;
    Ok(probe)
}

/// An entry for the ring's file, by its registration where it has one.
macro_rules! entry {
    ($ring:ident, $op:ident($($arg:expr),*), $($set:ident($value:expr)),+) => {
        if $ring.file_registered {
            opcode::$op::new(types::Fixed(0), $($arg),*)$(.$set($value))+.build()
        } else {
            opcode::$op::new(types::Fd($ring.file), $($arg),*)$(.$set($value))+.build()
        }
    };
}

/// A ring for the operations on one file.
pub(crate) struct Ring {
    ring: IoUring,
    number: u32,
    file: RawFd,
    file_registered: bool,
    has_fallocate: bool,
    has_fixed: bool,
}

/// Numbers for rings, never used twice, so that a buffer of one ring is not
/// taken for another's.
static NUMBERS: AtomicU32 = AtomicU32::new(0);

impl Ring {
    /// A ring for `depth` operations on `file`.
    ///
    /// # Errors
    ///
    /// `Missing` with the reason where there is no io_uring, or it lacks opcodes.
    pub fn new(depth: u32, file: BorrowedFd<'_>) -> Result<Self> {
        let ring = build(depth)?;
        let probe = probe(&ring)?;
        let lacks = OPCODES[..NEEDED].iter().find(|(_, code)| !probe.is_supported(*code));
        if let Some((name, _)) = lacks {
            return Err(Error::new(ErrorKind::Missing, format!("this kernel's io_uring has no {name}")));
        }
        count(Call::Setup);
        // Registered, the file is not looked up again for each operation.
        let file_registered = ring.submitter().register_files(&[file.as_raw_fd()]).is_ok();
        Ok(Self {
            ring,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            file: file.as_raw_fd(),
            file_registered,
            has_fallocate: probe.is_supported(opcode::Fallocate::CODE),
            has_fixed: probe.is_supported(opcode::ReadFixed::CODE)
                && probe.is_supported(opcode::WriteFixed::CODE),
        })
    }

    /// Whether the ring can do `fallocate`.
    pub fn has_fallocate(&self) -> bool {
        self.has_fallocate
    }

    /// Puts an attempt into the submission queue; `false` where that is full.
    pub fn push(&mut self, slot: u32, request: &Request) -> bool {
        let entry = self.entry(request).user_data(slot.into());
        // SAFETY: the buffers and their list are in the slot until the slot is
        // reported finished, which is after this entry's completion.
        unsafe { self.ring.submission().push(&entry) }.is_ok()
    }

    fn entry(&self, request: &Request) -> squeue::Entry {
        match (request.kind, request.single()) {
            (OpKind::Read | OpKind::Write, Some(iov)) => self.single(request, iov),
            (OpKind::Read | OpKind::Write, None) => self.vectored(request),
            (OpKind::WriteZeroes | OpKind::Discard | OpKind::Flush, _) => self.bufferless(request),
        }
    }

    fn single(&self, request: &Request, iov: libc::iovec) -> squeue::Entry {
        // What does not fit is left to the next attempt.
        let len = iov.iov_len.min(MAX_TRANSFER) as u32;
        let start = iov.iov_base.cast::<u8>();
        let offset = request.offset;
        let place = request.registered.filter(|place| place.ring == self.number);
        match (request.kind, place.map(|place| place.index)) {
            (OpKind::Read, None) => entry!(self, Read(start, len), offset(offset)),
            (OpKind::Read, Some(index)) => {
                entry!(self, ReadFixed(start, len, index), offset(offset))
            }
            (_, None) => entry!(self, Write(start.cast_const(), len), offset(offset)),
            (_, Some(index)) => {
                entry!(self, WriteFixed(start.cast_const(), len, index), offset(offset))
            }
        }
    }

    fn vectored(&self, request: &Request) -> squeue::Entry {
        let (list, count) = (request.iovs, request.count);
        match request.kind {
            OpKind::Read => entry!(self, Readv(list, count), offset(request.offset)),
            _ => entry!(self, Writev(list, count), offset(request.offset)),
        }
    }

    fn bufferless(&self, request: &Request) -> squeue::Entry {
        match request.kind.fallocate() {
            Some(how) => {
                let mode = fallocate_mode(how);
                entry!(self, Fallocate(request.len), offset(request.offset), mode(mode))
            }
            None => entry!(self, Fsync(), flags(types::FsyncFlags::DATASYNC)),
        }
    }

    /// Entries that the kernel has not taken yet.
    pub fn unsubmitted(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// One `io_uring_enter`: submits all entries and waits for `min` completions.
    pub fn enter(&mut self, min: usize) -> io::Result<usize> {
        count(Call::RingEnter);
        self.ring.submitter().submit_and_wait(min)
    }

    /// Takes all completions that are there: slot, and bytes or a negated errno.
    pub fn take(&mut self, mut each: impl FnMut(u32, i32)) {
        for entry in self.ring.completion() {
            each(entry.user_data() as u32, entry.result());
        }
    }

    /// Lets the kernel signal completions on `event`.
    pub fn register_eventfd(&self, event: BorrowedFd<'_>) -> Result<()> {
        count(Call::Setup);
        self.ring
            .submitter()
            .register_eventfd(event.as_raw_fd())
            .map_err(|error| Error::io("cannot register an eventfd with the io_uring", error))
    }

    /// Registers `bufs` with the ring and marks them so. Once for a ring.
    ///
    /// # Errors
    ///
    /// `Missing` where the ring has no such opcodes, or the system no locked
    /// memory; `InvalidInput` for too many.
    pub fn register_buffers(&mut self, bufs: &mut [AlignedBuf]) -> Result<()> {
        if !self.has_fixed {
            return Err(Error::new(ErrorKind::Missing, "this io_uring has no registered buffers"));
        }
        if bufs.len() > MAX_REGISTERED {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{} buffers to register, {MAX_REGISTERED} at most", bufs.len()),
            ));
        }
        let list: Vec<libc::iovec> = bufs
            .iter_mut()
            .map(|buf| libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.capacity() })
            .collect();
        count(Call::Setup);
        // SAFETY: the memory is the buffers'. The kernel pins its pages, and
        // entries name a registered buffer only for an operation that owns it.
        unsafe { self.ring.submitter().register_buffers(&list) }
            .map_err(|error| Error::missing("cannot register buffers with the io_uring", error))?;
        for (index, buf) in bufs.iter_mut().enumerate() {
            buf.set_registered(Registered { ring: self.number, index: index as u16 });
        }
        Ok(())
    }
}

/// A ring that goes on after an entry that the kernel refuses, where it can.
fn build(depth: u32) -> Result<IoUring> {
    count(Call::Setup);
    let willing = IoUring::builder().setup_submit_all().build(depth);
    let ring = match willing {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            count(Call::Setup);
            IoUring::builder().build(depth)
        }
        other => other,
    };
    ring.map_err(missing)
}
