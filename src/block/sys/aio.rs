//! Linux AIO: a context, its completion ring in user space, and the control
//! blocks of one engine. libc has no wrappers, so these are raw system calls.
//!
//! Neighbours: `aio_context` shares one context in the
//! process, [`crate::block::engine_aio`] fills and submits control blocks.

use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::counters::{Call, count};
use super::file::check;
use super::slab::Request;
use crate::block::lock::lock;
use crate::block::op::OpKind;

/// A completion, as the kernel writes it (`struct io_event`, linux/aio_abi.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event {
    pub data: u64,
    obj: u64,
    pub result: i64,
    extra: i64,
}

/// The head of the ring that the kernel maps (`struct aio_ring`, fs/aio.c).
#[repr(C)]
struct RingHeader {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compat_features: u32,
    incompat_features: u32,
    header_length: u32,
}

const RING_MAGIC: u32 = 0xa10a_10a1;
const COMMAND_PREAD: u16 = 0;
const COMMAND_PWRITE: u16 = 1;
const COMMAND_FDSYNC: u16 = 3;
const COMMAND_PREADV: u16 = 7;
const COMMAND_PWRITEV: u16 = 8;
const FLAG_RESFD: u32 = 1;

/// A context of the kernel.
#[derive(Debug)]
pub(crate) struct Context {
    id: libc::c_ulong,
    ring: Option<NonNull<RingHeader>>,
}

// SAFETY: the kernel takes its calls from any thread; `take_ready`, which
// alone uses the ring, asks its callers to be one at a time.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// A context for `requests` at a time. Use one for the whole process:
    /// `io_destroy`, which dropping it calls, takes 30 ms.
    ///
    /// # Errors
    ///
    /// EAGAIN where `aio-max-nr` is used up, ENOSYS where the kernel has no AIO.
    pub fn setup(requests: u32) -> io::Result<Self> {
        let mut id: libc::c_ulong = 0;
        count(Call::Setup);
        // SAFETY: `id` has room for the identifier.
        check(unsafe { libc::syscall(libc::SYS_io_setup, requests, &raw mut id) })?;
        let ring = find_ring(id);
        Ok(Self { id, ring })
    }

    /// Whether completions can be taken without a system call.
    pub fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Waits for `min` completions and puts up to `events.len()` of them
    /// there; returns how many.
    pub fn get_events(&self, min: usize, events: &mut [Event]) -> io::Result<usize> {
        count(Call::AioWait);
        // SAFETY: `events` has room for as many as are asked for; no time-out
        // is passed where the call may wait, and one of 0 where it may not.
        let taken = check(unsafe {
            let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let timeout = if min == 0 { &raw const now } else { std::ptr::null() };
            libc::syscall(libc::SYS_io_getevents, self.id, min, events.len(), events.as_mut_ptr(), timeout)
        })?;
        Ok(taken as usize)
    }

    /// Takes what is in the ring, in order, without a system call. Only one
    /// thread may be in here or in [`Context::get_events`] at a time, or a
    /// completion may be seen twice.
    pub fn take_ready(&self, mut each: impl FnMut(Event)) {
        let Some(ring) = self.ring else { return };
        // SAFETY: the kernel keeps the ring mapped until `io_destroy`, which
        // only `drop` calls; head and tail are atomic, the rest is constant.
        let header = unsafe { ring.as_ref() };
        let entries = header.entries;
        // SAFETY: the events follow the header.
        let events = unsafe { ring.add(1) }.cast::<Event>();
        let mut head = header.head.load(Ordering::Relaxed);
        // Acquire: the kernel writes events before it moves the tail.
        let tail = header.tail.load(Ordering::Acquire);
        if head == tail || tail >= entries || head >= entries {
            return;
        }
        while head != tail {
            // SAFETY: `head` is below `entries`, and the kernel does not write
            // to events between head and tail.
            each(unsafe { events.add(head as usize).read() });
            head = if head + 1 == entries { 0 } else { head + 1 };
        }
        // Release: the kernel may write to them only after they were read.
        header.head.store(head, Ordering::Release);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        count(Call::Setup);
        // SAFETY: the identifier is this context's. The kernel waits for what is in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

/// The ring of a context, where it is laid out as this code knows. Every page
/// of it is touched once, so that no completion pays for that.
fn find_ring(id: libc::c_ulong) -> Option<NonNull<RingHeader>> {
    let ring = NonNull::new(id as *mut RingHeader)?;
    // SAFETY: a context's identifier is the address of its ring (fs/aio.c,
    // `aio_setup_ring`), which starts with at least a page.
    let header = unsafe { ring.as_ref() };
    let known = header.magic == RING_MAGIC
        && header.incompat_features == 0
        && header.header_length as usize == mem::size_of::<RingHeader>()
        && header.entries > 0;
    if !known {
        return None;
    }
    let bytes = mem::size_of::<RingHeader>() + header.entries as usize * mem::size_of::<Event>();
    for page in (0..bytes).step_by(4096) {
        // SAFETY: within the ring, which is readable; nothing is in flight yet.
        unsafe { ring.cast::<u8>().add(page).read_volatile() };
    }
    Some(ring)
}

/// The control blocks of one engine: one for each slot, and those that wait
/// to be submitted, in order.
pub(crate) struct Controls {
    blocks: Box<[libc::iocb]>,
    waiting: Vec<*mut libc::iocb>,
    /// How many of `waiting` the kernel has.
    taken: usize,
}

/// Blocks that late completions point to.
static PARKED: Mutex<Vec<Box<[libc::iocb]>>> = Mutex::new(Vec::new());

// SAFETY: `waiting` points into `blocks`, which moves with it and stays where it is.
unsafe impl Send for Controls {}

/// Where a control block's completion goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub file: RawFd,
    /// Comes back in [`Event::data`].
    pub data: u64,
    /// The eventfd to signal.
    pub event: Option<RawFd>,
}

impl Controls {
    /// Blocks for `depth` slots.
    pub fn new(depth: u32) -> Self {
        // SAFETY: an iocb of zeroes is valid: it is plain numbers.
        let block = |_| unsafe { mem::zeroed::<libc::iocb>() };
        Self {
            blocks: (0..depth).map(block).collect(),
            waiting: Vec::with_capacity(depth as usize),
            taken: 0,
        }
    }

    /// Fills the block of `slot` and lets it wait for [`Controls::submit`].
    /// `request` must be one that AIO has: not a `fallocate`.
    pub fn push(&mut self, slot: u32, request: &Request, target: Target) {
        let block = &mut self.blocks[slot as usize];
        block.aio_data = target.data;
        block.aio_fildes = target.file as u32;
        block.aio_offset = request.offset as i64;
        block.aio_flags = if target.event.is_some() { FLAG_RESFD } else { 0 };
        block.aio_resfd = target.event.unwrap_or(0) as u32;
        let (command, buf, len) = command(request);
        block.aio_lio_opcode = command;
        block.aio_buf = buf;
        block.aio_nbytes = len;
        self.waiting.push(block);
    }

    /// Blocks that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len() - self.taken
    }

    /// The `data` of the first that waits.
    pub fn first(&self) -> Option<u64> {
        let block = self.waiting.get(self.taken)?;
        // SAFETY: points into `blocks`, which is not borrowed otherwise.
        Some(unsafe { (**block).aio_data })
    }

    /// Takes the first that waits out, without submitting it.
    pub fn skip(&mut self) {
        self.advance(1);
    }

    /// One `io_submit` of what waits, at most `limit` of them. Returns how
    /// many the kernel took, which may be only a part.
    pub fn submit(&mut self, context: &Context, limit: usize) -> io::Result<usize> {
        let rest = &mut self.waiting[self.taken..];
        let offered = rest.len().min(limit);
        count(Call::AioSubmit);
        // SAFETY: each pointer is to a block of ours; the kernel reads blocks
        // and lists of buffers during the call only, and the buffers stay in
        // their slots until the slot is reported finished.
        let taken =
            check(unsafe { libc::syscall(libc::SYS_io_submit, context.id, offered, rest.as_mut_ptr()) })?
                as usize;
        self.advance(taken);
        Ok(taken)
    }

    /// Keeps the blocks for the rest of the process: completions that are
    /// still to come point to them.
    pub fn park(&mut self) {
        lock(&PARKED).push(mem::take(&mut self.blocks));
    }

    fn advance(&mut self, by: usize) {
        self.taken += by;
        if self.taken >= self.waiting.len() {
            self.waiting.clear();
            self.taken = 0;
        }
    }
}

/// Command, buffer or list of buffers, and length or count.
fn command(request: &Request) -> (u16, u64, u64) {
    let (one, many) = match request.kind {
        OpKind::Read => (COMMAND_PREAD, COMMAND_PREADV),
        OpKind::Write => (COMMAND_PWRITE, COMMAND_PWRITEV),
        _ => return (COMMAND_FDSYNC, 0, 0),
    };
    match request.single() {
        Some(iov) => (one, iov.iov_base as u64, iov.iov_len as u64),
        None => (many, request.iovs as u64, u64::from(request.count)),
    }
}
