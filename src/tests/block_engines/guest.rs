//! Disks in qcow2 images, as subjects of the contracts: an image with the
//! content asked for, and a view of the disk beside the engine.
//!
//! Neighbours: `subject` makes the file and its engine; `qcow2_disks` has what
//! only such disks do.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{CreateOptions, GuestOffset, Image, OpenOptions, Parts, QcowDisk, Source};
use wallgrind::block::{MemStorage, Result, Storage};

use crate::subject::{Rig, UNIT, must};

/// Virtual size: more than any contract reaches.
const SIZE: u64 = 16 << 20;

/// The bytes of an image whose disk starts with `content`, in clusters of one unit.
pub fn image_of(content: &[u8]) -> Vec<u8> {
    let store = MemStorage::new();
    let mut options = CreateOptions::new(SIZE);
    options.cluster_size = UNIT;
    let parts = Parts { file: Box::new(MemStorage::over(store.file().clone())), data: None, backing: None };
    let image = must(Image::create_from(parts, &options));
    must(image.write(0, content));
    must(image.flush());
    drop(image);
    store.to_bytes()
}

/// Puts a disk over the rig's engine, whose file is an image.
pub fn disk(rig: Rig, least: u64) -> Rig {
    let mut rig = rig;
    let file = Box::new(Shared(Arc::clone(&rig.view)));
    let parts = Parts { file, data: None, backing: None };
    let image = Arc::new(must(Image::from_parts(parts, &OpenOptions::new().writable(true))));
    let idle: Box<dyn wallgrind::block::Engine> = Box::new(crate::lifetimes::idle());
    let engine = std::mem::replace(&mut rig.engine, idle);
    rig.engine = Box::new(must(QcowDisk::new(engine, Arc::clone(&image))));
    rig.view = Arc::new(GuestView { image: Arc::clone(&image), least });
    let length = MemFile::new();
    must(MemStorage::over(length.clone()).set_len(least));
    rig.file = Arc::new(length);
    rig.image = Some(image);
    rig
}

/// Storage that several own.
struct Shared(Arc<dyn Storage>);

impl Storage for Shared {
    fn readv_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        self.0.readv_at(bufs, offset)
    }

    fn writev_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.0.writev_at(bufs, offset)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.0.punch(offset, len)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.0.write_zeroes(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.0.allocate(offset, len)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }

    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn written_elsewhere(&self, end: u64) {
        self.0.written_elsewhere(end);
    }
}

/// A disk as storage. It ends where the last cluster ends that is there, but not before `least`.
struct GuestView {
    image: Arc<Image>,
    least: u64,
}

impl Storage for GuestView {
    fn readv_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        let (mut done, end) = (0, self.len()?);
        for buf in bufs {
            let at = offset + done as u64;
            let count = end.saturating_sub(at).min(buf.len() as u64) as usize;
            self.image.read(at.min(SIZE), &mut buf[..count])?;
            done += count;
        }
        Ok(done)
    }

    fn writev_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<()> {
        let mut at = offset;
        for buf in bufs {
            self.image.write(at, buf)?;
            at += buf.len() as u64;
        }
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.image.write_zeroes(offset, len, true)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.image.write_zeroes(offset, len, false)
    }

    fn allocate(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.image.flush()
    }

    fn len(&self) -> Result<u64> {
        let extents = self.image.map(GuestOffset(0), SIZE)?;
        let there = extents.iter().filter(|extent| extent.source != Source::Unallocated);
        let end = there.map(|extent| extent.guest.0 + extent.len).max().unwrap_or(0);
        Ok(end.max(self.least))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.image.discard(len, SIZE - len).map(drop)
    }
}
