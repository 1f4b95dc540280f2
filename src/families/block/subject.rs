//! How an engine of your own is plugged in: a [`Subject`] opens images, a
//! [`Disk`] does what a guest asks for. The suite's own engines come in through
//! the same two traits.
//!
//! Neighbours: `ours` implements them over [`crate::block`]; `case` says what
//! a scenario asks for; `run` calls a disk.

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::block::{Completion, Op, OpKind};
use crate::scenario::Gauges;

/// The format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The file's bytes are the disk's.
    Raw,
    /// qcow2, version 3.
    Qcow2,
}

/// The way to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Io {
    /// One blocking system call after the other.
    Sync,
    /// Linux AIO.
    Aio,
    /// io_uring.
    Uring,
}

impl Io {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sync, Self::Aio, Self::Uring];

    /// The name, as it stands in names of scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Aio => "aio",
            Self::Uring => "uring",
        }
    }
}

/// The state of the page cache at the start of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageCache {
    /// What the region reads was written or read just before.
    Warm,
    /// The image was brought to its device and dropped from the cache; that
    /// it is gone is verified.
    Cold,
    /// The image is opened past the cache (O_DIRECT).
    Direct,
}

impl PageCache {
    /// The name, as it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Direct => "direct",
        }
    }
}

/// How an image is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// What the file is.
    pub format: Format,
    /// The way to the file.
    pub io: Io,
    /// Operations that are submitted before the first is taken; 1 for [`Io::Sync`].
    pub depth: u32,
    /// The page cache. Only [`PageCache::Direct`] is the subject's affair.
    pub cache: PageCache,
    /// Whether the image is written to.
    pub writable: bool,
    /// L2 tables of which something can be in memory at a time; `None` is what
    /// the subject does by itself.
    pub l2_tables: Option<usize>,
}

/// What a scenario needs beyond reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// Queued operations over [`Setting::io`].
    Queue,
    /// [`Disk::discard`].
    Discard,
    /// [`Disk::write_zeroes`].
    WriteZeroes,
    /// Images over other images.
    Backing,
    /// Clusters that are compressed with zlib.
    Zlib,
    /// Clusters that are compressed with zstd.
    Zstd,
    /// [`Setting::l2_tables`].
    CacheSize,
    /// Images with internal snapshots.
    Snapshots,
    /// [`Disk::create_snapshot`] and [`Disk::delete_snapshot`].
    SnapshotOps,
    /// [`Disk::resize`].
    Resize,
    /// [`Disk::twin`]: several threads on one image.
    Threads,
}

/// An implementation of disk images under test.
pub trait Subject: Send + Sync {
    /// Its name: a segment of the names of its scenarios (`a` to `z`, digits, `_`).
    fn name(&self) -> &str;

    /// Whether it can do what a scenario needs. A scenario that it cannot do is
    /// listed as ignored.
    ///
    /// # Errors
    /// Why it cannot, as it shall be reported.
    fn supports(&self, setting: &Setting, feature: Feature) -> Result<(), String>;

    /// Why the instruction counts of a setting differ from run to run, if they do. Over a queue they
    /// do, unless [`Disk::submit_and_complete`] is made for equal ones.
    fn counts_vary(&self, setting: &Setting) -> Option<String> {
        let reason = "how many completions have arrived when they are looked for is the kernel's affair";
        (setting.io != Io::Sync).then(|| reason.to_owned())
    }

    /// Counters of what it asks of the kernel, to be read around each region; none where it does
    /// not count.
    fn gauges(&self) -> Option<Box<dyn Gauges>> {
        None
    }

    /// Opens the image at `path`, which the suite made. A qcow2 image may name
    /// backing files in the same folder.
    ///
    /// # Errors
    /// Whatever goes wrong; it fails the trial.
    fn open(&self, path: &Path, setting: &Setting) -> Result<Box<dyn Disk>>;
}

/// An open image. Offsets and lengths are in bytes and multiples of 512.
///
/// What is called in a region costs one virtual call for each operation or
/// batch, and nothing else of ours.
pub trait Disk {
    /// Fills all of `buf` from `offset` on.
    ///
    /// # Errors
    /// Where that cannot be done, a short read included.
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Writes all of `buf` at `offset`.
    ///
    /// # Errors
    /// Where that cannot be done, a short write included.
    fn write(&mut self, offset: u64, buf: &[u8]) -> Result<()>;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn flush(&mut self) -> Result<()>;

    /// Makes the range read as zeroes; its space may stay reserved.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn write_zeroes(&mut self, offset: u64, len: u64) -> Result<()> {
        bail!("this engine writes no zeroes ({len} bytes at {offset})")
    }

    /// Gives the range back to the host; it reads as zeroes then.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn discard(&mut self, offset: u64, len: u64) -> Result<()> {
        bail!("this engine discards nothing ({len} bytes at {offset})")
    }

    /// Submits all of `ops`, in one go where it can, and leaves `ops` empty.
    /// What is done at once may be put into `done` right away. Without a queue
    /// of its own, an engine does the operations one after the other, here.
    ///
    /// # Errors
    /// Where the batch is not accepted. What fails later is its completion's.
    fn submit(&mut self, ops: &mut Vec<Op>, done: &mut Vec<Completion>) -> Result<()> {
        for op in ops.drain(..) {
            done.push(carry_out(self, op)?);
        }
        Ok(())
    }

    /// Submits one operation; as [`Disk::submit`].
    ///
    /// # Errors
    /// As [`Disk::submit`].
    fn submit_one(&mut self, op: Op, done: &mut Vec<Completion>) -> Result<()> {
        done.push(carry_out(self, op)?);
        Ok(())
    }

    /// Waits, without spinning or sleeping, until `done` holds `wanted`
    /// completions: those that [`Disk::submit`] put there count.
    ///
    /// # Errors
    /// Where that cannot be.
    fn complete(&mut self, wanted: usize, done: &mut Vec<Completion>) -> Result<()> {
        ensure!(done.len() >= wanted, "{} of {wanted} operations were completed", done.len());
        Ok(())
    }

    /// [`Disk::submit`], then [`Disk::complete`]. An engine that has one call for both does it here, and
    /// best one whose executed instructions do not depend on when operations end: then its instruction
    /// counts are the same in every run.
    ///
    /// # Errors
    /// As both.
    fn submit_and_complete(
        &mut self,
        ops: &mut Vec<Op>,
        wanted: usize,
        done: &mut Vec<Completion>,
    ) -> Result<()> {
        self.submit(ops, done)?;
        self.complete(wanted, done)
    }

    /// Readies the disk for [`Disk::settle`]; called before anything is submitted.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn prepare_to_settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Waits until `submitted` operations have landed, without taking their
    /// completions. Not measured.
    ///
    /// # Errors
    /// Where that cannot be.
    fn settle(&mut self, _submitted: usize) -> Result<()> {
        Ok(())
    }

    /// The same image for another thread.
    ///
    /// # Errors
    /// Where several threads cannot use it.
    fn twin(&self) -> Result<Box<dyn Disk + Send>> {
        bail!("this engine has no second handle on an image")
    }

    /// Keeps the disk's content as an internal snapshot.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn create_snapshot(&mut self, name: &str) -> Result<()> {
        bail!("this engine makes no snapshot ({name})")
    }

    /// Removes an internal snapshot.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn delete_snapshot(&mut self, name: &str) -> Result<()> {
        bail!("this engine removes no snapshot ({name})")
    }

    /// Makes the disk `len` bytes long, never shorter.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn resize(&mut self, len: u64) -> Result<()> {
        bail!("this engine resizes nothing (to {len} bytes)")
    }

    /// Closes an image that is thrown away: what was not flushed need not be
    /// written any more. Not measured.
    fn abandon(self: Box<Self>) {}
}

/// Does one operation by the methods that wait.
fn carry_out(disk: &mut (impl Disk + ?Sized), mut op: Op) -> Result<Completion> {
    let mut offset = op.offset();
    match op.kind() {
        OpKind::Read => {
            for buf in op.buffers_mut() {
                disk.read(offset, buf)?;
                offset += buf.len() as u64;
            }
        }
        OpKind::Write => {
            for buf in op.buffers_mut() {
                disk.write(offset, buf)?;
                offset += buf.len() as u64;
            }
        }
        OpKind::WriteZeroes => disk.write_zeroes(offset, op.byte_len())?,
        OpKind::Discard => disk.discard(offset, op.byte_len())?,
        OpKind::Flush => disk.flush()?,
    }
    let len = op.byte_len();
    // Lengths are those of memory or of a disk, both below 2^63.
    Ok(op.ended(len as i64))
}

impl fmt::Debug for dyn Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subject").field(&self.name()).finish()
    }
}
