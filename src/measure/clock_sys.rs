//! The calls to the operating system and the processor that timing needs, and
//! the only unsafe code of the wall-time meter.
//!
//! Neighbours: `clock` and `walltime` build on it.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{Ordering, compiler_fence};

/// What the kernel counts for one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Times the thread gave the processor away by itself (it waited).
    pub voluntary: u64,
    /// Times the processor was taken from it.
    pub involuntary: u64,
    /// Page faults without input or output.
    pub minor_faults: u64,
    /// Page faults that waited for input.
    pub major_faults: u64,
    /// The processor on which it runs now.
    pub cpu: u32,
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds.
#[inline]
pub(super) fn monotonic_raw() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` is valid for writes of a timespec.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, time.as_mut_ptr()) };
    // The clock exists since Linux 2.6.28 and the address is good, so it cannot fail.
    assert_eq!(result, 0, "CLOCK_MONOTONIC_RAW cannot be read");
    // SAFETY: the call succeeded and so has filled it in.
    let time = unsafe { time.assume_init() };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Keeps what is before it before it, and what is after it after it, for the
/// compiler and for the processor's order of execution.
#[inline]
pub(super) fn barrier() {
    compiler_fence(Ordering::SeqCst);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: LFENCE is part of SSE2, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
    compiler_fence(Ordering::SeqCst);
}

/// The processor's time stamp counter, unordered with its neighbours.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn time_stamp() -> u64 {
    // SAFETY: RDTSC is part of every x86-64 processor; `has_steady_time_stamp`
    // has been asked, and where the kernel forbids it the clock source is another.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Stands in where there is no time stamp counter; `has_steady_time_stamp` says so.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn time_stamp() -> u64 {
    monotonic_raw()
}

/// Whether [`time_stamp`] ticks at one rate whatever the processor's frequency
/// and sleep (invariant TSC: CPUID 8000_0007h, EDX bit 8), and equally on all
/// processors (the kernel, which checks that, uses it as its clock).
pub(super) fn has_steady_time_stamp() -> bool {
    invariant_time_stamp()
        && std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
fn invariant_time_stamp() -> bool {
    use std::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant_time_stamp() -> bool {
    false
}

/// What the kernel has counted for this thread so far.
pub(super) fn thread_usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writes of an rusage; zeroes are valid for
    // all its fields, so it is initialized even if the call failed.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    // SAFETY: it takes no arguments.
    let cpu = unsafe { libc::sched_getcpu() };
    Usage {
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        cpu: u32::try_from(cpu).unwrap_or(0),
    }
}

/// Bytes of this process that are in memory; 0 where `/proc` is not mounted.
pub(super) fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    // SAFETY: it takes a constant and touches no memory of ours.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0) * u64::try_from(page).unwrap_or(4096)
}

/// Pins this thread to one processor until it is dropped.
#[derive(Debug)]
pub(super) struct Pinned {
    before: libc::cpu_set_t,
}

impl Pinned {
    /// Pins this thread to `cpu`.
    ///
    /// # Errors
    /// The system refuses: there is no such processor, or it is not allowed.
    pub(super) fn to(cpu: usize) -> io::Result<Self> {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let before = affinity()?;
        let mut only = empty_set();
        // SAFETY: `cpu` is within the set, as just checked.
        unsafe { libc::CPU_SET(cpu, &mut only) };
        set_affinity(&only)?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Failing leaves the thread where it is, which harms nothing but placement.
        let _ = set_affinity(&self.before);
    }
}

/// The processors on which this thread may run.
///
/// # Errors
/// The system does not say.
pub(super) fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = affinity()?;
    // SAFETY: every index asked for is within the set.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: a cpu_set_t is an array of integers, for which zeroes are valid: the empty set.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn affinity() -> io::Result<libc::cpu_set_t> {
    let mut set = empty_set();
    // SAFETY: `set` is valid for writes of the size given; 0 is this thread.
    match unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } {
        0 => Ok(set),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: `set` is valid for reads of the size given; 0 is this thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
