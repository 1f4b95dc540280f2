//! The bodies under wallgrind. Neighbours: the library has them.

use std::process::ExitCode;

fn main() -> ExitCode {
    std::hint::black_box(peers::moved());
    wallgrind::main(|suite| {
        for name in peers::NAMES {
            suite.bench(name, move |b| {
                let mut body = peers::body(name);
                b.iter(|| body())
            });
        }
    })
}
