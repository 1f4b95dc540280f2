//! Processes: children that end with us, the image that replaces us, and the
//! exit that a body must not take.
//!
//! Neighbours: `trial::isolate` and `trial::resume`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fd::check;

/// The running executable, also when its file has been replaced since.
pub fn self_path() -> &'static Path {
    Path::new("/proc/self/exe")
}

/// Ends this process (SIGKILL) when its parent does. `parent` is who should
/// be the parent still: it may have gone before this call.
///
/// # Errors
/// The parent has gone, or the system refuses.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: sets an attribute of this process; no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    if std::os::unix::process::parent_id() == parent {
        return Ok(());
    }
    Err(io::Error::other("the process that started this one has gone"))
}

/// Ends (SIGKILL) every process of the group that `leader` leads.
pub fn kill_group(leader: u32) {
    if let Ok(leader) = libc::pid_t::try_from(leader)
        && leader > 1
    {
        // SAFETY: sends a signal; no memory is involved. A group that has gone is no error here.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}

/// Ends (SIGKILL) all processes that this one and its children have started,
/// whatever group they are in, as far as `/proc` shows them.
pub fn end_descendants() {
    let mut parents = vec![std::process::id()];
    let all = processes();
    let mut at = 0;
    while at < parents.len() {
        let parent = parents[at];
        parents.extend(all.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    for pid in &parents[1..] {
        if let Ok(pid) = libc::pid_t::try_from(*pid) {
            // SAFETY: sends a signal; no memory is involved. A process that has gone is no error here.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// All processes with their parents.
fn processes() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        Some((pid, parent_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
    })
    .collect()
}

/// The parent in a `/proc/<pid>/stat` line: the second word after the name,
/// which may hold spaces and parentheses itself.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Replaces this process by a fresh one of the same executable; all threads
/// end. Returns only when that fails.
pub fn replace_self(arguments: &[OsString], temp_dir: Option<&OsStr>) -> io::Error {
    let mut command = Command::new(self_path());
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    match temp_dir {
        Some(dir) => command.env("TMPDIR", dir),
        None => command.env_remove("TMPDIR"),
    };
    command.args(arguments).exec()
}

/// Replaces this process by a fresh one with the same arguments and one
/// variable more in its environment. Returns only when that fails.
pub fn restart_with(variable: &str, value: &str) -> io::Error {
    let mut command = Command::new(self_path());
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(variable, value).exec()
}

/// Points the temporary folder of this process and its children to `dir`.
pub fn set_temp_dir(dir: &Path) {
    // SAFETY: the harness does this before it starts a thread, and asks in its
    // documentation to be called first in `main`.
    unsafe { std::env::set_var("TMPDIR", dir) };
}

/// What started this process: its command, and what tells it from any other
/// process of this machine.
pub fn parent() -> Option<(String, String)> {
    let pid = std::os::unix::process::parent_id();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let (command, started) = command_and_start_in(&stat)?;
    Some((command.to_string(), format!("{} {pid} {started}", boot.trim())))
}

/// The name in a `/proc/<pid>/stat` line, and the start in ticks since the boot.
fn command_and_start_in(stat: &str) -> Option<(&str, u64)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let command = head.split_once('(')?.1;
    Some((command, tail.split_whitespace().nth(19)?.parse().ok()?))
}

/// The processors that this process may run on, in order; empty when the
/// system does not say.
pub fn processors() -> Vec<usize> {
    // SAFETY: a set of bits, for which all zeros is a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size given into the set.
    let returned = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    let most = if returned == 0 { 8 * size_of::<libc::cpu_set_t>() } else { 0 };
    // SAFETY: `n` is below the number of bits of the set.
    (0..most).filter(|n| unsafe { libc::CPU_ISSET(*n, &set) }).collect()
}

/// What to do when the process is about to exit from within a body.
type Hook = Box<dyn FnOnce() + Send>;

static HOOK: Mutex<Option<Hook>> = Mutex::new(None);
static HELD: AtomicBool = AtomicBool::new(false);

/// From here on (until called with `None`) an `exit` from within a body calls
/// `hook` and then stops its thread for ever: the trials that are left must
/// not vanish with it. The process is then to be replaced or [left](leave).
pub fn hold_exit(hook: Option<Hook>) {
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    if let Ok(mut place) = HOOK.lock() {
        *place = hook;
    }
    REGISTERED.call_once(|| {
        // SAFETY: registers a function that lives for ever; a failure leaves exits as they are.
        unsafe { libc::atexit(at_exit) };
    });
}

/// Whether a body has tried to end the process: another exit may wait for that one.
pub fn is_exit_held() -> bool {
    HELD.load(Ordering::SeqCst)
}

/// Ends the process at once, without exit handlers.
pub fn leave(code: i32) -> ! {
    // SAFETY: no conditions.
    unsafe { libc::_exit(code) }
}

extern "C" fn at_exit() {
    let hook = HOOK.lock().ok().and_then(|mut place| place.take());
    let Some(hook) = hook else { return };
    HELD.store(true, Ordering::SeqCst);
    hook();
    loop {
        // SAFETY: waits; what belongs to this thread in the standard library may be gone already.
        unsafe { libc::pause() };
    }
}

#[cfg(test)]
mod tests {
    use super::{command_and_start_in, parent_in};

    #[test]
    fn finds_name_and_start_of_a_process() {
        let stat = "7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(command_and_start_in(stat), Some(("a (b) c", 4242)));
        assert_eq!(command_and_start_in("7 (a) S"), None);
    }

    #[test]
    fn finds_the_parent_behind_any_name() {
        assert_eq!(parent_in("12 (a) S 7 12 12"), Some(7));
        assert_eq!(parent_in("12 (a) b) (c) S 8 12 12"), Some(8));
        assert_eq!(parent_in("12"), None);
    }
}
