//! The TLS suite as a bench target: `cargo bench --bench tls`.

fn main() -> std::process::ExitCode {
    wallgrind::main(wallgrind::families::tls::register)
}
