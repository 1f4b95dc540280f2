//! Records in the clear, in the form of AES-128-GCM: the tag is a fixed
//! pattern that is checked, so that a record cut wrongly is noticed.
//!
//! Neighbours: `suites`.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape, MessageDecrypter,
    MessageEncrypter, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload, Tls12AeadAlgorithm,
    Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion};

/// Stands for the tag of AES-GCM (RFC 5116, section 5.1: 16 bytes).
const TAG: [u8; 16] = *b"tag of no crypto";

/// Explicit part of the nonce in TLS 1.2 (RFC 5288, section 3).
const EXPLICIT_NONCE_LEN: usize = 8;

pub(super) struct Clear;

impl Tls13AeadAlgorithm for Clear {
    fn encrypter(&self, _key: AeadKey, _iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Tls13)
    }

    fn decrypter(&self, _key: AeadKey, _iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Tls13)
    }

    fn key_len(&self) -> usize {
        16
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Ok(ConnectionTrafficSecrets::Aes128Gcm { key, iv })
    }
}

struct Tls13;

impl MessageEncrypter for Tls13 {
    fn encrypt(&mut self, msg: OutboundPlainMessage<'_>, _seq: u64) -> Result<OutboundOpaqueMessage, Error> {
        let mut payload = PrefixedPayload::with_capacity(self.encrypted_payload_len(msg.payload.len()));
        payload.extend_from_chunks(&msg.payload);
        payload.extend_from_slice(&[msg.typ.into()]);
        payload.extend_from_slice(&TAG);
        // On the wire it looks like TLS 1.2 application data (RFC 8446, section 5.2).
        Ok(OutboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, payload))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len + 1 + TAG.len()
    }
}

impl MessageDecrypter for Tls13 {
    fn decrypt<'a>(
        &mut self,
        mut msg: InboundOpaqueMessage<'a>,
        _seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let len = without_tag(&msg.payload)?;
        msg.payload.truncate(len);
        msg.into_tls13_unpadded_message()
    }
}

impl Tls12AeadAlgorithm for Clear {
    fn encrypter(&self, _key: AeadKey, _iv: &[u8], _extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(Tls12)
    }

    fn decrypter(&self, _key: AeadKey, _iv: &[u8]) -> Box<dyn MessageDecrypter> {
        Box::new(Tls12)
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        KeyBlockShape { enc_key_len: 16, fixed_iv_len: 4, explicit_nonce_len: EXPLICIT_NONCE_LEN }
    }

    fn extract_keys(
        &self,
        _key: AeadKey,
        _iv: &[u8],
        _explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

struct Tls12;

impl MessageEncrypter for Tls12 {
    fn encrypt(&mut self, msg: OutboundPlainMessage<'_>, seq: u64) -> Result<OutboundOpaqueMessage, Error> {
        let mut payload = PrefixedPayload::with_capacity(self.encrypted_payload_len(msg.payload.len()));
        payload.extend_from_slice(&seq.to_be_bytes());
        payload.extend_from_chunks(&msg.payload);
        payload.extend_from_slice(&TAG);
        Ok(OutboundOpaqueMessage::new(msg.typ, msg.version, payload))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        EXPLICIT_NONCE_LEN + payload_len + TAG.len()
    }
}

impl MessageDecrypter for Tls12 {
    fn decrypt<'a>(
        &mut self,
        msg: InboundOpaqueMessage<'a>,
        _seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let len = without_tag(&msg.payload)?;
        if len < EXPLICIT_NONCE_LEN {
            return Err(Error::DecryptError);
        }
        Ok(msg.into_plain_message_range(EXPLICIT_NONCE_LEN..len))
    }
}

/// The length without the tag, if the tag is there.
fn without_tag(payload: &[u8]) -> Result<usize, Error> {
    match payload.split_last_chunk() {
        Some((rest, tag)) if *tag == TAG => Ok(rest.len()),
        _ => Err(Error::DecryptError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::cipher::OutboundChunks;

    fn sealed(codec: &mut dyn MessageEncrypter) -> Vec<u8> {
        let plain = OutboundPlainMessage {
            typ: ContentType::Handshake,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(b"hello"),
        };
        codec.encrypt(plain, 7).expect("it never fails").encode()
    }

    fn opened(codec: &mut dyn MessageDecrypter, record: &mut [u8]) -> Option<(ContentType, Vec<u8>)> {
        let typ = ContentType::from(record[0]);
        let msg = InboundOpaqueMessage::new(typ, ProtocolVersion::TLSv1_2, &mut record[5..]);
        codec.decrypt(msg, 7).ok().map(|plain| (plain.typ, plain.payload.to_vec()))
    }

    #[test]
    fn records_have_the_length_of_real_ones_and_come_back() {
        for (overhead, mut record) in [(17, sealed(&mut Tls13)), (24, sealed(&mut Tls12))] {
            assert_eq!(record.len(), 5 + 5 + overhead);
            let mut codec: Box<dyn MessageDecrypter> =
                if overhead == 17 { Box::new(Tls13) } else { Box::new(Tls12) };
            let plain = opened(codec.as_mut(), &mut record);
            assert_eq!(plain, Some((ContentType::Handshake, b"hello".to_vec())));
        }
    }

    #[test]
    fn a_damaged_tag_or_a_short_record_is_refused() {
        for at_end in 1..=TAG.len() {
            let mut record = sealed(&mut Tls13);
            let at = record.len() - at_end;
            record[at] ^= 1;
            assert_eq!(opened(&mut Tls13, &mut record), None);
        }
        assert_eq!(opened(&mut Tls13, &mut [23, 3, 3, 0, 2, 0, 0]), None);
        let mut only_tag = [&[23, 3, 3, 0, 16][..], &TAG].concat();
        assert_eq!(opened(&mut Tls12, &mut only_tag), None);
    }
}
