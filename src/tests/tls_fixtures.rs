//! The fixtures of `fixtures/tls`: they are what `fixtures/README.md` says,
//! their chains verify, they will do so for years, and damage is reported.
//!
//! Neighbours: `tls::keys` embeds them; `fixtures/tls/make.sh` made them.

#[path = "fixture_table.rs"]
#[allow(dead_code, reason = "shared with other test targets, which use other parts")]
mod fixture_table;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, Error};
use wallgrind::tls::keys::{self, Fixture, KeyKind};
use wallgrind::tls::{NOW, Provider};

const YEAR: u64 = 366 * 24 * 60 * 60;

/// 2100-01-01, the first second after the validity of all fixtures.
const TOO_LATE: u64 = 4_102_444_800;

fn all_files(kind: KeyKind) -> [Fixture; 6] {
    let f = kind.files();
    [f.root, f.intermediate, f.server, f.server_key, f.client, f.client_key]
}

#[test]
fn the_table_of_checksums_holds() {
    let mut found = BTreeMap::new();
    for fixture in KeyKind::ALL.into_iter().flat_map(all_files) {
        found.insert(fixture.name.to_string(), fixture_table::digest(fixture.bytes));
    }
    assert_eq!(found.len(), 24);
    assert_eq!(found, fixture_table::table("tls"));
}

#[test]
fn the_embedded_files_are_all_that_the_folder_has() {
    let named: Vec<String> = fixture_table::table("tls").into_keys().collect();
    assert_eq!(fixture_table::on_disk("tls"), named);
}

/// Verifies `end` for a server called `localhost` at a time given in seconds since 1970.
fn verify(kind: KeyKind, end: &CertificateDer<'_>, seconds: u64) -> Result<(), Error> {
    let roots = Arc::new(kind.roots().expect("the root is sound"));
    let crypto = Arc::new(Provider::ALL[0].crypto());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, crypto).build().expect("a verifier");
    let intermediate = keys::certificate(kind.files().intermediate).expect("the intermediate is sound");
    let name = ServerName::try_from("localhost").expect("a name");
    let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    verifier.verify_server_cert(end, &[intermediate], &name, &[], at).map(|_| ())
}

fn server(kind: KeyKind) -> CertificateDer<'static> {
    kind.server().expect("the fixtures are sound").chain.remove(0)
}

/// Whether validity is what the verifier objects to. It looks at that first,
/// so that a root, which is no end entity, can be asked for its dates as well.
fn has_ended(outcome: &Result<(), Error>) -> bool {
    matches!(outcome, Err(Error::InvalidCertificate(e)) if format!("{e:?}").starts_with("Expired"))
}

#[test]
fn chains_verify_at_the_fixed_time_and_not_when_they_have_ended() {
    for kind in KeyKind::ALL {
        assert_eq!(verify(kind, &server(kind), NOW), Ok(()), "{kind:?}");
        assert!(has_ended(&verify(kind, &server(kind), TOO_LATE)), "{kind:?}");
        let early = verify(kind, &server(kind), 1);
        assert!(format!("{early:?}").contains("NotValidYet"), "{kind:?}: {early:?}");
        let client = kind.client().expect("the fixtures are sound").chain.remove(0);
        assert!(
            matches!(verify(kind, &client, NOW), Err(Error::InvalidCertificate(_))),
            "a client's as a server's"
        );
    }
}

#[test]
fn a_chain_does_not_verify_against_another_root() {
    let outcome = verify(KeyKind::EcdsaP256, &server(KeyKind::Rsa2048), NOW);
    assert_eq!(outcome, Err(CertificateError::UnknownIssuer.into()));
}

#[test]
fn certificates_last_five_years_from_today() {
    let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    for kind in KeyKind::ALL {
        assert_eq!(
            verify(kind, &server(kind), today + 5 * YEAR),
            Ok(()),
            "make {kind:?} anew: fixtures/tls/make.sh"
        );
        let root = keys::certificate(kind.files().root).expect("the root is sound");
        assert!(
            !has_ended(&verify(kind, &root, today + 5 * YEAR)),
            "make {kind:?} anew: fixtures/tls/make.sh"
        );
        assert!(has_ended(&verify(kind, &root, TOO_LATE)), "the check of a root's dates checks nothing");
    }
}

#[test]
fn damage_is_reported_with_the_name_of_the_file() {
    let sound = KeyKind::EcdsaP256.files();
    let cut = |fixture: Fixture| Fixture { bytes: &fixture.bytes[..fixture.bytes.len() / 2], ..fixture };
    let certificate = keys::certificate(cut(sound.server)).expect_err("half a certificate");
    assert!(format!("{certificate:#}").starts_with("fixture fixtures/tls/ecdsap256-server.der is damaged: "));
    assert!(format!("{certificate:#}").contains("make.sh: "), "the cause comes last: {certificate:#}");
    let key = keys::private_key(Fixture { bytes: b"no key", ..sound.server_key }).expect_err("no key");
    assert!(format!("{key:#}").starts_with("fixture fixtures/tls/ecdsap256-server-key.der is damaged: "));
    assert!(keys::certificate(Fixture { bytes: b"", ..sound.root }).is_err());
}
