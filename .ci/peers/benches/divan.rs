//! The bodies under divan. Neighbours: the library has them.

fn main() {
    std::hint::black_box(peers::moved());
    divan::main();
}

#[divan::bench(args = peers::NAMES)]
fn body(bencher: divan::Bencher, name: &str) {
    let mut body = peers::body(name);
    bencher.bench_local(move || body());
}
