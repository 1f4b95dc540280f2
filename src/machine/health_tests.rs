//! The checks of a machine, over made machines and over one that says nothing.

use super::*;

/// A machine of files.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    root
}

/// State and finding of one check.
fn found(files: &[(&str, &str)], name: &str) -> (Health, String) {
    let root = machine(files);
    let checks = health(root.path(), Duration::ZERO);
    let check = checks.into_iter().find(|check| check.name == name).expect("a check of that name");
    assert!(!check.means.is_empty(), "{check:?}");
    assert_eq!(check.state == Health::Mind, !check.way_out.is_empty(), "{check:?}");
    (check.state, check.found)
}

const CPU: &str = "sys/devices/system/cpu";

#[test]
fn a_machine_that_says_nothing_is_unknown_all_over() {
    let root = tempfile::tempdir().expect("a folder");
    let checks = health(root.path(), Duration::ZERO);
    assert_eq!(checks.len(), 10);
    for check in checks {
        assert_eq!(check.state, Health::Unknown, "{check:?}");
        assert!(!check.found.is_empty() && !check.means.is_empty(), "{check:?}");
    }
}

#[test]
fn this_machine_has_an_answer_to_each() {
    for check in health(Path::new("/"), Duration::ZERO) {
        assert!(!check.found.is_empty() && !check.means.is_empty(), "{check:?}");
    }
}

#[test]
fn the_frequency_is_good_only_when_it_stays() {
    let governors = |a, b| {
        let at = |n: u32| format!("{CPU}/cpufreq/policy{n}/scaling_governor");
        found(&[(&at(0), a), (&at(1), b)], "governor")
    };
    assert_eq!(governors("performance\n", "performance\n"), (Health::Good, "performance".into()));
    assert_eq!(governors("performance", "powersave"), (Health::Mind, "performance, powersave".into()));
    assert_eq!(found(&[(&format!("{CPU}/intel_pstate/no_turbo"), "1\n")], "turbo").0, Health::Good);
    assert_eq!(found(&[(&format!("{CPU}/intel_pstate/no_turbo"), "0\n")], "turbo").0, Health::Mind);
    assert_eq!(found(&[(&format!("{CPU}/cpufreq/boost"), "1\n")], "turbo").0, Health::Mind);
    assert_eq!(found(&[(&format!("{CPU}/cpufreq/boost"), "x")], "turbo").0, Health::Unknown);
}

#[test]
fn siblings_are_named_once() {
    let lists = |lists: &[&str]| {
        let files: Vec<(String, &str)> = lists
            .iter()
            .enumerate()
            .map(|(n, list)| (format!("{CPU}/cpu{n}/topology/thread_siblings_list"), *list))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        found(&files, "SMT siblings")
    };
    let expected = (Health::Mind, "0,2 and 1,3 share a core".to_string());
    assert_eq!(lists(&["0,2\n", "1,3\n", "0,2\n", "1,3\n"]), expected);
    assert_eq!(lists(&["0\n", "1\n"]), (Health::Good, "none".into()));
}

#[test]
fn layout_and_load() {
    let aslr = |value| found(&[("proc/sys/kernel/randomize_va_space", value)], "ASLR").0;
    assert_eq!([aslr("2\n"), aslr("0\n"), aslr("what")], [Health::Good, Health::Mind, Health::Unknown]);
    let load = |value| found(&[("proc/loadavg", value), (&format!("{CPU}/online"), "0-1\n")], "load");
    assert_eq!(
        load("0.10 1 1 1/2 3"),
        (Health::Good, "0.10 tasks in the last minute on 2 processors".into())
    );
    assert_eq!(load("1.50 1 1 1/2 3").0, Health::Mind);
    assert_eq!(load("rubbish").0, Health::Unknown);
}

#[test]
fn time_that_was_taken_is_a_share_of_all() {
    let steal = |line: &str| found(&[("proc/stat", line)], "steal time");
    let good = (Health::Good, "0.0 % now, 0.0 % since the machine started".to_string());
    assert_eq!(steal("cpu  100 0 100 800 0 0 0 0 9 9\ncpu0 1 1 1 1 1 1 1 500"), good);
    // 50 of 1,000; the guest's time is within the user's.
    assert_eq!(steal("cpu  100 0 100 750 0 0 0 50 90 0").1, "0.0 % now, 5.0 % since the machine started");
    assert_eq!(steal("cpu  100 0 100 750 0 0 0 50 90 0").0, Health::Mind);
    assert_eq!(steal("cpu  1 2 3").0, Health::Unknown);
    assert_eq!(steal("intr 5").0, Health::Unknown);
    assert_eq!(ticks("cpu  1 2 3 4 5 6 7 8 9 10"), Some((36, 8)));
}

#[test]
fn heat_is_that_of_the_hottest_place() {
    let zone = |n: u32| format!("sys/class/thermal/thermal_zone{n}/temp");
    let throttle = format!("{CPU}/cpu0/thermal_throttle/core_throttle_count");
    let at = |a, b, count| found(&[(&zone(0), a), (&zone(1), b), (&throttle, count)], "temperature");
    assert_eq!(at("41000\n", "52500\n", "0").1, "52.5 °C at most, slowed down 0 times since the start");
    assert_eq!([at("41000", "52500", "0").0, at("41000", "91000", "0").0], [Health::Good, Health::Mind]);
    assert_eq!(at("41000", "52500", "3").0, Health::Mind);
    assert_eq!(at("cold", "-", "3").0, Health::Unknown);
}

#[test]
fn clock_perf_and_aio() {
    let clock = |source| {
        found(&[("sys/devices/system/clocksource/clocksource0/current_clocksource", source)], "clock source")
            .0
    };
    assert_eq!([clock("tsc\n"), clock("hpet\n")], [Health::Good, Health::Mind]);
    let perf = |level, counters: &str| {
        let device = format!("sys/bus/event_source/devices/{counters}/type");
        found(&[("proc/sys/kernel/perf_event_paranoid", level), (&device, "4")], "perf")
    };
    assert_eq!(perf("2\n", "cpu"), (Health::Good, "paranoid 2, hardware counters present".into()));
    assert_eq!(perf("3", "cpu").0, Health::Mind);
    assert_eq!(perf("-1", "software"), (Health::Mind, "paranoid -1, hardware counters hidden".into()));
    let aio = |used| found(&[("proc/sys/fs/aio-nr", used), ("proc/sys/fs/aio-max-nr", "65536\n")], "aio-nr");
    assert_eq!(aio("128\n"), (Health::Good, "128 of 65536 operations taken".into()));
    assert_eq!(
        (aio("65000").0, aio("many").0, aio("70000").0),
        (Health::Mind, Health::Unknown, Health::Mind)
    );
}
