//! The header: parsed with every bound checked, written back field by field
//! (specification: "Header", "Additional fields").
//!
//! Neighbours: `extension` for what follows it, `open` for what the fields mean.

use super::super::error::{Error, ErrorKind, Result};
use super::extension::{self, Extension};
use super::types::{CLUSTER_BITS, Compression, Geometry};

/// The first four bytes of an image.
pub const MAGIC: [u8; 4] = *b"QFI\xfb";
/// Incompatible bit: refcounts may be wrong.
pub const DIRTY: u64 = 1;
/// Incompatible bit: do not write.
pub const CORRUPT: u64 = 1 << 1;
/// Incompatible bit: guest data is in another file.
pub const DATA_FILE: u64 = 1 << 2;
/// Incompatible bit: the compression type field counts.
pub const COMPRESSION_TYPE: u64 = 1 << 3;
/// Incompatible bit: L2 entries with subclusters.
pub const EXTENDED_L2: u64 = 1 << 4;
/// Incompatible bits that are understood here.
pub const KNOWN_INCOMPATIBLE: u64 = 0b1_1111;
/// Compatible bit: refcounts may be written late.
pub const LAZY_REFCOUNTS: u64 = 1;
/// Autoclear bit: bitmaps are consistent.
pub const AUTOCLEAR_BITMAPS: u64 = 1;
/// Autoclear bit: the data file is a raw image by itself.
pub const AUTOCLEAR_RAW: u64 = 1 << 1;

/// Length of a version 2 header, and where its extensions start.
pub const V2_LENGTH: usize = 72;
/// Shortest version 3 header.
pub const V3_LENGTH: usize = 104;
/// Largest L1 table in bytes.
pub const L1_MAX: u64 = 32 << 20;
/// Largest refcount table in bytes that we make; qemu reads no more.
pub const REFCOUNT_TABLE_MAX: u64 = 8 << 20;
/// Largest refcount table in bytes that is read; it bounds the memory that opening takes.
pub const REFCOUNT_TABLE_READ_MAX: u64 = 64 << 20;
/// Longest backing file name in bytes.
pub const BACKING_NAME_MAX: u64 = 1023;
/// Most snapshots that are accepted.
pub const SNAPSHOTS_MAX: u32 = 65536;

/// Header fields; offsets and sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// 2 or 3.
    pub version: u32,
    /// Where the backing file's name is; 0 for none.
    pub backing_offset: u64,
    /// Length of the backing file's name.
    pub backing_size: u32,
    /// Logarithm of the cluster size.
    pub cluster_bits: u32,
    /// Virtual disk size.
    pub size: u64,
    /// Encryption method; anything but 0 is refused.
    pub crypt_method: u32,
    /// Entries of the active L1 table.
    pub l1_size: u32,
    /// The active L1 table.
    pub l1_offset: u64,
    /// The refcount table.
    pub refcount_table_offset: u64,
    /// Clusters of the refcount table.
    pub refcount_table_clusters: u32,
    /// Entries of the snapshot table.
    pub nb_snapshots: u32,
    /// The snapshot table.
    pub snapshots_offset: u64,
    /// Incompatible feature bits.
    pub incompatible: u64,
    /// Compatible feature bits.
    pub compatible: u64,
    /// Autoclear feature bits.
    pub autoclear: u64,
    /// Logarithm of the refcount width in bits.
    pub refcount_order: u32,
    /// Length of the header.
    pub header_length: u32,
    /// The bytes from 104 to the header's end, kept as they are.
    pub additional: Vec<u8>,
}

impl Header {
    /// Reads and checks the fields. `bytes` is the start of the file, at least as much of the first
    /// cluster as there is.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if bytes.get(..4) != Some(&MAGIC) {
            return Err(Error::new(ErrorKind::InvalidInput, "not a qcow2 image: wrong magic"));
        }
        let (version, mut header) = (u32_at(bytes, 4)?, Self::parse_fixed(bytes)?);
        match version {
            2 => {}
            3 => header.parse_v3(bytes)?,
            _ => return Err(unsupported(format!("qcow2 version {version}"))),
        }
        if !CLUSTER_BITS.contains(&header.cluster_bits) {
            return Err(corrupt(format!("cluster_bits {} outside 9 to 21", header.cluster_bits)));
        }
        if header.crypt_method != 0 {
            return Err(unsupported(format!("encryption method {}", header.crypt_method)));
        }
        header.check_lengths()?;
        Ok(header)
    }

    fn parse_fixed(bytes: &[u8]) -> Result<Self> {
        Ok(Self {
            version: u32_at(bytes, 4)?,
            backing_offset: u64_at(bytes, 8)?,
            backing_size: u32_at(bytes, 16)?,
            cluster_bits: u32_at(bytes, 20)?,
            size: u64_at(bytes, 24)?,
            crypt_method: u32_at(bytes, 32)?,
            l1_size: u32_at(bytes, 36)?,
            l1_offset: u64_at(bytes, 40)?,
            refcount_table_offset: u64_at(bytes, 48)?,
            refcount_table_clusters: u32_at(bytes, 56)?,
            nb_snapshots: u32_at(bytes, 60)?,
            snapshots_offset: u64_at(bytes, 64)?,
            incompatible: 0,
            compatible: 0,
            autoclear: 0,
            refcount_order: 4,
            header_length: V2_LENGTH as u32,
            additional: Vec::new(),
        })
    }

    fn parse_v3(&mut self, bytes: &[u8]) -> Result<()> {
        self.incompatible = u64_at(bytes, 72)?;
        self.compatible = u64_at(bytes, 80)?;
        self.autoclear = u64_at(bytes, 88)?;
        self.refcount_order = u32_at(bytes, 96)?;
        self.header_length = u32_at(bytes, 100)?;
        if self.refcount_order > 6 {
            return Err(corrupt(format!("refcount_order {} above 6", self.refcount_order)));
        }
        let length = self.header_length as usize;
        if length < V3_LENGTH || !length.is_multiple_of(8) {
            return Err(corrupt(format!("header length {length}")));
        }
        let Some(additional) = bytes.get(V3_LENGTH..length) else {
            return Err(corrupt(format!("header length {length} beyond the first cluster")));
        };
        self.additional = additional.to_vec();
        Ok(())
    }

    fn check_lengths(&self) -> Result<()> {
        let cluster = 1_u64 << self.cluster_bits;
        if u64::from(self.header_length) > cluster {
            return Err(corrupt("header longer than a cluster"));
        }
        if self.backing_offset != 0 {
            let end = self.backing_offset.checked_add(u64::from(self.backing_size));
            let inside = end.is_some_and(|end| end <= cluster);
            if self.backing_offset < u64::from(self.header_length) || !inside {
                return Err(corrupt("backing file name outside the header cluster"));
            }
            if u64::from(self.backing_size) > BACKING_NAME_MAX {
                return Err(corrupt("backing file name too long"));
            }
        }
        if self.extended_l2() && self.cluster_bits < 14 {
            return Err(corrupt("extended L2 entries need clusters of 16 KiB or more"));
        }
        Ok(())
    }

    /// Refuses unknown incompatible bits by name, and a compression type that contradicts its bit.
    pub fn check_features(&self, extensions: &[Extension]) -> Result<()> {
        let unknown = self.incompatible & !KNOWN_INCOMPATIBLE;
        if unknown != 0 {
            let bit = unknown.trailing_zeros();
            let name = extension::feature_name(extensions, 0, bit).unwrap_or_default();
            return Err(unsupported(format!("incompatible feature bit {bit} {name:?}")));
        }
        self.compression().map(|_| ())
    }

    /// How compressed clusters are encoded.
    pub fn compression(&self) -> Result<Compression> {
        let kind = self.additional.first().copied().unwrap_or(0);
        match (self.incompatible & COMPRESSION_TYPE != 0, kind) {
            (false, 0) => Ok(Compression::Zlib),
            (true, 1) => Ok(Compression::Zstd),
            (true, 0) => Err(corrupt("compression type bit without a type")),
            (false, _) => Err(corrupt("compression type without its feature bit")),
            (true, _) => Err(unsupported(format!("compression type {kind}"))),
        }
    }

    /// Whether L2 entries are extended.
    pub fn extended_l2(&self) -> bool {
        self.incompatible & EXTENDED_L2 != 0
    }

    /// What follows from the fields for the tables.
    pub fn geometry(&self) -> Geometry {
        Geometry {
            cluster_bits: self.cluster_bits,
            refcount_order: self.refcount_order,
            extended_l2: self.extended_l2(),
            zero_flag: self.version >= 3,
            data_file: self.incompatible & DATA_FILE != 0,
        }
    }

    /// Where the extension area ends and whether a backing name bounds it.
    pub fn extension_area(&self, cluster_size: u64) -> (u64, bool) {
        match self.backing_offset {
            0 => (cluster_size, false),
            offset => (offset, true),
        }
    }

    /// The header's bytes, `header_length` of them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.header_length as usize);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_be_bytes());
        out.extend_from_slice(&self.backing_offset.to_be_bytes());
        out.extend_from_slice(&self.backing_size.to_be_bytes());
        out.extend_from_slice(&self.cluster_bits.to_be_bytes());
        out.extend_from_slice(&self.size.to_be_bytes());
        out.extend_from_slice(&self.crypt_method.to_be_bytes());
        out.extend_from_slice(&self.l1_size.to_be_bytes());
        out.extend_from_slice(&self.l1_offset.to_be_bytes());
        out.extend_from_slice(&self.refcount_table_offset.to_be_bytes());
        out.extend_from_slice(&self.refcount_table_clusters.to_be_bytes());
        out.extend_from_slice(&self.nb_snapshots.to_be_bytes());
        out.extend_from_slice(&self.snapshots_offset.to_be_bytes());
        if self.version >= 3 {
            out.extend_from_slice(&self.incompatible.to_be_bytes());
            out.extend_from_slice(&self.compatible.to_be_bytes());
            out.extend_from_slice(&self.autoclear.to_be_bytes());
            out.extend_from_slice(&self.refcount_order.to_be_bytes());
            out.extend_from_slice(&self.header_length.to_be_bytes());
            out.extend_from_slice(&self.additional);
        }
        out
    }

    /// The header, its extensions and the backing name as they stand in the first cluster; sets the
    /// name's place. Refuses what does not fit.
    pub fn encode_all(&mut self, extensions: &[Extension], backing: &[u8]) -> Result<Vec<u8>> {
        let mut area = Vec::new();
        extension::encode(extensions, &mut area);
        let end = self.header_length as usize + area.len();
        (self.backing_offset, self.backing_size) = match backing.len() {
            0 => (0, 0),
            len => (end as u64, len as u32),
        };
        let mut out = self.encode();
        out.append(&mut area);
        out.extend_from_slice(backing);
        if out.len() as u64 > 1 << self.cluster_bits || backing.len() as u64 > BACKING_NAME_MAX {
            return Err(Error::new(ErrorKind::InvalidInput, "header does not fit into a cluster"));
        }
        Ok(out)
    }
}

/// Reads a big-endian word; a file that ends before is refused.
pub fn u64_at(bytes: &[u8], at: usize) -> Result<u64> {
    let Some(chunk) = bytes.get(at..).and_then(|b| b.first_chunk::<8>()) else {
        return Err(Error::new(ErrorKind::UnexpectedEof, "file ends within the header"));
    };
    Ok(u64::from_be_bytes(*chunk))
}

/// Reads a big-endian half word; see [`u64_at`].
pub fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    let Some(chunk) = bytes.get(at..).and_then(|b| b.first_chunk::<4>()) else {
        return Err(Error::new(ErrorKind::UnexpectedEof, "file ends within the header"));
    };
    Ok(u32::from_be_bytes(*chunk))
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

fn unsupported(message: String) -> Error {
    Error::new(ErrorKind::Unsupported, format!("unsupported {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parsing_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), v in 0_u8..5) {
            if bytes.len() > 8 {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[4..8].copy_from_slice(&[0, 0, 0, v]);
            }
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert_eq!(&header.encode()[..], &bytes[..header.header_length as usize]);
            }
        }
    }
}
