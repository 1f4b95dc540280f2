//! Small scenarios with everything that makes counts differ from run to run:
//! random hash seeds, random numbers from several callers, time, addresses,
//! and two parties whose messages have random lengths.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use wallgrind::scenario::Scenario;
use wallgrind::{Bytes, Gauge, Gauges, Party, Pipe, Suite, Turn, Unit};

/// Instructions that [`Chatter`]'s first party executes more in `planted`.
pub const PLANTED: u64 = 1_000;

/// All toys.
pub fn scenarios() -> Vec<Scenario> {
    let mut suite = Suite::new();
    well_behaved(&mut suite);
    ill_behaved(&mut suite);
    crate::planted_tls::register(&mut suite);
    crate::paths::register(&mut suite);
    suite.finish().unwrap_or_else(|error| panic!("{}", error.report()))
}

fn well_behaved(suite: &mut Suite) {
    suite.bench("toy::hash_seeds", |b| {
        let words: Vec<String> = (0..500_u32).map(|i| i.wrapping_mul(2_654_435_761).to_string()).collect();
        b.iter_checked(
            || {
                let lengths: HashMap<&str, usize> = words.iter().map(|w| (w.as_str(), w.len())).collect();
                lengths.values().sum::<usize>()
            },
            |sum| {
                ensure!(sum > 500, "sum of lengths is {sum}");
                Ok(())
            },
        )
    });
    suite.bench("toy::random_work", |b| b.iter(|| spin(random_below(10_000))));
    suite.bench("toy::time_of_day", |b| {
        b.iter(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|d| d.as_nanos()).unwrap_or_default();
            let begin = Instant::now();
            spin((now % 1_000) as u32 + begin.elapsed().subsec_nanos() % 1_000)
        })
    });
    suite.bench("toy::addresses", |b| {
        let outer = 0_u8;
        let home = std::env::vars().map(|(k, v)| k.len() + v.len()).sum::<usize>();
        b.iter(|| {
            let on_heap = Box::new(0_u8);
            let at = (&raw const outer).addr() ^ (&raw const *on_heap).addr();
            spin((at % 4_096) as u32 + home as u32)
        })
    });
    suite.bench("toy::two_parties", |b| chat(b, 0)).parties("client", "server").param("planted", 0);
    suite.bench("toy::planted", |b| chat(b, PLANTED)).parties("client", "server").param("planted", PLANTED);
    suite
        .bench("toy::heap", |b| {
            b.throughput(Bytes(5_000));
            b.iter(|| {
                drop(black_box(Vec::<u8>::with_capacity(3_000)));
                black_box(Vec::<u8>::with_capacity(2_000))
            })
        })
        .counted_iterations(4);
    suite.bench("toy::gauged", |b| gauged(b, true)).counted_iterations(3);
    suite.bench("toy::ungauged", |b| gauged(b, false)).counted_iterations(3);
    suite.bench("toy::recursion", |b| b.iter(|| even(black_box(1_000))));
    suite.bench("toy::prints", |b| {
        b.iter(|| std::io::Write::write_all(&mut std::io::stdout(), b"on stdout\n"))
    });
}

/// Two functions that call each other, which is no recursion of one.
#[inline(never)]
fn even(n: u32) -> bool {
    n == 0 || !black_box(odd(n - 1))
}

#[inline(never)]
fn odd(n: u32) -> bool {
    n != 0 && !black_box(even(n - 1))
}

/// Work that a gauge counts; reading the gauge is work as well, and more of it.
fn gauged(b: &mut wallgrind::Bencher<'_>, with_gauges: bool) -> Result<()> {
    b.fact("scratch_bytes", b.scratch_dir()?.as_os_str().len());
    if with_gauges {
        b.fact("engine", "a toy");
        b.gauges(Spins);
    }
    b.iter_ops(|| Ok(7_u32), |n, ops| ops.op(|| counted_spin(n)), |_| Ok(()))
}

/// How often [`counted_spin`] was called.
static SPINS: AtomicU64 = AtomicU64::new(0);

fn counted_spin(n: u32) -> u32 {
    SPINS.fetch_add(5, Relaxed);
    spin(n * 100)
}

struct Spins;

impl Gauges for Spins {
    fn names(&self) -> Vec<Gauge> {
        vec![Gauge::lower("spins", Unit::Events), Gauge::higher("rests", Unit::Bytes)]
    }

    fn read(&mut self, out: &mut Vec<u64>) {
        black_box(spin(1_000_000));
        out.extend([SPINS.load(Relaxed), 12]);
    }
}

fn ill_behaved(suite: &mut Suite) {
    suite.bench("ill::body_fails", |_| Err(anyhow::anyhow!("no such thing").context("while reading")));
    suite.bench("ill::check_fails", |b| b.iter_checked(|| 1, is_two));
    suite.bench("ill::panics", |b| b.iter(|| assert_eq!(black_box(1), 2, "planted panic")));
    suite.bench("ill::dies", |b| {
        b.iter(|| {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), b"famous last words\n");
            std::process::abort()
        })
    });
    suite.bench("ill::hangs", |b| b.iter(loop_forever));
    suite.bench("ill::kills_its_parent", |b| {
        b.iter(|| {
            // SAFETY: sends a signal to the process that this one is forked from.
            unsafe { libc::kill(libc::getppid(), libc::SIGKILL) };
            loop_forever()
        })
    });
    suite.bench("ill::unknown_instruction", |b| b.iter(unknown_instruction));
    suite
        .bench("ill::one_party_fails", |b| {
            b.pair(|| Ok(Chatter::new(0)), || Err::<Chatter, _>(anyhow::anyhow!("no key")))
        })
        .parties("client", "server");
    suite.bench("ill::process_id", |b| b.iter(|| spin(std::process::id() % 1_000)));
}

fn is_two(n: i32) -> Result<()> {
    ensure!(n == 2, "{n} is not 2");
    Ok(())
}

fn loop_forever() -> u32 {
    loop {
        black_box(spin(1_000));
    }
}

/// Executes an instruction of AVX-512, or of SVE, which no Valgrind up to 3.27 knows.
fn unknown_instruction() {
    // SAFETY: raises SIGILL where it is not known, which ends the process, and
    // changes one declared register where it is.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(".byte 0x62, 0xf1, 0x74, 0x48, 0x58, 0xc2", out("xmm0") _, options(nostack, nomem));
    }
    // SAFETY: as above (`cntb x0`).
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(".inst 0x0420e3e0", out("x0") _, options(nostack, nomem));
    }
}

/// Work in proportion to `n`, with more or less of it depending on the build.
#[inline(never)]
fn spin(n: u32) -> u32 {
    (0..n).fold(0, |sum, i| black_box(sum ^ i))
}

/// A random number, half of it by way of `syscall`.
fn random_below(bound: u32) -> u32 {
    let (mut a, mut b) = ([0_u8; 4], [0_u8; 4]);
    // SAFETY: two buffers of four bytes.
    unsafe {
        libc::getrandom(a.as_mut_ptr().cast(), 4, 0);
        libc::syscall(libc::SYS_getrandom, b.as_mut_ptr(), 4_usize, 0_usize);
    }
    (u32::from_le_bytes(a) ^ u32::from_le_bytes(b)) % bound
}

fn chat(b: &mut wallgrind::Bencher<'_>, planted: u64) -> Result<()> {
    b.pair(|| Ok(Chatter::new(planted)), || Ok(Answerer::default()))
}

/// Sends a message of random length, and expects it back.
struct Chatter {
    planted: u64,
    sent: Vec<u8>,
    to_go: usize,
    back: Vec<u8>,
}

impl Chatter {
    fn new(planted: u64) -> Self {
        let length = 50_000 + random_below(50_000) as usize;
        let mut sent: Vec<u8> = (0..length).map(|i| (i * 31) as u8).collect();
        sent[..4].copy_from_slice(&(length as u32).to_le_bytes());
        Self { planted, to_go: sent.len(), back: Vec::with_capacity(sent.len()), sent }
    }
}

impl Party for Chatter {
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        exactly(std::mem::take(&mut self.planted));
        self.back.extend_from_slice(received.readable());
        received.consume(received.len());
        if self.to_go > 0 {
            let at = self.sent.len() - self.to_go;
            self.to_go -= to_send.push(&self.sent[at..]);
            return Ok(if self.to_go > 0 { Turn::More } else { Turn::Wait });
        }
        Ok(if self.back.len() < self.sent.len() { Turn::Wait } else { Turn::Done })
    }

    fn check(&mut self) -> Result<()> {
        ensure!(self.back == self.sent, "something else came back");
        Ok(())
    }
}

/// Sends back what it gets; the message begins with its length.
#[derive(Default)]
struct Answerer {
    length: Option<usize>,
    seen: usize,
}

impl Party for Answerer {
    fn turn(&mut self, received: &mut Pipe, to_send: &mut Pipe) -> Result<Turn> {
        if self.length.is_none() {
            let Some(length) = received.readable().first_chunk() else { return Ok(Turn::Wait) };
            self.length = Some(u32::from_le_bytes(*length) as usize);
        }
        let n = to_send.push(received.readable());
        received.consume(n);
        self.seen += n;
        Ok(if Some(self.seen) == self.length { Turn::Done } else { Turn::Wait })
    }

    fn check(&mut self) -> Result<()> {
        self.length.map(drop).context("nothing came")
    }
}

/// Executes exactly `n` instructions more than for 0, two at a time.
#[inline(never)]
fn exactly(n: u64) {
    // SAFETY: counts a register of its own down.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("test {n}, {n}", "jz 3f", "2:", "dec {n}", "jnz 2b", "3:", n = inout(reg) n / 2 => _, options(nostack, nomem));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("cmp {n}, #0", "b.eq 3f", "2:", "subs {n}, {n}, #1", "b.ne 2b", "3:", n = inout(reg) n / 2 => _, options(nostack, nomem));
    }
}
