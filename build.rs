//! Hands facts of the build, which a program cannot find out when it runs, to
//! `machine`: compiler, target, profile and flags.

use std::env;
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let facts = [
        ("RUSTC", rustc_version()),
        ("TARGET", variable("TARGET")),
        ("TARGET_FEATURES", variable("CARGO_CFG_TARGET_FEATURE")),
        ("OPT_LEVEL", variable("OPT_LEVEL")),
        ("PROFILE", variable("PROFILE")),
        ("RUSTFLAGS", variable("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ")),
    ];
    for (name, value) in facts {
        println!("cargo::rustc-env=WALLGRIND_BUILD_{name}={}", value.replace('\n', " "));
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
}

/// What the compiler of this build says of itself, or nothing.
fn rustc_version() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}
