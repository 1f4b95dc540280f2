//! What cargo wrote down of an executable's build: its features, and a number
//! that stands for all settings of its profile (optimisation, link-time
//! optimisation, code generation units, and so on), which a program is not
//! told otherwise.
//!
//! The file is cargo's own business (`.fingerprint`, beside the folder of the
//! executable), so nothing here relies on it: where it is missing or looks
//! different, the answer is that it is not known. Neighbours: `gather`.

use std::fs;
use std::path::Path;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Built {
    /// The features of the package, in order; `none` when there are none.
    pub features: Option<String>,
    /// The number of the profile's settings.
    pub profile: Option<String>,
}

/// What is known of the executable at `path`, `PROFILE/deps/NAME-HASH`.
pub(super) fn built(path: &Path) -> Built {
    find(path).unwrap_or_default()
}

fn find(path: &Path) -> Option<Built> {
    let (_, hash) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    if hash.len() != 16 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let all = fs::read_dir(path.parent()?.parent()?.join(".fingerprint")).ok()?;
    let folder = all.flatten().find(|entry| {
        let name = entry.file_name();
        name.to_str().and_then(|name| name.rsplit_once('-')).is_some_and(|(_, own)| own == hash)
    })?;
    let files = fs::read_dir(folder.path()).ok()?.flatten();
    let file = files.map(|entry| entry.path()).find(|file| file.extension().is_some_and(|e| e == "json"))?;
    read(&fs::read_to_string(file).ok()?)
}

fn read(text: &str) -> Option<Built> {
    let object: serde_json::Value = serde_json::from_str(text).ok()?;
    // The list is written as text.
    let features =
        object["features"].as_str().and_then(|list| serde_json::from_str::<Vec<String>>(list).ok());
    let features = features.map(|mut list| {
        list.sort();
        if list.is_empty() { "none".to_string() } else { list.join(", ") }
    });
    Some(Built { features, profile: object["profile"].as_u64().map(|n| format!("{n:016x}")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_and_profile_are_those_that_cargo_wrote_down() {
        let root = tempfile::tempdir().expect("a folder");
        let of = |name: &str, text: &str| {
            let folder = root.path().join(".fingerprint").join(name);
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join("bench-tls.json"), text).expect("written");
            fs::write(folder.join("bench-tls"), "hash").expect("written");
        };
        let text = r#"{"rustc":1,"features":"[\"ring\", \"default\"]","profile":255,"deps":[]}"#;
        of("my-pkg-0123456789abcdef", text);
        of("my-pkg-00000000000000aa", "not an object");
        of("my-pkg-00000000000000bb", r#"{"features":"[]"}"#);
        let built = |name: &str| built(&root.path().join("deps").join(name));
        let expected =
            Built { features: Some("default, ring".into()), profile: Some("00000000000000ff".into()) };
        assert_eq!(built("tls-0123456789abcdef"), expected);
        assert_eq!(built("tls-00000000000000bb"), Built { features: Some("none".into()), profile: None });
        for unknown in ["tls-00000000000000aa", "tls-fedcba9876543210", "tls", "tls-0123"] {
            assert_eq!(built(unknown), Built::default(), "{unknown}");
        }
    }

    /// This executable is one that cargo built: if this fails, cargo writes it differently now.
    #[test]
    fn cargo_still_writes_it_this_way() {
        let exe = std::env::current_exe().expect("this executable");
        let Built { features, profile } = built(&exe);
        let features = features.expect("features");
        assert_eq!(
            features.contains("ring"),
            cfg!(feature = "ring") || cfg!(feature = "aws-lc-rs"),
            "{features}"
        );
        assert!(profile.is_some());
    }
}
