//! The suite's own engines and images as a subject, through the same traits
//! as anybody else's.
//!
//! Neighbours: `subject` has the traits, [`crate::block`] what is opened here.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};

use super::calls::Calls;
use super::subject::{Disk, Feature, Format, Io, PageCache, Setting, Subject};
use crate::block::io::FileIo;
use crate::block::qcow2::{CacheSettings, Image, OpenOptions, Opener};
use crate::block::sys::eventfd;
use crate::block::{
    AioEngine, AlignedBuf, BlockFile, Completion, Engine, FileOptions, FileStorage, Op, QcowDisk, RawDisk,
    Storage, SyncEngine, UringEngine,
};
use crate::scenario::Gauges;

/// [`crate::block`] as a subject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ours;

impl Subject for Ours {
    fn name(&self) -> &str {
        "wallgrind"
    }

    fn supports(&self, _: &Setting, _: Feature) -> Result<(), String> {
        Ok(())
    }

    /// Never: a batch is waited for as a whole, in the kernel, and taken in the order of its slots,
    /// whenever its operations ended.
    fn counts_vary(&self, _: &Setting) -> Option<String> {
        None
    }

    fn gauges(&self) -> Option<Box<dyn Gauges>> {
        Some(Box::new(Calls))
    }

    fn open(&self, path: &Path, setting: &Setting) -> Result<Box<dyn Disk>> {
        match setting.format {
            Format::Raw => open_raw(path, setting),
            Format::Qcow2 => open_qcow2(path, setting),
        }
    }
}

fn file_options(setting: &Setting, write: bool) -> FileOptions {
    FileOptions { write, direct: setting.cache == PageCache::Direct, ..FileOptions::default() }
}

fn open_file(path: &Path, setting: &Setting) -> Result<Arc<BlockFile>> {
    Ok(Arc::new(BlockFile::open(path, file_options(setting, setting.writable))?))
}

fn open_raw(path: &Path, setting: &Setting) -> Result<Box<dyn Disk>> {
    let (file, depth) = (open_file(path, setting)?, setting.depth);
    let raw = |file: &Arc<BlockFile>| Arc::clone(file) as Arc<dyn FileIo>;
    Ok(match setting.io {
        Io::Sync => queued(RawDisk::new(SyncEngine::open(Arc::clone(&file), depth)?, raw(&file))?, None),
        Io::Aio => queued(RawDisk::new(AioEngine::open(Arc::clone(&file), depth)?, raw(&file))?, None),
        Io::Uring => queued(RawDisk::new(UringEngine::open(Arc::clone(&file), depth)?, raw(&file))?, None),
    })
}

fn queued<E: Engine + 'static>(engine: E, image: Option<Arc<Image>>) -> Box<dyn Disk> {
    Box::new(Queued { engine, image })
}

/// A disk over an engine of [`crate::block`]: raw over a [`RawDisk`], qcow2 over a [`QcowDisk`].
pub fn over_engine<E: Engine + 'static>(engine: E) -> Box<dyn Disk> {
    queued(engine, None)
}

/// A disk over an image's own methods, which wait.
pub fn over_image(image: Arc<Image>) -> Box<dyn Disk> {
    Box::new(Waiting(image))
}

fn open_qcow2(path: &Path, setting: &Setting) -> Result<Box<dyn Disk>> {
    let mut options = OpenOptions::new().writable(setting.writable).allow_backing(true);
    if let Some(tables) = setting.l2_tables {
        // Of each table the part that was asked for; so a part counts as a table here.
        options = options.cache(CacheSettings { slices: tables, ..CacheSettings::default() });
    }
    let image = Arc::new(Image::open_with(&FilesOf(*setting), path, &options)?);
    let depth = setting.depth;
    // A queue works on a descriptor of its own, past the image's storage.
    Ok(match setting.io {
        Io::Sync => over_image(image),
        Io::Aio => {
            let engine = AioEngine::open(open_file(path, setting)?, depth)?;
            queued(QcowDisk::new(engine, Arc::clone(&image))?, Some(image))
        }
        Io::Uring => {
            let engine = UringEngine::open(open_file(path, setting)?, depth)?;
            queued(QcowDisk::new(engine, Arc::clone(&image))?, Some(image))
        }
    })
}

/// Opens the files of an image as a setting wants it.
struct FilesOf(Setting);

impl Opener for FilesOf {
    fn open(&self, path: &Path, writable: bool) -> crate::block::Result<Box<dyn Storage>> {
        Ok(Box::new(FileStorage::open(path, file_options(&self.0, writable))?))
    }
}

/// A qcow2 image by its own methods, which wait.
struct Waiting(Arc<Image>);

impl Disk for Waiting {
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        Ok(self.0.read(offset, buf)?)
    }

    fn write(&mut self, offset: u64, buf: &[u8]) -> Result<()> {
        Ok(self.0.write(offset, buf)?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }

    fn write_zeroes(&mut self, offset: u64, len: u64) -> Result<()> {
        Ok(self.0.write_zeroes(offset, len, true)?)
    }

    fn discard(&mut self, offset: u64, len: u64) -> Result<()> {
        let given_back = self.0.discard(offset, len)?;
        ensure!(given_back == len, "{given_back} of {len} bytes at {offset} were given back");
        Ok(())
    }

    fn twin(&self) -> Result<Box<dyn Disk + Send>> {
        Ok(Box::new(Self(Arc::clone(&self.0))))
    }

    fn create_snapshot(&mut self, name: &str) -> Result<()> {
        self.0.create_snapshot(name)?;
        Ok(())
    }

    fn delete_snapshot(&mut self, name: &str) -> Result<()> {
        Ok(self.0.delete_snapshot(name)?)
    }

    fn resize(&mut self, len: u64) -> Result<()> {
        Ok(self.0.resize(len, false)?)
    }

    fn abandon(self: Box<Self>) {
        self.0.give_up();
    }
}

/// A disk over an engine with a queue.
struct Queued<E> {
    engine: E,
    /// The image behind the engine, where there is one.
    image: Option<Arc<Image>>,
}

/// The tag of an operation that is waited for at once; others have small numbers.
const ALONE: u64 = u64::MAX;

impl<E: Engine> Queued<E> {
    fn alone(&mut self, op: Op) -> Result<Completion> {
        let mut done = Vec::with_capacity(1);
        self.submit_one(op, &mut done)?;
        self.engine.wait(1, &mut done)?;
        let done = done.into_iter().find(|done| done.tag() == ALONE);
        let done = done.ok_or_else(|| anyhow::anyhow!("another operation was in flight"))?;
        done.result()?;
        Ok(done)
    }
}

impl<E: Engine> Disk for Queued<E> {
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let done = self.alone(Op::read(ALONE, offset, AlignedBuf::new(buf.len(), 4096)?))?;
        if let [read] = done.buffers().as_slice() {
            buf.copy_from_slice(read);
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, buf: &[u8]) -> Result<()> {
        self.alone(Op::write(ALONE, offset, AlignedBuf::from_slice(buf, 4096)?)).map(drop)
    }

    fn flush(&mut self) -> Result<()> {
        self.alone(Op::flush(ALONE)).map(drop)
    }

    fn write_zeroes(&mut self, offset: u64, len: u64) -> Result<()> {
        self.alone(Op::write_zeroes(ALONE, offset, len)).map(drop)
    }

    fn discard(&mut self, offset: u64, len: u64) -> Result<()> {
        self.alone(Op::discard(ALONE, offset, len)).map(drop)
    }

    fn submit(&mut self, ops: &mut Vec<Op>, _: &mut Vec<Completion>) -> Result<()> {
        Ok(self.engine.submit_batch(ops)?)
    }

    fn submit_one(&mut self, op: Op, _: &mut Vec<Completion>) -> Result<()> {
        self.engine.submit(op).map_err(|refused| refused.error.into())
    }

    fn complete(&mut self, wanted: usize, done: &mut Vec<Completion>) -> Result<()> {
        Ok(self.engine.wait(wanted - done.len(), done)?)
    }

    fn submit_and_complete(
        &mut self,
        ops: &mut Vec<Op>,
        wanted: usize,
        done: &mut Vec<Completion>,
    ) -> Result<()> {
        Ok(self.engine.submit_and_wait(ops, wanted - done.len(), done)?)
    }

    fn prepare_to_settle(&mut self) -> Result<()> {
        self.engine.notifier()?;
        Ok(())
    }

    fn settle(&mut self, submitted: usize) -> Result<()> {
        let mut landed = 0;
        while landed < submitted as u64 {
            let fd = self.engine.notifier()?;
            eventfd::wait(fd)?;
            landed += eventfd::drain(fd)?.unwrap_or(0);
        }
        Ok(())
    }

    fn abandon(self: Box<Self>) {
        if let Some(image) = &self.image {
            image.give_up();
        }
    }
}
