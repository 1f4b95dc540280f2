//! Where the region of interest begins and ends, seen from inside: Valgrind's
//! client requests, and the snapshot of all counts that a fork leaves behind.
//!
//! Neighbours: `child` puts these around a body. The codes of the requests are
//! those of `valgrind.h`, `cachegrind.h` (3.22) and `callgrind.h`, which are a
//! stable interface; the instruction sequences are described in `valgrind.h`.

use std::arch::asm;

/// Codes of client requests; a tool's own begin with its two letters.
const RUNNING_ON_VALGRIND: usize = 0x1001;
const CACHEGRIND_START: usize = tool_base(b'C', b'G');
const CACHEGRIND_STOP: usize = tool_base(b'C', b'G') + 1;
const CALLGRIND_TOGGLE: usize = tool_base(b'C', b'T') + 2;
const CALLGRIND_START: usize = tool_base(b'C', b'T') + 4;
const CALLGRIND_STOP: usize = tool_base(b'C', b'T') + 5;

const fn tool_base(first: u8, second: u8) -> usize {
    (first as usize) << 24 | (second as usize) << 16
}

/// Whether this process runs under Valgrind.
pub(super) fn on_valgrind() -> bool {
    request(RUNNING_ON_VALGRIND) != 0
}

/// Cachegrind 3.22 and later begins to count; older versions do nothing.
#[inline(always)]
pub(super) fn cachegrind_start() {
    request(CACHEGRIND_START);
}

/// Cachegrind 3.22 and later stops counting; older versions do nothing.
#[inline(always)]
pub(super) fn cachegrind_stop() {
    request(CACHEGRIND_STOP);
}

/// Callgrind instruments from here on, without counting yet.
pub(super) fn callgrind_start() {
    request(CALLGRIND_START);
}

/// Callgrind instruments no more.
pub(super) fn callgrind_stop() {
    request(CALLGRIND_STOP);
}

/// Callgrind begins to count, or stops counting.
#[inline(always)]
pub(super) fn callgrind_toggle() {
    request(CALLGRIND_TOGGLE);
}

/// Makes a client request without arguments; 0 where nobody answers it.
#[inline(always)]
fn request(code: usize) -> usize {
    let call: [usize; 6] = [code, 0, 0, 0, 0, 0];
    let answer: usize;
    // SAFETY: natively the sequence rotates a register by 128 bits in all and
    // exchanges another one with itself: nothing changes. Under Valgrind it
    // reads six words at the address in rax, which live until it is over, and
    // writes rdx.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") call.as_ptr(),
            inout("rdx") 0_usize => answer,
            options(nostack),
        );
    }
    // SAFETY: as above, with the rotations of x12 and an idle `orr`; the
    // address is in x4 and the answer in x3.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") call.as_ptr(),
            inout("x3") 0_usize => answer,
            options(nostack),
        );
    }
    answer
}

/// Leaves the tool's totals of this moment in a file: forks a copy that ends
/// at once, at which the tool writes the copy's totals, and waits for it.
/// Returns the copy's process id, which is in the file's name, or the negated
/// error number of `fork`.
///
/// What the copy does is no part of this process's counts; what this function
/// adds to them, about a dozen instructions, is the same each time, and is
/// measured with an empty region.
#[inline(always)]
pub(super) fn snapshot() -> i64 {
    let copy: i64;
    // SAFETY: system calls `fork` (57), in the copy `exit_group` (231), in this
    // process `wait4` (61) with no place for the status. The copy never leaves
    // the sequence, so no destructor and no lock of this process runs twice.
    // All registers that the kernel or the sequence changes are declared.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov eax, 57",
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, 231",
            "xor edi, edi",
            "syscall",
            "ud2",
            "2:",
            "mov r8, rax",
            "mov rdi, rax",
            "xor esi, esi",
            "xor edx, edx",
            "xor r10d, r10d",
            "mov eax, 61",
            "syscall",
            out("r8") copy,
            out("rax") _, out("rcx") _, out("rdx") _, out("rdi") _, out("rsi") _,
            out("r10") _, out("r11") _,
        );
    }
    // SAFETY: the same with `clone` (220, SIGCHLD), `exit_group` (94) and
    // `wait4` (260), which are numbered so on aarch64.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "mov x8, #220",
            "mov x0, #17",
            "mov x1, #0",
            "mov x2, #0",
            "mov x3, #0",
            "mov x4, #0",
            "svc #0",
            "cbnz x0, 2f",
            "mov x8, #94",
            "svc #0",
            "udf #0",
            "2:",
            "mov x9, x0",
            "mov x1, #0",
            "mov x2, #0",
            "mov x3, #0",
            "mov x8, #260",
            "svc #0",
            out("x9") copy,
            out("x0") _, out("x1") _, out("x2") _, out("x3") _, out("x4") _, out("x8") _,
        );
    }
    copy
}

/// Executes exactly four instructions a loop, and three besides however many
/// loops there are: what a count must be able to show to the last digit.
///
/// Each loop takes the first of two branches to one place. A Valgrind that
/// chases branches (its default) joins such a pair into one condition without
/// branches, and counts the second half as well: six instructions a loop.
#[inline(never)]
pub(super) fn canary(loops: u64) {
    // SAFETY: counts a register of its own down to zero.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "test {n}, {n}",
            "jz 4f",
            "2:",
            "test {n}, {n}",
            "jnz 3f",
            "test {n}, {n}",
            "jnz 3f",
            "nop",
            "3:",
            "dec {n}",
            "jnz 2b",
            "4:",
            n = inout(reg) loops => _,
            options(nostack, nomem),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "cmp {n}, #0",
            "b.eq 4f",
            "2:",
            "cmp {n}, #0",
            "b.ne 3f",
            "cmp {n}, #0",
            "b.ne 3f",
            "nop",
            "3:",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            "4:",
            n = inout(reg) loops => _,
            options(nostack, nomem),
        );
    }
}

/// Instructions that [`canary`] executes for each loop.
pub(super) const CANARY_INSTRUCTIONS: u64 = 4;
