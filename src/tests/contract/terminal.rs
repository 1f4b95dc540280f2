//! The progress line: on a terminal, and only there.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;

use crate::bench::Bench;

crate::tests!(a_line_moves_on_a_terminal_and_is_gone_before_events, none_elsewhere);

/// A terminal with this many columns: the side of a person, and of a program.
fn terminal(columns: u16) -> (File, File) {
    let (mut person, mut program) = (-1, -1);
    let mut size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: two places for descriptors, and a size that is only read.
    let made = unsafe {
        libc::openpty(
            &raw mut person,
            &raw mut program,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            &raw mut size,
        )
    };
    assert_eq!(made, 0, "no terminal");
    // SAFETY: both were made just now, and nothing else knows them.
    let own = |fd| File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    (own(person), own(program))
}

/// Reads until `text` has been seen, or to the end when it is `None`.
fn read(person: &mut File, seen: &mut String, text: Option<&str>) {
    let mut piece = [0; 4096];
    while text.is_none_or(|text| !seen.contains(text)) {
        match person.read(&mut piece) {
            // A terminal ends in an error when its last program has gone.
            Ok(0) | Err(_) => break,
            Ok(n) => seen.push_str(&String::from_utf8_lossy(&piece[..n])),
        }
    }
    assert!(text.is_none_or(|text| seen.contains(text)), "{text:?} was never shown: {seen}");
}

const ERASE: &str = "\r\x1b[2K";

fn a_line_moves_on_a_terminal_and_is_gone_before_events() {
    for (columns, name) in [(80, "good::talk"), (30, "talk")] {
        let bench = Bench::new();
        let (mut person, program) = terminal(columns);
        let mut command = bench.command("good::talk scratch --bench");
        command
            .env("TERM", "xterm")
            .env("CONTRACT_HANG", "1")
            .stderr(Stdio::from(program))
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("the bench target");
        drop(command);
        let mut seen = String::new();
        read(&mut person, &mut seen, Some("[2/2] "));
        read(&mut person, &mut seen, Some(" hangs\r\n"));
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        read(&mut person, &mut seen, None);
        assert_eq!(child.wait().expect("its end").code(), Some(143));
        let lines: Vec<&str> = seen.split(ERASE).filter(|line| line.starts_with('[')).collect();
        assert!(lines[0].starts_with("[1/2] ") && lines[0].contains(name), "{seen:?}");
        for line in lines {
            // What the body itself says on standard error comes behind the line.
            let drawn = line.split("fixture: ").next().unwrap_or_default();
            assert!(drawn.chars().count() < usize::from(columns), "too wide for {columns}: {drawn:?}");
        }
    }
}

fn none_elsewhere() {
    let bench = Bench::new();
    for argv in ["good --bench", "good", "good --format json"] {
        let ran = bench.run_with(argv, &[("TERM", "xterm")]).exits(0);
        assert!(!ran.err.contains('\x1b') && !ran.out.contains('\x1b'), "{argv}: {}", ran.err);
    }
}
