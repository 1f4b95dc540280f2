//! What the harness itself costs: each kind of TLS scenario over the barest
//! glue, next to the same over parties and pipes; the clock; an empty region.
//!
//! `cargo bench --bench harness` measures them like any other scenario.
//! `cargo bench --bench harness -- --ratios` runs glue and harness in turn and
//! says what parties and pipes cost, against the limits they must keep. On a
//! busy machine counts are the better evidence: `--ratios=1 handshake_full`,
//! one round of one kind, under `valgrind --tool=callgrind` with
//! `--collect-atstart=no --toggle-collect=*glue_runs*`, and again with
//! `*harness_runs*`.
//!
//! Scenarios under `planted` do a share more of their work when the variable
//! `HARNESS_PLANTED` says so, in per mille: `.ci/verdicts` plants a change with
//! it, and counts how often that is found.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustls::pki_types::ServerName;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ConnectionCommon, HandshakeKind, ProtocolVersion,
    ServerConfig, ServerConnection,
};
use wallgrind::families::tls::bodies::{self, Load, Way};
use wallgrind::scenario::{Bencher, Meter, Scenario, Seat, Site, Suite, Work};
use wallgrind::tls::keys::KeyKind;
use wallgrind::tls::{Content, Provider, Setup};
use wallgrind::{Bytes, Elements};

/// Application data of the transfer.
const LOAD: Load = Load { way: Way::Download, total: 10 * 1024 * 1024, record: Load::LARGEST_RECORD };

mod moved;

fn main() -> ExitCode {
    moved::keep();
    let rounds = std::env::args().find_map(|arg| arg.strip_prefix("--ratios").map(str::to_owned));
    match rounds {
        Some(rounds) => ratios::main(rounds.strip_prefix('=').and_then(|n| n.parse().ok())),
        None => wallgrind::main(register),
    }
}

/// The provider whose cryptography is under the harness here.
const CRYPTO: Provider = Provider::ALL[0];

fn with_crypto() -> Setup {
    Setup::new(CRYPTO, CipherSuite::TLS13_AES_128_GCM_SHA256, KeyKind::EcdsaP256)
}

fn without_crypto() -> Setup {
    Setup::no_crypto(ProtocolVersion::TLSv1_3)
}

fn register(suite: &mut Suite) {
    let mut group = suite.group("harness");
    group.bench("empty_region", |b| b.iter(|| ()));
    group.bench("clock_reading", |b| b.iter(Instant::now));
    for (kind, setup) in [("handshake_full", with_crypto()), ("handshake_no_crypto", without_crypto())] {
        group.bench(format!("{kind}::glue"), move |b| glue::handshake(b, &setup));
        group
            .bench(format!("{kind}::pipes"), move |b| bodies::handshake(b, &setup))
            .parties("client", "server");
    }
    group.bench("transfer_aes128::glue", |b| glue::transfer(b, &with_crypto()));
    group
        .bench("transfer_aes128::pipes", |b| bodies::transfer(b, &with_crypto(), LOAD))
        .parties("client", "server");
    group.bench("planted::checksum", planted::checksum).variable("HARNESS_PLANTED");
    group.bench("planted::pread", planted::pread).variable("HARNESS_PLANTED");
    group.bench("planted::vectors", planted::vectors).variable("HARNESS_PLANTED");
}

/// Work of which there can be a little more.
mod planted {
    use std::fs::File;
    use std::hint::black_box;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// `work` units, and as many per mille more as are planted.
    fn units(work: u64) -> Result<u64> {
        let planted = std::env::var("HARNESS_PLANTED").unwrap_or_else(|_| "0".into());
        let per_mille: u64 = planted.parse().context("HARNESS_PLANTED is a number in per mille")?;
        Ok(work + work * per_mille / 1_000)
    }

    /// A chain of additions and rotations over 4 KiB, in the first-level cache.
    pub(super) fn checksum(b: &mut Bencher<'_>) -> Result<()> {
        let words: Vec<u64> = (0..512).collect();
        let units = units(2_000)?;
        b.iter(|| {
            let word = |i: u64| words[(i % 512) as usize];
            (0..black_box(units)).fold(1_u64, |sum, i| sum.rotate_left(5).wrapping_add(word(i)))
        })
    }

    /// 4 KiB reads of a warm file.
    pub(super) fn pread(b: &mut Bencher<'_>) -> Result<()> {
        let path = std::env::temp_dir().join("harness-pread");
        std::fs::write(&path, vec![7_u8; 1 << 20])?;
        let (file, units) = (File::open(&path)?, units(200)?);
        let mut buffer = vec![0_u8; 4096];
        b.iter_checked(
            || (0..units).try_for_each(|i| file.read_exact_at(&mut buffer, (i * 37 % 256) * 4096)),
            |read| Ok(read?),
        )
    }

    /// Small vectors made, filled, and dropped: memory that each process gets anew.
    pub(super) fn vectors(b: &mut Bencher<'_>) -> Result<()> {
        let units = units(200)?;
        b.iter(|| {
            let made = (0..units).map(|i| black_box(vec![i as u8; 64 + (i % 50) as usize * 40]).len());
            made.sum::<usize>()
        })
    }
}

/// The least code that does the same with rustls: two connections, two vectors.
mod glue {
    use super::*;

    type Configs = (Arc<ClientConfig>, Arc<ServerConfig>);
    type Connected = (ClientConnection, ServerConnection);

    /// What is on its way, in memory that is used again and again.
    struct Wires {
        to_client: Vec<u8>,
        to_server: Vec<u8>,
    }

    impl Wires {
        fn new() -> Self {
            Self { to_client: Vec::with_capacity(65_536), to_server: Vec::with_capacity(65_536) }
        }
    }

    pub(super) fn handshake(b: &mut Bencher<'_>, setup: &Setup) -> Result<()> {
        b.throughput(Elements(1));
        let configs = (setup.client()?, setup.server()?);
        let mut wires = Wires::new();
        b.iter_checked(
            || connected(&configs, &mut wires),
            |ends| {
                let (client, server) = ends?;
                ensure!(client.handshake_kind() == Some(HandshakeKind::Full), "not a full handshake");
                ensure!(server.handshake_kind() == Some(HandshakeKind::Full), "not a full handshake");
                Ok(())
            },
        )
    }

    fn connected(configs: &Configs, wires: &mut Wires) -> Result<Connected> {
        let name = ServerName::try_from("localhost")?;
        let mut client = ClientConnection::new(Arc::clone(&configs.0), name)?;
        client.set_buffer_limit(None);
        let mut server = ServerConnection::new(Arc::clone(&configs.1))?;
        server.set_buffer_limit(None);
        while client.is_handshaking() || server.is_handshaking() {
            pass(&mut client, &mut server, &mut wires.to_server)?;
            pass(&mut server, &mut client, &mut wires.to_client)?;
        }
        Ok((client, server))
    }

    /// Takes what one side has to say to the other.
    fn pass<A, B>(
        from: &mut ConnectionCommon<A>,
        to: &mut ConnectionCommon<B>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        while from.wants_write() {
            from.write_tls(bytes)?;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            to.read_tls(&mut rest)?;
            to.process_new_packets()?;
        }
        bytes.clear();
        Ok(())
    }

    pub(super) fn transfer(b: &mut Bencher<'_>, setup: &Setup) -> Result<()> {
        b.throughput(Bytes(LOAD.total));
        let configs = (setup.client()?, setup.server()?);
        let (mut for_setup, mut wires) = (Wires::new(), Wires::new());
        b.iter_full(
            || connected(&configs, &mut for_setup),
            |mut ends| download(&mut ends, &mut wires.to_client).map(|got| (got, ends)),
            |result| {
                let (got, _ends) = result?;
                ensure!(got == LOAD.total, "received {got} bytes");
                Ok(())
            },
        )
    }

    fn download((client, server): &mut Connected, bytes: &mut Vec<u8>) -> Result<u64> {
        let (content, mut got) = (Content::new(), 0);
        while got < LOAD.total {
            let left = usize::try_from(LOAD.total - got)?;
            let piece = content.at(got, left.min(LOAD.record));
            let taken = server.writer().write(piece)?;
            ensure!(taken == piece.len(), "rustls took {taken} bytes");
            while server.wants_write() {
                server.write_tls(bytes)?;
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                client.read_tls(&mut rest)?;
                let left = client.process_new_packets()?.plaintext_bytes_to_read();
                got += read(client, content, got, left)?;
            }
            bytes.clear();
        }
        Ok(got)
    }

    /// Takes `len` bytes of plaintext that continue the content at `offset`.
    fn read(client: &mut ClientConnection, content: Content, offset: u64, len: usize) -> Result<u64> {
        let (mut reader, mut got) = (client.reader(), 0);
        while got < len {
            let chunk = reader.fill_buf()?;
            content.compare_ends(offset + got as u64, chunk)?;
            let n = chunk.len();
            reader.consume(n);
            got += n;
        }
        Ok(got as u64)
    }
}

/// Glue and harness in turn, and what the one costs over the other.
mod ratios {
    use super::*;

    /// Rounds of glue and harness in turn, unless told.
    const ROUNDS: usize = 301;

    /// What is compared, how many iterations make a sample, and the most that
    /// the harness may cost, in per cent.
    const COMPARISONS: [(&str, usize, f64); 3] =
        [("handshake_full", 4, 1.0), ("handshake_no_crypto", 100, 3.0), ("transfer_aes128", 1, 5.0)];

    pub(super) fn main(rounds: Option<usize>) -> ExitCode {
        let rounds = rounds.unwrap_or(ROUNDS).max(1);
        let mut table =
            String::from("scenario             glue ns   harness ns   min ratio   median ratio   limit\n");
        let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
        let mut selected = COMPARISONS.iter().filter(|(kind, ..)| kind.contains(&wanted));
        match selected.try_for_each(|comparison| compare(comparison, rounds, &mut table)) {
            Ok(()) => say(&(table + &clock())),
            Err(error) => say(&format!("error: {error:#}\n")),
        }
    }

    /// A developer's command of this target alone, whose table is no result of
    /// a suite: it goes to standard error as it is.
    fn say(text: &str) -> ExitCode {
        match std::io::stderr().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    }

    fn compare(
        &(kind, iterations, limit): &(&str, usize, f64),
        rounds: usize,
        table: &mut String,
    ) -> Result<()> {
        let mut suite = Suite::new();
        register(&mut suite);
        let scenarios = suite.finish().map_err(|error| anyhow::anyhow!(error.report()))?;
        let find = |end: &str| {
            let name = format!("harness::{kind}::{end}");
            scenarios.iter().find(|s| s.id().as_str() == name).context("no such scenario")
        };
        let mut samples = Vec::new();
        let mut outer =
            InTurn { site: Both, rounds, iterations, samples: &mut samples, other: find("pipes")? };
        find("glue")?.run(&mut Bencher::new(&mut outer))?;
        table.push_str(&line(kind, &samples, limit));
        Ok(())
    }

    /// Nanoseconds an iteration of glue and harness, of one round.
    type Round = [f64; 2];

    fn line(kind: &str, samples: &[Round], limit: f64) -> String {
        let of = |i: usize| samples.iter().map(move |round| round[i]);
        let least = |i| of(i).fold(f64::INFINITY, f64::min);
        let median = median(samples.iter().map(|[glue, ours]| ours / glue).collect());
        let (glue, ours) = (least(0), least(1));
        format!(
            "{kind:<20} {glue:>7.0} {ours:>12.0} {:>+10.2} % {:>+12.2} % {limit:>5} %\n",
            100.0 * (ours / glue - 1.0),
            100.0 * (median - 1.0)
        )
    }

    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    /// The time of two readings of the clock with nothing in between.
    fn clock() -> String {
        let empty = |_| Instant::now().elapsed().as_nanos() as f64;
        let median = median((0..10_001).map(empty).collect());
        format!("clock: {median} ns from reading to reading\n")
    }

    struct Both;

    impl Site for Both {
        fn seat(&mut self) -> Seat<'_> {
            Seat::Both
        }

        fn turn_of(&mut self, _party: usize) {}
    }

    /// Runs the body of another scenario within the one that is measured, so
    /// that their iterations can take turns.
    struct InTurn<'s> {
        site: Both,
        rounds: usize,
        iterations: usize,
        samples: &'s mut Vec<Round>,
        other: &'s Scenario,
    }

    impl Meter for InTurn<'_> {
        fn site(&mut self) -> &mut dyn Site {
            &mut self.site
        }

        fn measure(&mut self, glue: &mut dyn Work) -> Result<()> {
            let mut inner = Inner {
                site: Both,
                rounds: self.rounds,
                iterations: self.iterations,
                samples: self.samples,
                glue,
            };
            self.other.run(&mut Bencher::new(&mut inner))
        }
    }

    struct Inner<'s> {
        site: Both,
        rounds: usize,
        iterations: usize,
        samples: &'s mut Vec<Round>,
        glue: &'s mut dyn Work,
    }

    impl Meter for Inner<'_> {
        fn site(&mut self) -> &mut dyn Site {
            &mut self.site
        }

        fn measure(&mut self, ours: &mut dyn Work) -> Result<()> {
            let n = self.iterations;
            glue_region(self.glue, n)?;
            ours_region(ours, n)?;
            for round in 0..self.rounds {
                let first = if round % 2 == 0 { glue_region(self.glue, n)? } else { ours_region(ours, n)? };
                let second = if round % 2 == 0 { ours_region(ours, n)? } else { glue_region(self.glue, n)? };
                self.samples.push(if round % 2 == 0 { [first, second] } else { [second, first] });
            }
            Ok(())
        }
    }

    fn glue_region(work: &mut dyn Work, n: usize) -> Result<f64> {
        sample(work, n, glue_runs)
    }

    fn ours_region(work: &mut dyn Work, n: usize) -> Result<f64> {
        sample(work, n, harness_runs)
    }

    fn sample(work: &mut dyn Work, n: usize, run: fn(&mut dyn Work, usize) -> Result<()>) -> Result<f64> {
        work.prepare(n, &mut Both)?;
        let start = Instant::now();
        run(work, n)?;
        let time = start.elapsed();
        work.check()?;
        Ok(time.as_nanos() as f64 / n as f64)
    }

    /// Named so that `callgrind --toggle-collect` can count it alone.
    #[inline(never)]
    fn glue_runs(work: &mut dyn Work, n: usize) -> Result<()> {
        work.run(n, &mut Both)
    }

    /// Named so that `callgrind --toggle-collect` can count it alone.
    #[inline(never)]
    fn harness_runs(work: &mut dyn Work, n: usize) -> Result<()> {
        std::hint::black_box(n);
        work.run(n, &mut Both)
    }
}
