//! The repeatable world: under Valgrind, and only there, the functions of libc
//! that bring chance and time into a program are replaced by ones that give
//! the same answers each time.
//!
//! Valgrind looks for symbols `_vgr00000ZU_<library>_<function>` in all that a
//! process loads, and redirects the function of that library to them, whoever
//! calls it. Natively the symbols are never looked for, so that nothing here
//! can weaken a program. Even under Valgrind they pass everything through to
//! the kernel unless the environment names a seed, which only `launch` does.
//!
//! Neighbours: `child` asks with [`took_hold`] whether Valgrind found them.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The variable that switches the repeatable world on: 16 hexadecimal digits.
pub(super) const SEED_VARIABLE: &str = "WALLGRIND_WORLD_SEED";

/// Wall clock at the start, in nanoseconds since 1970: 2026-01-01 00:00:00 UTC.
const WALL_START: u64 = 1_767_225_600_000_000_000;
/// Monotonic clocks at the start, in nanoseconds: later than any machine has
/// been up, so that waits until a time give way to the event waited for.
const MONOTONIC_START: u64 = 1_000_000_000_000_000_000;
/// What a clock goes forward each time it is read, in nanoseconds.
const TICK: u64 = 1_000;

/// Requests longer than this are numbered together.
const LONGEST: usize = 1024;
/// How many requests there were of each length.
static DRAWS: [AtomicU32; LONGEST + 1] = [const { AtomicU32::new(0) }; LONGEST + 1];
/// How often wall, monotonic and processor-time clocks were read.
static READINGS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// Calls that went through a replacement.
static CALLS: AtomicU64 = AtomicU64::new(0);

static MODE: AtomicU32 = AtomicU32::new(UNDECIDED);
static SEED: AtomicU64 = AtomicU64::new(0);
const UNDECIDED: u32 = 0;
const PASS: u32 = 1;
const REPEAT: u32 = 2;

/// The replacements that Valgrind did not find or use, by name.
pub(super) fn missing() -> Vec<&'static str> {
    let mut missing = Vec::new();
    // SAFETY: a request for no bytes writes nothing.
    if !took_hold(|| unsafe { drop_value(libc::getrandom(std::ptr::null_mut(), 0, 0)) }) {
        missing.push("getrandom");
    }
    // SAFETY: as above.
    if !took_hold(|| unsafe { drop_value(libc::syscall(libc::SYS_getrandom, 0_usize, 0_usize, 0_usize)) }) {
        missing.push("syscall");
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` lives through the call.
    if !took_hold(|| unsafe { drop_value(libc::clock_gettime(CLOCK_PROBE, &mut now)) }) {
        missing.push("clock_gettime");
    }
    missing
}

/// A clock that does not exist: reading it moves none that does.
const CLOCK_PROBE: c_int = 0x4000;

fn drop_value<T>(_: T) {}

fn took_hold(call: impl FnOnce()) -> bool {
    let before = CALLS.load(Relaxed);
    call();
    CALLS.load(Relaxed) > before
}

/// Keeps the replacements in the executable through link-time optimisation.
#[used]
static KEEP: [Kept; 9] = [
    Kept(getrandom as *const c_void),
    Kept(getentropy as *const c_void),
    Kept(arc4random as *const c_void),
    Kept(arc4random_buf as *const c_void),
    Kept(arc4random_uniform as *const c_void),
    Kept(syscall as *const c_void),
    Kept(clock_gettime as *const c_void),
    Kept(gettimeofday as *const c_void),
    Kept(time as *const c_void),
];

/// The address of a replacement.
struct Kept(#[expect(dead_code, reason = "that it is stored is its use")] *const c_void);

// SAFETY: the address is never read, only kept.
unsafe impl Sync for Kept {}

/// Whether the world is to be repeatable, decided at the first call.
fn repeats() -> bool {
    CALLS.fetch_add(1, Relaxed);
    match MODE.load(Relaxed) {
        UNDECIDED => decide(),
        mode => mode == REPEAT,
    }
}

#[cold]
fn decide() -> bool {
    match seed_in_environment() {
        Some(seed) => {
            SEED.store(seed, Relaxed);
            MODE.store(REPEAT, Relaxed);
            true
        }
        None => {
            MODE.store(PASS, Relaxed);
            false
        }
    }
}

/// Reads the seed without allocating: this may run before `main`.
fn seed_in_environment() -> Option<u64> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut at = 0;
    loop {
        // SAFETY: `environ` is a list of C strings that ends with a null
        // pointer, and nothing changes it while a child starts.
        let entry = unsafe {
            if environ.is_null() || (*environ.add(at)).is_null() {
                return None;
            }
            std::ffi::CStr::from_ptr(*environ.add(at))
        };
        let value = entry.to_bytes().strip_prefix(SEED_VARIABLE.as_bytes());
        if let Some(digits) = value.and_then(|v| v.strip_prefix(b"=")) {
            return u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        }
        at += 1;
    }
}

/// Mixes all bits of a word (the finaliser of SplitMix64, by Steele, Lea and Flood).
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The bytes that the `nth` request of `into.len()` bytes gets: a stream for
/// each seed, length and number, so that one more request elsewhere does not
/// shift all others.
fn stream(seed: u64, nth: u64, into: &mut [u8]) {
    let mut state = mix(seed ^ mix(into.len() as u64 ^ mix(nth.wrapping_add(1))));
    for piece in into.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        piece.copy_from_slice(&mix(state).to_le_bytes()[..piece.len()]);
    }
}

/// Fills a caller's buffer from the stream.
///
/// # Safety
/// `buffer` must be writable for `length` bytes.
unsafe fn fill(buffer: *mut u8, length: usize) {
    if length == 0 {
        return;
    }
    let nth = DRAWS[length.min(LONGEST)].fetch_add(1, Relaxed);
    // SAFETY: the caller's promise; a slice of bytes has no invalid content.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
    stream(SEED.load(Relaxed), u64::from(nth), bytes);
}

/// What a clock shows now, in nanoseconds; `None` for one that does not exist.
fn reading(clock: c_int) -> Option<u64> {
    let (which, start) = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_REALTIME_ALARM | libc::CLOCK_TAI => {
            (0, WALL_START)
        }
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME
        | libc::CLOCK_BOOTTIME_ALARM => (1, MONOTONIC_START),
        CLOCK_PROBE => return None,
        _ => (2, 0),
    };
    Some(start + TICK * READINGS[which].fetch_add(1, Relaxed))
}

#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_getrandom")]
unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    if repeats() {
        // SAFETY: the contract of getrandom(2).
        unsafe { fill(buffer.cast(), length) };
        return length as isize;
    }
    // SAFETY: the same call, made to the kernel.
    unsafe {
        kernel(libc::SYS_getrandom, [buffer as c_long, length as c_long, flags.into(), 0, 0, 0]) as isize
    }
}

#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_getentropy")]
unsafe extern "C" fn getentropy(buffer: *mut c_void, length: usize) -> c_int {
    if length > 256 {
        // SAFETY: errno of this thread.
        unsafe { *libc::__errno_location() = libc::EIO };
        return -1;
    }
    // SAFETY: the contract of getentropy(3).
    if unsafe { getrandom(buffer, length, 0) } == length as isize { 0 } else { -1 }
}

#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_arc4random")]
unsafe extern "C" fn arc4random() -> u32 {
    let mut word = [0; 4];
    // SAFETY: `word` is writable for its length.
    unsafe { getrandom(word.as_mut_ptr().cast(), word.len(), 0) };
    u32::from_le_bytes(word)
}

#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_arc4random_buf")]
unsafe extern "C" fn arc4random_buf(buffer: *mut c_void, length: usize) {
    let mut done = 0;
    while done < length {
        // SAFETY: the contract of arc4random_buf(3); `done` is below `length`.
        let n = unsafe { getrandom(buffer.cast::<u8>().add(done).cast(), length - done, 0) };
        done += usize::try_from(n).unwrap_or(0);
    }
}

#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_arc4random_uniform")]
unsafe extern "C" fn arc4random_uniform(bound: u32) -> u32 {
    // SAFETY: no conditions.
    let word = unsafe { arc4random() };
    ((u64::from(word) * u64::from(bound)) >> 32) as u32
}

/// `syscall(2)` is variadic; its integer arguments are passed like those of
/// this function on both processors.
#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_syscall")]
unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if repeats() && number == libc::SYS_getrandom {
        // SAFETY: the contract of getrandom(2).
        unsafe { fill(a as *mut u8, b as usize) };
        return b;
    }
    // SAFETY: the same call, made to the kernel.
    unsafe { kernel(number, [a, b, c, d, e, f]) }
}

#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_clock_gettime")]
unsafe extern "C" fn clock_gettime(clock: c_int, into: *mut libc::timespec) -> c_int {
    if repeats()
        && let Some(now) = reading(clock)
    {
        let now = libc::timespec { tv_sec: (now / 1_000_000_000) as _, tv_nsec: (now % 1_000_000_000) as _ };
        // SAFETY: the contract of clock_gettime(2).
        unsafe { into.write(now) };
        return 0;
    }
    // SAFETY: the same call, made to the kernel.
    unsafe { kernel(libc::SYS_clock_gettime, [clock.into(), into as c_long, 0, 0, 0, 0]) as c_int }
}

#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_gettimeofday")]
unsafe extern "C" fn gettimeofday(into: *mut libc::timeval, _zone: *mut c_void) -> c_int {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` lives through the call.
    let code = unsafe { clock_gettime(libc::CLOCK_REALTIME, &mut now) };
    if code == 0 && !into.is_null() {
        // SAFETY: the contract of gettimeofday(2).
        unsafe { into.write(libc::timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1_000 }) };
    }
    code
}

#[unsafe(export_name = "_vgr00000ZU_libcZdsoZa_time")]
unsafe extern "C" fn time(into: *mut libc::time_t) -> libc::time_t {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` lives through the call.
    unsafe { clock_gettime(libc::CLOCK_REALTIME, &mut now) };
    if !into.is_null() {
        // SAFETY: the contract of time(2).
        unsafe { into.write(now.tv_sec) };
    }
    now.tv_sec
}

/// Makes a system call as libc does, with errno and -1 on an error.
///
/// # Safety
/// The contract of the system call.
unsafe fn kernel(number: c_long, args: [c_long; 6]) -> c_long {
    // SAFETY: the caller's promise.
    let answer = unsafe { raw(number, args) };
    if (-4095..0).contains(&answer) {
        // SAFETY: errno of this thread.
        unsafe { *libc::__errno_location() = -answer as c_int };
        return -1;
    }
    answer
}

/// Makes a system call.
///
/// # Safety
/// The contract of the system call.
#[inline]
unsafe fn raw(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let answer;
    // SAFETY: the caller's promise; the kernel changes rax, rcx and r11 only.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: the caller's promise; the kernel changes x0 only.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_depends_on_seed_length_and_number_alone() {
        let bytes = |seed, nth, n| {
            let mut into = vec![0; n];
            stream(seed, nth, &mut into);
            into
        };
        assert_eq!(bytes(7, 3, 32), bytes(7, 3, 32));
        assert_ne!(bytes(7, 3, 32), bytes(8, 3, 32));
        assert_ne!(bytes(7, 3, 32), bytes(7, 4, 32));
        assert_ne!(bytes(7, 3, 32)[..31], bytes(7, 3, 31)[..]);
        assert_eq!(bytes(0, 0, 0), b"");
    }

    #[test]
    fn its_bits_are_even() {
        let mut into = vec![0; 1 << 16];
        stream(1, 0, &mut into);
        let ones: u32 = into.iter().map(|b| b.count_ones()).sum();
        // Four standard deviations of 2^19 fair coins.
        assert!((ones as i64 - (1 << 18)).abs() < 4 * 362, "{ones} ones in {} bits", into.len() * 8);
    }

    #[test]
    fn natively_the_replacements_are_inert() {
        assert_eq!(missing(), ["getrandom", "syscall", "clock_gettime"]);
    }

    #[test]
    fn without_a_seed_they_pass_through_to_the_kernel() {
        let (mut a, mut b) = ([0_u8; 32], [0_u8; 32]);
        // SAFETY: buffers of the lengths given.
        unsafe {
            assert_eq!(getrandom(a.as_mut_ptr().cast(), a.len(), 0), 32);
            let address = b.as_mut_ptr() as c_long;
            assert_eq!(syscall(libc::SYS_getrandom, address, 32, 0, 0, 0, 0), 32);
            assert_eq!(getentropy(a.as_mut_ptr().cast(), 257), -1);
            assert_eq!(syscall(-1, 0, 0, 0, 0, 0, 0), -1);
            assert_eq!(*libc::__errno_location(), libc::ENOSYS);
        }
        assert_ne!(a, b);
    }
}
