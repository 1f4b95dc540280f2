//! Valgrind itself: where it is, which version it is, what it can do.
//!
//! Neighbours: `counter` asks before it starts anything.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Kind, Result};

const INSTALL: &str = "install it with `apt install valgrind` or `dnf install valgrind`, \
                       or measure wall time with --mode walltime";

/// Version of Valgrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub major: u32,
    pub minor: u32,
}

/// The oldest version that was tried.
const OLDEST: Version = Version { major: 3, minor: 15 };
/// The first version that joins conditions with `&&` over branches, and can be told not to.
pub(super) const WITH_CHASING: Version = Version { major: 3, minor: 16 };
/// The first version with cachegrind's start and stop requests.
pub(super) const WITH_REQUESTS: Version = Version { major: 3, minor: 22 };

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Version {
    /// Reads what `valgrind --version` prints, such as `valgrind-3.19.0`.
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.trim().strip_prefix("valgrind-")?;
        let mut numbers = numbers.split(|c: char| !c.is_ascii_digit());
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }
}

/// Why the meters under Valgrind cannot run on this machine, if they cannot.
/// Cheap: nothing is executed.
pub fn missing() -> Option<String> {
    if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Some("counts under Valgrind are taken on Linux on x86-64 and aarch64 only".into());
    }
    find().is_none().then(|| format!("valgrind is not on the PATH: {INSTALL}"))
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("valgrind")).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// A Valgrind that can be used.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub path: PathBuf,
    pub version: Version,
    /// What it prints of itself.
    pub text: String,
}

impl Tool {
    /// Finds Valgrind and asks for its version.
    ///
    /// # Errors
    /// It is missing, too old, or does not start.
    pub(super) fn probe() -> Result<Self> {
        if let Some(reason) = missing() {
            return Err(Error::new(Kind::Missing, reason));
        }
        let path = find().unwrap_or_default();
        let output =
            Command::new(&path).arg("--version").stdin(Stdio::null()).output().map_err(|e| {
                Error::new(Kind::Missing, format!("{} does not start", path.display())).source(e)
            })?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
        let Some(version) = Version::parse(&text) else {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let said = if text.is_empty() { complaint.trim() } else { &text };
            let message = format!("{} --version gave no version, but {said:?}", path.display());
            return Err(Error::new(Kind::Missing, message).hint(INSTALL));
        };
        if version < OLDEST {
            let message = format!("valgrind {version} is too old: {OLDEST} or later is needed");
            return Err(Error::new(Kind::Missing, message).hint(INSTALL));
        }
        Ok(Self { path, version, text })
    }
}

#[cfg(test)]
mod tests {
    use super::{Version, WITH_REQUESTS};

    #[test]
    fn reads_versions() {
        let parse = |text| Version::parse(text).map(|v| v.to_string());
        assert_eq!(parse("valgrind-3.19.0\n").as_deref(), Some("3.19"));
        assert_eq!(parse("valgrind-3.24.0.GIT").as_deref(), Some("3.24"));
        assert_eq!(parse("valgrind-3").as_deref(), None);
        assert_eq!(parse("3.19.0").as_deref(), None);
        assert!(Version::parse("valgrind-3.9.0") < Some(WITH_REQUESTS));
        assert!(Version::parse("valgrind-4.0.0") > Some(WITH_REQUESTS));
    }
}
