//! Subjects with one fault each.
//!
//! Neighbours: `faults` says what has to be found.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use wallgrind::block::faults::{Fault, Faults, FaultyIo, Target};
use wallgrind::block::faulty_driver::Gate;
use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{Image, OpenOptions, Parts};
use wallgrind::block::{Buffers, Completion, MemEngine, MemStorage, Op, OpKind, RawDisk};
use wallgrind::families::block::{
    Disk, Feature, Format, Io, Ours, Setting, Subject, over_engine, over_image,
};

/// What goes wrong, at one operation in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Nothing.
    Truth,
    /// A byte of a read is another.
    WrongByte,
    /// A read stops in the middle and says that it is whole.
    SilentlyShort,
    /// A read says that it moved less than was asked for.
    Short,
    /// Nothing is read, and it says that it was.
    NotRead,
    /// A write is not done, and says that it was.
    LostWrite,
    /// A write ends up in its neighbour's place.
    Misplaced,
    /// An operation is never completed.
    Lost,
    /// An operation is completed twice, another one never.
    Twice,
    /// A discard does nothing.
    NotDiscarded,
    /// A flush does nothing, and what was written is dropped in the end.
    NotFlushed,
    /// An operation fails.
    Failed,
}

/// The operation at which it goes wrong.
const AT: usize = 77;

/// Our engines, with a lie.
pub struct Liar(pub Lie);

impl Subject for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn supports(&self, _: &Setting, _: Feature) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, path: &Path, setting: &Setting) -> Result<Box<dyn Disk>> {
        let inner = Ours.open(path, setting)?;
        Ok(Box::new(Lying { inner, lie: self.0, left: AT, last: 0 }))
    }
}

struct Lying {
    inner: Box<dyn Disk>,
    lie: Lie,
    left: usize,
    last: u64,
}

impl Lying {
    fn take(&mut self) -> Box<dyn Disk> {
        std::mem::replace(&mut self.inner, Box::new(Nothing))
    }

    /// Whether this operation is the one.
    fn now(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        self.left == 0
    }
}

impl Disk for Lying {
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match (self.lie, self.now()) {
            (Lie::SilentlyShort, true) => {
                let half = buf.len() / 2;
                self.inner.read(offset, &mut buf[..half])
            }
            (Lie::NotRead, true) => Ok(()),
            (Lie::WrongByte, true) => {
                self.inner.read(offset, buf)?;
                let middle = buf.len() / 2 + 1;
                buf[middle] ^= 0x10;
                Ok(())
            }
            (Lie::Failed, true) => bail!("EIO"),
            _ => self.inner.read(offset, buf),
        }
    }

    fn write(&mut self, offset: u64, buf: &[u8]) -> Result<()> {
        match (self.lie, self.now()) {
            (Lie::LostWrite, true) => Ok(()),
            (Lie::Misplaced, true) => self.inner.write(self.last, buf),
            _ => {
                self.last = offset;
                self.inner.write(offset, buf)
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        if self.lie == Lie::NotFlushed { Ok(()) } else { self.inner.flush() }
    }

    fn discard(&mut self, offset: u64, len: u64) -> Result<()> {
        if self.lie == Lie::NotDiscarded && self.now() {
            return Ok(());
        }
        self.inner.discard(offset, len)
    }

    fn submit(&mut self, ops: &mut Vec<Op>, done: &mut Vec<Completion>) -> Result<()> {
        if self.lie == Lie::Lost {
            ops.truncate(ops.len() - 1);
        }
        self.inner.submit(ops, done)
    }

    fn submit_one(&mut self, op: Op, done: &mut Vec<Completion>) -> Result<()> {
        self.inner.submit_one(op, done)
    }

    fn complete(&mut self, wanted: usize, done: &mut Vec<Completion>) -> Result<()> {
        let wanted = if self.lie == Lie::Lost { wanted - 1 } else { wanted };
        self.inner.complete(wanted, done)?;
        match self.lie {
            Lie::Short => replace(done, |op, len| op.ended(len - 1)),
            Lie::Failed => replace(done, |op, _| op.ended(-5)),
            Lie::Twice => replace(done, |op, len| {
                let again = Op::write_zeroes(op.tag() - 1, op.offset(), op.byte_len());
                again.ended(len)
            }),
            _ => {}
        }
        Ok(())
    }

    fn abandon(mut self: Box<Self>) {
        self.take().abandon();
    }
}

impl Drop for Lying {
    fn drop(&mut self) {
        if self.lie == Lie::NotFlushed {
            self.take().abandon();
        }
    }
}

/// A disk that is not there.
struct Nothing;

impl Disk for Nothing {
    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<()> {
        bail!("nothing")
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<()> {
        bail!("nothing")
    }

    fn flush(&mut self) -> Result<()> {
        bail!("nothing")
    }
}

/// Puts another completion in the place of the last one.
fn replace(done: &mut Vec<Completion>, other: impl FnOnce(Op, i64) -> Completion) {
    let last = done.pop_if(|last| matches!(last.buffers(), Buffers::One(_)));
    let Some(last) = last else { return };
    let (tag, offset, kind) = (last.tag(), last.offset(), last.kind());
    let Some(buf) = last.into_buffers().into_one() else { return };
    let len = buf.len() as i64;
    let op = if kind == OpKind::Read { Op::read(tag, offset, buf) } else { Op::write(tag, offset, buf) };
    done.push(other(op, len));
}

/// Our images and queues over memory, with a script of faults.
pub struct Memory {
    pub target: Target,
    pub at: u64,
    pub fault: Option<Fault>,
}

impl Memory {
    fn script(&self, faults: &Faults) {
        faults.reset();
        if let Some(fault) = self.fault {
            faults.at(self.target, self.at, fault);
        }
    }
}

impl Subject for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn supports(&self, setting: &Setting, feature: Feature) -> Result<(), String> {
        match (feature, setting.io) {
            (Feature::Queue, Io::Uring) | (Feature::Backing, _) => Err("not over memory".into()),
            _ => Ok(()),
        }
    }

    fn open(&self, path: &Path, setting: &Setting) -> Result<Box<dyn Disk>> {
        let storage = MemStorage::load(path)?;
        match setting.format {
            Format::Raw => {
                let file: MemFile = storage.file().clone();
                let faults = Faults::new();
                let whole = FaultyIo::new(file.clone(), Faults::new());
                let engine = MemEngine::open(file, setting.depth, faults.clone(), Gate::new())?;
                self.script(&faults);
                Ok(over_engine(RawDisk::new(engine, Arc::new(whole))?))
            }
            Format::Qcow2 => {
                let faults = storage.faults().clone();
                let parts = Parts { file: Box::new(storage), data: None, backing: None };
                let image = Image::from_parts(parts, &OpenOptions::new().writable(setting.writable))?;
                self.script(&faults);
                Ok(over_image(Arc::new(image)))
            }
        }
    }
}
