//! Application data that both sides know, so that the receiver can tell
//! whether it got what was sent.
//!
//! Neighbours: `transfer` and `unbuffered` send and receive it.

use std::sync::OnceLock;

use anyhow::{Result, ensure};

/// Bytes of the stream between two changes of the pattern; the largest TLS
/// record holds as many.
const PAGE: usize = 16 * 1024;

/// How far each page is shifted against the one before, in bytes.
const SHIFT: usize = 64;

/// An endless stream of bytes, in memory that stays in cache: each page of
/// 16 KiB is the same pattern shifted, and the first one like another is the
/// 256th after it.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    pattern: &'static [u8],
}

impl Content {
    /// The stream; the first call of a process makes its pattern.
    pub fn new() -> Self {
        static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
        Self { pattern: PATTERN.get_or_init(pattern) }
    }

    /// At least one and at most `len` bytes of the stream from `offset` on; 0 bytes if `len` is 0.
    pub fn at(self, offset: u64, len: usize) -> &'static [u8] {
        let page = (offset / PAGE as u64) as usize;
        let within = (offset % PAGE as u64) as usize;
        let start = page * SHIFT % PAGE + within;
        &self.pattern[start..start + len.min(PAGE - within)]
    }

    /// Compares `bytes` with the stream from `offset` on.
    ///
    /// # Errors
    /// Says where the first difference is.
    pub fn compare(self, offset: u64, bytes: &[u8]) -> Result<()> {
        let (mut offset, mut bytes) = (offset, bytes);
        while !bytes.is_empty() {
            let expected = self.at(offset, bytes.len());
            let (now, rest) = bytes.split_at(expected.len());
            if now != expected {
                let at = now.iter().zip(expected).take_while(|(a, b)| a == b).count();
                anyhow::bail!("wrong content at byte {}", offset + at as u64);
            }
            (offset, bytes) = (offset + now.len() as u64, rest);
        }
        Ok(())
    }

    /// Compares the first and the last eight bytes only, at next to no cost.
    ///
    /// # Errors
    /// They differ.
    pub fn compare_ends(self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = bytes.len().saturating_sub(8);
        self.compare(offset, &bytes[..bytes.len().min(8)])?;
        self.compare(offset + end as u64, &bytes[end..])
    }

    /// The next piece of a stream of `total` bytes of which `done` were sent.
    pub(super) fn piece(self, done: u64, total: u64, piece: usize) -> &'static [u8] {
        let left = usize::try_from(total - done).unwrap_or(usize::MAX);
        self.at(done, left.min(piece))
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::new()
    }
}

/// Two pages of bytes in which no eight in a row occur twice.
fn pattern() -> Vec<u8> {
    let mut state: u64 = 0x2545_f491_4f6c_dd1d;
    let mut bytes = Vec::with_capacity(2 * PAGE);
    while bytes.len() < 2 * PAGE {
        // Marsaglia, "Xorshift RNGs", 2003.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// Counts what was received of a stream, and compares it with what was to come.
#[derive(Debug)]
pub(super) struct Receipt {
    content: Content,
    got: u64,
    total: u64,
    thorough: bool,
}

impl Receipt {
    pub(super) fn new(total: u64, thorough: bool) -> Self {
        Self { content: Content::new(), got: 0, total, thorough }
    }

    pub(super) fn got(&self) -> u64 {
        self.got
    }

    pub(super) fn is_complete(&self) -> bool {
        self.got == self.total
    }

    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let left = self.total - self.got;
        ensure!(bytes.len() as u64 <= left, "{} bytes arrived where {left} were to come", bytes.len());
        if self.thorough {
            self.content.compare(self.got, bytes)?;
        } else {
            self.content.compare_ends(self.got, bytes)?;
        }
        self.got += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn check(&self) -> Result<()> {
        ensure!(self.is_complete(), "received {} bytes of {}", self.got, self.total);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            bytes.extend_from_slice(Content::new().at(offset + bytes.len() as u64, len - bytes.len()));
        }
        bytes
    }

    #[test]
    fn the_stream_does_not_depend_on_how_it_is_cut() {
        let whole = stream(0, 5 * PAGE);
        assert_eq!(stream(1000, 3 * PAGE), &whole[1000..1000 + 3 * PAGE]);
        assert!(Content::new().compare(PAGE as u64 - 3, &whole[PAGE - 3..]).is_ok());
        assert_ne!(whole[..PAGE], whole[PAGE..2 * PAGE]);
    }

    #[test]
    fn a_changed_byte_and_a_swapped_record_are_seen() {
        let mut bytes = stream(0, 2 * PAGE);
        bytes[PAGE + 5] ^= 1;
        let error = Content::new().compare(0, &bytes).expect_err("a byte differs");
        assert_eq!(error.to_string(), format!("wrong content at byte {}", PAGE + 5));
        let mut receipt = Receipt::new(1 << 20, false);
        assert!(receipt.take(&stream(PAGE as u64, PAGE)).is_err());
    }

    #[test]
    fn too_much_and_too_little_are_seen() {
        let mut receipt = Receipt::new(10, true);
        assert!(receipt.take(&stream(0, 11)).is_err());
        assert!(receipt.take(&stream(0, 9)).is_ok());
        assert!(receipt.check().is_err());
        assert!(receipt.take(&stream(9, 1)).is_ok() && receipt.check().is_ok());
    }
}
