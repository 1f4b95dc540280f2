//! Hands facts of the build, which a program cannot find out when it runs, to
//! `machine`: compiler, target, profile, features and flags. What cargo does not
//! tell a build script (link-time optimisation) `machine::cargo` finds.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let facts = [
        ("RUSTC", rustc_version()),
        ("TARGET", variable("TARGET")),
        ("TARGET_FEATURES", variable("CARGO_CFG_TARGET_FEATURE")),
        ("OPT_LEVEL", variable("OPT_LEVEL")),
        ("PROFILE", profile()),
        ("DEBUG", variable("DEBUG")),
        ("FEATURES", features()),
        ("RUSTFLAGS", variable("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ")),
    ];
    for (name, value) in facts {
        println!("cargo::rustc-env=WALLGRIND_BUILD_{name}={}", value.replace('\n', " "));
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
}

/// The folder of the profile: `release` for the bench profile as well, and the
/// name of a profile of the user's own, which PROFILE does not tell.
fn profile() -> String {
    // OUT_DIR is PROFILE/build/NAME-HASH/out.
    let out = env::var("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let named = folder.map(|name| name.to_string_lossy().into_owned());
    named.or_else(|| env::var("PROFILE").ok()).unwrap_or_default()
}

/// The features of this library, as cargo names them, in order.
fn features() -> String {
    let of = |(name, _): (String, String)| {
        Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase().replace('_', "-"))
    };
    let mut all: Vec<String> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter_map(of)
        .collect();
    all.sort();
    all.join(", ")
}

/// What the compiler of this build says of itself, or nothing.
fn rustc_version() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}
