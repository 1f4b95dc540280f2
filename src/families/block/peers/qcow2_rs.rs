//! qcow2-rs as a subject, over its synchronous I/O.
//!
//! Neighbours: `table` measures it in turns with the others.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anyhow::{Result, anyhow, ensure};
use qcow2_rs::dev::{Qcow2Dev, Qcow2DevParams};
use qcow2_rs::sync_io::Qcow2IoSync;
use qcow2_rs::utils::qcow2_setup_dev_sync;

use crate::families::block::{Disk, Feature, Format, PageCache, Setting, Subject};

/// The crate `qcow2-rs`.
pub struct Qcow2Rs;

impl Subject for Qcow2Rs {
    fn name(&self) -> &str {
        "qcow2_rs"
    }

    fn supports(&self, setting: &Setting, feature: Feature) -> Result<(), String> {
        let lacking = match feature {
            _ if setting.format == Format::Raw => "it reads qcow2 only",
            Feature::Zlib => return Ok(()),
            Feature::Queue => "its queue needs a runtime of its own",
            Feature::Discard | Feature::WriteZeroes => "it has no discard",
            Feature::Backing => "it looks for a backing file in the working folder",
            Feature::Zstd => "it refuses zstd",
            Feature::CacheSize => "the size of its cache is fixed",
            Feature::Snapshots | Feature::SnapshotOps => "it has no snapshots",
            Feature::Resize => "it does not resize",
            Feature::Threads => "an image belongs to one thread",
        };
        Err(lacking.into())
    }

    fn open(&self, path: &Path, setting: &Setting) -> Result<Box<dyn Disk>> {
        ensure!(setting.format == Format::Qcow2, "it reads qcow2 only");
        let direct = setting.cache == PageCache::Direct;
        let params = Qcow2DevParams::new(9, None, None, !setting.writable, direct);
        let dev = qcow2_setup_dev_sync(path, &params).map_err(said)?;
        now(dev.qcow2_prep_io())?.map_err(said)?;
        Ok(Box::new(Open { dev, writable: setting.writable }))
    }
}

struct Open {
    dev: Qcow2Dev<Qcow2IoSync>,
    writable: bool,
}

impl Disk for Open {
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let len = buf.len();
        let read = now(self.dev.read_at(buf, offset))?.map_err(said)?;
        ensure!(read == len, "{read} of {len} bytes were read");
        Ok(())
    }

    fn write(&mut self, offset: u64, buf: &[u8]) -> Result<()> {
        now(self.dev.write_at(buf, offset))?.map_err(said)
    }

    fn flush(&mut self) -> Result<()> {
        now(self.dev.flush_meta())?.map_err(said)?;
        now(self.dev.fsync_range(0, usize::MAX))?.map_err(said)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.writable {
            // It says so when it is dropped with something dirty.
            let _ = self.flush();
        }
    }
}

fn said(error: impl std::fmt::Debug) -> anyhow::Error {
    anyhow!("{error:?}")
}

/// The result of a future that does its I/O by calls that wait, and so never has to.
fn now<T>(future: impl Future<Output = T>) -> Result<T> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(anyhow!("it waits for something that only another task can do")),
    }
}
