//! Addresses and the image's geometry: what follows from the few header
//! fields that never change while an image is open.
//!
//! Neighbours: everything in [`crate::block::qcow2`] uses these types; the
//! values come from `header`.

/// A byte offset on the virtual disk, as the guest sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestOffset(pub u64);

/// A byte offset in the image file, or in the external data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostOffset(pub u64);

/// How a compressed cluster is encoded (specification: "Additional fields", `compression_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Raw deflate, the default.
    Zlib,
    /// Zstandard; needs the incompatible "compression type" bit.
    Zstd,
}

/// Masks of a cluster's parts have one bit for each of its 32 subclusters.
pub const SUBCLUSTERS: u64 = 32;

/// The smallest and largest cluster size, as powers of two (bytes).
pub const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;

/// Sizes that never change while an image is open. All in bytes unless named otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Logarithm of the cluster size, 9 to 21.
    pub cluster_bits: u32,
    /// Logarithm of the refcount width in bits, 0 to 6.
    pub refcount_order: u32,
    /// L2 entries are 16 bytes and describe 32 subclusters.
    pub extended_l2: bool,
    /// Version 3: zero clusters exist.
    pub zero_flag: bool,
    /// Guest data lives in another file, at its guest offset.
    pub data_file: bool,
}

impl Geometry {
    /// Bytes in a cluster.
    pub fn cluster_size(&self) -> u64 {
        1 << self.cluster_bits
    }

    /// Bytes that one bit of a cluster's masks stands for.
    pub fn mask_unit(&self) -> u64 {
        self.cluster_size() / SUBCLUSTERS
    }

    /// The smallest part of a cluster (bytes) that can be allocated on its own.
    pub fn allocation_unit(&self) -> u64 {
        if self.extended_l2 { self.mask_unit() } else { self.cluster_size() }
    }

    /// 64-bit words in an L2 entry.
    pub fn entry_words(&self) -> usize {
        if self.extended_l2 { 2 } else { 1 }
    }

    /// Entries in an L2 table.
    pub fn l2_entries(&self) -> u64 {
        self.cluster_size() / (8 * self.entry_words() as u64)
    }

    /// Guest bytes that one L1 entry covers.
    pub fn l1_coverage(&self) -> u64 {
        self.l2_entries() * self.cluster_size()
    }

    /// L1 entries that a disk of `size` bytes needs.
    pub fn l1_entries(&self, size: u64) -> u64 {
        size.div_ceil(self.l1_coverage())
    }

    /// Refcounts in a refcount block.
    pub fn refcounts_per_block(&self) -> u64 {
        (self.cluster_size() * 8) >> self.refcount_order
    }

    /// The largest value of a refcount.
    pub fn refcount_max(&self) -> u64 {
        u64::MAX >> (64 - (1_u32 << self.refcount_order))
    }

    /// Number of the cluster that `offset` lies in.
    pub fn cluster_of(&self, offset: u64) -> u64 {
        offset >> self.cluster_bits
    }

    /// Position of `offset` inside its cluster.
    pub fn within(&self, offset: u64) -> u64 {
        offset & (self.cluster_size() - 1)
    }

    /// Whether `offset` starts a cluster.
    pub fn aligned(&self, offset: u64) -> bool {
        self.within(offset) == 0
    }

    /// Clusters that `bytes` need.
    pub fn clusters_for(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.cluster_size())
    }

    /// `offset` up to the next cluster boundary; saturates at the largest boundary.
    pub fn round_up(&self, offset: u64) -> u64 {
        offset.checked_next_multiple_of(self.cluster_size()).unwrap_or(!(self.cluster_size() - 1))
    }

    /// Mask of the subclusters that `[from, to)` inside a cluster touches.
    pub fn mask(&self, from: u64, to: u64) -> u32 {
        let unit = self.mask_unit();
        let (low, high) = (from / unit, to.div_ceil(unit).min(SUBCLUSTERS));
        if low >= high {
            return 0;
        }
        let upper = if high == SUBCLUSTERS { u32::MAX } else { (1 << high) - 1 };
        upper & (u32::MAX << low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_what_they_touch() {
        let geo = Geometry {
            cluster_bits: 16,
            refcount_order: 4,
            extended_l2: true,
            zero_flag: true,
            data_file: false,
        };
        assert_eq!(geo.mask(0, 65536), u32::MAX);
        assert_eq!(geo.mask(0, 1), 1);
        assert_eq!(geo.mask(2047, 2049), 0b11);
        assert_eq!(geo.mask(63488, 65536), 1 << 31);
        assert_eq!(geo.mask(0, 0), 0);
        assert_eq!(geo.refcount_max(), 65535);
    }
}
