//! The bodies under criterion. Neighbours: the library has them.

use criterion::{Criterion, criterion_group, criterion_main};

fn bodies(c: &mut Criterion) {
    std::hint::black_box(peers::moved());
    for name in peers::NAMES {
        let mut body = None;
        c.bench_function(name, |b| b.iter(body.get_or_insert_with(|| peers::body(name))));
    }
}

criterion_group!(benches, bodies);
criterion_main!(benches);
