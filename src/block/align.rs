//! Alignment arithmetic for direct I/O: pure functions, with property tests.
//!
//! Neighbours: `sys::file` finds a file's [`Alignment`], `bounce` and
//! `raw_disk` widen unaligned requests with it, `buf` allocates by it.

/// What direct I/O on a file demands, in bytes; both are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alignment {
    memory: u32,
    offset: u32,
}

impl Alignment {
    /// No demand: buffered I/O.
    pub const NONE: Self = Self { memory: 1, offset: 1 };

    /// Demands `memory` for addresses and `offset` for file offsets and
    /// lengths, in bytes; `None` where either is not a power of two.
    pub fn new(memory: u32, offset: u32) -> Option<Self> {
        (memory.is_power_of_two() && offset.is_power_of_two()).then_some(Self { memory, offset })
    }

    /// Demanded of a buffer's address, in bytes.
    pub fn memory(self) -> usize {
        self.memory as usize
    }

    /// Demanded of offsets and lengths, in bytes.
    pub fn offset(self) -> u64 {
        u64::from(self.offset)
    }

    /// Whether nothing is demanded.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Whether `[offset, offset + len)` in a file satisfies the demand.
    pub fn fits_range(self, offset: u64, len: u64) -> bool {
        (offset | len) & (self.offset() - 1) == 0
    }

    /// Whether a buffer at `address` of `len` bytes satisfies the demand.
    pub fn fits_memory(self, address: usize, len: usize) -> bool {
        address & (self.memory() - 1) == 0 && len as u64 & (self.offset() - 1) == 0
    }

    /// The smallest span that satisfies the demand and covers
    /// `[offset, offset + len)`; `None` where it would end past 2^63 - 1,
    /// the last offset that a file can have.
    pub fn widen(self, offset: u64, len: u64) -> Option<Span> {
        let end = offset.checked_add(len).and_then(|end| round_up(end, self.offset()))?;
        (end <= i64::MAX as u64).then(|| Span { start: round_down(offset, self.offset()), end })
    }
}

/// A range of a file: `start` up to, not including, `end`, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// One past the last byte; at least `start`.
    pub end: u64,
}

impl Span {
    /// `[offset, offset + len)`; the end saturates.
    pub fn new(offset: u64, len: u64) -> Self {
        Self { start: offset, end: offset.saturating_add(len) }
    }

    /// Length in bytes.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether the span has no byte.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether the two have a byte in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// `value` rounded down to a multiple of `to`, a power of two.
pub fn round_down(value: u64, to: u64) -> u64 {
    value & !(to - 1)
}

/// `value` rounded up to a multiple of `to`, a power of two; `None` on overflow.
pub fn round_up(value: u64, to: u64) -> Option<u64> {
    Some(round_down(value.checked_add(to - 1)?, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alignments() -> impl Strategy<Value = Alignment> {
        (0u32..16, 0u32..16)
            .prop_filter_map("powers of two", |(memory, offset)| Alignment::new(1 << memory, 1 << offset))
    }

    proptest! {
        #[test]
        fn widened_spans_cover_fit_and_are_minimal(
            align in alignments(),
            offset in 0u64..1 << 62,
            len in 0u64..1 << 40,
        ) {
            let span = align.widen(offset, len).expect("far from the end");
            prop_assert!(span.start <= offset && span.end >= offset + len);
            prop_assert!(align.fits_range(span.start, span.len()));
            prop_assert!(offset - span.start < align.offset());
            prop_assert!(span.end - (offset + len) < align.offset());
            if align.fits_range(offset, len) {
                prop_assert_eq!(span, Span::new(offset, len));
            }
        }

        #[test]
        fn no_arithmetic_overflows(align in alignments(), offset: u64, len: u64) {
            if let Some(span) = align.widen(offset, len) {
                prop_assert!(span.start <= span.end && span.end <= i64::MAX as u64);
            } else {
                prop_assert!(offset.saturating_add(len) > i64::MAX as u64 - align.offset());
            }
        }

        #[test]
        fn rounding_is_by_less_than_the_step(value: u64, shift in 0u32..32) {
            let to = 1u64 << shift;
            let down = round_down(value, to);
            prop_assert!(down <= value && value - down < to && down.is_multiple_of(to));
            match round_up(value, to) {
                Some(up) => prop_assert!(up >= value && up - value < to && up.is_multiple_of(to)),
                None => prop_assert!(value > u64::MAX - to),
            }
        }

        #[test]
        fn overlap_is_a_common_byte(a in 0u64..64, b in 0u64..64, m in 0u64..16, n in 0u64..16) {
            let common = (a..a + m).any(|byte| (b..b + n).contains(&byte));
            prop_assert_eq!(Span::new(a, m).overlaps(Span::new(b, n)) && m > 0 && n > 0, common);
        }
    }

    #[test]
    fn demands_are_powers_of_two() {
        assert_eq!(Alignment::new(0, 512), None);
        assert_eq!(Alignment::new(512, 3), None);
        assert_eq!(Alignment::new(1, 1), Some(Alignment::NONE));
    }
}
