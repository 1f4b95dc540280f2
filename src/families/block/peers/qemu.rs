//! `qemu-img bench` on the same image: another process, which says itself how
//! long its requests took.
//!
//! Neighbours: `rows` says what it is asked, `table` takes the better of two depths.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// What `qemu-img bench` is asked to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench {
    /// Requests: many, since it tells the time in milliseconds.
    pub count: u64,
    /// Bytes of a request.
    pub len: u64,
    /// Bytes from one request to the next; it starts again at the end of the disk.
    pub step: u64,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it is done over io_uring, not by threads.
    pub uring: bool,
}

/// Depths of its queue that are tried.
pub(super) const DEPTHS: [u32; 2] = [1, 32];

/// Whether there is a `qemu-img`.
pub(super) fn is_there() -> bool {
    let mut command = Command::new("qemu-img");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Nanoseconds that a request took on average.
pub(super) fn run(image: &Path, bench: &Bench, depth: u32) -> Result<u64> {
    let mut command = Command::new("qemu-img");
    command.args(["bench", "-f", "qcow2", "-t", "writeback"]);
    for (flag, value) in [("-c", bench.count), ("-d", depth.into()), ("-s", bench.len), ("-S", bench.step)] {
        command.arg(flag).arg(value.to_string());
    }
    if bench.writes {
        command.arg("-w");
    }
    if bench.uring {
        command.args(["-i", "io_uring"]);
    }
    let output = command.arg(image).stdin(Stdio::null()).output().context("qemu-img bench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "qemu-img bench failed: {}", errors.trim());
    Ok((seconds(&text)? * 1e9 / bench.count as f64) as u64)
}

fn seconds(text: &str) -> Result<f64> {
    let (_, rest) = text.split_once("Run completed in ").context("qemu-img bench said no time")?;
    let (number, _) = rest.split_once(' ').context("qemu-img bench said no time")?;
    number.parse().context("qemu-img bench said no time")
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn its_time_is_read() {
        let text =
            "Sending 9 read requests, 4096 bytes each, 1 in parallel\nRun completed in 0.125 seconds.\n";
        assert_eq!(seconds(text).ok(), Some(0.125));
        assert!(seconds("qemu-img: error").is_err());
    }
}
