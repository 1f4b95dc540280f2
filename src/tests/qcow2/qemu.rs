//! qemu's tools as an oracle, always with a time-out: some images make them
//! run for ever.
//!
//! Neighbours: `qcow2_oracle` and the requirement tests; all skip with a
//! reason where the tools are missing.

use std::path::Path;
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};
use wallgrind::block::qcow2::Report;

/// Seconds until a tool is killed.
const LIMIT: &str = "30";

/// Why tests with qemu cannot run here, if so.
pub fn missing() -> Option<&'static str> {
    let found = |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|o| o.status.success());
    (!found("qemu-img") || !found("qemu-io")).then_some("qemu-img or qemu-io is not on the PATH")
}

/// A trial that runs this test program where there are no tools: every trial whose name `needs`
/// them is listed as ignored then, with the reason in its name.
pub fn without_tools(needs: fn(&str) -> bool) -> Trial {
    Trial::test("without_qemu_its_trials_are_ignored_with_the_reason", move || {
        let list = |more: &[&str]| -> Result<Vec<String>, Failed> {
            let program = std::env::current_exe()?;
            let output = Command::new(program).env("PATH", "").args(["--list"]).args(more).output()?;
            let text = String::from_utf8(output.stdout)?;
            Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
        };
        let (all, ignored) = (list(&[])?, list(&["--ignored"])?);
        let needing: Vec<String> = all.into_iter().filter(|name| needs(name)).collect();
        assert!(needing.len() > 3, "only {needing:?}");
        assert_eq!(needing, ignored);
        assert!(ignored.iter().all(|name| name.contains("not on the PATH")), "{ignored:?}");
        Ok(())
    })
}

/// Runs a tool; its output whether or not it succeeds.
pub fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new("timeout")
        .arg(LIMIT)
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {args:?}: {error}"))
}

/// Runs a tool that must succeed; its standard output.
pub fn ok(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    assert!(
        output.status.success(),
        "{args:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What `qemu-img check` counts: corruptions and leaks; 3 is its exit code for leaks.
pub fn check(path: &Path) -> (u64, u64, String) {
    let name = path.to_string_lossy();
    let output = run(folder(path), &["qemu-img", "check", "--output=json", "-f", "qcow2", &name]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("check of {name}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    let number = |key: &str| json.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let errors = number("corruptions") + number("check-errors");
    (errors, number("leaks"), format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Fails unless qemu finds the image clean.
pub fn assert_clean(path: &Path) {
    let (corruptions, leaks, text) = check(path);
    assert!(corruptions == 0 && leaks == 0, "{text}");
}

/// Fails unless our report has the counts that `qemu-img check` has.
pub fn assert_same_report(path: &Path, ours: &Report) {
    let name = path.to_string_lossy();
    let output = run(folder(path), &["qemu-img", "check", "--output=json", "-f", "qcow2", &name]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json: serde_json::Value = serde_json::from_str(&text).expect("json");
    let number = |key: &str| json.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
    assert_eq!(number("corruptions"), ours.corruptions, "{text} {ours:?}");
    assert_eq!(number("leaks"), ours.leaks, "{text} {ours:?}");
    // qemu leaves out a last sector that is not whole.
    let fewer = ours.total_clusters.saturating_sub(number("total-clusters"));
    assert!(fewer <= 1, "{text} {ours:?}");
    assert_eq!(number("allocated-clusters"), ours.allocated_clusters, "{text} {ours:?}");
    assert_eq!(number("fragmented-clusters"), ours.fragmented_clusters, "{text} {ours:?}");
    assert_eq!(number("compressed-clusters"), ours.compressed_clusters, "{text} {ours:?}");
    assert_eq!(number("image-end-offset"), ours.image_end_offset, "{text} {ours:?}");
}

/// The disk as qemu reads it; of a snapshot if one is named.
pub fn contents(path: &Path, snapshot: Option<&str>) -> Vec<u8> {
    let out = path.with_extension("raw-copy");
    let (name, to) = (path.to_string_lossy(), out.to_string_lossy());
    let mut args = vec!["qemu-img", "convert", "-f", "qcow2", "-O", "raw"];
    if let Some(snapshot) = snapshot {
        args.extend(["-l", snapshot]);
    }
    args.extend([&*name, &*to]);
    ok(folder(path), &args);
    let bytes = std::fs::read(&out).expect("converted image");
    std::fs::remove_file(&out).expect("remove the copy");
    bytes
}

/// External data files are looked up in the working directory.
fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
