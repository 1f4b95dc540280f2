//! Key exchange in form: every key share is the same bytes, of the length of
//! the group, and so is every secret.
//!
//! Neighbours: the provider in `mod.rs`.

use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};

/// A key share of 32 bytes (RFC 7748).
pub(super) static X25519: Group = Group { name: NamedGroup::X25519, share: &[0x19; 32] };

/// An uncompressed point: 65 bytes, the first of which is 4 (RFC 8446, section 4.2.8.2).
pub(super) static P256: Group = Group { name: NamedGroup::secp256r1, share: &[4; 65] };

/// Both groups agree on a secret of this length.
const SECRET: [u8; 32] = [0x5e; 32];

#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    name: NamedGroup,
    share: &'static [u8],
}

impl SupportedKxGroup for Group {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(*self))
    }

    fn name(&self) -> NamedGroup {
        self.name
    }
}

impl ActiveKeyExchange for Group {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, Error> {
        if peer_pub_key != self.share {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(SharedSecret::from(&SECRET[..]))
    }

    fn pub_key(&self) -> &[u8] {
        self.share
    }

    fn group(&self) -> NamedGroup {
        self.name
    }
}
