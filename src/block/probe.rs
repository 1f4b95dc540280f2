//! What this machine has for block I/O; each thing that is missing is a typed
//! error with the reason.
//!
//! Neighbours: the engines find the same when they are opened; this asks
//! beforehand, so that a report can say why something did not run.

use std::fs;
use std::path::Path;

use super::aio_context::missing;
use super::align::Alignment;
use super::error::{Error, ErrorKind, Result};
use super::io::FileIo;
use super::sys::file::{BlockFile, FileOptions, file_system, reported_alignment};
use super::sys::uring;
use std::os::fd::AsFd;

/// The system-wide budget of Linux AIO, in operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AioBudget {
    /// Reserved by all contexts (`fs.aio-nr`).
    pub used: u64,
    /// The most that can be (`fs.aio-max-nr`).
    pub max: u64,
}

/// Whether Linux AIO can be used; joins (and so sets up) the process's context.
///
/// # Errors
///
/// `Missing` with errno: no AIO in the kernel, or its budget is used up.
pub fn aio() -> Result<()> {
    super::aio_context::shared(1).map(drop)
}

/// The budget of Linux AIO.
///
/// # Errors
///
/// `Missing` where the kernel does not tell: it has no AIO.
pub fn aio_budget() -> Result<AioBudget> {
    Ok(AioBudget {
        used: kernel_number("/proc/sys/fs/aio-nr")?,
        max: kernel_number("/proc/sys/fs/aio-max-nr")?,
    })
}

fn kernel_number(path: &str) -> Result<u64> {
    let text = fs::read_to_string(path).map_err(|error| missing(error).with_path(path))?;
    text.trim().parse().map_err(|_| Error::new(ErrorKind::Missing, "not a number").with_path(path))
}

/// The opcodes of io_uring that the engine uses and this kernel has, by name.
///
/// # Errors
///
/// `Missing` with errno: no io_uring in the kernel, or not allowed here.
pub fn io_uring() -> Result<Vec<&'static str>> {
    uring::supported()
}

/// What direct I/O on a file demands, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct {
    /// The demand.
    pub alignment: Alignment,
    /// Whether the kernel said so (`STATX_DIOALIGN`), or it is a safe guess.
    pub reported: bool,
}

/// Whether direct I/O works on the file at `path`, seen by opening it and
/// reading the flag back.
///
/// # Errors
///
/// `Missing` where the file system has none; else as [`BlockFile::open`].
pub fn direct(path: &Path) -> Result<Direct> {
    let options = FileOptions { direct: true, ..FileOptions::default() };
    let file = BlockFile::open(path, options)?;
    Ok(Direct { alignment: file.alignment(), reported: reported_alignment(file.as_fd()).is_some() })
}

/// Name of the file system that the file at `path` is on.
///
/// # Errors
///
/// With errno.
pub fn file_system_of(path: &Path) -> Result<String> {
    let file = fs::File::open(path).map_err(|e| Error::io("cannot open", e).with_path(path))?;
    let number =
        file_system(file.as_fd()).map_err(|e| Error::io("cannot find the file system", e).with_path(path))?;
    Ok(file_system_name(number))
}

/// The name that mount tables use for a `statfs` number (linux/magic.h).
fn file_system_name(number: i64) -> String {
    let name = match number & 0xffff_ffff {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x0102_1994 => "tmpfs",
        0x794c_7630 => "overlay",
        0x6969 => "nfs",
        0xf2f5_2010 => "f2fs",
        0x2fc1_2fc1 => "zfs",
        0x6573_5546 => "fuse",
        0x0102_1997 => "9p",
        other => return format!("{other:#x}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_have_names_or_at_least_numbers() {
        assert_eq!(file_system_name(0xef53), "ext4");
        assert_eq!(file_system_name(-0x6edc_97c2), "btrfs");
        assert_eq!(file_system_name(7), "0x7");
        assert!(file_system_of(Path::new("/")).is_ok());
    }

    #[test]
    fn what_is_missing_has_a_kind_a_reason_and_an_errno() {
        let error = kernel_number("/proc/sys/fs/no-such-thing").expect_err("no such file");
        assert_eq!((error.kind(), error.errno()), (ErrorKind::Missing, Some(libc::ENOENT)));
        let error = missing(std::io::Error::from_raw_os_error(libc::EAGAIN));
        assert!(error.to_string().contains("aio-max-nr"));
        let error = direct(Path::new("/proc/version")).expect_err("no direct I/O there");
        assert!(matches!(error.kind(), ErrorKind::Missing | ErrorKind::Unsupported), "{error}");
    }

    /// Each answer is a finding or a typed lack, never another error.
    #[test]
    fn every_question_has_an_answer() {
        let missing = |error: Error| assert_eq!(error.kind(), ErrorKind::Missing, "{error}");
        match aio_budget() {
            Ok(budget) => assert!(budget.max > 0),
            Err(error) => missing(error),
        }
        match io_uring() {
            Ok(names) => assert!(names.contains(&"READ")),
            Err(error) => missing(error),
        }
        let file = tempfile::NamedTempFile::new().expect("a file");
        match direct(file.path()) {
            Ok(direct) => assert!(!direct.alignment.is_none()),
            Err(error) => missing(error),
        }
        aio().unwrap_or_else(missing);
    }

    #[test]
    fn a_fifo_or_a_device_of_characters_is_refused() {
        let error = BlockFile::open(Path::new("/dev/zero"), FileOptions::default());
        assert_eq!(error.map_err(|error| error.kind()).err(), Some(ErrorKind::Unsupported));
    }
}
