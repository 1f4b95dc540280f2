//! Scenarios that the reference does not have.
//!
//! Neighbours: `register` calls it; `bodies` has what runs.

use rustls::{CipherSuite, NamedGroup, ProtocolVersion};

use super::bodies::{self, Load, Way};
use super::reference::our_params;
use super::register::{describe, version};
use crate::scenario::{Scenario, Suite};
use crate::tls::keys::KeyKind;
use crate::tls::{Groups, Messages, Provider, Resumption, Setup};

/// Application data of the transfers here that are made of small records.
const RECORDS_TRANSFER: u64 = 1024 * 1024;

/// Application data of the other transfers.
const TRANSFER: u64 = 10 * 1024 * 1024;

/// Sizes of records, in bytes.
const RECORDS: [usize; 3] = [256, 1024, Load::LARGEST_RECORD];

/// A dialogue of small requests.
const DIALOGUE: Messages = Messages { rounds: 100, request: 64, response: 1024 };

/// Registers them.
pub(super) fn register(suite: &mut Suite) {
    for &provider in Provider::ALL {
        keys_and_groups(suite, provider);
        variants(suite, provider);
    }
}

/// What needs cryptography.
fn keys_and_groups(suite: &mut Suite, provider: Provider) {
    if !provider.has_crypto() {
        return;
    }
    let aes = CipherSuite::TLS13_AES_128_GCM_SHA256;
    handshake(suite, "handshake_no_resume", "ed25519_aes", Setup::new(provider, aes, KeyKind::Ed25519));
    for (label, suite_and_key) in [
        ("rsa_aes", (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, KeyKind::Rsa2048)),
        ("ecdsap256_aes", (aes, KeyKind::EcdsaP256)),
    ] {
        let (cipher, key) = suite_and_key;
        let setup = Setup { mutual: true, ..Setup::new(provider, cipher, key) };
        handshake(suite, "handshake_mutual", label, setup).param("client_certificate", true);
    }
    let hybrid = NamedGroup::X25519MLKEM768;
    if provider.crypto().kx_groups.iter().any(|group| group.name() == hybrid) {
        let setup = Setup { groups: Groups::Only(hybrid), ..Setup::new(provider, aes, KeyKind::EcdsaP256) };
        handshake(suite, "handshake_mlkem768", "ecdsap256_aes", setup);
        let setup = Setup { resumption: Resumption::Tickets, ..setup };
        handshake(suite, "handshake_mlkem768_tickets", "ecdsap256_aes", setup);
    }
}

/// What every provider does, with none of its cryptography as well.
fn variants(suite: &mut Suite, provider: Provider) {
    let (setup, label) = if provider.has_crypto() {
        let cipher = CipherSuite::TLS13_AES_128_GCM_SHA256;
        (Setup::new(provider, cipher, KeyKind::EcdsaP256), "ecdsap256_aes")
    } else {
        (Setup::no_crypto(ProtocolVersion::TLSv1_3), "")
    };
    handshake(suite, "handshake_retry", label, Setup { groups: Groups::Retry, ..setup });
    let scenario = suite
        .bench(name("handshake_unbuffered", &setup, label), move |b| bodies::unbuffered_handshake(b, &setup));
    describe(scenario, "handshake_unbuffered", &setup);
    records(suite, setup, label);
    transfers(suite, setup, label);
    let scenario =
        suite.bench(name("ping_pong", &setup, label), move |b| bodies::ping_pong(b, &setup, DIALOGUE));
    describe(scenario, "ping_pong", &setup);
    scenario
        .param("rounds", DIALOGUE.rounds)
        .param("request_bytes", DIALOGUE.request)
        .param("response_bytes", DIALOGUE.response);
}

/// Transfers made of records of several sizes.
fn records(suite: &mut Suite, setup: Setup, label: &str) {
    for record in RECORDS {
        let load = Load { way: Way::Download, total: RECORDS_TRANSFER, record };
        let name = name(&format!("transfer_records_{record:05}"), &setup, label);
        let scenario = suite.bench(name, move |b| bodies::transfer(b, &setup, load));
        describe(scenario, "transfer_records", &setup);
        scenario.param("bytes", RECORDS_TRANSFER).param("record_bytes", record);
    }
}

/// Transfers the other way, and over the unbuffered API.
fn transfers(suite: &mut Suite, setup: Setup, label: &str) {
    let load = |way| Load { way, total: TRANSFER, record: Load::LARGEST_RECORD };
    let upload = load(Way::Upload);
    let scenario = suite
        .bench(name("transfer_upload", &setup, label), move |b| bodies::transfer(b, &setup, upload))
        .param("bytes", TRANSFER);
    describe(scenario, "transfer_upload", &setup);
    let download = load(Way::Download);
    let scenario = suite
        .bench(name("transfer_unbuffered", &setup, label), move |b| {
            bodies::unbuffered_transfer(b, &setup, download)
        })
        .param("bytes", TRANSFER);
    describe(scenario, "transfer_unbuffered", &setup);
}

/// Registers a handshake.
fn handshake<'s>(suite: &'s mut Suite, kind: &str, label: &str, setup: Setup) -> &'s mut Scenario {
    let scenario = suite.bench(name(kind, &setup, label), move |b| bodies::handshake(b, &setup));
    describe(scenario, kind, &setup);
    scenario
}

fn name(kind: &str, setup: &Setup, label: &str) -> String {
    format!("tls::{kind}::{}", our_params(setup.provider.name(), version(setup), label))
}
