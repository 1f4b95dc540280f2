//! What the harness asks of the operating system: file descriptors that
//! survive (or do not survive) an `exec`, signals, the lock between
//! processes, folders that go away, and children that must not outlive us.
//!
//! All `unsafe` of the harness is here. Neighbours: `cli::term` (descriptors),
//! `trial` (children), `flow` (signals, the lock).

mod fd;
mod lock;
mod process;
mod run_folder;
mod signals;
mod space;

pub use fd::{inherited, keep_on_exec, memory_file, mute_when_closed, take_stdin, take_stdout};
pub use lock::{Held, Lock};
pub use process::{
    die_with_parent, end_descendants, hold_exit, is_exit_held, kill_group, leave, parent, processors,
    replace_self, restart_with, self_path, set_temp_dir,
};
pub use run_folder::{RUN_PREFIX, RunFolder, RunLink, is_run_folder};
pub use signals::{name, watch};
pub use space::{free_bytes, sync_file_system, takes_programs};
