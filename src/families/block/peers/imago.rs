//! imago as a subject: what plugging in an engine takes. `fixtures/foreign`
//! is a crate of its own that compiles this very file, so it says `wallgrind`
//! where the rest of the library says `crate`.
//!
//! Neighbours: `table` measures it in turns with the others.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use imago::file::File;
use imago::format::PreallocateMode;
use imago::qcow2::Qcow2;
use imago::{FormatAccess, FormatDriverBuilder, PermissiveImplicitOpenGate, StorageOpenOptions};
use wallgrind::families::block::{Disk, Feature, Format, Io, PageCache, Setting, Subject};

/// The crate `imago`, in its synchronous form.
pub struct Imago;

impl Subject for Imago {
    fn name(&self) -> &str {
        "imago"
    }

    fn supports(&self, setting: &Setting, feature: Feature) -> Result<(), String> {
        let lacking = match feature {
            Feature::Queue => "its synchronous form has no queue",
            Feature::Zstd => "it refuses zstd",
            Feature::CacheSize => "the size of its cache is fixed",
            Feature::SnapshotOps => "it makes and removes no snapshots",
            _ if setting.format == Format::Raw && setting.io != Io::Sync => "it has no queue",
            _ => return Ok(()),
        };
        Err(lacking.into())
    }

    fn open(&self, path: &Path, setting: &Setting) -> Result<Box<dyn Disk>> {
        let options = StorageOpenOptions::new().direct(setting.cache == PageCache::Direct);
        let gate = PermissiveImplicitOpenGate::default();
        let access = match setting.format {
            Format::Raw => FormatAccess::new(
                imago::raw::Raw::<File>::builder_path(path)
                    .storage_open_options(options)
                    .write(setting.writable)
                    .open(gate)?,
            ),
            Format::Qcow2 => FormatAccess::new(
                Qcow2::<File>::builder_path(path)
                    .storage_open_options(options)
                    .write(setting.writable)
                    .open(gate)?,
            ),
        };
        Ok(Box::new(Open(Arc::new(access))))
    }
}

/// An image that is open.
struct Open(Arc<FormatAccess<File>>);

impl Disk for Open {
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        Ok(self.0.read(buf, offset)?)
    }

    fn write(&mut self, offset: u64, buf: &[u8]) -> Result<()> {
        Ok(self.0.write(buf, offset)?)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()?;
        Ok(self.0.sync()?)
    }

    fn write_zeroes(&mut self, offset: u64, len: u64) -> Result<()> {
        Ok(self.0.write_zeroes(offset, len)?)
    }

    fn discard(&mut self, offset: u64, len: u64) -> Result<()> {
        let alone = Arc::get_mut(&mut self.0).context("another thread uses the image")?;
        Ok(alone.discard_to_zero(offset, len)?)
    }

    fn twin(&self) -> Result<Box<dyn Disk + Send>> {
        Ok(Box::new(Self(Arc::clone(&self.0))))
    }

    fn resize(&mut self, len: u64) -> Result<()> {
        Ok(self.0.resize_grow(len, PreallocateMode::None)?)
    }
}
