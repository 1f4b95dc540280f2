//! The bench target under test: trials that pass, fail, panic, hang, print,
//! exit, leave files behind, talk to each other, or need what no machine has.
//!
//! Neighbours: `bench` starts it.

use std::io::Write;

use anyhow::{Result, ensure};
use wallgrind::{Bytes, Need, Party, Pipe, Suite, Turn, anyhow};

use crate::more;

/// In the environment of this executable, makes it the bench target.
pub const ASK: &str = "CONTRACT_FIXTURE";

/// Whether this process is to be the bench target: a measured child has no
/// environment, but its first argument is one of wallgrind's own.
pub fn is_asked_for() -> bool {
    let first = std::env::args().nth(1).unwrap_or_default();
    std::env::var_os(ASK).is_some() || first.starts_with("--wallgrind")
}

/// In the environment, adds `planted::spin`, which does so much work.
pub const PLANTED: &str = "CONTRACT_PLANTED";

/// In the environment, adds `planted::nops`, which does so many instructions besides its own.
pub const NOPS: &str = "CONTRACT_NOPS";

/// In the environment, adds so many small trials, `many::s00000` and on.
pub const MANY: &str = "CONTRACT_MANY";

/// What no machine has.
const MOON: Need = Need::new("the moon", || Err("it is out of reach".into()));

pub fn register(suite: &mut Suite) {
    suite.bench("good::first", |b| {
        b.throughput(Bytes(64));
        b.iter(|| std::hint::black_box([1_u8; 64]).iter().map(|n| u64::from(*n)).sum::<u64>())
    });
    suite.bench("good::second", |b| b.iter_checked(|| 2 + 2, |sum| is(sum, 4, "a wonder"))).param("sum", 4);
    suite
        .bench("good::talk", |b| b.pair(|| Ok(Side::begins()), || Ok(Side::answers())))
        .parties("one", "two");
    suite.bench("prints::here", |b| {
        speak("printed by a body, without an end of line");
        b.iter(|| 1)
    });
    suite.bench("prints::in_a_child", |b| {
        let status = std::process::Command::new("sh").args(["-c", "printf 'by a child'"]).status()?;
        ensure!(status.success());
        b.iter(|| 1)
    });
    suite.bench("fails::check", |b| b.iter_checked(|| 5, |n| is(n, 4, "five is not four")));
    suite.bench("fails::panic", |b| b.iter(|| panic!("on purpose, in {}", thread_name())));
    suite.bench("fails::measures_nothing", |_| Ok(()));
    suite.bench("hangs::for_ever", |b| b.iter(hang));
    suite.bench("hangs::with_a_child", |b| {
        // Holds the standard descriptors until it is killed.
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn()?;
        std::mem::forget(child.stdin.take());
        b.iter(hang)
    });
    suite.bench("ends::by_exit", |b| b.iter(|| std::process::exit(0)));
    suite.bench("ends::by_abort", |b| b.iter(|| std::process::abort()));
    suite.bench("scratch::left_behind", |b| {
        let dir = std::env::temp_dir();
        std::fs::write(dir.join("image"), "left behind")?;
        announce(&format!("scratch in {}", dir.display()));
        b.iter(|| {
            if std::env::var_os("CONTRACT_HANG").is_some() {
                hang()
            }
        })
    });
    suite.bench("absent::moon", |b| b.iter(|| 1)).needs(MOON);
    if let Some(units) = std::env::var(PLANTED).ok().and_then(|text| text.parse::<u32>().ok()) {
        suite.bench("planted::spin", move |b| {
            b.iter(|| (0..units * 500).fold(1_u32, |sum, i| std::hint::black_box(sum.wrapping_mul(i))))
        });
    }
    let many = std::env::var(MANY).ok().and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    for i in 0..many {
        suite.bench(format!("many::s{i:05}"), |b| b.iter(|| std::hint::black_box([1_u8; 64]).len()));
    }
    // A measured child has no environment but what its body reads.
    if std::env::var_os(NOPS).is_some() || std::env::var_os(ASK).is_none() {
        suite
            .bench("planted::nops", |b| {
                let more = std::env::var(NOPS).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
                b.iter(|| nops(more))
            })
            .variable(NOPS);
    }
    // A measured child has no environment, but may be one of these.
    if std::env::var_os(more::ASK).is_some() || std::env::var_os(ASK).is_none() {
        more::register(suite);
    }
}

/// So many instructions that do nothing, up to sixteen, behind as many others whatever their number.
#[cfg(target_arch = "x86_64")]
fn nops(n: usize) {
    let n = n.min(16);
    // SAFETY: jumps forward over one-byte instructions that do nothing, at most all of them.
    unsafe {
        std::arch::asm!(
            "lea {to}, [rip + 2f]", "sub {to}, {n}", "jmp {to}",
            "nop", "nop", "nop", "nop", "nop", "nop", "nop", "nop",
            "nop", "nop", "nop", "nop", "nop", "nop", "nop", "nop",
            "2:",
            to = out(reg) _, n = in(reg) n, options(nomem, nostack)
        );
    }
}

/// The same, nearly: a round of a loop is more than one instruction.
#[cfg(not(target_arch = "x86_64"))]
fn nops(n: usize) {
    (0..n).for_each(|i| drop(std::hint::black_box(i)));
}

fn is(value: i32, expected: i32, otherwise: &'static str) -> Result<()> {
    ensure!(value == expected, otherwise);
    Ok(())
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_string()
}

/// The file on which a body that hangs holds a lock, as a sign of life.
pub const HOLD: &str = "CONTRACT_HOLD";

/// Says on standard error that it hangs, so that a test knows, and hangs.
pub fn hang() {
    let held = std::env::var_os(HOLD).map(|path| std::fs::File::create(path).expect("a file"));
    held.iter().for_each(|file| file.lock().expect("a lock"));
    announce(&format!("{} hangs", thread_name()));
    loop {
        std::thread::park();
    }
}

/// Tells the test something, on a line of standard error.
pub fn announce(text: &str) {
    let _ = writeln!(std::io::stderr(), "fixture: {text}");
}

#[expect(clippy::print_stdout, reason = "this is what a body must be free to do")]
fn speak(text: &str) {
    print!("{text}");
}

/// A party that sends a byte and waits for one, or the other way round.
struct Side {
    sends_first: bool,
    sent: bool,
    got: Option<u8>,
}

impl Side {
    fn begins() -> Self {
        Self { sends_first: true, sent: false, got: None }
    }

    fn answers() -> Self {
        Self { sends_first: false, sent: false, got: None }
    }
}

impl Party for Side {
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        if let Some(byte) = received.readable().first() {
            self.got = Some(*byte);
            received.consume(1);
        }
        if !self.sent && (self.sends_first || self.got.is_some()) {
            to_send.push(&[7]);
            self.sent = true;
        }
        Ok(if self.sent && self.got.is_some() { Turn::Done } else { Turn::Wait })
    }

    fn check(&mut self) -> Result<()> {
        ensure!(self.got == Some(7), "got {:?}", self.got);
        Ok(())
    }
}
