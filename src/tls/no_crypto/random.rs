//! Numbers that differ and cost next to nothing: session ids must not be all
//! equal, or a server's cache holds a single one.
//!
//! Neighbours: the provider in `mod.rs`.

use std::sync::atomic::{AtomicU64, Ordering};

use rustls::crypto::{GetRandomFailed, SecureRandom};

/// How many words were drawn in this process.
static DRAWN: AtomicU64 = AtomicU64::new(0);

/// A counter, scattered. The first word of each process is the same, so runs
/// repeat with no help from outside.
#[derive(Debug)]
pub(super) struct Counter;

impl SecureRandom for Counter {
    fn fill(&self, buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        let words = buf.len().div_ceil(8) as u64;
        let first = DRAWN.fetch_add(words, Ordering::Relaxed);
        for (word, at) in buf.chunks_mut(8).zip(first..) {
            word.copy_from_slice(&scatter(at).to_le_bytes()[..word.len()]);
        }
        Ok(())
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014) for its `n`th state.
fn scatter(n: u64) -> u64 {
    let mut z = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_differs_also_within_and_in_odd_lengths() {
        let mut seen = std::collections::BTreeSet::new();
        for len in [32, 32, 33, 9, 8] {
            let mut bytes = vec![0; len];
            Counter.fill(&mut bytes).expect("it never fails");
            assert!(bytes.chunks_exact(8).all(|word| seen.insert(word.to_vec())));
        }
    }

    #[test]
    fn the_first_word_is_that_of_the_paper_for_seed_0() {
        assert_eq!(scatter(0), 0xe220_a839_7b1d_cdaf);
    }
}
