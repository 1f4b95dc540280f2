//! Where records go when nothing else is said: `wallgrind` in the target
//! folder that the executable was built in.
//!
//! Neighbours: `resolve` asks, and so does the `wallgrind` command.

use std::hash::{Hash, Hasher};
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

/// A name for a run that nobody else names: its time, and chance.
pub fn new_run() -> String {
    let chance: String = std::iter::repeat_with(fastrand::alphanumeric).take(SUFFIX).collect();
    named(&chance.to_ascii_lowercase())
}

/// Characters of a run's name that tell it from runs of the same second.
const SUFFIX: usize = 6;

fn named(suffix: &str) -> String {
    format!("{}-{suffix}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ"))
}

/// The run of the cargo that started this process: one `cargo bench` is one
/// run, although each bench target is a process of its own. The first of them
/// names it; the others find it under `out` by what stands for that cargo.
pub fn run_of_cargo(out: &Path, env: &Env) -> Option<String> {
    // Without a key: the same in every process.
    let mut hasher = std::hash::DefaultHasher::new();
    env.cargo()?.hash(&mut hasher);
    let suffix = in_base_36(hasher.finish());
    let runs = std::fs::read_dir(out).into_iter().flatten().flatten();
    let names = runs.filter_map(|entry| entry.file_name().into_string().ok());
    let started = names.filter(|name| name.rsplit_once('-').is_some_and(|(_, end)| end == suffix)).min();
    Some(started.unwrap_or_else(|| named(&suffix)))
}

/// The last digits of a number, lowest first.
fn in_base_36(number: u64) -> String {
    let digits = std::iter::successors(Some(number), |rest| Some(rest / 36));
    digits.map(|rest| char::from_digit((rest % 36) as u32, 36).unwrap_or('0')).take(SUFFIX).collect()
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
