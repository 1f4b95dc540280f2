//! Every scenario of the TLS suite takes its steps: once with both parties in
//! one process, and once with each party alone at its end of an OS pipe, as
//! the meters under Valgrind run them.
//!
//! Neighbours: `families::tls` registers what runs here.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::thread;

use anyhow::{Context, Result, ensure};
use wallgrind::measure::smoke;
use wallgrind::scenario::{Bencher, Meter, Pipe, Scenario, Seat, Site, Suite, Wire, Work};

/// The largest piece that goes over a wire.
const PIECE: usize = 4096;

fn scenarios() -> Vec<Scenario> {
    let mut suite = Suite::new();
    wallgrind::families::tls::register(&mut suite);
    suite.finish().expect("the names are valid")
}

/// One end of a pair of OS pipes; each piece is preceded by its length, so that
/// nobody reads beyond what was sent in one go.
struct Wires {
    from: PipeReader,
    to: PipeWriter,
}

impl Wire for Wires {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(PIECE) {
            let framed = [&(piece.len() as u16).to_be_bytes()[..], piece].concat();
            self.to.write_all(&framed)?;
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Pipe) -> Result<()> {
        let mut len = [0; 2];
        self.from.read_exact(&mut len).context("the other party is gone")?;
        let mut piece = vec![0; u16::from_be_bytes(len).into()];
        self.from.read_exact(&mut piece)?;
        ensure!(into.push(&piece) == piece.len(), "no room for a piece");
        Ok(())
    }

    fn piece(&self) -> usize {
        PIECE
    }
}

/// Measures nothing, and runs one party only.
struct OneParty {
    party: usize,
    wires: Wires,
    /// Iterations that are prepared at once, and how often that is done.
    rounds: [usize; 2],
}

impl Site for OneParty {
    fn seat(&mut self) -> Seat<'_> {
        Seat::One(self.party, &mut self.wires)
    }

    fn turn_of(&mut self, _party: usize) {}
}

impl Meter for OneParty {
    fn site(&mut self) -> &mut dyn Site {
        self
    }

    fn measure(&mut self, work: &mut dyn Work) -> Result<()> {
        for n in self.rounds {
            work.prepare(n, self)?;
            for _ in 0..n {
                work.run(1, self)?;
            }
            work.check()?;
        }
        Ok(())
    }
}

/// Two pairs of pipes, crossed.
fn crossed() -> io::Result<[Wires; 2]> {
    let (to_client, from_server) = io::pipe()?;
    let (to_server, from_client) = io::pipe()?;
    Ok([Wires { from: to_client, to: from_client }, Wires { from: to_server, to: from_server }])
}

fn run_one(scenario: &Scenario, party: usize, wires: Wires, rounds: [usize; 2]) -> Result<()> {
    let mut meter = OneParty { party, wires, rounds };
    let end = scenario.run(&mut Bencher::new(&mut meter));
    let OneParty { wires, .. } = meter;
    end.and_then(|()| nothing_left(wires))
}

/// Closes the sending side, and fails if the other party sent what nobody took.
fn nothing_left(wires: Wires) -> Result<()> {
    let Wires { mut from, to } = wires;
    drop(to);
    let mut rest = Vec::new();
    from.read_to_end(&mut rest)?;
    ensure!(rest.is_empty(), "{} bytes were never read", rest.len());
    Ok(())
}

fn run_apart(scenario: &Scenario, rounds: [usize; 2]) -> [Result<()>; 2] {
    let [client, server] = crossed().expect("pipes");
    thread::scope(|scope| {
        let server = scope.spawn(|| run_one(scenario, 1, server, rounds));
        let client = run_one(scenario, 0, client, rounds);
        [client, server.join().expect("the server's thread does not panic")]
    })
}

#[test]
fn each_scenario_runs_in_one_process() {
    for scenario in scenarios() {
        if let Err(failure) = smoke(&scenario) {
            panic!("{}: {}", scenario.id(), failure.reason());
        }
    }
}

#[test]
fn each_scenario_runs_with_its_parties_apart() {
    for scenario in scenarios() {
        assert_eq!(scenario.party_names(), ["client", "server"], "{}", scenario.id());
        for (party, end) in ["client", "server"].iter().zip(run_apart(&scenario, [1, 2])) {
            if let Err(error) = end {
                panic!("{}, {party}: {error:#}", scenario.id());
            }
        }
    }
}

/// What a scenario says about itself.
fn param<'s>(scenario: &'s Scenario, key: &str) -> Option<&'s str> {
    scenario.params_stated().iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
}

#[test]
fn each_scenario_states_its_parameters() {
    for scenario in scenarios() {
        for key in ["kind", "provider", "version", "cipher_suite", "key", "group"] {
            let value = param(&scenario, key);
            assert!(value.is_some_and(|v| !v.is_empty() && v != "unknown"), "{}: {key}", scenario.id());
        }
        let kind = param(&scenario, "kind").expect("just seen");
        assert!(scenario.id().as_str().starts_with(&format!("tls::{kind}")), "{}", scenario.id());
    }
}

#[test]
fn the_scenarios_of_the_reference_are_there_under_its_names() {
    let scenarios = scenarios();
    let providers: Vec<&str> = wallgrind::tls::Provider::ALL.iter().map(|p| p.name()).collect();
    let mut found = 0;
    for (ours, reference) in wallgrind::families::tls::reference_names() {
        let scenario = scenarios.iter().find(|s| s.id().as_str() == ours);
        let compiled_in = providers.iter().any(|name| reference.contains(name));
        assert_eq!(scenario.is_some(), compiled_in, "{ours}");
        assert_eq!(scenario.and_then(|s| param(s, "reference")), compiled_in.then_some(reference.as_str()));
        found += usize::from(compiled_in);
    }
    let named = scenarios.iter().filter(|s| param(s, "reference").is_some()).count();
    assert_eq!(found, named, "a scenario bears a name that the reference does not have");
    if providers.contains(&"ring") && providers.contains(&"aws_lc_rs") {
        assert_eq!(found, 64);
    }
}
