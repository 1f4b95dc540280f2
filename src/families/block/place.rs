//! Where images lie, for the record: file system and device.
//!
//! Neighbours: `run` states it with every number.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::block::probe;

/// Name of the file system of a folder.
pub(super) fn file_system(folder: &Path) -> String {
    probe::file_system_of(folder).unwrap_or_else(|error| error.to_string())
}

/// Name of the block device under a folder, or the kernel's number for what is none.
pub(super) fn device(folder: &Path) -> String {
    let Ok(found) = std::fs::metadata(folder) else { return "unknown".into() };
    let (major, minor) = (libc::major(found.dev()), libc::minor(found.dev()));
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}"));
    let name = link.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| format!("none ({major}:{minor})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_is_somewhere() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(!file_system(dir.path()).is_empty());
        assert!(!device(dir.path()).is_empty());
        assert_eq!(device(Path::new("/proc/self")).split(' ').next(), Some("none"));
        assert_eq!(device(Path::new("/no/such/folder")), "unknown");
    }
}
