//! The floor: bare system calls on a plain file.
//!
//! Neighbours: `rows` says what the floor does for each row.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::families::block::{Disk, Feature, Format, Io, Ours, Setting, Subject};

/// `pread`, `pwrite` and `fdatasync`, and for queues the raw engines, which
/// add a few nanoseconds to what the kernel takes.
pub struct Floor;

impl Subject for Floor {
    fn name(&self) -> &str {
        "floor"
    }

    fn supports(&self, _: &Setting, _: Feature) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, path: &Path, setting: &Setting) -> Result<Box<dyn Disk>> {
        ensure!(setting.format == Format::Raw, "the floor is a plain file");
        if setting.io != Io::Sync {
            return Ours.open(path, setting);
        }
        Ok(Box::new(Plain(File::options().read(true).write(setting.writable).open(path)?)))
    }
}

struct Plain(File);

impl Disk for Plain {
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        Ok(self.0.read_exact_at(buf, offset)?)
    }

    fn write(&mut self, offset: u64, buf: &[u8]) -> Result<()> {
        Ok(self.0.write_all_at(buf, offset)?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.0.sync_data()?)
    }

    fn twin(&self) -> Result<Box<dyn Disk + Send>> {
        Ok(Box::new(Self(self.0.try_clone()?)))
    }
}
