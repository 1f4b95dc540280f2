//! Bytes as choices: every input means something, and similar inputs mean
//! similar things.
//!
//! Neighbours: `damage` and `play` choose with it.

/// The bytes that are left.
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Begins with all of `rest`.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Whether all choices that follow are 0.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A byte; 0 after the end.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        *first
    }

    /// Two bytes.
    pub fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Eight bytes.
    pub fn word(&mut self) -> u64 {
        let mut bytes = [0; 8];
        bytes.iter_mut().for_each(|byte| *byte = self.byte());
        u64::from_le_bytes(bytes)
    }

    /// Up to `most` bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at(most.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    /// One of `count` things.
    pub fn choice(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count.max(1)
    }
}
