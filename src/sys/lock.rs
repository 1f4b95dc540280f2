//! The lock that keeps two processes from measuring at once, on one machine
//! and between its users.
//!
//! `flock` (which is what [`File::lock`] is on Linux) works on a file opened for reading, so whoever comes first makes
//! the file, and all others need nothing but the right to read it. It ends
//! with its holder, however that dies, and lives through an `exec`.
//!
//! Neighbours: `flow` takes it before it measures, `trial::resume` carries it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// An open lock file, not locked yet.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Held(File);

impl Held {
    /// Takes over a lock that came through an `exec`.
    pub fn from_inherited(file: File) -> Self {
        Self(file)
    }

    /// The file, to be carried through an `exec`.
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Lock {
    /// The place where all users of this machine look for it.
    pub fn default_path() -> PathBuf {
        // Not the temporary folder of the environment: two users, or a client
        // that sets TMPDIR, must meet at the same file.
        let shared = Path::new("/tmp");
        let dir = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        dir.join("wallgrind-measure.lock")
    }

    /// Opens the lock file, and makes it when there is none.
    ///
    /// # Errors
    /// It cannot be opened or made.
    pub fn open(path: &Path) -> io::Result<Self> {
        let found = |file| Ok(Self { file, path: path.to_path_buf() });
        let read =
            || OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
        match read() {
            Ok(file) => return found(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
            Ok(file) => {
                // Whatever the umask says: others must be able to read it.
                file.set_permissions(fs::Permissions::from_mode(0o644))?;
                found(file)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => found(read()?),
            Err(error) => Err(error),
        }
    }

    /// Takes the lock if it is free, and gives itself back if it is not.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn try_take(self) -> io::Result<Result<Held, Self>> {
        match self.file.try_lock() {
            Ok(()) => Ok(Ok(Held(self.file))),
            Err(TryLockError::WouldBlock) => Ok(Err(self)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Waits until the lock is free, and takes it.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn take(self) -> io::Result<Held> {
        loop {
            match self.file.lock() {
                Ok(()) => return Ok(Held(self.file)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The process that holds the lock, as far as the kernel tells.
    pub fn holder(&self) -> Option<u32> {
        let inode = self.file.metadata().ok()?.ino();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(|line| holder_in(line, inode))
    }
}

/// The process in a line of `/proc/locks` that holds a `flock` on `inode`:
/// `1: FLOCK  ADVISORY  WRITE 1234 08:01:131 0 EOF`; waiters have `->` second.
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    let pid = words.nth(2)?.parse().ok()?;
    let file = words.next()?;
    (file.rsplit(':').next()?.parse() == Ok(inode)).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::{Lock, holder_in};

    #[test]
    fn one_holder_at_a_time_and_free_again_after_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("lock");
        let open = || Lock::open(&path).expect("a lock file");
        let held = open().try_take().expect("flock").expect("free");
        let refused = open().try_take().expect("flock").expect_err("held");
        assert_eq!(refused.holder(), Some(std::process::id()));
        drop(held);
        assert!(refused.try_take().expect("flock").is_ok());
    }

    #[test]
    fn reads_holders_and_passes_waiters_by() {
        assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 12 08:01:131 0 EOF", 131), Some(12));
        assert_eq!(holder_in("1: -> FLOCK  ADVISORY  WRITE 12 08:01:131 0 EOF", 131), None);
        assert_eq!(holder_in("1: POSIX  ADVISORY  WRITE 12 08:01:131 0 EOF", 131), None);
        assert_eq!(holder_in("", 131), None);
    }
}
