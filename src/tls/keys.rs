//! The fixtures of `fixtures/tls`, embedded so that a bench executable needs
//! no files: for each kind of key a root, an intermediate, and a leaf with its
//! key for the server and for the client.
//!
//! Neighbours: `setup` puts them into configurations; `fixtures/README.md`
//! says where they come from.

use anyhow::{Context, Result, anyhow};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;

/// The kind of a chain and its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA with a modulus of 2048 bits.
    Rsa2048,
    /// ECDSA over P-256.
    EcdsaP256,
    /// ECDSA over P-384.
    EcdsaP384,
    /// Ed25519.
    Ed25519,
}

/// An embedded file.
#[derive(Clone, Copy, Debug)]
pub struct Fixture {
    /// Its name within `fixtures/tls`.
    pub name: &'static str,
    /// What it holds, in DER.
    pub bytes: &'static [u8],
}

/// The files of one kind of key.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    /// The root that both sides trust.
    pub root: Fixture,
    /// The intermediate, sent after a leaf.
    pub intermediate: Fixture,
    /// The leaf of the server, for `localhost`.
    pub server: Fixture,
    /// The key of the server (PKCS #8).
    pub server_key: Fixture,
    /// The leaf of the client, for mutual TLS.
    pub client: Fixture,
    /// The key of the client (PKCS #8).
    pub client_key: Fixture,
}

macro_rules! fixture {
    ($kind:literal, $role:literal) => {
        Fixture {
            name: concat!($kind, $role, ".der"),
            bytes: include_bytes!(concat!("../../fixtures/tls/", $kind, $role, ".der")),
        }
    };
}

macro_rules! files {
    ($kind:literal) => {
        Files {
            root: fixture!($kind, "-root"),
            intermediate: fixture!($kind, "-intermediate"),
            server: fixture!($kind, "-server"),
            server_key: fixture!($kind, "-server-key"),
            client: fixture!($kind, "-client"),
            client_key: fixture!($kind, "-client-key"),
        }
    };
}

impl KeyKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rsa2048, Self::EcdsaP256, Self::EcdsaP384, Self::Ed25519];

    /// The word for it in parameters and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rsa2048 => "rsa2048",
            Self::EcdsaP256 => "ecdsap256",
            Self::EcdsaP384 => "ecdsap384",
            Self::Ed25519 => "ed25519",
        }
    }

    /// Its embedded files.
    pub fn files(self) -> Files {
        match self {
            Self::Rsa2048 => files!("rsa2048"),
            Self::EcdsaP256 => files!("ecdsap256"),
            Self::EcdsaP384 => files!("ecdsap384"),
            Self::Ed25519 => files!("ed25519"),
        }
    }

    /// A store that trusts the root alone.
    ///
    /// # Errors
    /// The fixture is damaged.
    pub fn roots(self) -> Result<RootCertStore> {
        let root = self.files().root;
        let mut store = RootCertStore::empty();
        store.add(certificate(root)?).with_context(|| unusable(root))?;
        Ok(store)
    }

    /// What the server presents.
    ///
    /// # Errors
    /// A fixture is damaged.
    pub fn server(self) -> Result<Identity> {
        let files = self.files();
        Identity::new(files.server, files.intermediate, files.server_key)
    }

    /// What the client presents when it is asked to.
    ///
    /// # Errors
    /// A fixture is damaged.
    pub fn client(self) -> Result<Identity> {
        let files = self.files();
        Identity::new(files.client, files.intermediate, files.client_key)
    }
}

/// A chain and the key of its leaf.
#[derive(Debug)]
pub struct Identity {
    /// The leaf, then the intermediate.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the leaf.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    fn new(leaf: Fixture, intermediate: Fixture, key: Fixture) -> Result<Self> {
        Ok(Self { chain: vec![certificate(leaf)?, certificate(intermediate)?], key: private_key(key)? })
    }
}

/// Parses a certificate.
///
/// # Errors
/// It is not one; the message names the fixture.
pub fn certificate(fixture: Fixture) -> Result<CertificateDer<'static>> {
    let der = CertificateDer::from(fixture.bytes);
    ParsedCertificate::try_from(&der).with_context(|| unusable(fixture))?;
    Ok(der)
}

/// Parses a private key.
///
/// # Errors
/// It is not one; the message names the fixture.
pub fn private_key(fixture: Fixture) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::try_from(fixture.bytes)
        .map_err(|reason| anyhow!("{reason}"))
        .with_context(|| unusable(fixture))
}

fn unusable(fixture: Fixture) -> String {
    format!(
        "fixture fixtures/tls/{} is damaged: restore it, or make all anew with fixtures/tls/make.sh",
        fixture.name
    )
}
