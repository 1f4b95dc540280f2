//! What a file system has left and allows, and that it has everything on disk.
//!
//! Neighbours: `trial::scratch` asks for room before a run begins,
//! `measure::valgrind` where the measured program can be.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that this user may still write on the file system of `path`.
///
/// # Errors
/// The path does not exist, or the system refuses.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = ask(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Whether programs on the file system of `path` can be executed (not `noexec`).
pub fn takes_programs(path: &Path) -> bool {
    ask(path).is_ok_and(|found| allows_programs(found.f_flag))
}

fn allows_programs(flags: libc::c_ulong) -> bool {
    flags & libc::ST_NOEXEC == 0
}

/// Waits until everything that was written to the file system of `file` is on disk.
///
/// # Errors
/// Something of it could not be written.
pub fn sync_file_system(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `file` is.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn ask(path: &Path) -> io::Result<libc::statvfs> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut found = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path ends with a zero, and `found` is valid for writes of a statvfs.
    if unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded and so has filled it in.
    Ok(unsafe { found.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_some_and_what_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(free_bytes(folder.path()).is_ok());
        assert_eq!(free_bytes(Path::new("/proc")).ok(), Some(0));
        assert!(free_bytes(&folder.path().join("none")).is_err());
        assert!(free_bytes(Path::new("a\0b")).is_err());
        assert!(takes_programs(folder.path()) && !takes_programs(&folder.path().join("none")));
    }

    #[test]
    fn a_file_system_is_synced() {
        let folder = tempfile::tempdir().expect("a folder");
        sync_file_system(&File::open(folder.path()).expect("it")).expect("synced");
    }

    #[test]
    fn a_mount_may_forbid_programs() {
        assert!(allows_programs(0) && allows_programs(libc::ST_NOSUID | libc::ST_NODEV));
        assert!(!allows_programs(libc::ST_NOEXEC) && !allows_programs(libc::ST_NOSUID | libc::ST_NOEXEC));
    }
}
