//! Checking an image: every reference counted, compared with the refcounts,
//! and with the COPIED flags.
//!
//! Neighbours: `repair` acts on what this finds; `counts` holds the sums. Each
//! table is read once, whatever number of references it has, so that a hostile
//! image costs no more than its length.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::super::error::{Error, ErrorKind, Result};
use super::super::storage::Storage;
use super::counts::Counts;
use super::entry::{self, Cluster, L2Entry};
use super::extension;
use super::header::AUTOCLEAR_BITMAPS;
use super::image::{Image, State, corrupt};
use super::sync::lock;
use super::types::HostOffset;

/// Most bitmaps that are followed, and the largest directory in bytes; qemu makes no more.
const BITMAPS_MAX: u32 = 65535;
const BITMAP_DIRECTORY_MAX: u64 = 64 << 20;

/// Messages that a report keeps.
const MESSAGES: usize = 100;

/// What a check found; the counts are those of `qemu-img check`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Clusters and entries that contradict the refcounts so that data may be lost.
    pub corruptions: u64,
    /// Clusters whose refcount is higher than their references.
    pub leaks: u64,
    /// Parts that could not be checked.
    pub check_errors: u64,
    /// Guest clusters of the disk.
    pub total_clusters: u64,
    /// Guest clusters with a host cluster or compressed data.
    pub allocated_clusters: u64,
    /// Of these, ones that do not follow their predecessor in the file.
    pub fragmented_clusters: u64,
    /// Of these, compressed ones.
    pub compressed_clusters: u64,
    /// Offset in bytes where the last cluster in use ends.
    pub image_end_offset: u64,
    /// Entries that a repair gave up, with what they stood for; a check itself gives up nothing.
    pub given_up: u64,
    /// The first findings in words.
    pub messages: Vec<String>,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.corruptions == 0 && self.leaks == 0 && self.check_errors == 0
    }

    pub(super) fn corruption(&mut self, message: impl FnOnce() -> String) {
        self.corruptions += 1;
        self.note(message);
    }

    fn note(&mut self, message: impl FnOnce() -> String) {
        if self.messages.len() < MESSAGES {
            self.messages.push(message());
        }
    }
}

/// How often a table is referred to.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    active: u64,
    inactive: u64,
}

/// References that were found.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) counts: Counts,
    /// A refcount table entry is unusable: the refcounts have to be built anew.
    pub(super) refcounts_broken: bool,
    /// A table could not be read: the counts are too low.
    pub(super) unreadable: Option<Error>,
}

impl References {
    /// All references, or the error that hid some of them: who lowers refcounts to an incomplete
    /// count frees what is in use.
    pub(super) fn complete(mut self) -> Result<Self> {
        self.unreadable.take().map_or(Ok(self), Err)
    }
}

impl Image {
    /// Checks all structures. Other operations wait; what is dirty is written before.
    pub fn check(&self) -> Result<Report> {
        let _all = self.ranges.lock_all()?;
        let mut state = lock(&self.state);
        if self.is_writable() {
            self.flush_state(&mut state)?;
            self.settle_stale_flags(&mut state)?;
        }
        let mut report = Report::default();
        let references = self.references(&state, &mut report)?;
        self.compare(&mut state, &references, &mut report)?;
        self.check_copied(&mut state, &mut report)?;
        Ok(report)
    }

    /// Counts all references.
    pub(super) fn references(&self, state: &State, report: &mut Report) -> Result<References> {
        let mut found = References::default();
        let header = &state.header.header;
        report.total_clusters = self.geo.clusters_for(header.size);
        found.counts.add(0, 1);
        self.count_range(&mut found.counts, header.l1_offset, u64::from(header.l1_size) * 8);
        let mut tables: BTreeMap<u64, Uses> = BTreeMap::new();
        let l1 = self.active_l1(state)?;
        self.count_tables(&l1, |uses| uses.active += 1, &mut tables, report);
        let mut table_bytes = Vec::new();
        for snapshot in &state.snapshots {
            let bytes = u64::from(snapshot.l1_size) * 8;
            self.count_range(&mut found.counts, snapshot.l1_offset, bytes);
            let l1 = self.read_table_words(snapshot.l1_offset, bytes)?;
            self.count_tables(&l1, |uses| uses.inactive += 1, &mut tables, report);
            snapshot.encode(&mut table_bytes);
        }
        self.count_range(&mut found.counts, header.snapshots_offset, table_bytes.len() as u64);
        for (host, uses) in &tables {
            found.counts.add(self.geo.cluster_of(*host), uses.active + uses.inactive);
            match self.read_table_words(*host, self.geo.cluster_size()) {
                Ok(words) => self.count_entries(&words, *uses, &mut found.counts, report),
                Err(error) => {
                    report.check_errors += 1;
                    report.note(|| error.to_string());
                    found.unreadable = Some(error);
                }
            }
        }
        if let Err(error) = self.count_bitmaps(state, &mut found.counts) {
            match error.kind() {
                ErrorKind::Io => return Err(error),
                _ => report.corruption(|| format!("bitmaps: {error}")),
            }
        }
        self.count_refcounts(state, &mut found, report)?;
        let overlaps = self.overlaps(state, table_bytes.len() as u64);
        found.refcounts_broken |= overlaps.refcount_table;
        for _ in 0..overlaps.pairs {
            report.corruption(|| "structures overlap".to_owned());
        }
        Ok(found)
    }

    /// The active L1 table of the file, also when a snapshot is shown.
    fn active_l1(&self, state: &State) -> Result<Vec<u64>> {
        let header = &state.header.header;
        self.read_table_words(header.l1_offset, u64::from(header.l1_size) * 8)
    }

    pub(super) fn count_range(&self, counts: &mut Counts, offset: u64, bytes: u64) {
        let first = self.geo.cluster_of(offset);
        for cluster in first..first + self.geo.clusters_for(bytes) {
            counts.add(cluster, 1);
        }
    }

    /// Big-endian words of the image file.
    pub(super) fn read_table_words(&self, offset: u64, bytes: u64) -> Result<Vec<u64>> {
        self.buffers.with(bytes as usize, |buf| {
            let got = self.file.read_at(buf, offset)?;
            if got == 0 && bytes > 0 {
                let error = Error::new(ErrorKind::UnexpectedEof, "table past end of file");
                return Err(error.with_host(offset));
            }
            buf[got..].fill(0);
            let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            Ok(buf.chunks_exact(8).map(word).collect())
        })
    }

    fn count_tables(
        &self,
        l1: &[u64],
        mut count: impl FnMut(&mut Uses),
        tables: &mut BTreeMap<u64, Uses>,
        report: &mut Report,
    ) {
        let end = self.file_len.load(Ordering::Acquire);
        for (index, word) in l1.iter().enumerate() {
            match entry::decode_l1(*word, &self.geo) {
                Ok(None) => {}
                Ok(Some((host, _))) if host.0 < end => count(tables.entry(host.0).or_default()),
                Ok(_) => report.corruption(|| format!("L1 entry {index} past end of file")),
                Err(fault) => report.corruption(|| format!("L1 entry {index}: {}", fault.text())),
            }
        }
    }

    fn count_entries(&self, words: &[u64], uses: Uses, counts: &mut Counts, report: &mut Report) {
        let times = uses.active + uses.inactive;
        let mut next = 0;
        let end = self.geo.round_up(self.file_len.load(Ordering::Acquire));
        for (index, entry) in self.entries(words).enumerate() {
            match entry::decode_l2(entry, &self.geo) {
                // Not counted: refcounts that are built anew would have to reach that far.
                Ok(cluster) if self.is_past(cluster, end) => {
                    report.corruption(|| format!("L2 entry {index} past end of file"));
                }
                Err(fault) => report.corruption(|| format!("L2 entry {index}: {}", fault.text())),
                Ok(Cluster::Compressed(compressed)) => {
                    let clusters = compressed.clusters(&self.geo);
                    clusters.for_each(|cluster| counts.add(cluster, times));
                    if uses.active > 0 {
                        report.allocated_clusters += 1;
                        report.compressed_clusters += 1;
                        report.fragmented_clusters += 1;
                    }
                }
                Ok(Cluster::Standard(standard)) => {
                    let Some(HostOffset(host)) = standard.host else {
                        continue;
                    };
                    if uses.active > 0 {
                        report.allocated_clusters += 1;
                        report.fragmented_clusters += u64::from(next != 0 && next != host);
                        next = host + self.geo.cluster_size();
                    }
                    if !self.geo.data_file {
                        counts.add(self.geo.cluster_of(host), times);
                    }
                }
            }
        }
    }

    /// Whether a cluster is said to be in the image file from `end` on.
    pub(super) fn is_past(&self, cluster: Cluster, end: u64) -> bool {
        match cluster {
            Cluster::Compressed(compressed) => compressed.host.0 >= end,
            Cluster::Standard(standard) => {
                !self.geo.data_file && standard.host.is_some_and(|host| host.0 >= end)
            }
        }
    }

    /// The entries of an L2 table's words.
    pub(super) fn entries<'w>(&self, words: &'w [u64]) -> impl Iterator<Item = L2Entry> + 'w {
        let extended = self.geo.extended_l2;
        words
            .chunks_exact(self.geo.entry_words())
            .map(move |chunk| L2Entry { word: chunk[0], bitmap: if extended { chunk[1] } else { 0 } })
    }

    fn count_refcounts(&self, state: &State, found: &mut References, report: &mut Report) -> Result<()> {
        let header = &state.header.header;
        // As long as it was found to be, not as the header says: that may be anything.
        let bytes = state.refs.table.len() as u64 * 8;
        self.count_range(&mut found.counts, header.refcount_table_offset, bytes);
        found.refcounts_broken |= state.refs.table.len() == 0;
        let end = self.file_len.load(Ordering::Acquire);
        for (index, word) in state.refs.table.to_vec(&*self.file)?.into_iter().enumerate() {
            match entry::decode_refcount_table(word, &self.geo) {
                Ok(None) => {}
                Ok(Some(host)) if host.0 < end => {
                    let cluster = self.geo.cluster_of(host.0);
                    if found.counts.get(cluster) > 0 {
                        found.refcounts_broken = true;
                        report.corruption(|| format!("refcount block {index} is used twice"));
                    }
                    found.counts.add(cluster, 1);
                }
                _ => {
                    found.refcounts_broken = true;
                    report.corruption(|| format!("refcount table entry {index} is invalid"));
                }
            }
        }
        Ok(())
    }

    /// Clusters of persistent bitmaps, which are only kept as long as nobody writes; without their
    /// autoclear bit they mean nothing.
    pub(super) fn count_bitmaps(&self, state: &State, counts: &mut Counts) -> Result<()> {
        let found = state.extensions.iter().find(|e| e.kind == extension::BITMAPS);
        let consistent = state.header.header.autoclear & AUTOCLEAR_BITMAPS != 0;
        let Some(found) = found.filter(|_| consistent) else {
            return Ok(());
        };
        let data = &found.data;
        let number = super::header::u32_at(data, 0)?;
        let bytes = super::header::u64_at(data, 8)?;
        let offset = super::header::u64_at(data, 16)?;
        if number > BITMAPS_MAX || bytes > BITMAP_DIRECTORY_MAX {
            return Err(corrupt("too many bitmaps"));
        }
        // Tables do not overlap: together they are no longer than the file.
        let mut left = self.geo.round_up(self.file_len.load(Ordering::Acquire));
        self.take_from_file(offset, bytes, &mut left)?;
        self.count_range(counts, offset, bytes);
        let mut directory = vec![0; bytes as usize];
        let got = self.file.read_at(&mut directory, offset)?;
        directory.truncate(got);
        let mut at = 0;
        for _ in 0..number {
            let entry = directory.get(at..).unwrap_or(&[]);
            let table = super::header::u64_at(entry, 0)?;
            let bytes = u64::from(super::header::u32_at(entry, 8)?) * 8;
            let name = super::header::u32_at(entry, 16)? & 0xffff;
            let extra = super::header::u32_at(entry, 20)?;
            self.take_from_file(table, bytes, &mut left)?;
            self.count_bitmap(table, bytes, counts)?;
            at += (24 + name as usize + extra as usize).next_multiple_of(8);
            if at > directory.len() {
                return Err(corrupt("bitmap directory too short"));
            }
        }
        Ok(())
    }

    /// Takes a table of a bitmap from the bytes that are `left`; refuses one that is not in the file.
    fn take_from_file(&self, offset: u64, bytes: u64, left: &mut u64) -> Result<()> {
        let file_len = self.geo.round_up(self.file_len.load(Ordering::Acquire));
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= file_len);
        match left.checked_sub(bytes).filter(|_| inside && self.geo.aligned(offset)) {
            Some(rest) => {
                *left = rest;
                Ok(())
            }
            None => Err(corrupt("table of a bitmap not in the file").with_host(offset)),
        }
    }

    fn count_bitmap(&self, table: u64, bytes: u64, counts: &mut Counts) -> Result<()> {
        let end = self.file_len.load(Ordering::Acquire);
        self.count_range(counts, table, bytes);
        for word in self.read_table_words(table, bytes)? {
            match word & entry::OFFSET_MASK {
                0 => {}
                host if host >= end => return Err(corrupt("bitmap past end of file").with_host(host)),
                host => counts.add(self.geo.cluster_of(host), 1),
            }
        }
        Ok(())
    }

    /// Compares references with refcounts, both ways.
    fn compare(&self, state: &mut State, found: &References, report: &mut Report) -> Result<()> {
        let mut end = 0;
        for (cluster, expected) in found.counts.iter() {
            let stored = self.stored(state, cluster)?;
            if stored < expected {
                report
                    .corruption(|| format!("cluster {cluster} has refcount {stored}, {expected} references"));
            }
        }
        self.for_each_refcount(state, |cluster, stored| {
            end = cluster + 1;
            let expected = found.counts.get(cluster);
            if stored > expected {
                report.leaks += 1;
                report.note(|| format!("cluster {cluster} leaked: {stored} for {expected}"));
            }
        })?;
        report.image_end_offset = end << self.geo.cluster_bits;
        Ok(())
    }

    /// The refcount of a cluster; 0 where its block is unusable, which is reported with its table entry.
    fn stored(&self, state: &mut State, cluster: u64) -> Result<u64> {
        match state.refs.get(&*self.file, cluster) {
            Err(error) if error.kind() != ErrorKind::Io => Ok(0),
            result => result,
        }
    }

    /// Runs `body` for every cluster with a refcount above 0.
    pub(super) fn for_each_refcount(&self, state: &mut State, mut body: impl FnMut(u64, u64)) -> Result<()> {
        let per_block = self.geo.refcounts_per_block();
        let file: &dyn Storage = &*self.file;
        for index in 0..state.refs.table.len() as u64 {
            match state.refs.block(file, index * per_block) {
                Ok(Some(_)) => {}
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                _ => continue,
            }
            let per_slice = state.refs.per_slice();
            for key in index * per_block / per_slice..(index + 1) * per_block / per_slice {
                match state.refs.counts_of(file, key, &mut body) {
                    Ok(()) => {}
                    // A block past the end of the file was reported with its table entry.
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// COPIED has to be set exactly where the refcount is one, in the active tables; and clusters of a data
    /// file have to be at their places.
    fn check_copied(&self, state: &mut State, report: &mut Report) -> Result<()> {
        for (index, word) in self.active_l1(state)?.into_iter().enumerate() {
            let Ok(Some((host, copied))) = entry::decode_l1(word, &self.geo) else {
                continue;
            };
            let count = self.stored(state, self.geo.cluster_of(host.0))?;
            if (count == 1) != copied {
                report.corruption(|| format!("L1 entry {index}: COPIED with refcount {count}"));
            }
            let words = match self.read_table_words(host.0, self.geo.cluster_size()) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => continue,
                Err(_) => {
                    report.check_errors = report.check_errors.max(1);
                    continue;
                }
                Ok(words) => words,
            };
            let first = index as u64 * self.geo.l2_entries();
            for (at, entry) in (first..).zip(self.entries(&words)) {
                let place = entry::decode_l2(entry, &self.geo)
                    .map(|decoded| entry::check_place(decoded, at, &self.geo));
                if let Ok(Err(fault)) = place {
                    report.corruption(|| format!("L2 entry {:#x}: {}", entry.word, fault.text()));
                }
                match self.copied_is_right(state, entry) {
                    Ok(true) => {}
                    Ok(false) => {
                        report.corruption(|| format!("L2 entry {:#x}: COPIED is wrong", entry.word));
                    }
                    Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Whether the COPIED flag of an entry fits the refcount.
    pub(super) fn copied_is_right(&self, state: &mut State, entry: L2Entry) -> Result<bool> {
        match entry::decode_l2(entry, &self.geo) {
            Ok(Cluster::Standard(standard)) => match standard.host {
                None => Ok(true),
                Some(_) if self.geo.data_file => Ok(standard.copied),
                Some(host) => {
                    let cluster = self.geo.cluster_of(host.0);
                    Ok((state.refs.get(&*self.file, cluster)? == 1) == standard.copied)
                }
            },
            _ => Ok(true),
        }
    }
}
