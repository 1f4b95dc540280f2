//! Understands what the system says: pure functions over given texts.
//!
//! Neighbours: `gather` brings the texts.

/// Packages whose versions decide what a TLS result means, though the
/// measured package may not state them itself.
const BELOW: [&str; 7] =
    ["aws-lc-rs", "aws-lc-sys", "graviola", "ring", "rustls", "rustls-graviola", "rustls-rustcrypto"];

/// The first value of a field in `/proc/cpuinfo`.
pub(super) fn cpuinfo_field(cpuinfo: &str, field: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == field).then(|| value.trim().to_string())
    })
}

/// The name of the processor; on arm64 implementer and part, which have no names there.
pub(super) fn cpu_model(cpuinfo: &str) -> Option<String> {
    cpuinfo_field(cpuinfo, "model name").or_else(|| {
        let implementer = cpuinfo_field(cpuinfo, "CPU implementer")?;
        Some(format!("implementer {implementer} part {}", cpuinfo_field(cpuinfo, "CPU part")?))
    })
}

/// Whether an x86 processor says that a hypervisor is below it.
pub(super) fn hypervisor_flag(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo_field(cpuinfo, "flags")?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// How many processors a list such as `0-3,8` holds.
pub(super) fn cpu_count(list: &str) -> Option<usize> {
    list.trim().split(',').try_fold(0, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        Some(count + last.checked_sub(first)? + 1)
    })
}

/// A flag of the kernel's.
pub(super) fn on_off(flag: &str) -> Option<&'static str> {
    match flag.trim() {
        "0" => Some("off"),
        "1" => Some("on"),
        _ => None,
    }
}

/// Whether the processor may exceed its nominal frequency: Intel's driver
/// says when it may not, the others when it may, many machines nothing.
pub(super) fn turbo(no_turbo: Option<&str>, boost: Option<&str>) -> &'static str {
    match (no_turbo.and_then(on_off), boost.and_then(on_off)) {
        (Some("on"), _) => "off",
        (Some(_), _) => "on",
        (None, Some(boost)) => boost,
        (None, None) => "unknown",
    }
}

/// Whether addresses are random, from the kernel's setting and the
/// personality of this process (bit 0x0040000 is `ADDR_NO_RANDOMIZE`).
pub(super) fn aslr(setting: Option<&str>, personality: Option<&str>) -> Option<&'static str> {
    let fixed = personality.and_then(|text| u32::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    if fixed & 0x004_0000 != 0 {
        return Some("off (this process)");
    }
    match setting?.trim() {
        "0" => Some("off"),
        "1" => Some("on (without heap)"),
        "2" => Some("on"),
        _ => None,
    }
}

/// The load average of the last minute.
pub(super) fn load(loadavg: &str) -> Option<String> {
    let first = loadavg.split_ascii_whitespace().next()?;
    first.parse::<f64>().ok().map(|_| first.to_string())
}

/// The memory of the machine.
pub(super) fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The name in `/etc/os-release`.
pub(super) fn os_name(release: &str) -> Option<String> {
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_string())
}

/// What the firmware calls the machine.
pub(super) fn machine_name(vendor: &Option<String>, product: &Option<String>) -> Option<String> {
    let words: Vec<&str> = [vendor, product].into_iter().filter_map(|w| w.as_deref()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// `yes`, `no`, or nothing where neither processor nor firmware tell.
pub(super) fn virtual_machine(hypervisor: Option<bool>, kind: Option<&str>) -> Option<&'static str> {
    const MARKS: [&str; 10] = [
        "QEMU",
        "KVM",
        "VMware",
        "VirtualBox",
        "Xen",
        "Virtual Machine",
        "Amazon EC2",
        "Google Compute Engine",
        "Firecracker",
        "OpenStack",
    ];
    // The firmware of Amazon's and Google's bare machines bears the same vendor.
    let bare = |kind: &str| kind.contains("metal");
    let named =
        kind.map(|kind| !bare(kind) && MARKS.iter().any(|m| kind.to_lowercase().contains(&m.to_lowercase())));
    match (hypervisor, named) {
        (Some(true), _) | (_, Some(true)) => Some("yes"),
        (Some(false), _) | (None, Some(false)) => Some("no"),
        (None, None) => None,
    }
}

/// One package of a `Cargo.lock`.
#[derive(Debug, Default)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    source: Option<&'a str>,
    dependencies: Vec<&'a str>,
}

/// The packages of a `Cargo.lock`. Cargo writes that file itself, one key a
/// line, so lines are enough to read it by.
fn packages(lock: &str) -> Vec<Package<'_>> {
    let mut packages: Vec<Package<'_>> = Vec::new();
    for line in lock.lines().map(str::trim) {
        if line == "[[package]]" {
            packages.push(Package::default());
        }
        let Some(package) = packages.last_mut() else { continue };
        match line.split_once(" = ") {
            Some(("name", value)) => package.name = value.trim_matches('"'),
            Some(("version", value)) => package.version = value.trim_matches('"'),
            Some(("source", value)) => package.source = Some(value.trim_matches('"')),
            // A dependency: its name, with the version behind it where there are several.
            None if line.starts_with('"') => package.dependencies.push(line.trim_matches(['"', ','])),
            _ => {}
        }
    }
    packages
}

/// Names and versions of the dependencies that the package called `measured`
/// states, and of the cryptography below them, sorted by name. Without a name (the program was
/// not started by cargo) all packages of the workspace count as measured.
/// A version from git carries its commit, one from a folder says so.
pub(super) fn measured_versions(lock: &str, measured: Option<&str>) -> Vec<(String, String)> {
    let all = packages(lock);
    let is_measured = |p: &&Package<'_>| p.source.is_none() && measured.is_none_or(|name| p.name == name);
    let stated: Vec<&str> =
        all.iter().filter(is_measured).flat_map(|p| p.dependencies.iter().copied()).collect();
    let wanted = |p: &Package<'_>| {
        BELOW.contains(&p.name)
            || stated.iter().any(|stated| {
                let mut words = stated.split(' ');
                words.next() == Some(p.name) && words.next().is_none_or(|version| version == p.version)
            })
    };
    let mut versions: Vec<(String, String)> = Vec::new();
    for package in all.iter().filter(|p| wanted(p)) {
        let version = described(package);
        match versions.iter_mut().find(|(name, _)| name == package.name) {
            Some((_, several)) => *several = format!("{several}, {version}"),
            None => versions.push((package.name.to_string(), version)),
        }
    }
    versions.sort();
    versions
}

fn described(package: &Package<'_>) -> String {
    let commit = |source: &str| source.rsplit_once('#').map(|(_, commit)| commit.to_string());
    match package.source {
        None => format!("{} (path)", package.version),
        Some(source) if source.starts_with("git+") => {
            format!("{} (git {})", package.version, commit(source).unwrap_or_else(|| source.to_string()))
        }
        Some(_) => package.version.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nmicrocode\t: 0xea\n\
                       flags\t\t: fpu sse2 hypervisor\n\nprocessor\t: 1\nmodel name\t: Other\n";
    const ARM: &str = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";

    #[test]
    fn cpuinfo_of_both_architectures() {
        assert_eq!(cpu_model(X86).as_deref(), Some("Some CPU @ 2.00GHz"));
        assert_eq!(cpu_model(ARM).as_deref(), Some("implementer 0x41 part 0xd0c"));
        assert_eq!((cpu_model(""), cpuinfo_field(ARM, "microcode")), (None, None));
        assert_eq!(hypervisor_flag(X86), Some(true));
        assert_eq!(hypervisor_flag(&X86.replace(" hypervisor", " hypervisors")), Some(false));
        assert_eq!(hypervisor_flag(ARM), None);
    }

    #[test]
    fn lists_of_processors_are_counted() {
        for (list, count) in [("0", Some(1)), ("0-1\n", Some(2)), ("0-3,8,10-11", Some(7))] {
            assert_eq!(cpu_count(list), count, "{list}");
        }
        for bad in ["", "a", "3-1", "0-"] {
            assert_eq!(cpu_count(bad), None, "{bad}");
        }
    }

    #[test]
    fn turbo_and_aslr_in_all_their_forms() {
        assert_eq!(turbo(Some("1"), None), "off");
        assert_eq!(turbo(Some("0\n"), Some("0")), "on");
        assert_eq!((turbo(None, Some("1")), turbo(None, Some("0"))), ("on", "off"));
        assert_eq!(turbo(None, None), "unknown");
        assert_eq!(aslr(Some("2\n"), Some("00000000")), Some("on"));
        assert_eq!(aslr(Some("2"), Some("00040000")), Some("off (this process)"));
        assert_eq!((aslr(Some("0"), None), aslr(None, None)), (Some("off"), None));
    }

    #[test]
    fn kernel_texts() {
        assert_eq!(load("0.13 0.30 0.21 1/123 456").as_deref(), Some("0.13"));
        assert_eq!((load(""), load("x 1")), (None, None));
        assert_eq!(memory_bytes("MemTotal:        8000 kB\nMemFree: 1 kB"), Some(8_192_000));
        assert_eq!(memory_bytes("MemTotal: many"), None);
        assert_eq!(os_name("ID=x\nPRETTY_NAME=\"Some OS 1\"\n").as_deref(), Some("Some OS 1"));
    }

    #[test]
    fn a_virtual_machine_is_known_by_processor_or_firmware() {
        assert_eq!(virtual_machine(Some(true), None), Some("yes"));
        assert_eq!(virtual_machine(Some(false), Some("Dell Inc. PowerEdge")), Some("no"));
        assert_eq!(virtual_machine(None, Some("QEMU Standard PC")), Some("yes"));
        assert_eq!(virtual_machine(None, Some("Amazon EC2 m7g.metal")), Some("no"));
        assert_eq!(virtual_machine(None, None), None);
        let text = |s: &str| Some(s.to_string());
        assert_eq!(machine_name(&text("A"), &text("B")).as_deref(), Some("A B"));
        assert_eq!(machine_name(&None, &None), None);
    }

    const LOCK: &str = r#"
version = 4

[[package]]
name = "mine"
version = "0.1.0"
dependencies = [
 "parser 2.0.0",
 "patched",
 "rustls",
]

[[package]]
name = "other"
version = "0.2.0"
dependencies = [
 "rand",
]

[[package]]
name = "parser"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"

[[package]]
name = "parser"
version = "2.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00"

[[package]]
name = "patched"
version = "0.3.0"
source = "git+https://example.invalid/patched?branch=main#0123abcd"

[[package]]
name = "rand"
version = "0.9.0"
source = "registry+https://github.com/rust-lang/crates.io-index"

[[package]]
name = "ring"
version = "0.17.14"
source = "registry+https://github.com/rust-lang/crates.io-index"

[[package]]
name = "rustls"
version = "0.23.46"
dependencies = [
 "ring",
]
"#;

    #[test]
    fn versions_are_those_of_the_measured_package_and_the_cryptography() {
        let of = |measured| -> Vec<String> {
            let versions = measured_versions(LOCK, measured);
            versions.iter().map(|(name, version)| format!("{name} {version}")).collect()
        };
        let mine = ["parser 2.0.0", "patched 0.3.0 (git 0123abcd)", "ring 0.17.14", "rustls 0.23.46 (path)"];
        assert_eq!(of(Some("mine")), mine);
        assert_eq!(of(Some("other")), ["rand 0.9.0", "ring 0.17.14", "rustls 0.23.46 (path)"]);
        assert!(of(None).contains(&"rand 0.9.0".to_string()) && of(None).contains(&mine[0].to_string()));
        assert_eq!(measured_versions("", None), []);
        assert_eq!(measured_versions("not a lock file\nname = \"x\"", None), []);
    }
}
