//! The block suite; the scenarios are in `wallgrind::families::block`.

fn main() -> std::process::ExitCode {
    wallgrind::main(wallgrind::families::block::register)
}
