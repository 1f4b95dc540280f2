//! What images hold: pseudo-random bytes that follow from a block's number
//! and the generation that wrote it, so that a wrong byte is seen wherever it
//! comes from. Comparing costs little more than reading.
//!
//! Neighbours: `recipe` says which generation a block has; `run` fills and
//! compares buffers.

use std::sync::OnceLock;

use anyhow::{Result, bail};

/// Bytes of a block: contents are told apart at this grain.
pub const BLOCK: usize = 4096;

/// Bytes at both ends of a block that name it and its generation.
const STAMP: usize = 16;

/// Bytes of the pool that blocks are cut from: more than one, few enough to stay in cache.
const POOL: usize = 1 << 20;

/// The seed of all data.
const SEED: u64 = 0x7761_6c6c_6772_696e;

/// The kind of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Random bytes, which do not compress.
    #[default]
    Random,
    /// Words of a made-up language, some more frequent than others.
    Text,
}

/// Who wrote a block last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nobody: zeroes.
    Zero,
    /// The writer with this number.
    Written(u32),
}

/// A generator of splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Puts `list` into another order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

fn pool(kind: Kind) -> &'static [u8] {
    static RANDOM: OnceLock<Vec<u8>> = OnceLock::new();
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    match kind {
        Kind::Random => RANDOM.get_or_init(random_pool),
        Kind::Text => TEXT.get_or_init(text_pool),
    }
}

fn random_pool() -> Vec<u8> {
    let mut random = Random::new(SEED);
    (0..POOL / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

/// Words of 2 to 9 letters; the square of a uniform number picks one of 4,096.
fn text_pool() -> Vec<u8> {
    let mut random = Random::new(SEED + 1);
    let words: Vec<Vec<u8>> = (0..4096)
        .map(|_| (0..2 + random.below(8)).map(|_| b'a' + random.below(26) as u8).collect())
        .collect();
    let mut pool = Vec::with_capacity(POOL + 16);
    while pool.len() < POOL {
        let uniform = random.below(4096);
        pool.extend_from_slice(&words[(uniform * uniform / 4096) as usize]);
        pool.push(b' ');
    }
    pool.truncate(POOL);
    pool
}

/// Where block `number` of a generation is cut from the pool.
fn window(number: u64, generation: u32) -> usize {
    let mixed = Random::new(SEED ^ number ^ (u64::from(generation) << 40)).next();
    (mixed as usize % (POOL - BLOCK)) & !15
}

fn stamp(number: u64, generation: u32) -> [u8; STAMP] {
    let mut bytes = [0; STAMP];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&(u64::from(generation) ^ SEED).to_le_bytes());
    bytes
}

/// Fills `buf`, which starts at the block's start, with block after block from `offset` on.
pub fn fill(kind: Kind, buf: &mut [u8], offset: u64, generation: u32) {
    let pool = pool(kind);
    for (index, block) in buf.chunks_mut(BLOCK).enumerate() {
        let number = offset / BLOCK as u64 + index as u64;
        let from = window(number, generation);
        block.copy_from_slice(&pool[from..from + block.len()]);
        let ends = stamp(number, generation);
        block[..STAMP].copy_from_slice(&ends);
        let tail = block.len() - STAMP;
        block[tail..].copy_from_slice(&ends);
    }
}

/// Compares one block, which is at `offset` of the disk.
///
/// # Errors
/// A byte is wrong: which, and what it should have been.
pub fn check(kind: Kind, block: &[u8], offset: u64, content: Content) -> Result<()> {
    let Content::Written(generation) = content else {
        static ZEROES: [u8; BLOCK] = [0; BLOCK];
        return same(block, &ZEROES[..block.len()], offset);
    };
    let number = offset / BLOCK as u64;
    let from = window(number, generation);
    let ends = stamp(number, generation);
    let tail = block.len() - STAMP;
    same(&block[..STAMP], &ends, offset)?;
    same(&block[STAMP..tail], &pool(kind)[from + STAMP..from + tail], offset + STAMP as u64)?;
    same(&block[tail..], &ends, offset + tail as u64)
}

#[inline]
fn same(got: &[u8], expected: &[u8], offset: u64) -> Result<()> {
    if got == expected { Ok(()) } else { differs(got, expected, offset) }
}

#[cold]
fn differs(got: &[u8], expected: &[u8], offset: u64) -> Result<()> {
    let wrong = got.iter().zip(expected).filter(|(got, expected)| got != expected).count();
    let at = got.iter().zip(expected).position(|(got, expected)| got != expected).unwrap_or(0);
    bail!(
        "wrong data: the byte at offset {} of the disk is {:#04x} and not {:#04x} ({wrong} bytes from {offset} on \
         are wrong)",
        offset + at as u64,
        got[at],
        expected[at]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_is_accepted_and_nothing_else() {
        for kind in [Kind::Random, Kind::Text] {
            let mut buf = vec![0; 3 * BLOCK];
            fill(kind, &mut buf, 8 * BLOCK as u64, 5);
            let offset = 9 * BLOCK as u64;
            let block = &mut buf[BLOCK..2 * BLOCK];
            assert!(check(kind, block, offset, Content::Written(5)).is_ok());
            assert!(check(kind, block, offset, Content::Written(6)).is_err(), "another generation");
            assert!(check(kind, block, offset + BLOCK as u64, Content::Written(5)).is_err(), "another place");
            assert!(check(kind, block, offset, Content::Zero).is_err());
            for at in [0, 15, 16, 2000, BLOCK - 17, BLOCK - 16, BLOCK - 1] {
                block[at] ^= 1;
                let error = check(kind, block, offset, Content::Written(5)).expect_err("a wrong byte");
                assert!(error.to_string().contains(&format!("offset {}", offset as usize + at)), "{error}");
                block[at] ^= 1;
            }
        }
        assert!(check(Kind::Random, &[0; BLOCK], 0, Content::Zero).is_ok());
    }

    #[test]
    fn a_shuffled_list_has_the_same_things_in_a_fixed_order() {
        let mut list: Vec<u64> = (0..100).collect();
        Random::new(1).shuffle(&mut list);
        assert_ne!(list, (0..100).collect::<Vec<_>>());
        let mut again: Vec<u64> = (0..100).collect();
        Random::new(1).shuffle(&mut again);
        assert_eq!(list, again);
        list.sort_unstable();
        assert_eq!(list, (0..100).collect::<Vec<_>>());
    }
}
