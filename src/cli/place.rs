//! Where records go when nothing else is said: `wallgrind` in the target
//! folder that the executable was built in.
//!
//! Neighbours: `resolve` asks, and so does the `wallgrind` command.

use std::path::{Path, PathBuf};

use super::env::Env;

/// The folder for records.
pub fn records(exe: &Path, env: &Env) -> PathBuf {
    let target = target_of(exe).or_else(|| env.get("CARGO_TARGET_DIR").map(PathBuf::from));
    target.unwrap_or_else(|| PathBuf::from("target")).join("wallgrind")
}

/// The target folder that holds an executable: cargo marks it with a
/// `CACHEDIR.TAG`, and puts executables a few levels below.
fn target_of(exe: &Path) -> Option<PathBuf> {
    exe.ancestors().skip(1).take(5).find(|dir| dir.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf)
}

/// The name of the bench target: that of the executable without cargo's hash.
pub fn suite(exe: &Path) -> String {
    let stem = exe.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name.to_string()
        }
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_target_folder_above_the_executable() {
        let dir = tempfile::tempdir().expect("a folder");
        let exe = dir.path().join("release/deps/tls-0123456789abcdef");
        std::fs::write(dir.path().join("CACHEDIR.TAG"), "").expect("a file");
        assert_eq!(records(&exe, &Env::default()), dir.path().join("wallgrind"));
        assert_eq!(suite(&exe), "tls");
    }

    #[test]
    fn else_the_variable_else_here() {
        let env = Env::from_iter([("CARGO_TARGET_DIR".to_string(), "/somewhere".to_string())]);
        assert_eq!(records(Path::new("/x/y"), &env), PathBuf::from("/somewhere/wallgrind"));
        assert_eq!(records(Path::new("/x/y"), &Env::default()), PathBuf::from("target/wallgrind"));
        assert_eq!(suite(Path::new("/x/my-suite")), "my-suite");
    }
}
