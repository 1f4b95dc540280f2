//! The tables of checksums in `fixtures/README.md`.
//!
//! Neighbours: the tests of each folder of fixtures compare with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// A folder of fixtures.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The files of a folder that the README names, with their SHA-256.
pub fn table(folder: &str) -> BTreeMap<String, String> {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/README.md"));
    let readme = readme.expect("fixtures/README.md");
    let start = format!("| `{folder}/");
    let row = |line: &str| {
        let (name, digest) = line.strip_prefix(&start)?.strip_suffix("` |")?.split_once("` | `")?;
        Some((name.to_string(), digest.to_string()))
    };
    readme.lines().filter_map(row).collect()
}

/// The SHA-256 of `bytes` in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files that a folder has, in order, without the script that makes them.
pub fn on_disk(name: &str) -> Vec<String> {
    let entries = fs::read_dir(folder(name)).expect("a folder of fixtures");
    let names = entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name != "make.sh").collect();
    names.sort();
    names
}
