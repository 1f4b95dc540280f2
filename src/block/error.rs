//! The one error type of the block layer: a kind to match on, the context
//! (operation, path, offsets) to read, and the source with its errno.
//!
//! Neighbours: every module of [`crate::block`] returns it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Result of the block layer.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused an operation; errno is in the source.
    Io,
    /// The file ended where data was promised.
    UnexpectedEof,
    /// The image's structures contradict each other or the specification.
    Corrupt,
    /// The image is valid, but uses what this implementation refuses
    /// (encryption, an unknown incompatible feature, a forbidden backing file).
    Unsupported,
    /// This machine or this kernel lacks what was asked for.
    Missing,
    /// The request itself is wrong: out of range, unaligned, read-only image.
    InvalidInput,
    /// Space, refcount width or table limits are used up.
    Exhausted,
    /// The queue is full, or the tag is in flight already.
    Busy,
}

/// An error of the block layer.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    guest_offset: Option<u64>,
    host_offset: Option<u64>,
    source: Option<io::Error>,
}

impl Error {
    /// An error of `kind`; `message` is a lower-case fragment that names the thing.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            path: None,
            guest_offset: None,
            host_offset: None,
            source: None,
        }
    }

    /// An [`ErrorKind::Io`] (or `Exhausted` for ENOSPC) that keeps the errno of `source`.
    pub fn io(message: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => ErrorKind::Exhausted,
            _ => ErrorKind::Io,
        };
        Self { source: Some(source), ..Self::new(kind, message) }
    }

    /// An [`ErrorKind::Missing`] that keeps the errno of `source`: the system
    /// lacks what was asked for.
    pub fn missing(message: impl Into<String>, source: io::Error) -> Self {
        Self { source: Some(source), ..Self::new(ErrorKind::Missing, message) }
    }

    /// Adds the file concerned.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path.get_or_insert(path.into());
        self
    }

    /// Adds the guest offset (bytes) concerned.
    #[must_use]
    pub fn with_guest(mut self, offset: u64) -> Self {
        self.guest_offset.get_or_insert(offset);
        self
    }

    /// Adds the host offset (bytes) concerned.
    #[must_use]
    pub fn with_host(mut self, offset: u64) -> Self {
        self.host_offset.get_or_insert(offset);
        self
    }

    /// What went wrong, to match on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The errno of the operating system, where there is one.
    pub fn errno(&self) -> Option<i32> {
        self.source.as_ref().and_then(io::Error::raw_os_error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(path) = &self.path {
            write!(f, " ({})", path.display())?;
        }
        if let Some(offset) = self.guest_offset {
            write!(f, ", guest offset {offset:#x}")?;
        }
        if let Some(offset) = self.host_offset {
            write!(f, ", host offset {offset:#x}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
