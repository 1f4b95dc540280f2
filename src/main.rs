//! The `wallgrind` command.
fn main() {}
