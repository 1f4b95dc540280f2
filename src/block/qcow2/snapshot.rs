//! The snapshot table: entries with variable length, parsed with every bound
//! checked and written back with unknown extra data (specification: "Snapshots").
//!
//! Neighbours: `snapshot_ops` creates, deletes and applies; `open` shows one;
//! `check` counts what they refer to.

use super::super::error::{Error, ErrorKind, Result};
use super::super::storage::Storage;
use super::header::{Header, L1_MAX, SNAPSHOTS_MAX, u32_at, u64_at};
use super::image::corrupt;
use super::types::Geometry;

/// Bytes of an entry before extra data, id and name.
const FIXED: usize = 40;
/// Most bytes of extra data that are accepted.
const EXTRA_MAX: u64 = 1024;
/// Most bytes of a snapshot table that are accepted.
const TABLE_MAX: u64 = 64 << 20;

/// One internal snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Unique identifier.
    pub id: String,
    /// Name; need not be unique.
    pub name: String,
    /// Its L1 table in the image file (byte offset).
    pub l1_offset: u64,
    /// Entries of its L1 table.
    pub l1_size: u32,
    /// Seconds since the epoch when it was taken.
    pub seconds: u32,
    /// Nanoseconds of that second.
    pub nanoseconds: u32,
    /// Nanoseconds that the guest had run.
    pub guest_nanoseconds: u64,
    /// Bytes of machine state, 0 for a disk snapshot.
    pub vm_state: u64,
    /// Size of the disk at that time in bytes, where it was stored.
    pub disk_size: Option<u64>,
    /// Extra data beyond the known fields.
    pub extra: Vec<u8>,
    /// The entry as it was read, which is how it is written back: older writers stored less extra
    /// data, and names need not be UTF-8.
    pub(super) stored: Option<Vec<u8>>,
}

impl Snapshot {
    /// Reads the entry at the start of `bytes`; returns its padded length too.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize)> {
        let half =
            |at: usize| bytes.get(at..at + 2).map_or(0, |b| usize::from(b[0]) << 8 | usize::from(b[1]));
        let extra_len = u32_at(bytes, 36)? as usize;
        if extra_len as u64 > EXTRA_MAX {
            return Err(corrupt("snapshot with too much extra data"));
        }
        let (id_len, name_len) = (half(12), half(14));
        let id_at = FIXED + extra_len;
        let (Some(id), Some(name)) =
            (bytes.get(id_at..id_at + id_len), bytes.get(id_at + id_len..id_at + id_len + name_len))
        else {
            return Err(corrupt("snapshot entry longer than the file"));
        };
        let small_state = u64::from(u32_at(bytes, 32)?);
        let snapshot = Self {
            id: String::from_utf8_lossy(id).into_owned(),
            name: String::from_utf8_lossy(name).into_owned(),
            l1_offset: u64_at(bytes, 0)?,
            l1_size: u32_at(bytes, 8)?,
            seconds: u32_at(bytes, 16)?,
            nanoseconds: u32_at(bytes, 20)?,
            guest_nanoseconds: u64_at(bytes, 24)?,
            vm_state: if extra_len >= 8 { u64_at(bytes, 40)? } else { small_state },
            disk_size: if extra_len >= 16 { Some(u64_at(bytes, 48)?) } else { None },
            extra: bytes[FIXED + extra_len.min(16)..id_at].to_vec(),
            stored: Some(bytes[..id_at + id_len + name_len].to_vec()),
        };
        Ok((snapshot, (id_at + id_len + name_len).next_multiple_of(8)))
    }

    /// Appends the entry with its padding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.stored {
            Some(stored) => out.extend_from_slice(stored),
            None => self.encode_new(out),
        }
        out.resize(out.len().next_multiple_of(8), 0);
    }

    fn encode_new(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.l1_offset.to_be_bytes());
        out.extend_from_slice(&self.l1_size.to_be_bytes());
        out.extend_from_slice(&(self.id.len() as u16).to_be_bytes());
        out.extend_from_slice(&(self.name.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.seconds.to_be_bytes());
        out.extend_from_slice(&self.nanoseconds.to_be_bytes());
        out.extend_from_slice(&self.guest_nanoseconds.to_be_bytes());
        let small = u32::try_from(self.vm_state).unwrap_or(0);
        out.extend_from_slice(&small.to_be_bytes());
        let known = if self.disk_size.is_some() { 16 } else { 8 };
        out.extend_from_slice(&((known + self.extra.len()) as u32).to_be_bytes());
        out.extend_from_slice(&self.vm_state.to_be_bytes());
        if let Some(size) = self.disk_size {
            out.extend_from_slice(&size.to_be_bytes());
        }
        out.extend_from_slice(&self.extra);
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(self.name.as_bytes());
    }

    /// Refuses an L1 table that cannot be one.
    pub fn check(&self, geo: &Geometry, file_len: u64) -> Result<()> {
        let bytes = u64::from(self.l1_size) * 8;
        let end = self.l1_offset.checked_add(bytes);
        let inside = end.is_some_and(|end| end <= geo.round_up(file_len));
        let placed = self.l1_size == 0 || (self.l1_offset != 0 && geo.aligned(self.l1_offset));
        if bytes > L1_MAX || !placed || !inside {
            return Err(
                corrupt(format!("snapshot {:?} has no valid L1 table", self.id)).with_host(self.l1_offset)
            );
        }
        Ok(())
    }
}

/// The place of the snapshot with this id, or else of the first with this name.
pub fn find(snapshots: &[Snapshot], id_or_name: &str) -> Option<usize> {
    let by_id = snapshots.iter().position(|s| s.id == id_or_name);
    by_id.or_else(|| snapshots.iter().position(|s| s.name == id_or_name))
}

/// Reads the snapshot table; returns its length in bytes too.
pub fn read_table(
    file: &dyn Storage,
    header: &Header,
    geo: &Geometry,
    file_len: u64,
) -> Result<(Vec<Snapshot>, u64)> {
    let count = header.nb_snapshots;
    if count == 0 {
        return Ok((Vec::new(), 0));
    }
    let start = header.snapshots_offset;
    if count > SNAPSHOTS_MAX {
        return Err(corrupt(format!("{count} snapshots are too many")));
    }
    if start == 0 || !geo.aligned(start) || start >= file_len {
        return Err(corrupt("snapshot table not in the file").with_host(start));
    }
    // Grown as entries turn out to be there, so that no length of the header sizes it.
    let mut bytes = Vec::new();
    let (mut snapshots, mut at) = (Vec::new(), 0_usize);
    while snapshots.len() < count as usize {
        match Snapshot::parse(bytes.get(at..).unwrap_or(&[])) {
            Ok((snapshot, len)) if at + len <= bytes.len() || end_reached(&bytes, start, file_len) => {
                snapshots.push(snapshot);
                at += len;
            }
            Err(error) if end_reached(&bytes, start, file_len) => {
                return Err(match error.kind() {
                    ErrorKind::Corrupt => error,
                    _ => corrupt("snapshot table longer than the file"),
                });
            }
            _ => more(file, start, file_len, &mut bytes)?,
        }
    }
    check_overlap(&snapshots, geo, file_len)?;
    Ok((snapshots, at as u64))
}

fn end_reached(bytes: &[u8], start: u64, file_len: u64) -> bool {
    bytes.len() as u64 >= (file_len - start).min(TABLE_MAX)
}

fn more(file: &dyn Storage, start: u64, file_len: u64, bytes: &mut Vec<u8>) -> Result<()> {
    let have = bytes.len();
    let step = 4096.max(have).min((file_len - start - have as u64) as usize);
    bytes.resize(have + step, 0);
    let got = file.read_at(&mut bytes[have..], start + have as u64)?;
    if got < step {
        return Err(Error::new(ErrorKind::UnexpectedEof, "file ends within the snapshot table"));
    }
    Ok(())
}

/// L1 tables of snapshots are disjoint; together they cannot be longer than the file.
fn check_overlap(snapshots: &[Snapshot], geo: &Geometry, file_len: u64) -> Result<()> {
    let mut sum = 0_u64;
    for snapshot in snapshots {
        snapshot.check(geo, file_len)?;
        sum = sum.saturating_add(u64::from(snapshot.l1_size) * 8);
    }
    if sum > geo.round_up(file_len) {
        return Err(corrupt("L1 tables of snapshots overlap"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parsing_never_panics_and_keeps_every_byte(
            mut bytes in proptest::collection::vec(any::<u8>(), 40..200), lens in (0_u8..20, 0_u8..9, 0_u8..9),
        ) {
            bytes[12..16].copy_from_slice(&[0, lens.1, 0, lens.2]);
            bytes[36..40].copy_from_slice(&[0, 0, 0, lens.0]);
            if let Ok((snapshot, len)) = Snapshot::parse(&bytes) {
                let mut out = Vec::new();
                snapshot.encode(&mut out);
                let end = 40 + usize::from(lens.0) + usize::from(lens.1) + usize::from(lens.2);
                prop_assert_eq!(out.len(), len);
                prop_assert_eq!(&out[..end], &bytes[..end]);
            }
        }

        #[test]
        fn round_trips(id in "[a-z0-9]{1,9}", name in ".{0,20}", size: Option<u64>, state: u64) {
            let extra = if size.is_some() { vec![1, 2, 3] } else { Vec::new() };
            let snapshot = Snapshot {
                id, name, l1_offset: 1 << 20, l1_size: 5, seconds: 1, nanoseconds: 2,
                guest_nanoseconds: 3, vm_state: state, disk_size: size, extra, stored: None,
            };
            let mut bytes = Vec::new();
            snapshot.encode(&mut bytes);
            let (parsed, len) = Snapshot::parse(&bytes).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(Snapshot { stored: None, ..parsed }, snapshot);
            prop_assert_eq!(len, bytes.len());
        }
    }
}
