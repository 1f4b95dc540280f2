//! Tickets in the clear, in the form of RFC 5077's: name of the key, nonce,
//! content, tag.
//!
//! Neighbours: the provider in `mod.rs`.

use rustls::server::ProducesTickets;

/// Stands for the name of the key (16 bytes) and the nonce (12 bytes).
const HEAD: [u8; 28] = [0x71; 28];

/// Stands for the tag.
const TAIL: [u8; 16] = [0x17; 16];

#[derive(Debug)]
pub(super) struct Clear;

impl ProducesTickets for Clear {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // Seconds; what the ticketers that come with rustls say.
        12 * 60 * 60
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut ticket = Vec::with_capacity(HEAD.len() + plain.len() + TAIL.len());
        ticket.extend_from_slice(&HEAD);
        ticket.extend_from_slice(plain);
        ticket.extend_from_slice(&TAIL);
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        ticket.strip_prefix(&HEAD)?.strip_suffix(&TAIL).map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_comes_back_and_a_damaged_one_does_not() {
        let mut ticket = Clear.encrypt(b"state").expect("it never fails");
        assert_eq!(ticket.len(), 28 + 5 + 16);
        assert_eq!(Clear.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
        ticket[0] ^= 1;
        assert_eq!(Clear.decrypt(&ticket), None);
        assert_eq!(Clear.decrypt(b""), None);
    }
}
