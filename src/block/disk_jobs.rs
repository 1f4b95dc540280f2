//! The requests of a disk whose file demands alignment: which of them may
//! run, and what each does next.
//!
//! Neighbours: `raw_disk` feeds the engine with what comes out of here.

use super::align::{Alignment, Span};
use super::buf::{AlignedBuf, BufPool};
use super::op::{Buffers, Completion, Op, OpKind};

/// Bytes of the bounce buffers that are kept for reuse.
const BOUNCE: usize = 64 << 10;

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It waits for writes to the same blocks.
    Waiting,
    /// The operation itself is with the engine.
    Passed,
    /// A bounced read is with the engine.
    Reading,
    /// The blocks around a write are being read.
    Filling,
    /// A bounced write is with the engine.
    Writing,
}

/// A request of the guest.
#[derive(Debug)]
pub(crate) struct Job {
    op: Op,
    phase: Phase,
    /// The blocks that it touches.
    span: Span,
}

/// What a job does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Submit this; its tag is the job's number.
    Submit(Op),
    /// Nothing: bytes, or a negated errno.
    Done(i64),
}

impl Job {
    pub fn kind(&self) -> OpKind {
        self.op.kind
    }

    pub fn span(&self) -> Span {
        self.span
    }

    /// The completion for the guest; `passed` are its buffers, where the
    /// engine had them.
    pub fn complete(self, result: i64, passed: Option<Buffers>) -> Completion {
        let own = self.op.bufs;
        Completion {
            kind: self.op.kind,
            tag: self.op.tag,
            offset: self.op.offset,
            result,
            bufs: match own {
                Buffers::None => passed.unwrap_or_default(),
                bufs => bufs,
            },
        }
    }

    fn order(&self) -> (OpKind, Span) {
        (self.op.kind, self.span)
    }
}

/// The requests of a disk.
#[derive(Debug)]
pub(crate) struct Jobs {
    align: Alignment,
    slots: Vec<Option<Job>>,
    free: Vec<usize>,
    /// Jobs that have not started, oldest first.
    waiting: Vec<usize>,
    pool: BufPool,
}

impl Jobs {
    /// Room for `depth` requests to a file that demands `align`.
    pub fn new(align: Alignment, depth: usize) -> Self {
        Self {
            align,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            waiting: Vec::with_capacity(depth),
            pool: BufPool::new(BOUNCE, align.memory().max(4096), depth),
        }
    }

    /// Requests that are not done.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn has_tag(&self, tag: u64) -> bool {
        self.slots.iter().flatten().any(|job| job.op.tag == tag)
    }

    /// Adds a request. The caller has seen that there is room.
    pub fn add(&mut self, op: Op) {
        let span = self.align.widen(op.offset, op.len).unwrap_or(Span::new(op.offset, op.len));
        if let Some(number) = self.free.pop() {
            self.slots[number] = Some(Job { op, phase: Phase::Waiting, span });
            self.waiting.push(number);
        }
    }

    /// Starts the oldest waiting job that conflicts with none that runs or is older.
    pub fn start_next(&mut self) -> Option<(usize, Next)> {
        let at = (0..self.waiting.len()).find(|&at| self.may_start(at))?;
        let number = self.waiting.remove(at);
        Some((number, self.start(number)))
    }

    fn may_start(&self, at: usize) -> bool {
        let number = self.waiting[at];
        let Some(job) = &self.slots[number] else {
            return false;
        };
        let older = &self.waiting[..at];
        !self.slots.iter().enumerate().any(|(other, slot)| {
            slot.as_ref().is_some_and(|other_job| {
                let before = other_job.phase != Phase::Waiting || older.contains(&other);
                other != number && before && conflict(job.order(), other_job.order())
            })
        })
    }

    fn start(&mut self, number: usize) -> Next {
        let align = self.align;
        let Some(job) = &mut self.slots[number] else {
            return Next::Done((-libc::EIO).into());
        };
        let bounces = matches!(job.op.kind, OpKind::Read | OpKind::Write) && !fits(align, &job.op);
        if !bounces {
            job.phase = Phase::Passed;
            let bufs = std::mem::take(&mut job.op.bufs);
            return Next::Submit(inner(&job.op, number, bufs));
        }
        let whole = align.fits_range(job.op.offset, job.op.len);
        job.phase = match job.op.kind {
            OpKind::Read => Phase::Reading,
            _ if whole => Phase::Writing,
            _ => Phase::Filling,
        };
        let (span, phase) = (job.span, job.phase);
        match self.bounce(span) {
            Ok(buf) if phase == Phase::Writing => self.write(number, buf),
            Ok(buf) => Next::Submit(Op::read(number as u64, span.start, buf)),
            Err(errno) => Next::Done((-errno).into()),
        }
    }

    /// A bounce buffer for `span`.
    fn bounce(&self, span: Span) -> Result<AlignedBuf, i32> {
        let len = usize::try_from(span.len()).map_err(|_| libc::ENOMEM)?;
        let buf = match len <= BOUNCE {
            true => self.pool.take(),
            false => AlignedBuf::new(len, self.align.memory().max(4096)),
        };
        let mut buf = buf.map_err(|_| libc::ENOMEM)?;
        buf.set_len(len).map_err(|_| libc::ENOMEM)?;
        Ok(buf)
    }

    /// Writes the guest's bytes into `buf`, and `buf` to the file.
    fn write(&mut self, number: usize, mut buf: AlignedBuf) -> Next {
        let Some(job) = &mut self.slots[number] else {
            return Next::Done((-libc::EIO).into());
        };
        job.phase = Phase::Writing;
        let mut at = (job.op.offset - job.span.start) as usize;
        for from in job.op.bufs.as_slice() {
            buf[at..at + from.len()].copy_from_slice(from);
            at += from.len();
        }
        Next::Submit(Op::write(number as u64, job.span.start, buf))
    }

    /// Goes on with a job after its operation has completed.
    pub fn advance(&mut self, number: usize, completion: Completion) -> Next {
        let Some(Some(job)) = self.slots.get_mut(number) else {
            return Next::Done((-libc::EIO).into());
        };
        let result = completion.result;
        let done = Next::Done(if result < 0 { result } else { job.op.len as i64 });
        match (job.phase, completion.bufs) {
            (Phase::Filling, Buffers::One(buf)) if result >= 0 => self.write(number, buf),
            (Phase::Reading, Buffers::One(buf)) => {
                if result >= 0 {
                    copy_out(job, &buf);
                }
                self.pool.give(buf);
                done
            }
            (Phase::Filling | Phase::Writing, Buffers::One(buf)) => {
                self.pool.give(buf);
                done
            }
            (_, bufs) => {
                job.op.bufs = bufs;
                done
            }
        }
    }

    /// Takes a job out that is done.
    pub fn end(&mut self, number: usize) -> Option<Job> {
        let job = self.slots.get_mut(number)?.take()?;
        self.free.push(number);
        Some(job)
    }
}

/// Whether the file takes an operation as it is.
fn fits(align: Alignment, op: &Op) -> bool {
    let fits = |buf: &AlignedBuf| align.fits_memory(buf.as_ptr().addr(), buf.len());
    align.fits_range(op.offset, op.len) && op.bufs.as_slice().iter().all(fits)
}

/// The engine's operation for a job.
fn inner(op: &Op, number: usize, bufs: Buffers) -> Op {
    Op { kind: op.kind, tag: number as u64, offset: op.offset, len: op.len, bufs }
}

/// Copies what the guest asked for out of the blocks around it.
fn copy_out(job: &mut Job, blocks: &AlignedBuf) {
    let mut at = (job.op.offset - job.span.start) as usize;
    for to in job.op.bufs.as_mut_slice() {
        let len = to.len();
        to.copy_from_slice(&blocks[at..at + len]);
        at += len;
    }
}

/// Whether two requests must not be in flight together: both write, and to a
/// common block.
fn conflict(a: (OpKind, Span), b: (OpKind, Span)) -> bool {
    let writes = |kind| !matches!(kind, OpKind::Read | OpKind::Flush);
    writes(a.0) && writes(b.0) && a.1.overlaps(b.1)
}
