//! Registers the suite: for each provider the parameters of the reference,
//! each in its four kinds; then what is beyond.
//!
//! Neighbours: `reference` has the names, `bodies` what runs, `beyond` the rest.

use rustls::{CipherSuite, ProtocolVersion};

use super::beyond;
use super::bodies::{self, Load, Way};
use super::reference::{KINDS, our_params, to_reference};
use crate::scenario::{Scenario, Suite};
use crate::tls::keys::KeyKind;
use crate::tls::{Provider, Resumption, Setup};

/// Application data of a transfer; as much as the reference's.
const TRANSFER: u64 = 10 * 1024 * 1024;

/// Registers all TLS scenarios of the providers that were compiled in.
pub fn register(suite: &mut Suite) {
    for &provider in Provider::ALL {
        for (label, setup) in parameters(provider) {
            for kind in KINDS {
                add(suite, kind, &label, setup);
            }
        }
    }
    beyond::register(suite);
}

/// The parameters of a provider, with the last segment of the name.
fn parameters(provider: Provider) -> Vec<(String, Setup)> {
    use CipherSuite as Cipher;
    if !provider.has_crypto() {
        let setups = [Setup::no_crypto(ProtocolVersion::TLSv1_3), Setup::no_crypto(ProtocolVersion::TLSv1_2)];
        return setups.map(|setup| (our_params("no_crypto", version(&setup), ""), setup)).into();
    }
    let mut all = Vec::new();
    let mut add = |label: &str, suite, key| {
        let setup = Setup::new(provider, suite, key);
        all.push((our_params(provider.name(), version(&setup), label), setup));
    };
    add("rsa_aes", Cipher::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, KeyKind::Rsa2048);
    for (cipher, suite) in
        [("aes", Cipher::TLS13_AES_128_GCM_SHA256), ("chacha", Cipher::TLS13_CHACHA20_POLY1305_SHA256)]
    {
        add(&format!("rsa_{cipher}"), suite, KeyKind::Rsa2048);
        add(&format!("ecdsap256_{cipher}"), suite, KeyKind::EcdsaP256);
        add(&format!("ecdsap384_{cipher}"), suite, KeyKind::EcdsaP384);
    }
    all
}

/// The version as it is written in names of the reference.
pub(super) fn version(setup: &Setup) -> &'static str {
    match setup.version {
        ProtocolVersion::TLSv1_2 => "1.2",
        _ => "1.3",
    }
}

/// Registers one scenario of the reference's kinds.
fn add(suite: &mut Suite, kind: &'static str, label: &str, setup: Setup) {
    let resumption = match kind {
        "handshake_session_id" => Resumption::SessionId,
        "handshake_tickets" => Resumption::Tickets,
        _ => Resumption::None,
    };
    let setup = Setup { resumption, ..setup };
    let name = format!("tls::{kind}::{label}");
    let reference = to_reference(&name);
    let scenario = if kind == "transfer_no_resume" {
        let load = Load { way: Way::Download, total: TRANSFER, record: Load::LARGEST_RECORD };
        suite.bench(name, move |b| bodies::transfer(b, &setup, load)).param("bytes", TRANSFER)
    } else {
        suite.bench(name, move |b| bodies::handshake(b, &setup))
    };
    describe(scenario, kind, &setup);
    if let Some(reference) = reference {
        scenario.param("reference", reference);
    }
}

/// States what all TLS scenarios have in common.
pub(super) fn describe(scenario: &mut Scenario, kind: &str, setup: &Setup) {
    scenario
        .parties("client", "server")
        .param("kind", kind)
        .param("provider", setup.provider.name())
        .param("version", version(setup))
        .param("cipher_suite", setup.suite.as_str().unwrap_or("unknown"))
        .param("key", setup.key.name())
        .param("group", setup.groups.agreed().as_str().unwrap_or("unknown"));
}
