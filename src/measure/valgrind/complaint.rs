//! Why a measured child gave no number, in words: how it ended, the last
//! lines that it and Valgrind wrote, and what is known of the cause.
//!
//! Its files are found by their path without extension: `err` is what the
//! child wrote to stderr, `log` what Valgrind said.
//!
//! Neighbours: `launch` and `server` call it.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use super::tool::Tool;

/// Lines that are quoted at most.
const LINES: usize = 8;
/// Characters of a line that are quoted at most.
const WIDTH: usize = 300;

/// The last lines that a child wrote to stderr, as an addition to a reason.
pub(super) fn last_words(stem: &Path) -> String {
    quote(&read(stem, "err"))
}

/// Why a child is gone without a report.
pub(super) fn of_death(tool: &Tool, error: &io::Error, end: &io::Result<ExitStatus>, stem: &Path) -> String {
    let log = read(stem, "log");
    if let Some(instruction) = unknown_instruction(&log) {
        return format!(
            "valgrind {} does not know an instruction of this program: {instruction}",
            tool.version
        );
    }
    let how = match (error.kind(), end) {
        (io::ErrorKind::InvalidData, _) => format!("the measured child talks rubbish: {error}"),
        (_, Ok(status)) => format!("the measured child {} before it reported", ended(*status)),
        (_, Err(e)) => format!("the measured child is gone before it reported: {e}"),
    };
    format!("{how}{}{}", quote(&log), last_words(stem))
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        _ => format!("ended with {status}"),
    }
}

/// Bytes and place of an instruction that Valgrind stopped at.
fn unknown_instruction(log: &str) -> Option<String> {
    let bytes = log.lines().find_map(|line| {
        let mark = ["unhandled instruction bytes:", "Unrecognised instruction", "Illegal opcode"]
            .into_iter()
            .find(|mark| line.contains(mark))?;
        let rest = line.split_once(mark)?.1.trim();
        Some(if mark.ends_with(':') { rest } else { "(bytes not stated)" })
    })?;
    let place =
        log.lines().find_map(|line| line.split_once(" at 0x")).map(|(_, place)| format!(", at 0x{place}"));
    Some(format!("{bytes}{}", place.unwrap_or_default()))
}

fn read(stem: &Path, what: &str) -> String {
    let bytes = fs::read(stem.with_extension(what)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn quote(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().map(|line| format!("\n  | {}", line.chars().take(WIDTH).collect::<String>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_instruction_that_valgrind_does_not_know() {
        let log = "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C 0x48\n\
                   ==7== valgrind: Unrecognised instruction at address 0x10a2b.\n\
                   ==7==    at 0x10A2B: suite::body (body.rs:12)\n";
        let text = unknown_instruction(log).expect("it is named");
        assert_eq!(text, "0x62 0xF1 0x7C 0x48, at 0x10A2B: suite::body (body.rs:12)");
        assert_eq!(unknown_instruction("==7== all is well"), None);
    }

    #[test]
    fn quotes_the_last_lines_only() {
        let text = (0..20).map(|i| format!("line {i}\n\n")).collect::<String>();
        let quoted = quote(&text);
        assert!(quoted.starts_with("\n  | line 12\n") && quoted.ends_with("| line 19"), "{quoted}");
    }
}
