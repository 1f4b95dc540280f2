//! The system calls and bytes that a scenario reports are those that strace
//! sees in its region.
//!
//! Neighbours: `meter` marks the region with two calls that nothing else makes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Completion, Failed, Trial};
use wallgrind::families::block::register;
use wallgrind::scenario::Bencher;

use super::meter::{Plain, scenario};

/// The argument that makes this program run one scenario and say what it counted.
pub const CHILD: &str = "--count-scenario";

/// Where the region begins and ends in the trace.
const MARK: &str = "/no/such/folder/of/wallgrind";

/// The calls that the layer counts, as strace names them.
const COUNTED: [&str; 17] = [
    "pread64",
    "preadv",
    "pwrite64",
    "pwritev",
    "fallocate",
    "fdatasync",
    "ftruncate",
    "lseek",
    "fstat",
    "newfstatat",
    "statx",
    "io_submit",
    "io_getevents",
    "io_uring_enter",
    "write",
    "openat",
    "fcntl",
];

const SCENARIOS: &[&str] = &[
    "block::qcow_read::n128",
    "block::qcow_write::n128",
    "block::qcow_punch_hole::n128",
    "block::qcow_fsync::n128",
    "block::qcow_compressed_read::n128",
    "block::qcow_l2_cache_miss::n128",
    "block::qcow_partial_cow::c64k",
    "block::qcow_flush::dirty_l2_016",
    "block::raw_rand_read::warm_sync_qd008",
    "block::raw_rand_mixed::warm_aio_qd032",
    "block::raw_rand_mixed::warm_uring_qd032",
    "block::qcow_batch_read::n128",
];

pub fn trials() -> Vec<Trial> {
    let trial = |name: &'static str| {
        Trial::ignorable_test(format!("calls::{}", name.replace("::", "_")), move || compare(name))
    };
    SCENARIOS.iter().map(|name| trial(name)).collect()
}

/// Runs one scenario and writes down what it counted.
pub fn child(name: Option<&str>, out: Option<&str>) -> ExitCode {
    let (Some(name), Some(out)) = (name, out) else { return ExitCode::from(2) };
    let mut meter = Plain::new(2);
    meter.mark = |what| drop(fs::metadata(format!("{MARK}/{what}")));
    let run = scenario(register, name).and_then(|scenario| match scenario.missing() {
        Some(reason) => fs::write(out, format!("missing {reason}")).map_err(Into::into),
        None => {
            scenario.run(&mut Bencher::new(&mut meter))?;
            let names = meter.gauges.list().iter().map(|gauge| gauge.metric.clone());
            let counted = names.zip(meter.gauges.risen()?);
            let lines: Vec<String> = counted.map(|(name, value)| format!("{name} {value}")).collect();
            Ok(fs::write(out, lines.join("\n"))?)
        }
    });
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Read by the parent, in vain.
            drop(fs::write(out, format!("failed {error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn compare(name: &str) -> Result<Completion, Failed> {
    let dir = tempfile::tempdir()?;
    let (trace, said) = (dir.path().join("trace"), dir.path().join("said"));
    let Some(said) = traced(name, &trace, &said)? else {
        return Ok(Completion::ignored_with("strace is not installed, or may not trace here"));
    };
    if let Some(reason) = said.strip_prefix("missing ") {
        return Ok(Completion::ignored_with(reason));
    }
    let said: BTreeMap<&str, u64> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect();
    let seen = seen(&fs::read_to_string(&trace)?)?;
    let of = |name: &str| said.get(name).copied().unwrap_or(u64::MAX);
    if of("system_calls") != seen.calls {
        return Err(format!("{} calls were counted, strace saw {}", of("system_calls"), seen.calls).into());
    }
    // What a ring moves is not in the results of calls.
    let bytes = (of("bytes_read"), of("bytes_written"));
    if !seen.queued && bytes != (seen.read, seen.written) {
        return Err(
            format!("{bytes:?} bytes were counted, strace saw {:?}", (seen.read, seen.written)).into()
        );
    }
    if seen.calls == 0 {
        return Err("the region made no call: nothing was compared".into());
    }
    Ok(Completion::Completed)
}

/// Runs the child under strace; `None` where that is not possible.
fn traced(name: &str, trace: &Path, said: &Path) -> Result<Option<String>, Failed> {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "0", "-o"]).arg(trace).arg(std::env::current_exe()?);
    command.arg(CHILD).arg(name).arg(said);
    if let Some(folder) = said.parent() {
        command.env("TMPDIR", folder);
    }
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if status.is_err() || !trace.exists() {
        return Ok(None);
    }
    match fs::read_to_string(said) {
        Ok(text) if text.starts_with("failed ") => Err(text.into()),
        Ok(text) => Ok(Some(text)),
        // Neither a count nor an error: the child was not started.
        Err(_) => Ok(None),
    }
}

/// What strace saw in the region.
#[derive(Default)]
struct Seen {
    calls: u64,
    read: u64,
    written: u64,
    queued: bool,
}

fn seen(trace: &str) -> Result<Seen, Failed> {
    let mark = |what: &str| format!("{MARK}/{what}\"");
    // With `-s 0` no string but a path is shown.
    let begin = trace.find(&mark("begin")).ok_or("the region does not begin in the trace")?;
    let end = trace.find(&mark("end")).ok_or("the region does not end in the trace")?;
    let mut seen = Seen::default();
    // Without the rest of the line of the first mark, and the start of that of the last one.
    let region = trace[begin..end].rsplit_once('\n').map_or("", |(region, _)| region);
    for line in region.lines().skip(1) {
        // The number of the thread comes first.
        let Some((_, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let Some((name, rest)) = call.split_once('(') else { continue };
        if !COUNTED.contains(&name) {
            continue;
        }
        seen.calls += 1;
        let result: u64 = rest.rsplit_once(" = ").and_then(|(_, n)| n.trim().parse().ok()).unwrap_or(0);
        match name {
            "pread64" | "preadv" => seen.read += result,
            "pwrite64" | "pwritev" => seen.written += result,
            "io_submit" | "io_uring_enter" => seen.queued = true,
            _ => {}
        }
    }
    Ok(seen)
}
