//! One side of a handshake or a transfer, by the method of rustls' own CI
//! benchmark: two processes with crossed, unbuffered standard streams; what
//! `measured` does is counted by callgrind (`--toggle-collect=measured`), once,
//! without a warm-up; making and dropping the connections is part of it.
//!
//!     reference <kind>_<provider>_<label> client|server
//!
//! Shares no code with wallgrind, so that `compare` is an independent check.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ConnectionCommon, HandshakeKind, ProtocolVersion,
    RootCertStore, ServerConfig, ServerConnection,
};

const TRANSFER: usize = 10 << 20;
const CHUNK: usize = 262_144;
/// Resumed handshakes in one measurement.
const RESUMED: usize = 30;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Io {
    input: ManuallyDrop<File>,
    output: ManuallyDrop<File>,
    buffer: Vec<u8>,
}

impl Io {
    /// All that a side has to say now, behind its length.
    fn send<D>(&mut self, conn: &mut ConnectionCommon<D>) -> Result<()> {
        let mut message = Vec::new();
        while conn.wants_write() {
            conn.write_tls(&mut message)?;
        }
        if !message.is_empty() {
            self.output.write_all(&(message.len() as u32).to_be_bytes())?;
            self.output.write_all(&message)?;
        }
        Ok(())
    }

    fn receive<D>(&mut self, conn: &mut ConnectionCommon<D>) -> Result<()> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length)?;
        let message = &mut self.buffer[..u32::from_be_bytes(length) as usize];
        self.input.read_exact(message)?;
        let mut rest = &message[..];
        while conn.read_tls(&mut rest)? != 0 {
            conn.process_new_packets()?;
        }
        Ok(())
    }
}

enum Side {
    Client(Arc<ClientConfig>),
    Server(Arc<ServerConfig>),
}

enum Made {
    Client(ClientConnection),
    Server(ServerConnection),
}

fn handshake(side: &Side, io: &mut Io, resumes: bool) -> Result<Made> {
    match side {
        Side::Client(config) => {
            let mut client = ClientConnection::new(config.clone(), "localhost".try_into()?)?;
            client.set_buffer_limit(None);
            loop {
                io.send(&mut client)?;
                if !client.is_handshaking() && !client.wants_write() {
                    break;
                }
                io.receive(&mut client)?;
            }
            if resumes && client.protocol_version() == Some(ProtocolVersion::TLSv1_3) {
                io.receive(&mut client)?;
            }
            Ok(Made::Client(client))
        }
        Side::Server(config) => {
            let mut server = ServerConnection::new(config.clone())?;
            server.set_buffer_limit(None);
            while server.is_handshaking() {
                io.receive(&mut server)?;
                io.send(&mut server)?;
            }
            Ok(Made::Server(server))
        }
    }
}

fn resumed(side: &Side, io: &mut Io) -> Result<()> {
    for _ in 0..RESUMED {
        match side {
            Side::Client(_) => io.input.read_exact(&mut [0])?,
            Side::Server(_) => io.output.write_all(&[42])?,
        }
        let kind = match handshake(side, io, true)? {
            Made::Client(client) => client.handshake_kind(),
            Made::Server(server) => server.handshake_kind(),
        };
        assert_eq!(kind, Some(HandshakeKind::Resumed));
    }
    Ok(())
}

fn transfer(made: &mut Made, io: &mut Io) -> Result<()> {
    match made {
        Made::Server(server) => {
            let data = vec![0; CHUNK];
            for _ in 0..TRANSFER / CHUNK {
                server.writer().write_all(&data)?;
                while server.wants_write() {
                    server.write_tls(&mut *io.output)?;
                }
            }
        }
        Made::Client(client) => {
            let (mut plain, mut total) = (vec![0; CHUNK], 0);
            while total < TRANSFER {
                let mut filled = 0;
                while filled < CHUNK {
                    match io.input.read(&mut io.buffer[filled..])? {
                        0 => break,
                        n => filled += n,
                    }
                }
                let mut rest = &io.buffer[..filled];
                assert!(filled > 0, "the end came after {total} bytes");
                while client.read_tls(&mut rest)? != 0 {
                    let left = client.process_new_packets()?.plaintext_bytes_to_read();
                    client.reader().read_exact(&mut plain[..left])?;
                    total += left;
                }
            }
        }
    }
    Ok(())
}

/// The only function whose instructions count, with all that it calls.
#[unsafe(no_mangle)]
#[inline(never)]
fn measured(kind: &str, side: &Side, io: &mut Io, made: &mut Option<Made>) -> Result<()> {
    match (kind, made) {
        ("transfer", Some(made)) => transfer(made, io),
        ("resumed", _) => resumed(side, io),
        _ => handshake(side, io, false).map(|made| drop(black_box(made))),
    }
}

macro_rules! file {
    ($key:expr, $role:literal) => {
        match $key {
            "rsa" => &include_bytes!(concat!("../../../fixtures/tls/rsa2048-", $role, ".der"))[..],
            "ecdsap256" => include_bytes!(concat!("../../../fixtures/tls/ecdsap256-", $role, ".der")),
            _ => include_bytes!(concat!("../../../fixtures/tls/ecdsap384-", $role, ".der")),
        }
    };
}

fn side(name: &str, key: &str, is_client: bool, provider: CryptoProvider) -> Result<Side> {
    let provider = Arc::new(provider);
    if is_client {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(file!(key, "root")))?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.resumption = if name.contains("no_resume") {
            Resumption::disabled()
        } else {
            Resumption::in_memory_sessions(128)
        };
        return Ok(Side::Client(Arc::new(config)));
    }
    let ticketer = if name.contains("ring") { ring::Ticketer::new()? } else { aws_lc_rs::Ticketer::new()? };
    let chain = [file!(key, "server"), file!(key, "intermediate")].map(|der| CertificateDer::from(der));
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(file!(key, "server-key")));
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain.to_vec(), key)?;
    if name.contains("session_id") {
        config.session_storage = ServerSessionMemoryCache::new(128);
    } else if name.contains("tickets") {
        config.ticketer = ticketer;
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Side::Server(Arc::new(config)))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, role] = &arguments[..] else { return Err("usage: reference NAME client|server".into()) };
    let suite = match (name.contains("_1_2_"), name.ends_with("_chacha")) {
        (true, _) => CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        (_, false) => CipherSuite::TLS13_AES_128_GCM_SHA256,
        (_, true) => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    };
    let key =
        ["rsa", "ecdsap256", "ecdsap384"].into_iter().find(|key| name.contains(key)).ok_or("which key?")?;
    let mut provider =
        if name.contains("ring") { ring::default_provider() } else { aws_lc_rs::default_provider() };
    provider.cipher_suites.retain(|s| s.suite() == suite);
    provider.kx_groups.truncate(3);
    let side = side(name, key, role == "client", provider)?;
    // SAFETY: standard input and output are open, used by nobody else, and never closed.
    let file = |fd| ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let mut io = Io { input: file(0), output: file(1), buffer: vec![0; CHUNK] };
    let (kind, first) = match name.split('_').next() {
        Some("transfer") => ("transfer", true),
        _ if name.contains("no_resume") => ("handshake", false),
        _ => ("resumed", true),
    };
    let mut made = if first { Some(handshake(&side, &mut io, kind == "resumed")?) } else { None };
    if kind == "resumed" {
        made = None;
    }
    measured(kind, &side, &mut io, &mut made)
}
