//! The bodies under tango. Neighbours: the library has them.

use tango_bench::{IntoBenchmarks, benchmark_fn, tango_benchmarks};

fn bodies() -> impl IntoBenchmarks {
    std::hint::black_box(peers::moved());
    peers::NAMES.map(|name| {
        benchmark_fn(name, move |b| {
            let mut body = peers::body(name);
            b.iter(move || body())
        })
    })
}

tango_benchmarks!(bodies());
