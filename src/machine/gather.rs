//! Asks the system, once a run, for what a result depends on.
//!
//! What cannot be found out is stored as `unknown`, never left out, so that a
//! comparison sees that it does not know. Neighbours: `parse` has everything
//! that can be tested on given texts; `build.rs` sets the facts of the build.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{cargo, parse};

/// The value of what cannot be found out.
const UNKNOWN: &str = "unknown";

/// Facts of this machine, toolchain, commit and program, gathered once a run.
/// Keys that hold numbers carry the unit. Takes some milliseconds, most of
/// them for git.
pub fn identity() -> BTreeMap<String, String> {
    let home = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).or_else(|| env::current_dir().ok());
    let mut facts = BTreeMap::new();
    let all = build().into_iter().chain(processor()).chain(kernel()).chain(virtualization());
    facts.extend(all.map(|(key, value)| (key.to_string(), known(value))));
    let (commit, dirty) = commit(home.as_deref());
    facts.insert("commit".into(), commit);
    facts.insert("tree_dirty".into(), dirty);
    facts.extend(dependencies(home.as_deref()));
    facts
}

/// Facts of this machine, and what cargo wrote down of another executable that
/// it has built. The rest of its build only that executable knows.
pub fn identity_of(program: &Path) -> BTreeMap<String, String> {
    let built = cargo::built(program);
    let of_build = [("profile_settings", built.profile), ("features", built.features)];
    let all = of_build.into_iter().chain(processor()).chain(kernel()).chain(virtualization());
    all.map(|(key, value)| (key.to_string(), known(value))).collect()
}

type Facts<const N: usize> = [(&'static str, Option<String>); N];

fn known(value: Option<String>) -> String {
    value.filter(|v| !v.is_empty()).unwrap_or_else(|| UNKNOWN.into())
}

fn build() -> Facts<15> {
    let variable = |name: &str| env::var(name).ok();
    let assertions = if cfg!(debug_assertions) { "yes" } else { "no" };
    let panics = if cfg!(panic = "unwind") { "unwind" } else { "abort" };
    let built = env::current_exe().map(|exe| cargo::built(&exe)).unwrap_or_default();
    let flags = match env!("WALLGRIND_BUILD_RUSTFLAGS") {
        "" => "none",
        flags => flags,
    };
    [
        ("wallgrind", Some(env!("CARGO_PKG_VERSION").into())),
        ("package", variable("CARGO_PKG_NAME")),
        ("package_version", variable("CARGO_PKG_VERSION")),
        ("rustc", Some(env!("WALLGRIND_BUILD_RUSTC").into())),
        ("target", Some(env!("WALLGRIND_BUILD_TARGET").into())),
        ("target_features", Some(env!("WALLGRIND_BUILD_TARGET_FEATURES").into())),
        ("opt_level", Some(env!("WALLGRIND_BUILD_OPT_LEVEL").into())),
        ("profile", Some(env!("WALLGRIND_BUILD_PROFILE").into())),
        // The profile's folder is `release` for the bench profile, too; this tells them apart.
        ("profile_settings", built.profile),
        ("debuginfo", Some(env!("WALLGRIND_BUILD_DEBUG").into())),
        ("panic", Some(panics.into())),
        ("features", built.features),
        ("wallgrind_features", Some(env!("WALLGRIND_BUILD_FEATURES").into())),
        ("debug_assertions", Some(assertions.into())),
        ("rustflags", Some(flags.into())),
    ]
}

fn processor() -> Facts<7> {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let online = read("/sys/devices/system/cpu/online").and_then(|list| parse::cpu_count(&list));
    let smt = read("/sys/devices/system/cpu/smt/active").and_then(|flag| parse::on_off(&flag));
    [
        ("cpu_model", parse::cpu_model(&cpuinfo)),
        ("cpu_microcode", parse::cpuinfo_field(&cpuinfo, "microcode")),
        ("cpus_online_count", online.map(|n| n.to_string())),
        ("smt", smt.map(Into::into)),
        ("governor", Some(governor())),
        ("turbo", Some(turbo())),
        ("clock_source", read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
    ]
}

/// The frequency governors of all processors, or `none` where the system
/// leaves the frequency alone (as in most virtual machines).
fn governor() -> String {
    let mut governors = Vec::new();
    for policy in fs::read_dir("/sys/devices/system/cpu/cpufreq").into_iter().flatten().flatten() {
        governors.extend(read(policy.path().join("scaling_governor")));
    }
    governors.sort();
    governors.dedup();
    if governors.is_empty() { "none".into() } else { governors.join(",") }
}

fn turbo() -> String {
    let no_turbo = read("/sys/devices/system/cpu/intel_pstate/no_turbo");
    let boost = read("/sys/devices/system/cpu/cpufreq/boost");
    parse::turbo(no_turbo.as_deref(), boost.as_deref()).into()
}

fn kernel() -> Facts<6> {
    let aslr = parse::aslr(
        read("/proc/sys/kernel/randomize_va_space").as_deref(),
        read("/proc/self/personality").as_deref(),
    );
    let memory = read("/proc/meminfo").and_then(|text| parse::memory_bytes(&text));
    [
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("os", read("/etc/os-release").and_then(|text| parse::os_name(&text))),
        ("aslr", aslr.map(Into::into)),
        // They change the code that copies memory, for example.
        ("glibc_tunables", Some(std::env::var("GLIBC_TUNABLES").unwrap_or_else(|_| "none".into()))),
        ("load_average_1min_tasks", read("/proc/loadavg").and_then(|text| parse::load(&text))),
        ("memory_bytes", memory.map(|n| n.to_string())),
    ]
}

fn virtualization() -> Facts<3> {
    let hypervisor = read("/proc/cpuinfo").and_then(|text| parse::hypervisor_flag(&text));
    let vendor = read("/sys/class/dmi/id/sys_vendor");
    let product = read("/sys/class/dmi/id/product_name");
    let kind = read("/sys/hypervisor/type").or_else(|| parse::machine_name(&vendor, &product));
    let virtual_machine = parse::virtual_machine(hypervisor, kind.as_deref());
    let container = ["/.dockerenv", "/run/.containerenv"].iter().any(|file| Path::new(file).exists());
    [
        ("virtual_machine", virtual_machine.map(Into::into)),
        ("machine_kind", kind),
        ("container", Some(if container { "yes" } else { "no" }.into())),
    ]
}

/// The commit of the package's folder, and whether files that git knows have
/// changed since. Files that git does not know are passed by, as `git
/// describe --dirty` does it.
fn commit(home: Option<&Path>) -> (String, String) {
    let described = home.and_then(|home| {
        let output = Command::new("git")
            .arg("-C")
            .arg(home)
            .args(["describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=-dirty"])
            // A look must not write to the repository.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    });
    match described.as_deref().map(|text| (text, text.strip_suffix("-dirty"))) {
        Some((_, Some(commit))) => (commit.into(), "yes".into()),
        Some((commit, None)) if !commit.is_empty() => (commit.into(), "no".into()),
        _ => (UNKNOWN.into(), UNKNOWN.into()),
    }
}

/// `dep.NAME` with the version of each dependency that the measured package
/// states, and of the cryptography below them, from the workspace's
/// `Cargo.lock`. Cargo keeps that file equal to what it built.
fn dependencies(home: Option<&Path>) -> Vec<(String, String)> {
    let lock = home.into_iter().flat_map(Path::ancestors).find_map(|folder| read(folder.join("Cargo.lock")));
    let Some(lock) = lock else { return vec![("dependencies".into(), UNKNOWN.into())] };
    parse::measured_versions(&lock, env::var("CARGO_PKG_NAME").ok().as_deref())
        .into_iter()
        .map(|(name, version)| (format!("dep.{name}"), version))
        .collect()
}

/// The trimmed text of a file, if it can be read.
fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_a_value_and_nothing_names_the_host() {
        let facts = identity();
        for key in ["commit", "tree_dirty", "rustc", "cpu_model", "kernel", "governor", "turbo", "aslr"] {
            assert!(facts.get(key).is_some_and(|value| !value.is_empty()), "{key} is missing");
        }
        assert!(facts["rustc"].starts_with("rustc 1."), "{}", facts["rustc"]);
        assert!(facts["target"].contains("linux"), "{}", facts["target"]);
        assert!(facts.contains_key("dep.rustls"), "{facts:#?}");
        assert_eq!(facts["wallgrind_features"].contains("ring"), cfg!(feature = "ring"), "{facts:#?}");
        assert!(facts.keys().all(|key| !key.contains("host") && !key.contains("user")), "{facts:#?}");
    }

    #[test]
    fn without_a_repository_the_commit_is_unknown() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        assert_eq!(commit(Some(folder.path())), (UNKNOWN.into(), UNKNOWN.into()));
        assert_eq!(commit(None), (UNKNOWN.into(), UNKNOWN.into()));
    }

    #[test]
    fn a_changed_file_makes_the_tree_dirty_and_a_new_one_does_not() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=n", "-c", "user.email=e@example.invalid"];
            let mut command = Command::new("git");
            command.arg("-C").arg(folder.path()).args(identity).args(arguments);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().is_ok_and(|o| o.status.success())
        };
        if !git(&["init", "-q"]) {
            return; // no git on this machine; the test above covers that
        }
        let file = folder.path().join("file");
        fs::write(&file, "one").expect("written");
        assert!(git(&["add", "file"]) && git(&["commit", "-q", "-m", "one"]));
        fs::write(folder.path().join("new"), "unknown to git").expect("written");
        let (clean, dirty) = commit(Some(folder.path()));
        assert_eq!((clean.len(), dirty.as_str()), (40, "no"));
        fs::write(&file, "two").expect("written");
        assert_eq!(commit(Some(folder.path())), (clean, "yes".into()));
    }
}
