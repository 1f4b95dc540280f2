//! Files beside the image: the backing chain and the external data file.
//! Opened only when the caller allows it, relative to the image's folder,
//! with loops and depth bounded.
//!
//! Neighbours: `open` resolves them, `read` falls through to the backing file.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::error::{Error, ErrorKind, Result};
use super::super::storage::Storage;
use super::header::MAGIC;
use super::image::Image;
use super::options::OpenOptions;

/// Opens files by path; the tests put their own in its place.
pub trait Opener: Send + Sync {
    /// Opens an existing file.
    fn open(&self, path: &Path, writable: bool) -> Result<Box<dyn Storage>>;
}

/// What lies under an overlay.
pub enum Backing {
    /// A file whose bytes are the disk.
    Raw {
        /// The file.
        storage: Box<dyn Storage>,
        /// Its length in bytes; reads beyond are zeroes.
        len: u64,
    },
    /// Another image.
    Qcow2(Arc<Image>),
}

impl Backing {
    /// A raw backing file.
    pub fn raw(storage: Box<dyn Storage>) -> Result<Self> {
        let len = storage.len()?;
        Ok(Self::Raw { storage, len })
    }

    /// Bytes that it covers; zeroes follow.
    pub fn len(&self) -> u64 {
        match self {
            Self::Raw { len, .. } => *len,
            Self::Qcow2(image) => image.size(),
        }
    }

    /// Whether it covers nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads `buf` at `offset`; zeroes beyond the end.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let inside = self.len().saturating_sub(offset).min(buf.len() as u64) as usize;
        let (head, tail) = buf.split_at_mut(inside);
        tail.fill(0);
        if head.is_empty() {
            return Ok(());
        }
        match self {
            Self::Raw { storage, .. } => {
                let got = storage.read_at(head, offset)?;
                head[got..].fill(0);
                Ok(())
            }
            Self::Qcow2(image) => image.read(offset, head),
        }
    }
}

/// Files that are open in a chain, to find loops.
pub(super) struct Chain<'a> {
    pub(super) opener: &'a dyn Opener,
    pub(super) seen: Vec<(u64, u64)>,
}

impl Chain<'_> {
    /// Opens `name` beside `image`, unless it is part of the chain already or no plain file.
    pub(super) fn open(
        &mut self,
        image: &Path,
        name: &str,
        writable: bool,
        options: &OpenOptions,
    ) -> Result<(PathBuf, Box<dyn Storage>)> {
        let path = resolve(image, name)?;
        self.enter(&path, options)?;
        let storage = self.opener.open(&path, writable)?;
        Ok((path, storage))
    }

    /// Notes a file as part of the chain.
    pub(super) fn enter(&mut self, path: &Path, options: &OpenOptions) -> Result<()> {
        let found = fs::metadata(path).map_err(|e| Error::io("stat", e).with_path(path))?;
        let kind = found.file_type();
        let fits = kind.is_file() || (kind.is_block_device() && options.devices);
        if !fits {
            let message = "not a plain file (devices need permission)";
            return Err(Error::new(ErrorKind::Unsupported, message).with_path(path));
        }
        let id = (found.dev(), found.ino());
        if self.seen.contains(&id) {
            return Err(Error::new(ErrorKind::Corrupt, "backing chain is a loop").with_path(path));
        }
        if self.seen.len() > options.depth {
            let message = format!("backing chain deeper than {}", options.depth);
            return Err(Error::new(ErrorKind::Unsupported, message).with_path(path));
        }
        self.seen.push(id);
        Ok(())
    }
}

/// The path that `name` in `image` means. Protocols ("nbd:", "json:") are not files.
pub(super) fn resolve(image: &Path, name: &str) -> Result<PathBuf> {
    let before_slash = name.split('/').next().unwrap_or("");
    if before_slash.contains(':') && before_slash != "file:" {
        let message = format!("backing or data file {name:?} is not a plain path");
        return Err(Error::new(ErrorKind::Unsupported, message).with_path(image));
    }
    let name = name.strip_prefix("file:").unwrap_or(name);
    if name.is_empty() || name.contains('\0') {
        return Err(Error::new(ErrorKind::Corrupt, "empty file name").with_path(image));
    }
    Ok(image.parent().unwrap_or(Path::new("")).join(name))
}

/// Whether a file starts like a qcow2 image.
pub(super) fn looks_like_qcow2(storage: &dyn Storage) -> Result<bool> {
    let mut magic = [0; 4];
    Ok(storage.read_at(&mut magic, 0)? == 4 && magic == MAGIC)
}
