//! The operations that an engine has in flight, and their buffers.
//!
//! The kernel reads and writes these buffers while no Rust reference to them
//! exists. So a slot keeps them from the moment it is handed to a driver until
//! the driver has reported it finished; and a slab that is dropped in between
//! parks its memory for the rest of the process instead of freeing it.
//!
//! Neighbours: `queue` owns a slab and passes it to its driver; [`super::aio`]
//! and [`super::uring`] turn a request into system calls.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Mutex;

use crate::block::align::{Alignment, round_down};
use crate::block::buf::Registered;
use crate::block::lock::lock;
use crate::block::op::{Buffers, Completion, Op, OpKind};

/// Whose an operation's buffers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// No operation is here.
    Nobody,
    /// The queue's.
    Queue,
    /// The driver's, so possibly the kernel's.
    Driver,
    /// The queue's, and done: only to be taken.
    Ended,
}

/// One operation, in cache lines of its own.
#[repr(align(64))]
struct Slot {
    owner: Owner,
    kind: OpKind,
    tag: u64,
    offset: u64,
    len: u64,
    /// Bytes transferred so far.
    done: u64,
    /// The most that the next attempt may transfer.
    limit: u64,
    /// Where it is done: bytes, or a negated errno.
    result: i64,
    bufs: Buffers,
    /// The rest of the buffers, as the kernel wants it.
    iovs: Vec<libc::iovec>,
}

// SAFETY: the pointers in `iovs` point into the slot's own buffers, which are
// `Send`.
unsafe impl Send for Slot {}
// SAFETY: shared access reads no memory through the pointers.
unsafe impl Sync for Slot {}

/// What is left of an operation, for one attempt.
pub(crate) struct Request {
    pub kind: OpKind,
    pub offset: u64,
    /// Bytes, where there are no buffers.
    pub len: u64,
    /// Points into the slot: valid until it is reported finished.
    pub(super) iovs: *const libc::iovec,
    pub(super) count: u32,
    pub(super) registered: Option<Registered>,
}

impl Request {
    /// The buffer: address and length; `None` where there are several.
    pub(super) fn single(&self) -> Option<libc::iovec> {
        match self.count {
            0 => Some(libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }),
            // SAFETY: `iovs` points to `count` of them.
            1 => Some(unsafe { *self.iovs }),
            _ => None,
        }
    }
}

/// What becomes of an operation after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is done: bytes, or a negated errno.
    Finished(i64),
    /// The rest is to be tried.
    Again,
    /// The file system has no such `fallocate`.
    Fallback,
}

/// Operations in flight, by slot number.
pub struct Slab {
    slots: Box<[Slot]>,
    free: Vec<u32>,
    with_driver: usize,
}

/// Memory that the kernel may still write to: never freed, still reachable.
static PARKED: Mutex<Vec<Box<[Slot]>>> = Mutex::new(Vec::new());

impl Slab {
    /// Room for `depth` operations.
    pub(crate) fn new(depth: u32) -> Self {
        let slot = |_| Slot {
            owner: Owner::Nobody,
            kind: OpKind::Flush,
            tag: 0,
            offset: 0,
            len: 0,
            done: 0,
            limit: u64::MAX,
            result: 0,
            bufs: Buffers::None,
            iovs: Vec::with_capacity(1),
        };
        Self { slots: (0..depth).map(slot).collect(), free: (0..depth).rev().collect(), with_driver: 0 }
    }

    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Operations that a driver has and has not reported finished.
    pub(crate) fn with_driver(&self) -> usize {
        self.with_driver
    }

    /// A free slot, for [`Slab::fill`]; `None` where there is no room.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Puts `op` into a reserved slot.
    #[inline]
    pub(crate) fn fill(&mut self, number: u32, op: Op) {
        let slot = &mut self.slots[number as usize];
        slot.owner = Owner::Queue;
        slot.kind = op.kind;
        slot.tag = op.tag;
        slot.offset = op.offset;
        slot.len = op.len;
        slot.done = 0;
        slot.limit = u64::MAX;
        slot.bufs = op.bufs;
    }

    /// Marks a slot as the driver's from now on.
    #[inline]
    pub(crate) fn hand_over(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        self.with_driver += usize::from(slot.owner == Owner::Queue);
        slot.owner = Owner::Driver;
    }

    /// Marks a slot as the queue's again: the driver and the kernel are done with it.
    #[inline]
    pub(crate) fn hand_back(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        self.with_driver -= usize::from(slot.owner == Owner::Driver);
        slot.owner = Owner::Queue;
    }

    #[inline]
    pub(crate) fn kind(&self, number: u32) -> OpKind {
        self.slots[number as usize].kind
    }

    #[inline]
    pub(crate) fn tag(&self, number: u32) -> u64 {
        self.slots[number as usize].tag
    }

    /// Offset and length of the whole operation, in bytes.
    pub(crate) fn range(&self, number: u32) -> (u64, u64) {
        let slot = &self.slots[number as usize];
        (slot.offset, slot.len)
    }

    /// Lets the next attempt transfer at most `bytes`.
    pub(crate) fn limit(&mut self, number: u32, bytes: u64) {
        self.slots[number as usize].limit = bytes;
    }

    /// What is left of an operation.
    #[inline]
    pub(crate) fn request(&mut self, number: u32) -> Request {
        let slot = &mut self.slots[number as usize];
        slot.list_rest();
        Request {
            kind: slot.kind,
            offset: slot.offset + slot.done,
            len: slot.len,
            iovs: slot.iovs.as_ptr(),
            count: slot.iovs.len().min(super::file::MAX_SLICES) as u32,
            registered: match &slot.bufs {
                Buffers::One(buf) => buf.registered(),
                Buffers::Many(_) | Buffers::None => None,
            },
        }
    }

    /// The rest of the buffers to read into, and where in the file.
    pub(crate) fn read_slices(&mut self, number: u32) -> (&mut [IoSliceMut<'_>], u64) {
        let slot = &mut self.slots[number as usize];
        slot.list_rest();
        let (start, count) = (slot.iovs.as_mut_ptr(), slot.iovs.len());
        // SAFETY: an IoSliceMut has the layout of an iovec; each points to
        // bytes of a buffer of this slot, no two to the same, and the slot is
        // borrowed exclusively for as long as the slices live.
        let slices = unsafe { std::slice::from_raw_parts_mut(start.cast(), count) };
        (slices, slot.offset + slot.done)
    }

    /// The rest of the buffers to write from, and where in the file.
    pub(crate) fn write_slices(&mut self, number: u32) -> (&[IoSlice<'_>], u64) {
        let slot = &mut self.slots[number as usize];
        slot.list_rest();
        let (start, count) = (slot.iovs.as_ptr(), slot.iovs.len());
        // SAFETY: an IoSlice has the layout of an iovec; each points to bytes
        // of a buffer of this slot, which is borrowed for as long as they live.
        let slices = unsafe { std::slice::from_raw_parts(start.cast(), count) };
        (slices, slot.offset + slot.done)
    }

    /// What becomes of an operation whose attempt ended with `result`, bytes
    /// or a negated errno, on a file that demands `align`.
    #[inline]
    pub(crate) fn advance(&mut self, number: u32, result: i32, align: Alignment) -> Step {
        let slot = &mut self.slots[number as usize];
        slot.limit = u64::MAX;
        match (slot.kind, result) {
            (_, errno) if errno == -libc::EINTR => Step::Again,
            (OpKind::WriteZeroes | OpKind::Discard, errno) if errno == -libc::EOPNOTSUPP => Step::Fallback,
            (OpKind::WriteZeroes | OpKind::Discard, _) if slot.len == 0 => Step::Finished(0),
            (_, errno) if errno < 0 => Step::Finished(errno.into()),
            (OpKind::Read, bytes) => slot.read_more(bytes.unsigned_abs().into(), align),
            (OpKind::Write, bytes) => slot.wrote_more(bytes.unsigned_abs().into(), align),
            _ => Step::Finished(slot.len as i64),
        }
    }

    /// Takes an operation out to `out` whose attempt moved all that was left of it, the usual end: its tag.
    /// `None` for any other end, which [`Slab::hand_back`] and [`Slab::advance`] find out.
    #[inline]
    pub(crate) fn take_whole(&mut self, number: u32, result: i32, out: &mut Vec<Completion>) -> Option<u64> {
        let slot = &mut self.slots[number as usize];
        let moves = matches!(slot.kind, OpKind::Read | OpKind::Write);
        let bytes = u64::try_from(result).ok()?;
        if !moves || slot.done + bytes != slot.len {
            return None;
        }
        self.with_driver -= usize::from(slot.owner == Owner::Driver);
        self.free.push(number);
        out.push(slot.complete(slot.len as i64));
        Some(slot.tag)
    }

    /// Takes an operation out, with the result of [`Step::Finished`].
    #[inline]
    pub(crate) fn take(&mut self, number: u32, result: i64) -> Completion {
        self.free.push(number);
        self.slots[number as usize].complete(result)
    }

    /// Keeps an operation with the result of [`Step::Finished`], for [`Slab::take_ended`].
    #[inline]
    pub(crate) fn end(&mut self, number: u32, result: i64) {
        let slot = &mut self.slots[number as usize];
        slot.owner = Owner::Ended;
        slot.result = result;
    }

    /// Takes out the `count` operations that have ended, by their slots, which does not depend on
    /// the order in which they ended. The slots are then free in the order in which they were
    /// reserved, so that the next operations get the same ones in the same order.
    pub(crate) fn take_ended(&mut self, count: usize, mut each: impl FnMut(Completion)) {
        let (free, mut left) = (self.free.len(), count);
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if left == 0 {
                break;
            }
            if slot.owner == Owner::Ended {
                each(slot.complete(slot.result));
                self.free.push(number as u32);
                left -= 1;
            }
        }
        self.free[free..].reverse();
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        if self.with_driver > 0 {
            lock(&PARKED).push(std::mem::take(&mut self.slots));
        }
    }
}

impl Slot {
    /// Its operation, done; the slot is nobody's then.
    #[inline]
    fn complete(&mut self, result: i64) -> Completion {
        self.owner = Owner::Nobody;
        Completion {
            kind: self.kind,
            tag: self.tag,
            offset: self.offset,
            result,
            bufs: std::mem::take(&mut self.bufs),
        }
    }

    /// Puts what is left, up to the limit, into `iovs`.
    #[inline]
    fn list_rest(&mut self) {
        self.iovs.clear();
        if let (Buffers::One(buf), 0, u64::MAX) = (&mut self.bufs, self.done, self.limit)
            && !buf.is_empty()
        {
            return self.iovs.push(libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() });
        }
        let (mut skip, mut left) = (self.done, self.limit);
        for buf in self.bufs.as_mut_slice() {
            let len = buf.len() as u64;
            let (from, rest) = (skip.min(len), len - skip.min(len));
            skip -= from;
            let count = rest.min(left);
            left -= count;
            if count > 0 {
                // SAFETY: `from` is at most the buffer's length.
                let base = unsafe { buf.as_mut_ptr().add(from as usize) };
                self.iovs.push(libc::iovec { iov_base: base.cast(), iov_len: count as usize });
            }
        }
    }

    #[inline]
    fn read_more(&mut self, bytes: u64, align: Alignment) -> Step {
        self.done = (self.done + bytes).min(self.len);
        let on_grid = align.fits_range(self.done, 0);
        if self.done == self.len {
            return Step::Finished(self.len as i64);
        }
        // Direct reads end off the grid at the end of the file only.
        if bytes == 0 || !on_grid {
            self.zero_rest();
            return Step::Finished(self.len as i64);
        }
        Step::Again
    }

    #[inline]
    fn wrote_more(&mut self, bytes: u64, align: Alignment) -> Step {
        let end = (self.done + bytes).min(self.len);
        if end == self.len {
            return Step::Finished(self.len as i64);
        }
        // Off the grid a direct write cannot go on: its last block is written again.
        let kept = round_down(end, align.offset());
        if kept <= self.done {
            return Step::Finished((-libc::EIO).into());
        }
        self.done = kept;
        Step::Again
    }

    /// Fills with zeroes what no byte of the file was read for.
    fn zero_rest(&mut self) {
        let mut skip = self.done;
        for buf in self.bufs.as_mut_slice() {
            let from = skip.min(buf.len() as u64);
            buf[from as usize..].fill(0);
            skip -= from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::buf::AlignedBuf;
    use proptest::prelude::*;

    fn slab_with(kind: OpKind, lens: &[usize]) -> (Slab, u32) {
        let buf = |&len: &usize| {
            let mut buf = AlignedBuf::new(len, 8).expect("memory");
            buf.fill(0xff);
            buf
        };
        let mut slab = Slab::new(1);
        let bufs = Buffers::Many(lens.iter().map(buf).collect());
        let slot = slab.reserve().expect("room");
        slab.fill(slot, Op::with(kind, 1, 4096, bufs));
        (slab, slot)
    }

    proptest! {
        /// However a read is cut, each byte is offered to the kernel once, in
        /// order, at its place in the file; what is past the end becomes zero.
        #[test]
        fn cut_reads_cover_each_byte_once(
            lens in prop::collection::vec(0usize..300, 1..6),
            cuts in prop::collection::vec(1u64..200, 1..40),
            end in 0u64..1200,
        ) {
            let (mut slab, slot) = slab_with(OpKind::Read, &lens);
            let total: usize = lens.iter().sum();
            let mut at = 0u64;
            let mut cuts = cuts.iter().cycle();
            let result = loop {
                slab.limit(slot, *cuts.next().expect("endless"));
                let (slices, offset) = slab.read_slices(slot);
                prop_assert_eq!(offset, 4096 + at);
                let mut moved = 0;
                for byte in slices.iter_mut().flat_map(|slice| slice.iter_mut()) {
                    if at == end { break }
                    *byte = at as u8;
                    (at, moved) = (at + 1, moved + 1);
                }
                if let Step::Finished(result) = slab.advance(slot, moved, Alignment::NONE) {
                    break result;
                }
            };
            prop_assert_eq!(result, total as i64);
            let done = slab.take(slot, result);
            let read: Vec<u8> = done.buffers().as_slice().iter().flat_map(|b| b.to_vec()).collect();
            for (index, &byte) in read.iter().enumerate() {
                let expected = if (index as u64) < end { index as u8 } else { 0 };
                prop_assert_eq!(byte, expected, "byte {}", index);
            }
        }

        /// However a write is cut, it ends, and no byte is skipped.
        #[test]
        fn cut_writes_skip_nothing(
            lens in prop::collection::vec(0usize..300, 1..6),
            cuts in prop::collection::vec(0u64..200, 1..40),
            shift in 0u32..4,
        ) {
            let align = Alignment::new(1, 1 << shift).expect("a power of two");
            let (mut slab, slot) = slab_with(OpKind::Write, &lens);
            let total: usize = lens.iter().sum();
            let mut reached = 4096;
            for cut in cuts.iter().cycle() {
                slab.limit(slot, *cut);
                let (slices, offset) = slab.write_slices(slot);
                prop_assert!(offset <= reached && align.fits_range(offset, 0));
                let moved: usize = slices.iter().map(|slice| slice.len()).sum();
                prop_assert!(moved as u64 <= *cut);
                reached = offset + moved as u64;
                match slab.advance(slot, moved as i32, align) {
                    Step::Finished(result) if result >= 0 => {
                        prop_assert_eq!((result, reached), (total as i64, 4096 + total as u64));
                        break;
                    }
                    Step::Finished(result) => {
                        prop_assert_eq!(result, i64::from(-libc::EIO));
                        prop_assert!((moved as u64) < align.offset(), "only without progress");
                        break;
                    }
                    step => prop_assert_eq!(step, Step::Again),
                }
            }
        }
    }

    #[test]
    fn a_slab_that_a_driver_still_uses_is_parked() {
        let before = lock(&PARKED).len();
        let (slab, _) = slab_with(OpKind::Read, &[64]);
        drop(slab);
        let (mut slab, slot) = slab_with(OpKind::Read, &[64]);
        slab.hand_over(slot);
        slab.hand_back(slot);
        drop(slab);
        assert_eq!(lock(&PARKED).len(), before, "nobody uses these");
        let (mut slab, slot) = slab_with(OpKind::Read, &[64]);
        slab.hand_over(slot);
        drop(slab);
        assert_eq!(lock(&PARKED).len(), before + 1);
    }

    #[test]
    fn zeroing_without_a_mode_falls_back() {
        let (mut slab, slot) = slab_with(OpKind::Discard, &[8]);
        let step = |slab: &mut Slab, errno: i32| slab.advance(slot, -errno, Alignment::NONE);
        assert_eq!(step(&mut slab, libc::EOPNOTSUPP), Step::Fallback);
        assert_eq!(step(&mut slab, libc::EINTR), Step::Again);
        assert_eq!(step(&mut slab, libc::EIO), Step::Finished((-libc::EIO).into()));
        assert_eq!(step(&mut slab, 0), Step::Finished(8));
    }
}
