//! The file system and the device below a folder, from the kernel's table of
//! mounts.
//!
//! Neighbours: `gather` (everything else that a result depends on).

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The value of what cannot be found out.
const UNKNOWN: &str = "unknown";

/// One mount that covers a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    file_system: String,
    device: String,
    options: String,
}

/// Facts of the file system of `folder`: `scratch_file_system` (`ext4`,
/// `tmpfs`), `scratch_device`, and `scratch_mount_options`. The folder itself
/// is not among them.
pub fn file_system(folder: &Path) -> [(String, String); 3] {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let unknown = || Mount { file_system: UNKNOWN.into(), device: UNKNOWN.into(), options: UNKNOWN.into() };
    let Mount { file_system, device, options } = covering(&table, &folder).unwrap_or_else(unknown);
    [("scratch_file_system", file_system), ("scratch_device", device), ("scratch_mount_options", options)]
        .map(|(key, value)| (key.to_string(), value))
}

/// The mount that `folder` lies on: the one with the longest mount point above
/// it, and of equal ones the last, which hides the others.
fn covering(table: &[u8], folder: &Path) -> Option<Mount> {
    let mounts = table.split(|byte| *byte == b'\n').filter_map(mount);
    let above = mounts.filter(|(point, _)| folder.starts_with(point));
    above.max_by_key(|(point, _)| point.as_os_str().len()).map(|(_, mount)| mount)
}

/// Mount point and mount in a line of `/proc/<pid>/mountinfo` (proc(5)):
/// `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/root rw,errors=continue`.
fn mount(line: &[u8]) -> Option<(PathBuf, Mount)> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    let end = words.iter().position(|word| *word == b"-")?;
    let text = |at: usize| words.get(at).map(|word| String::from_utf8_lossy(&unescaped(word)).into_owned());
    let point = PathBuf::from(std::ffi::OsString::from_vec(unescaped(words.get(4)?)));
    Some((point, Mount { file_system: text(end + 1)?, device: text(end + 2)?, options: text(5)? }))
}

/// Space, tab, line feed and backslash stand as three octal digits behind a backslash.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let octal = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, 8).ok()
    };
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, tail)) = rest.split_first() {
        let escaped = (*first == b'\\').then(|| tail.get(..3).and_then(octal)).flatten();
        plain.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[3..] } else { tail };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 22 0:25 / /dev/shm rw,nosuid shared:3 - tmpfs tmpfs rw
31 22 0:26 / /mnt/a\\040b rw,noatime shared:4 master:9 - xfs /dev/mapper/data\\134x rw
32 22 0:27 / /tmp rw - tmpfs first rw
33 32 8:1 /inner /tmp rw,nodev - btrfs /dev/sda1 rw
rubbish
34 22 0:28 / /cut rw
";

    fn found(folder: &str) -> Option<(String, String)> {
        covering(TABLE.as_bytes(), Path::new(folder)).map(|mount| (mount.file_system, mount.device))
    }

    #[test]
    fn the_innermost_and_last_mount_counts() {
        let pair = |a: &str, b: &str| Some((a.to_string(), b.to_string()));
        assert_eq!(found("/var/tmp"), pair("ext4", "/dev/vda"));
        assert_eq!(found("/dev/shm/x"), pair("tmpfs", "tmpfs"));
        assert_eq!(found("/dev/shmx"), pair("ext4", "/dev/vda"));
        assert_eq!(found("/mnt/a b/c"), pair("xfs", "/dev/mapper/data\\x"));
        assert_eq!(found("/tmp/y"), pair("btrfs", "/dev/sda1"));
        assert_eq!(covering(b"", Path::new("/")), None);
    }

    #[test]
    fn this_machine_has_an_answer_for_each_folder() {
        for folder in ["/", "/proc", "/no/such/folder"] {
            let facts = file_system(Path::new(folder));
            assert!(
                facts.iter().all(|(_, value)| !value.is_empty() && value != UNKNOWN),
                "{folder}: {facts:?}"
            );
        }
        assert_eq!(file_system(Path::new("/proc"))[0].1, "proc");
    }
}
