//! Files that are there whole, or as they were before: what a command writes
//! for its user can be interrupted at any time.
//!
//! Neighbours: `exchange`, `explain` and `stubs` write so; records are `store`'s.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};

/// Writes a file by a temporary one beside it, which gets its name. A link
/// stays one, and permissions stay. What is no file, such as a pipe or a
/// terminal, is written to.
///
/// # Errors
/// [`Kind::Io`] when it cannot be written; the error names it.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes)
        .map_err(|error| Error::new(Kind::Io, format!("{} cannot be written", path.display())).source(error))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = path.metadata().ok();
    if is_open_file(path) || there.as_ref().is_some_and(|data| !data.is_file()) {
        return fs::write(path, bytes);
    }
    let path: PathBuf = if there.is_some() { path.canonicalize()? } else { path.to_path_buf() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Of a new one the umask takes away what the user does not want.
    let mode = there.as_ref().map_or(0o666, |data| data.permissions().mode() & 0o7777);
    let mut temporary = tempfile::Builder::new();
    let permissions = Permissions::from_mode(mode);
    let made = temporary.prefix(".unfinished-").permissions(permissions.clone()).tempfile_in(folder);
    let mut file = match made {
        // The file may be written where its folder may not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && there.is_some() => {
            return fs::write(path, bytes);
        }
        made => made?,
    };
    file.write_all(bytes)?;
    if there.is_some() {
        file.as_file().set_permissions(permissions)?;
    }
    match file.persist(&path) {
        Ok(_) => Ok(()),
        // One that was mounted into a container has a place of its own.
        Err(error) if error.error.kind() == io::ErrorKind::ResourceBusy => fs::write(path, bytes),
        Err(error) => Err(error.error),
    }
}

/// Whether a path is another name for a file that this process has open, such
/// as `/dev/stdout`: a file put in its place would get none of the rest.
fn is_open_file(path: &Path) -> bool {
    let leads_there = |path: &Path| path.starts_with("/proc") || path.starts_with("/dev/fd");
    leads_there(path) || fs::read_link(path).is_ok_and(|to| leads_there(&to))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_with_its_permissions_and_links_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write_whole(&file, b"old").expect("written");
        let fresh = file.metadata().expect("a file");
        assert_eq!(fresh.mode() & 0o600, 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("set");
        symlink("file", &link).expect("a link");
        write_whole(&link, b"new").expect("written");
        let now = file.metadata().expect("a file");
        assert_eq!((fs::read(&file).expect("a file"), now.mode() & 0o777), (b"new".into(), 0o640));
        assert_ne!(now.ino(), fresh.ino(), "it was written in place, where it can be left half");
        assert!(link.symlink_metadata().expect("a link").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2, "something was left");
    }

    #[test]
    fn what_is_no_file_is_written_to_and_what_cannot_be_is_named() {
        write_whole(Path::new("/dev/null"), b"x").expect("written");
        assert!(!Path::new("/dev/null").metadata().expect("it is there").is_file());
        assert!(is_open_file(Path::new("/dev/fd/1")) && is_open_file(Path::new("/proc/self/fd/1")));
        assert!(!is_open_file(Path::new("/dev/null")));
        let error = write_whole(Path::new("/no/such/folder/file"), b"x").expect_err("refused").report();
        assert!(error.contains("/no/such/folder/file cannot be written"), "{error}");
    }
}
