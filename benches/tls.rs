//! The TLS suite as a bench target: `cargo bench --bench tls`.

mod moved;

fn main() -> std::process::ExitCode {
    moved::keep();
    wallgrind::main(wallgrind::families::tls::register)
}
