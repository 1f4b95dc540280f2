//! Entries that nothing can be made of: a repair gives them up, so that what
//! is left of the disk can be used again.
//!
//! Neighbours: `repair` calls it before it counts; `check` only reports them.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::super::error::{ErrorKind, Result};
use super::entry::{self, Cluster, L2Entry, Standard};
use super::image::{Image, State};
use super::types::HostOffset;

impl Image {
    /// Gives up entries of L1 and L2 tables that break the format, point past the end of the file
    /// or at other structures; returns how many. Every access to what they stand for fails before;
    /// afterwards a cluster reads as zeroes (version 2: is unallocated), and where a whole L2 table
    /// is gone, its clusters are unallocated. A table that two entries of one L1 table name stays with
    /// the first. Snapshots' tables are part of it.
    pub(super) fn give_up_invalid(&self, state: &State) -> Result<u64> {
        let header = &state.header.header;
        let active = (header.l1_offset, header.l1_size);
        let mut seen = BTreeSet::new();
        let mut given_up = 0;
        let snapshots = state.snapshots.iter().map(|snapshot| (snapshot.l1_offset, snapshot.l1_size));
        for (offset, entries) in std::iter::once(active).chain(snapshots) {
            given_up += self.give_up_in_l1(offset, entries, &mut seen)?;
        }
        if given_up > 0 {
            self.file.sync()?;
            self.maps_mut().forget(|_| true);
        }
        Ok(given_up)
    }

    fn give_up_in_l1(&self, offset: u64, entries: u32, seen: &mut BTreeSet<u64>) -> Result<u64> {
        let end = self.file_len.load(Ordering::Acquire);
        let (mut given_up, mut named) = (0, BTreeSet::new());
        let mut l1 = self.read_table_words(offset, u64::from(entries) * 8)?;
        for word in &mut l1 {
            match entry::decode_l1(*word, &self.geo) {
                Ok(None) => {}
                Ok(Some((host, _)))
                    if host.0 < end
                        && !self.is_structure(self.geo.cluster_of(host.0))?
                        && named.insert(host.0) =>
                {
                    if seen.insert(host.0) {
                        given_up += self.give_up_in_l2(host)?;
                    }
                }
                _ => {
                    *word = 0;
                    given_up += 1;
                }
            }
        }
        if given_up > 0 {
            let out: Vec<u8> = l1.iter().flat_map(|word| word.to_be_bytes()).collect();
            self.file.write_at(&out, offset)?;
        }
        Ok(given_up)
    }

    fn give_up_in_l2(&self, table: HostOffset) -> Result<u64> {
        let words = match self.read_table_words(table.0, self.geo.cluster_size()) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            result => result?,
        };
        let zero = if self.geo.zero_flag { u32::MAX } else { 0 };
        let gone = entry::encode_l2(Standard { zero, ..Standard::default() }, &self.geo);
        let mut given_up = 0;
        let mut out = Vec::with_capacity(words.len() * 8);
        for old in self.entries(&words) {
            let usable = self.is_usable(old)?;
            given_up += u64::from(!usable);
            self.encode_entry(if usable { old } else { gone }, &mut out);
        }
        if given_up > 0 {
            self.file.write_at(&out, table.0)?;
        }
        Ok(given_up)
    }

    /// Whether an entry can be followed to where data may be.
    fn is_usable(&self, entry: L2Entry) -> Result<bool> {
        let end = self.geo.round_up(self.file_len.load(Ordering::Acquire));
        let maps = self.maps();
        let clusters = match entry::decode_l2(entry, &self.geo) {
            Err(_) => return Ok(false),
            Ok(cluster) if self.is_past(cluster, end) => return Ok(false),
            Ok(Cluster::Compressed(compressed)) => compressed.clusters(&self.geo),
            Ok(Cluster::Standard(standard)) => match standard.host.filter(|_| !self.geo.data_file) {
                Some(host) => self.geo.cluster_of(host.0)..=self.geo.cluster_of(host.0),
                None => return Ok(true),
            },
        };
        for cluster in clusters {
            if self.structure_at(&maps, cluster)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
