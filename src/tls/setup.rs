//! What two endpoints are to use: their configurations, and what must have
//! been negotiated in the end.
//!
//! Neighbours: `provider`, `keys` and `time` are put together here; `side`
//! makes connections of the configurations.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::client::Resumption as ClientResumption;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{
    CipherSuite, ClientConfig, CommonState, HandshakeKind, NamedGroup, ProtocolVersion, ServerConfig,
    SupportedProtocolVersion,
};

use super::keys::KeyKind;
use super::no_crypto;
use super::provider::Provider;
use super::time::FixedTime;

/// Sessions that each side keeps; as many as rustls' own benchmark.
const SESSIONS: usize = 128;

/// Tickets that a TLS 1.3 server of rustls sends after a handshake.
const TLS13_TICKETS: u32 = 2;

/// How a session is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// It is not, and nothing is kept or sent for it.
    None,
    /// By an id under which the server keeps the session (in TLS 1.3: by a
    /// ticket that is no more than such an id).
    SessionId,
    /// By a ticket that holds the session, sealed by the server.
    Tickets,
}

/// Which groups the sides offer for the key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// X25519, P-256 and P-384, as far as the provider has them; X25519 it is.
    Classical,
    /// Only this one.
    Only(NamedGroup),
    /// The client sends a share for X25519, the server wants P-256: a
    /// HelloRetryRequest (RFC 8446, section 4.1.4).
    Retry,
}

/// What two endpoints are to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Whose cryptography.
    pub provider: Provider,
    /// The version, which alone is offered.
    pub version: ProtocolVersion,
    /// The suite, which alone is offered.
    pub suite: CipherSuite,
    /// The kind of the chains and keys.
    pub key: KeyKind,
    /// How sessions are resumed.
    pub resumption: Resumption,
    /// The groups.
    pub groups: Groups,
    /// Whether the client presents a certificate as well.
    pub mutual: bool,
}

impl Setup {
    /// A setup with no resumption, classical groups and no client certificate;
    /// the suite decides about the version.
    pub fn new(provider: Provider, suite: CipherSuite, key: KeyKind) -> Self {
        let tls13 = [CipherSuite::TLS13_AES_128_GCM_SHA256, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256];
        let version =
            if tls13.contains(&suite) { ProtocolVersion::TLSv1_3 } else { ProtocolVersion::TLSv1_2 };
        let (resumption, groups) = (Resumption::None, Groups::Classical);
        Self { provider, version, suite, key, resumption, groups, mutual: false }
    }

    /// The same for the provider without cryptography.
    pub fn no_crypto(version: ProtocolVersion) -> Self {
        let suite = match version {
            ProtocolVersion::TLSv1_2 => no_crypto::TLS12_SUITE,
            _ => no_crypto::TLS13_SUITE,
        };
        Self::new(Provider::NoCrypto, suite.suite(), KeyKind::EcdsaP256)
    }

    /// The configuration of the client.
    ///
    /// # Errors
    /// The provider lacks something, or a fixture is damaged.
    pub fn client(&self) -> Result<Arc<ClientConfig>> {
        let offered = self.groups.offered_by_client();
        let builder = ClientConfig::builder_with_details(self.crypto(offered)?, Arc::new(FixedTime))
            .with_protocol_versions(&[self.version()?])?;
        let builder = if self.provider.has_crypto() {
            builder.with_root_certificates(self.key.roots()?)
        } else {
            builder.dangerous().with_custom_certificate_verifier(no_crypto::verifier())
        };
        let mut config = if self.mutual {
            let identity = self.key.client()?;
            builder.with_client_auth_cert(identity.chain, identity.key)?
        } else {
            builder.with_no_client_auth()
        };
        config.resumption = match self.resumption {
            Resumption::None => ClientResumption::disabled(),
            Resumption::SessionId | Resumption::Tickets => ClientResumption::in_memory_sessions(SESSIONS),
        };
        Ok(Arc::new(config))
    }

    /// The configuration of the server.
    ///
    /// # Errors
    /// The provider lacks something, or a fixture is damaged.
    pub fn server(&self) -> Result<Arc<ServerConfig>> {
        let crypto = self.crypto(self.groups.offered_by_server())?;
        let builder = ServerConfig::builder_with_details(Arc::clone(&crypto), Arc::new(FixedTime))
            .with_protocol_versions(&[self.version()?])?;
        let builder = if self.mutual {
            let roots = Arc::new(self.key.roots()?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, crypto).build()?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let identity = self.key.server()?;
        let mut config = builder.with_single_cert(identity.chain, identity.key)?;
        match self.resumption {
            Resumption::None => config.session_storage = Arc::new(NoServerSessionStorage {}),
            Resumption::SessionId => config.session_storage = ServerSessionMemoryCache::new(SESSIONS),
            Resumption::Tickets => config.ticketer = self.provider.ticketer()?,
        }
        Ok(Arc::new(config))
    }

    /// Tickets that the client receives after each handshake.
    pub fn tickets(&self) -> u32 {
        match (self.version, self.resumption) {
            (ProtocolVersion::TLSv1_3, Resumption::SessionId | Resumption::Tickets) => TLS13_TICKETS,
            _ => 0,
        }
    }

    /// What must have been negotiated, in a first handshake or a resumed one.
    pub fn expected(&self, resumed: bool) -> Expected {
        let kind = match (resumed, self.groups) {
            (true, _) => HandshakeKind::Resumed,
            (false, Groups::Retry) => HandshakeKind::FullWithHelloRetryRequest,
            (false, _) => HandshakeKind::Full,
        };
        // A session of TLS 1.2 is resumed without a key exchange.
        let exchanged = !resumed || self.version == ProtocolVersion::TLSv1_3;
        Expected {
            kind,
            version: self.version,
            suite: self.suite,
            group: exchanged.then(|| self.groups.agreed()),
            client_chain: if self.mutual { 2 } else { 0 },
        }
    }

    fn version(&self) -> Result<&'static SupportedProtocolVersion> {
        rustls::ALL_VERSIONS
            .iter()
            .copied()
            .find(|known| known.version == self.version)
            .with_context(|| format!("rustls does not speak {:?}", self.version))
    }

    /// The provider with nothing but our suite and `groups`, in their order.
    fn crypto(&self, groups: &[NamedGroup]) -> Result<Arc<CryptoProvider>> {
        let mut crypto = self.provider.crypto();
        crypto.cipher_suites.retain(|suite| suite.suite() == self.suite);
        ensure!(!crypto.cipher_suites.is_empty(), "{} has no {:?}", self.provider.name(), self.suite);
        let find = |name: &NamedGroup| crypto.kx_groups.iter().copied().find(|group| group.name() == *name);
        let found: Vec<&'static dyn SupportedKxGroup> = groups.iter().filter_map(find).collect();
        ensure!(found.len() == groups.len() || groups.len() > 1, "{} lacks {groups:?}", self.provider.name());
        crypto.kx_groups = found;
        Ok(Arc::new(crypto))
    }
}

impl Groups {
    fn offered_by_client(&self) -> &[NamedGroup] {
        match self {
            Self::Classical | Self::Retry => {
                &[NamedGroup::X25519, NamedGroup::secp256r1, NamedGroup::secp384r1]
            }
            Self::Only(group) => std::slice::from_ref(group),
        }
    }

    fn offered_by_server(&self) -> &[NamedGroup] {
        match self {
            Self::Retry => &[NamedGroup::secp256r1],
            Self::Classical | Self::Only(_) => self.offered_by_client(),
        }
    }

    /// The group of the shared secret.
    pub fn agreed(&self) -> NamedGroup {
        match self {
            Self::Classical => NamedGroup::X25519,
            Self::Only(group) => *group,
            Self::Retry => NamedGroup::secp256r1,
        }
    }
}

/// What two endpoints must have negotiated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Full, resumed, or full after a retry.
    pub kind: HandshakeKind,
    /// The version.
    pub version: ProtocolVersion,
    /// The suite.
    pub suite: CipherSuite,
    /// The group of the key exchange, if there was one.
    pub group: Option<NamedGroup>,
    /// Certificates that the server has seen of the client.
    pub client_chain: usize,
}

impl Expected {
    /// Compares it with a connection whose handshake is over.
    ///
    /// # Errors
    /// Says what differs.
    pub fn check(&self, state: &CommonState, is_server: bool) -> Result<()> {
        ensure!(!state.is_handshaking(), "the handshake is not over");
        same("kind of handshake", Some(self.kind), state.handshake_kind())?;
        same("version", Some(self.version), state.protocol_version())?;
        same("cipher suite", Some(self.suite), state.negotiated_cipher_suite().map(|s| s.suite()))?;
        same("group", self.group, state.negotiated_key_exchange_group().map(|g| g.name()))?;
        if is_server {
            let seen = state.peer_certificates().map_or(0, <[_]>::len);
            same("number of client certificates", Some(self.client_chain), Some(seen))?;
        }
        Ok(())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: Option<T>, found: Option<T>) -> Result<()> {
    let word = |value: &Option<T>| value.as_ref().map_or("none".to_string(), |value| format!("{value:?}"));
    ensure!(expected == found, "{what}: expected {}, found {}", word(&expected), word(&found));
    Ok(())
}
