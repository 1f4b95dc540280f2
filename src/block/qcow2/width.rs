//! Refcounts inside a block, at each width of 1 to 64 bits, as pure functions
//! (specification: "Host cluster management").
//!
//! Neighbours: `refcount` keeps blocks in memory, `check` reads whole ones.

/// The refcount at `index` of `block`, whose entries are `1 << order` bits wide.
pub fn get(block: &[u8], order: u32, index: usize) -> u64 {
    match order {
        0..=2 => {
            let bits = 1 << order;
            let (byte, shift) = place(index, order);
            u64::from(block[byte] >> shift) & ((1 << bits) - 1)
        }
        _ => {
            let bytes = 1 << (order - 3);
            let entry = &block[index * bytes..][..bytes];
            entry.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
        }
    }
}

/// Stores the refcount at `index`; `value` must fit the width.
pub fn set(block: &mut [u8], order: u32, index: usize, value: u64) {
    match order {
        0..=2 => {
            let mask = ((1_u16 << (1 << order)) - 1) as u8;
            let (byte, shift) = place(index, order);
            block[byte] = block[byte] & !(mask << shift) | (value as u8 & mask) << shift;
        }
        _ => {
            let bytes = 1 << (order - 3);
            let stored = value.to_be_bytes();
            block[index * bytes..][..bytes].copy_from_slice(&stored[8 - bytes..]);
        }
    }
}

/// The first index in `from..to` whose refcount is zero.
pub fn first_zero(block: &[u8], order: u32, from: usize, to: usize) -> Option<usize> {
    if order != 4 {
        return (from..to).find(|index| get(block, order, *index) == 0);
    }
    let entries = block.get(2 * from..2 * to)?;
    entries.chunks_exact(2).position(|e| e == [0, 0]).map(|at| from + at)
}

fn place(index: usize, order: u32) -> (usize, u32) {
    let bit = index << order;
    (bit >> 3, (bit & 7) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_set_is_got_and_neighbours_stay(
            order in 0_u32..=6, index in 0_usize..64, value: u64, fill: u8,
        ) {
            let mut block = vec![fill; 64 * 8];
            let value = value & (u64::MAX >> (64 - (1 << order)));
            let before: Vec<u64> = (0..64).map(|i| get(&block, order, i)).collect();
            set(&mut block, order, index, value);
            for (i, old) in before.iter().enumerate() {
                prop_assert_eq!(get(&block, order, i), if i == index { value } else { *old });
            }
        }

        #[test]
        fn first_zero_is_the_first(order in 0_u32..=6, zero in 0_usize..32) {
            let mut block = vec![0xff; 256];
            set(&mut block, order, zero, 0);
            prop_assert_eq!(first_zero(&block, order, 0, 32), Some(zero));
            prop_assert_eq!(first_zero(&block, order, zero + 1, 32), None);
        }
    }

    #[test]
    fn bit_zero_is_the_least_significant() {
        assert_eq!(get(&[0b0000_0010], 0, 1), 1);
        assert_eq!(get(&[0x21], 2, 0), 1);
        assert_eq!(get(&[1, 2], 4, 0), 0x102);
    }
}
