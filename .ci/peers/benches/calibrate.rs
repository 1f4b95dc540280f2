//! How many rounds of the planted chain take as long as each body: what
//! `PEERS_EXTRA` is computed from. Prints `NAME ROUNDS`, from the shortest of
//! many times of each. Neighbours: the library has the bodies, `compare` runs it.

use std::time::Instant;

fn shortest(mut body: peers::Body, calls: u32) -> f64 {
    let once = |body: &mut peers::Body| {
        let begin = Instant::now();
        for _ in 0..calls {
            std::hint::black_box(body());
        }
        begin.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    (0..200).map(|_| once(&mut body)).fold(f64::INFINITY, f64::min)
}

fn main() -> anyhow::Result<()> {
    // The difference of two lengths of the chain, behind the same body.
    let chained = |rounds| Ok::<_, anyhow::Error>(shortest(peers::try_body("checksum", rounds)?, 20));
    let round = (chained(8_000)? - chained(0)?) / 8_000.0;
    for name in peers::NAMES {
        let calls = if name == "handshake_full" { 4 } else { 50 };
        println!("{name} {:.0}", shortest(peers::try_body(name, 0)?, calls) / round);
    }
    Ok(())
}
