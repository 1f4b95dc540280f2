//! The `wallgrind` command: reads what benches recorded. The benches
//! themselves are run by `cargo bench`.
//!
//! Neighbours: `cli::commands` in the library does it all.

use std::process::ExitCode;

fn main() -> ExitCode {
    wallgrind::command(std::env::args_os())
}
