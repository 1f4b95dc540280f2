//! The bodies under zenbench. Neighbours: the library has them.

use zenbench::prelude::*;

fn bodies(suite: &mut Suite) {
    std::hint::black_box(peers::moved());
    for name in peers::NAMES {
        let mut body = peers::body(name);
        suite.bench_fn(name, move || body());
    }
}

zenbench::main!(bodies);
