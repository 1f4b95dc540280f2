//! Bit layouts of table entries: L1, L2 (standard, compressed, extended) and
//! refcount table, as pure functions between words and meaning
//! (specification: "Cluster mapping", "Extended L2 Entries", "Host cluster management").
//!
//! Neighbours: `map` and `write` decode and encode with these; `table` and
//! `check` walk whole tables with them.

use super::types::{Geometry, HostOffset};

/// Bit 63: the refcount of what the entry points at is exactly one.
pub const COPIED: u64 = 1 << 63;
/// Bit 62 of an L2 entry: compressed.
pub const COMPRESSED: u64 = 1 << 62;
/// Bit 0 of a standard L2 entry in version 3: reads as zeroes.
pub const ZERO: u64 = 1;
/// Bits 9 to 55: a host offset.
pub const OFFSET_MASK: u64 = 0x00ff_ffff_ffff_fe00;

/// Why an entry breaks the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A reserved bit is set.
    Reserved,
    /// The offset is not at a cluster boundary.
    Unaligned,
    /// "In use, at offset 0": the header would be overwritten.
    OffsetZero,
    /// A subcluster is both allocated and zero, or allocated without a cluster.
    Subclusters,
    /// Compressed, where the image cannot have compressed clusters.
    Compressed,
    /// Elsewhere in the data file than on the disk: another guest cluster has its place there.
    Displaced,
}

impl Fault {
    /// A lower-case fragment for messages.
    pub fn text(self) -> &'static str {
        match self {
            Self::Reserved => "reserved bits set",
            Self::Unaligned => "offset not at a cluster boundary",
            Self::OffsetZero => "in use at offset 0",
            Self::Subclusters => "subcluster bitmap contradicts itself",
            Self::Compressed => "compressed cluster with an external data file",
            Self::Displaced => "not at its own place in the data file",
        }
    }
}

/// An L2 entry as stored; `bitmap` is 0 unless entries are extended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L2Entry {
    /// The first 64 bits.
    pub word: u64,
    /// The subcluster bitmap.
    pub bitmap: u64,
}

/// A standard cluster. Without extended entries the masks are all ones or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standard {
    /// Where the cluster's data is or is reserved.
    pub host: Option<HostOffset>,
    /// The host cluster's refcount is one: it may be written in place.
    pub copied: bool,
    /// Subclusters whose data is in the host cluster.
    pub alloc: u32,
    /// Subclusters that read as zeroes.
    pub zero: u32,
}

/// Where a compressed cluster is (specification: "Compressed Clusters Descriptor").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// First byte; any alignment.
    pub host: HostOffset,
    /// Bytes from `host` to the end of the last 512-byte sector.
    pub len: u64,
}

impl Compressed {
    /// Numbers of the first and last host cluster that it touches.
    pub fn clusters(&self, geo: &Geometry) -> std::ops::RangeInclusive<u64> {
        geo.cluster_of(self.host.0)..=geo.cluster_of(self.host.0.saturating_add(self.len - 1))
    }
}

/// What an L2 entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// Unallocated, data, zero, or a mix by subclusters.
    Standard(Standard),
    /// Compressed data.
    Compressed(Compressed),
}

impl Cluster {
    /// A cluster that is not there.
    pub const UNALLOCATED: Self = Self::Standard(Standard { host: None, copied: false, alloc: 0, zero: 0 });
}

/// Reads an L1 entry: the L2 table and whether it may be written in place.
pub fn decode_l1(word: u64, geo: &Geometry) -> Result<Option<(HostOffset, bool)>, Fault> {
    if word & !(COPIED | OFFSET_MASK) != 0 {
        return Err(Fault::Reserved);
    }
    let (offset, copied) = (word & OFFSET_MASK, word & COPIED != 0);
    match (offset, copied) {
        (0, false) => Ok(None),
        (0, true) => Err(Fault::OffsetZero),
        _ if !geo.aligned(offset) => Err(Fault::Unaligned),
        _ => Ok(Some((HostOffset(offset), copied))),
    }
}

/// Makes an L1 entry.
pub fn encode_l1(table: HostOffset, copied: bool) -> u64 {
    table.0 | if copied { COPIED } else { 0 }
}

/// Reads a refcount table entry: the refcount block.
pub fn decode_refcount_table(word: u64, geo: &Geometry) -> Result<Option<HostOffset>, Fault> {
    match word {
        0 => Ok(None),
        _ if word & 0x1ff != 0 => Err(Fault::Reserved),
        _ if !geo.aligned(word) => Err(Fault::Unaligned),
        _ => Ok(Some(HostOffset(word))),
    }
}

/// Reads an L2 entry.
pub fn decode_l2(entry: L2Entry, geo: &Geometry) -> Result<Cluster, Fault> {
    if entry.word & COMPRESSED != 0 {
        return decode_compressed(entry, geo).map(Cluster::Compressed);
    }
    let allowed = if geo.zero_flag && !geo.extended_l2 { ZERO } else { 0 };
    if entry.word & !(COPIED | OFFSET_MASK | allowed) != 0 {
        return Err(Fault::Reserved);
    }
    let (offset, copied) = (entry.word & OFFSET_MASK, entry.word & COPIED != 0);
    if !geo.aligned(offset) {
        return Err(Fault::Unaligned);
    }
    let host = match (offset, copied) {
        (0, true) if geo.data_file => Some(HostOffset(0)),
        (0, true) => return Err(Fault::OffsetZero),
        (0, false) => None,
        _ => Some(HostOffset(offset)),
    };
    let (alloc, zero) = if geo.extended_l2 {
        (entry.bitmap as u32, (entry.bitmap >> 32) as u32)
    } else if entry.word & ZERO != 0 {
        (0, u32::MAX)
    } else if host.is_some() {
        (u32::MAX, 0)
    } else {
        (0, 0)
    };
    if alloc & zero != 0 || (alloc != 0 && host.is_none()) {
        return Err(Fault::Subclusters);
    }
    Ok(Cluster::Standard(Standard { host, copied, alloc, zero }))
}

/// Refuses an entry of guest `cluster` that is elsewhere in the data file: without refcounts for that file,
/// nothing else keeps guest clusters apart in it.
pub fn check_place(decoded: Cluster, cluster: u64, geo: &Geometry) -> Result<(), Fault> {
    match decoded {
        Cluster::Standard(Standard { host: Some(host), .. })
            if geo.data_file && host.0 != cluster << geo.cluster_bits =>
        {
            Err(Fault::Displaced)
        }
        _ => Ok(()),
    }
}

/// Makes the entry of a standard cluster. Without extended entries only whole masks can be stored.
pub fn encode_l2(cluster: Standard, geo: &Geometry) -> L2Entry {
    let mut word = cluster.host.map_or(0, |host| host.0);
    if cluster.copied {
        word |= COPIED;
    }
    if geo.extended_l2 {
        let bitmap = u64::from(cluster.alloc) | u64::from(cluster.zero) << 32;
        return L2Entry { word, bitmap };
    }
    if cluster.zero != 0 {
        word |= ZERO;
    }
    L2Entry { word, bitmap: 0 }
}

fn decode_compressed(entry: L2Entry, geo: &Geometry) -> Result<Compressed, Fault> {
    if geo.data_file {
        return Err(Fault::Compressed);
    }
    if entry.word & COPIED != 0 {
        return Err(Fault::Reserved);
    }
    let shift = compressed_shift(geo);
    let offset = entry.word & ((1 << shift) - 1);
    if offset >> 56 != 0 {
        return Err(Fault::Reserved);
    }
    if geo.cluster_of(offset) == 0 {
        return Err(Fault::OffsetZero);
    }
    let sectors = ((entry.word & !COMPRESSED) >> shift) + 1;
    let len = sectors * 512 - (offset & 511);
    Ok(Compressed { host: HostOffset(offset), len })
}

/// Makes the entry of a compressed cluster whose data ends at `host + len`; `None` where the
/// fields are too narrow for it.
pub fn encode_compressed(host: HostOffset, len: u64, geo: &Geometry) -> Option<L2Entry> {
    let shift = compressed_shift(geo);
    let last = host.0.checked_add(len.checked_sub(1)?)?;
    let sectors = (last >> 9) - (host.0 >> 9);
    let fits = host.0 >> shift.min(56) == 0 && sectors >> (geo.cluster_bits - 8) == 0;
    fits.then_some(L2Entry { word: COMPRESSED | sectors << shift | host.0, bitmap: 0 })
}

fn compressed_shift(geo: &Geometry) -> u32 {
    62 - (geo.cluster_bits - 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn geometry(bits: u32, extended_l2: bool, data_file: bool) -> Geometry {
        Geometry { cluster_bits: bits, refcount_order: 4, extended_l2, zero_flag: true, data_file }
    }

    proptest! {
        #[test]
        fn decoding_never_panics_and_keeps_bits(
            word: u64, bitmap: u64, bits in 9_u32..=21, ext: bool, data: bool,
        ) {
            let geo = geometry(bits, ext, data);
            let bitmap = if ext { bitmap } else { 0 };
            if let Ok(Cluster::Standard(s)) = decode_l2(L2Entry { word, bitmap }, &geo) {
                prop_assert_eq!(encode_l2(s, &geo), L2Entry { word, bitmap });
            }
            let _ = decode_l1(word, &geo);
            let _ = decode_refcount_table(word, &geo);
        }

        #[test]
        fn standard_round_trips(
            cluster in 1_u64..1 << 30, copied: bool, alloc: u32, zero: u32, bits in 14_u32..=21,
        ) {
            let geo = geometry(bits, true, false);
            let host = Some(HostOffset((cluster << bits) & OFFSET_MASK));
            prop_assume!(host != Some(HostOffset(0)));
            let s = Standard { host, copied, alloc, zero: zero & !alloc };
            prop_assert_eq!(decode_l2(encode_l2(s, &geo), &geo), Ok(Cluster::Standard(s)));
        }

        #[test]
        fn compressed_round_trips(host in 0_u64..1 << 40, len in 1_u64..4096, bits in 12_u32..=21) {
            let geo = geometry(bits, false, false);
            let host = HostOffset(host + geo.cluster_size());
            if let Some(entry) = encode_compressed(host, len.min(geo.cluster_size()), &geo) {
                let Ok(Cluster::Compressed(c)) = decode_l2(entry, &geo) else {
                    return Err(TestCaseError::fail("not compressed"));
                };
                prop_assert_eq!(c.host, host);
                prop_assert!(c.len >= len.min(geo.cluster_size()));
                prop_assert_eq!((c.host.0 + c.len) % 512, 0);
            }
        }

        #[test]
        fn l1_round_trips(cluster in 1_u64..1 << 34, copied: bool, bits in 9_u32..=21) {
            let geo = geometry(bits, false, false);
            let host = HostOffset(cluster << bits);
            prop_assert_eq!(decode_l1(encode_l1(host, copied), &geo), Ok(Some((host, copied))));
        }
    }

    #[test]
    fn in_use_at_offset_zero_is_a_fault_except_in_a_data_file() {
        let entry = L2Entry { word: COPIED, bitmap: 0 };
        assert_eq!(decode_l2(entry, &geometry(16, false, false)), Err(Fault::OffsetZero));
        assert!(decode_l2(entry, &geometry(16, false, true)).is_ok());
        assert_eq!(decode_l1(COPIED, &geometry(16, false, false)), Err(Fault::OffsetZero));
    }
}
