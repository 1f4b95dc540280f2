//! SHA-256, HKDF and the PRF of TLS 1.2 in form: the output of each is a
//! constant of the right length, whatever goes in.
//!
//! Neighbours: `suites`.

use rustls::Error;
use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};
use rustls::crypto::tls12::Prf;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{ActiveKeyExchange, hmac};
use rustls::version::{TLS12, TLS13};

/// Length of SHA-256 (FIPS 180-4) and of what is derived with it.
const LEN: usize = 32;

/// Every output.
const OUTPUT: [u8; LEN] = [0x5a; LEN];

pub(super) struct Sha256;

impl Hash for Sha256 {
    fn start(&self) -> Box<dyn Context> {
        Box::new(Started)
    }

    fn hash(&self, _data: &[u8]) -> Output {
        Output::new(&OUTPUT)
    }

    fn output_len(&self) -> usize {
        LEN
    }

    fn algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }
}

struct Started;

impl Context for Started {
    fn fork_finish(&self) -> Output {
        Output::new(&OUTPUT)
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Started)
    }

    fn finish(self: Box<Self>) -> Output {
        Output::new(&OUTPUT)
    }

    fn update(&mut self, _data: &[u8]) {}
}

pub(super) struct Derive;

impl Hkdf for Derive {
    fn extract_from_zero_ikm(&self, _salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        Box::new(Derive)
    }

    fn extract_from_secret(&self, _salt: Option<&[u8]>, _secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(Derive)
    }

    fn extract_from_kx_shared_secret(
        &self,
        _salt: Option<&[u8]>,
        kx: Box<dyn ActiveKeyExchange>,
        peer_pub_key: &[u8],
    ) -> Result<Box<dyn HkdfExpander>, Error> {
        kx.complete_for_tls_version(peer_pub_key, &TLS13)?;
        Ok(Box::new(Derive))
    }

    fn expander_for_okm(&self, _okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(Derive)
    }

    fn hmac_sign(&self, _key: &OkmBlock, _message: &[u8]) -> hmac::Tag {
        hmac::Tag::new(&OUTPUT)
    }
}

impl HkdfExpander for Derive {
    fn expand_slice(&self, _info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        output.fill(OUTPUT[0]);
        Ok(())
    }

    fn expand_block(&self, _info: &[&[u8]]) -> OkmBlock {
        OkmBlock::new(&OUTPUT)
    }

    fn hash_len(&self) -> usize {
        LEN
    }
}

impl Prf for Derive {
    fn for_key_exchange(
        &self,
        output: &mut [u8; 48],
        kx: Box<dyn ActiveKeyExchange>,
        peer_pub_key: &[u8],
        _label: &[u8],
        _seed: &[u8],
    ) -> Result<(), Error> {
        kx.complete_for_tls_version(peer_pub_key, &TLS12)?;
        output.fill(OUTPUT[0]);
        Ok(())
    }

    fn for_secret(&self, output: &mut [u8], _secret: &[u8], _label: &[u8], _seed: &[u8]) {
        output.fill(OUTPUT[0]);
    }
}
