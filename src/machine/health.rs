//! What about a machine makes its numbers better or worse, with the way out.
//!
//! All of it is read below a root, so that tests can bring a machine of their
//! own. What cannot be read is unknown, and says what that means.
//! Neighbours: `gather` keeps facts beside each result; the `doctor` command
//! prints this, and adds what only trying can tell.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::parse;

/// What a finding means for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Good,
    /// It costs precision, or something cannot be measured.
    Mind,
    /// The system does not say.
    Unknown,
}

impl Health {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Mind => "mind",
            Self::Unknown => "unknown",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// What it means for measuring.
    pub state: Health,
    /// What was found.
    pub found: String,
    /// Why that matters.
    pub means: String,
    /// What to do about it; empty when there is nothing to be done.
    pub way_out: String,
}

impl Check {
    /// A finding that needs nothing done.
    pub fn good(name: &'static str, found: impl Into<String>, means: &str) -> Self {
        Self { name, state: Health::Good, found: found.into(), means: means.into(), way_out: String::new() }
    }

    /// A finding that costs something.
    pub fn mind(name: &'static str, found: impl Into<String>, means: &str, way_out: &str) -> Self {
        Self { name, state: Health::Mind, found: found.into(), means: means.into(), way_out: way_out.into() }
    }

    /// The system does not say.
    pub fn unknown(name: &'static str, found: impl Into<String>, means: &str) -> Self {
        Self { state: Health::Unknown, ..Self::good(name, found, means) }
    }
}

/// How long is watched for time that a hypervisor took.
pub const WATCH: Duration = Duration::from_millis(500);

/// Everything that files below `root` tell; `watch` is how long is watched
/// for time that is taken away.
pub fn health(root: &Path, watch: Duration) -> Vec<Check> {
    let at = |path: &str| read(root, path);
    let online = at("sys/devices/system/cpu/online").and_then(|list| parse::cpu_count(&list));
    vec![
        governor(&governors(root)),
        turbo(at("sys/devices/system/cpu/intel_pstate/no_turbo"), at("sys/devices/system/cpu/cpufreq/boost")),
        siblings(&sibling_lists(root)),
        aslr(at("proc/sys/kernel/randomize_va_space"), at("proc/self/personality")),
        load(at("proc/loadavg"), online),
        steal(root, watch),
        temperature(root),
        clock(at("sys/devices/system/clocksource/clocksource0/current_clocksource")),
        perf(at("proc/sys/kernel/perf_event_paranoid"), has_counters(root)),
        aio(at("proc/sys/fs/aio-nr"), at("proc/sys/fs/aio-max-nr")),
    ]
}

/// The trimmed text of a file below the root.
fn read(root: &Path, path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(root.join(path))
        .ok()
        .map(|text| text.trim().to_string())
        .filter(|text| !text.is_empty())
}

/// Folders below `folder` whose names are `prefix` and a number, in the order of the numbers.
fn numbered(root: &Path, folder: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut found: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_prefix(prefix)?.parse().ok()?, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

fn governors(root: &Path) -> Vec<String> {
    let policies = numbered(root, "sys/devices/system/cpu/cpufreq", "policy");
    let mut all: Vec<String> =
        policies.iter().filter_map(|policy| read(policy, "scaling_governor")).collect();
    all.sort();
    all.dedup();
    all
}

fn governor(found: &[String]) -> Check {
    let name = "governor";
    if found.is_empty() {
        let means = "nothing here sets the frequency; in a virtual machine the host does, unseen";
        return Check::unknown(name, "none", means);
    }
    let all = found.join(", ");
    if found.iter().all(|governor| governor == "performance") {
        return Check::good(name, all, "the frequency does not follow the load");
    }
    let means = "the frequency follows the load: the first samples are slower than the last";
    Check::mind(name, all, means, "cpupower frequency-set -g performance")
}

fn turbo(no_turbo: Option<String>, boost: Option<String>) -> Check {
    let name = "turbo";
    match parse::turbo(no_turbo.as_deref(), boost.as_deref()) {
        "off" => Check::good(name, "off", "the frequency stays where it is"),
        "on" => {
            let means = "the frequency depends on heat and on how many processors are busy";
            let intel = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo";
            let others = "echo 0 > /sys/devices/system/cpu/cpufreq/boost";
            Check::mind(name, "on", means, if no_turbo.is_some() { intel } else { others })
        }
        _ => Check::unknown(name, "not said", "the host may change the frequency, unseen"),
    }
}

/// The processors that share a core, as the kernel lists them.
fn sibling_lists(root: &Path) -> Option<Vec<String>> {
    let cpus = numbered(root, "sys/devices/system/cpu", "cpu");
    let lists: Vec<String> =
        cpus.iter().filter_map(|cpu| read(cpu, "topology/thread_siblings_list")).collect();
    if lists.is_empty() {
        return None;
    }
    let mut shared: Vec<String> =
        lists.into_iter().filter(|list| parse::cpu_count(list) != Some(1)).collect();
    shared.sort();
    shared.dedup();
    Some(shared)
}

fn siblings(shared: &Option<Vec<String>>) -> Check {
    let name = "SMT siblings";
    match shared.as_deref() {
        None => Check::unknown(name, "not said", "processors may share a core with others, unseen"),
        Some([]) => {
            let means = "no two processors seen here share a core (a virtual machine may hide it)";
            Check::good(name, "none", means)
        }
        Some(shared) => {
            let found = format!("{} share a core", shared.join(" and "));
            let means = "work on a sibling slows a body down by a third and more";
            Check::mind(
                name,
                found,
                means,
                "echo off > /sys/devices/system/cpu/smt/control, or --cpu and nothing else on its sibling",
            )
        }
    }
}

fn aslr(setting: Option<String>, personality: Option<String>) -> Check {
    let name = "ASLR";
    match parse::aslr(setting.as_deref(), personality.as_deref()) {
        Some(found) if found.starts_with("on") => {
            let means = "each process is one draw of the memory layout; --against averages over pairs of them, and counts do not depend on it";
            Check::good(name, found, means)
        }
        Some(found) => {
            let means =
                "all processes share one memory layout: times repeat better than they are true elsewhere";
            Check::mind(name, found, means, "sysctl kernel.randomize_va_space=2, and no setarch -R")
        }
        None => {
            Check::unknown(name, "not said", "memory layouts may or may not differ from process to process")
        }
    }
}

/// Above this share of a processor, other work is said.
const BUSY: f64 = 0.3;

fn load(loadavg: Option<String>, online: Option<usize>) -> Check {
    let name = "load";
    let Some(load) = loadavg.and_then(|text| parse::load(&text)) else {
        return Check::unknown(name, "not said", "other work may be going on");
    };
    let cpus = online.map(|n| format!(" on {n} processors")).unwrap_or_default();
    let found = format!("{load} tasks in the last minute{cpus}");
    if load.parse::<f64>().is_ok_and(|load| load <= BUSY) {
        return Check::good(name, found, "nothing else runs");
    }
    let means = "other work takes processors, caches and memory bandwidth";
    Check::mind(name, found, means, "end it, or wait until it is done")
}

/// Ticks of all processors, and those of them that the hypervisor took.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers: Vec<u64> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest times are within user and nice (proc(5)).
    Some((numbers.iter().take(8).sum(), *numbers.get(7)?))
}

fn steal(root: &Path, watch: Duration) -> Check {
    let name = "steal time";
    let taken = || read(root, "proc/stat").as_deref().and_then(ticks);
    let Some(before) = taken() else {
        return Check::unknown(name, "not said", "a hypervisor may run other machines in between, unseen");
    };
    std::thread::sleep(watch);
    let after = taken().unwrap_or(before);
    let share = |all: u64, stolen: u64| 100.0 * stolen as f64 / all.max(1) as f64;
    let now = share(after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    let since = share(after.0, after.1);
    let found = format!("{now:.1} % now, {since:.1} % since the machine started");
    if now < 0.1 && since < 0.1 {
        return Check::good(name, found, "no hypervisor takes processors away");
    }
    let means = "the hypervisor runs other machines in between: single samples are much longer";
    Check::mind(name, found, means, "another machine, another hour, or more time (--time)")
}

/// Above this, in thousandths of a degree, processors soon slow down.
const HOT: i64 = 85_000;

fn temperature(root: &Path) -> Check {
    let name = "temperature";
    let zones = numbered(root, "sys/class/thermal", "thermal_zone");
    let hottest = zones.iter().filter_map(|zone| read(zone, "temp")?.parse::<i64>().ok()).max();
    let cpus = numbered(root, "sys/devices/system/cpu", "cpu");
    let throttled: u64 = cpus
        .iter()
        .filter_map(|cpu| read(cpu, "thermal_throttle/core_throttle_count")?.parse::<u64>().ok())
        .sum();
    let Some(hottest) = hottest else {
        return Check::unknown(name, "not said", "heat may slow processors down, unseen");
    };
    let found =
        format!("{:.1} °C at most, slowed down {throttled} times since the start", hottest as f64 / 1e3);
    if hottest < HOT && throttled == 0 {
        return Check::good(name, found, "far from slowing down");
    }
    let means = "a hot processor slows down: later samples are longer";
    Check::mind(name, found, means, "better cooling, or pauses between runs")
}

fn clock(source: Option<String>) -> Check {
    let name = "clock source";
    // Those that are read without the kernel.
    const FAST: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    match source {
        None => Check::unknown(name, "not said", "reading the clock may cost a system call"),
        Some(source) if FAST.contains(&source.as_str()) => {
            Check::good(name, source, "reading it takes some ten nanoseconds")
        }
        Some(source) => {
            let means = "reading it takes a system call: short bodies and parties get dearer";
            Check::mind(name, source, means, "boot with clocksource=tsc if the processor's counter is steady")
        }
    }
}

/// Whether the kernel knows hardware counters here.
fn has_counters(root: &Path) -> bool {
    ["cpu", "cpu_core", "armv8_pmuv3_0"]
        .iter()
        .any(|name| root.join("sys/bus/event_source/devices").join(name).exists())
}

fn perf(paranoid: Option<String>, counters: bool) -> Check {
    let name = "perf";
    let Some(level) = paranoid.and_then(|text| text.parse::<i64>().ok()) else {
        return Check::unknown(name, "not said", "no perf in this kernel; wallgrind does without it");
    };
    let found =
        format!("paranoid {level}, hardware counters {}", if counters { "present" } else { "hidden" });
    if level <= 2 && counters {
        return Check::good(name, found, "perf can be used to look at a body; wallgrind does without it");
    }
    let means = "perf stat shows no hardware counts; wallgrind counts under Valgrind and does without it";
    let way_out = if level > 2 {
        "sysctl kernel.perf_event_paranoid=2"
    } else {
        "a bare machine, or one whose host passes them on"
    };
    Check::mind(name, found, means, way_out)
}

fn aio(used: Option<String>, max: Option<String>) -> Check {
    let name = "aio-nr";
    let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
    let (Some(used), Some(max)) = (number(used), number(max)) else {
        return Check::unknown(name, "not said", "no Linux AIO: its scenarios are ignored");
    };
    let found = format!("{used} of {max} operations taken");
    // A context takes more than it is asked for: 120 for a single operation.
    if max.saturating_sub(used) >= 1024 {
        return Check::good(name, found, "there is room for the AIO scenarios");
    }
    let means = "AIO scenarios are ignored or fail: others hold what the system allows";
    Check::mind(name, found, means, "sysctl fs.aio-max-nr=1048576")
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
