//! Finding free host clusters, and growing the refcount structures when the
//! file does: new blocks, and a longer table at a new place.
//!
//! Neighbours: `refcount` holds the counts, `write` and `table` ask for
//! clusters. New blocks are zeroed in the file before the table names them; a
//! new table is complete and on stable storage before the header names it.

use super::super::error::{Error, ErrorKind, Result};
use super::super::io::ZEROES;
use super::super::storage::Storage;
use super::header::REFCOUNT_TABLE_MAX;
use super::paged::Place;
use super::refcount::{HeaderState, Refcounts};
use super::types::HostOffset;
use super::width;

/// No structure may point beyond this offset (specification: "Cluster mapping").
const HOST_MAX: u64 = 1 << 56;

/// Slices of refcounts that one search for a free cluster goes through (64 KiB).
const PARTS: u64 = 16;

/// Host clusters in a row that were handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it starts.
    pub host: HostOffset,
    /// How many clusters.
    pub count: u64,
    /// Nothing was ever there: it reads as zeroes.
    pub virgin: bool,
}

/// Refuses `count` clusters from the first one on where metadata is known to be: the refcounts, which
/// say that they are free, may be wrong.
pub type Clear<'a> = &'a dyn Fn(u64, u64) -> Result<()>;

impl Refcounts {
    /// Hands out between 1 and `max` free clusters in a row, each with refcount 1. New refcount blocks
    /// go where it is `clear`; the caller looks at what it gets itself.
    pub fn allocate(
        &mut self,
        file: &dyn Storage,
        header: &mut HeaderState,
        max: u64,
        clear: Clear<'_>,
    ) -> Result<Run> {
        header.settle(file)?;
        let first = loop {
            let first = self.first_free(file)?;
            if self.block(file, first)?.is_some() {
                break first;
            }
            self.add_blocks(file, header, (first, 1), clear)?;
        };
        let mut count = 1;
        while count < max && self.joins(file, first, count)? {
            count += 1;
        }
        self.take(file, first, count)
    }

    /// The first free cluster that is known. Where nothing is free in the parts that are looked
    /// through at a time, that is one in the last range that has refcounts, or behind it, so that the
    /// first allocation in a large file does not wait for a walk through all of its refcounts; the next
    /// one goes on with the walk.
    fn first_free(&mut self, file: &dyn Storage) -> Result<u64> {
        for _ in 0..PARTS {
            let part = self.cursor / self.per_slice();
            self.cursor = self.next_free_in(file, self.cursor)?;
            if self.cursor / self.per_slice() == part {
                return Ok(self.cursor);
            }
        }
        let last = self.last_range(file)? * self.geo.refcounts_per_block();
        self.next_free(file, self.cursor.max(last))
    }

    /// The last range of clusters that has a refcount block and begins in the file. The file's length
    /// alone would not do: that of a device says nothing.
    fn last_range(&mut self, file: &dyn Storage) -> Result<u64> {
        let most = self.virgin / self.geo.refcounts_per_block();
        let last = match self.last_block {
            Some(last) => last,
            None => self.find_last_block(file)?,
        };
        Ok(last.min(most))
    }

    fn find_last_block(&mut self, file: &dyn Storage) -> Result<u64> {
        let mut last = 0;
        self.table.walk(file, |first, words| {
            let found = words.iter().rposition(|word| *word != 0);
            last = found.map_or(last, |at| last.max((first + at) as u64));
        })?;
        self.last_block = Some(last);
        Ok(last)
    }

    /// Whether the cluster `first + count` is free, has a block, and is as fresh as `first`.
    fn joins(&mut self, file: &dyn Storage, first: u64, count: u64) -> Result<bool> {
        let next = first + count;
        let same = (first >= self.virgin) == (next >= self.virgin);
        Ok(same && self.block(file, next)?.is_some() && self.get(file, next)? == 0)
    }

    /// Hands out exactly `count` clusters in a row, like [`Self::allocate`].
    pub fn allocate_exact(
        &mut self,
        file: &dyn Storage,
        header: &mut HeaderState,
        count: u64,
        clear: Clear<'_>,
    ) -> Result<Run> {
        header.settle(file)?;
        let mut start = self.first_free(file)?;
        loop {
            let missing = self.missing_blocks(file, start, count)?;
            let total = missing + count;
            if let Some(used) = self.first_used(file, start, total)? {
                start = self.next_free(file, used + 1)?;
                continue;
            }
            if missing == 0 {
                return self.take(file, start, count);
            }
            self.add_blocks(file, header, (start, count), clear)?;
            start = self.next_free(file, start)?;
        }
    }

    fn take(&mut self, file: &dyn Storage, first: u64, count: u64) -> Result<Run> {
        for cluster in first..first + count {
            if let Err(error) = self.set(file, cluster, 1) {
                for taken in first..cluster {
                    self.set(file, taken, 0)?;
                }
                return Err(error);
            }
        }
        let virgin = first >= self.virgin;
        self.virgin = self.virgin.max(first + count);
        if self.cursor == first {
            self.cursor = first + count;
        }
        Ok(Run { host: HostOffset(first << self.geo.cluster_bits), count, virgin })
    }

    /// Gives back clusters that nothing in the file ever pointed at.
    pub fn give_back(&mut self, file: &dyn Storage, run: Run) -> Result<()> {
        let first = self.geo.cluster_of(run.host.0);
        for cluster in first..first + run.count {
            self.lower(file, cluster)?;
        }
        Ok(())
    }

    /// The first cluster of `[start, start + count)` that is in use.
    fn first_used(&mut self, file: &dyn Storage, start: u64, count: u64) -> Result<Option<u64>> {
        for cluster in start..start + count {
            if self.get(file, cluster)? != 0 {
                return Ok(Some(cluster));
            }
        }
        Ok(None)
    }

    /// How many blocks are missing for `count` clusters at `start` and the new blocks before them.
    fn missing_blocks(&self, file: &dyn Storage, start: u64, count: u64) -> Result<u64> {
        let mut blocks = 0;
        loop {
            let missing = self.missing_ranges(file, start, blocks + count)?.len() as u64;
            if missing == blocks {
                return Ok(blocks);
            }
            blocks = missing;
        }
    }

    fn missing_ranges(&self, file: &dyn Storage, start: u64, count: u64) -> Result<Vec<u64>> {
        let per = self.geo.refcounts_per_block();
        let mut missing = Vec::new();
        for range in start / per..=(start + count - 1) / per {
            if self.block(file, range * per)?.is_none() {
                missing.push(range);
            }
        }
        Ok(missing)
    }

    /// Makes the blocks that `count` clusters at `start` need, and places them at `start`.
    fn add_blocks(
        &mut self,
        file: &dyn Storage,
        header: &mut HeaderState,
        (start, count): (u64, u64),
        clear: Clear<'_>,
    ) -> Result<()> {
        let blocks = self.missing_blocks(file, start, count)?;
        let missing = self.missing_ranges(file, start, blocks + count)?;
        let end = (start + blocks + count) << self.geo.cluster_bits;
        if end > HOST_MAX {
            return Err(Error::new(ErrorKind::Exhausted, "image file is at its largest size"));
        }
        let last = missing.last().copied().unwrap_or(0);
        if last >= self.table.len() as u64 {
            return self.grow_table(file, header, last + 1, clear);
        }
        clear(start, blocks)?;
        let cluster_size = self.geo.cluster_size();
        for at in 0..blocks {
            zero_cluster(file, (start + at) * cluster_size, cluster_size)?;
        }
        self.virgin = self.virgin.max(start + blocks);
        if let Err(error) = self.point_at(file, &missing, start) {
            for range in &missing {
                self.point_table(file, *range, 0)?;
                self.forget_range(*range);
            }
            return Err(error);
        }
        self.placed.extend(start..start + blocks);
        Ok(())
    }

    /// Makes the clusters from `start` on the blocks of the ranges that lack one, each in use once.
    fn point_at(&mut self, file: &dyn Storage, missing: &[u64], start: u64) -> Result<()> {
        for (host, range) in (start..).zip(missing) {
            self.point_table(file, *range, host << self.geo.cluster_bits)?;
        }
        for (host, _) in (start..).zip(missing) {
            self.set(file, host, 1)?;
        }
        Ok(())
    }

    /// Moves the table to a longer one behind everything that it covers.
    fn grow_table(
        &mut self,
        file: &dyn Storage,
        header: &mut HeaderState,
        entries: u64,
        clear: Clear<'_>,
    ) -> Result<()> {
        let (cluster_size, per) = (self.geo.cluster_size(), self.geo.refcounts_per_block());
        let old_len = self.table.len() as u64;
        let start = old_len * per;
        let wish = entries.max(old_len + old_len / 2);
        let mut clusters = self.geo.clusters_for(wish * 8);
        let mut blocks = 1;
        while blocks < (blocks + clusters).div_ceil(per) || clusters * cluster_size / 8 < old_len + blocks {
            blocks = (blocks + clusters).div_ceil(per);
            clusters = clusters.max(self.geo.clusters_for((old_len + blocks) * 8));
        }
        if clusters * cluster_size > REFCOUNT_TABLE_MAX {
            return Err(Error::new(ErrorKind::Exhausted, "refcount table is at its largest size"));
        }
        clear(start, blocks + clusters)?;
        let mut table = self.table.to_vec(file)?;
        table.resize((clusters * cluster_size / 8) as usize, 0);
        for at in 0..blocks {
            let block = self.filled_block(start + at * per, start + blocks + clusters);
            let host = (start + at) * cluster_size;
            file.write_at(&block, host)?;
            table[(old_len + at) as usize] = host;
        }
        let bytes: Vec<u8> = table.iter().flat_map(|word| word.to_be_bytes()).collect();
        let offset = (start + blocks) * cluster_size;
        file.write_at(&bytes, offset)?;
        self.write_dirty(file)?;
        let old = header.header.refcount_table_offset;
        let old_clusters = u64::from(header.header.refcount_table_clusters);
        header.update(file, |header| {
            header.refcount_table_offset = offset;
            header.refcount_table_clusters = clusters as u32;
        })?;
        let end = offset + bytes.len() as u64;
        self.replace_table(Place::new(offset, table.len(), end));
        self.mark_clean();
        self.virgin = self.virgin.max(start + blocks + clusters);
        self.placed.extend(start..start + blocks);
        let first = self.geo.cluster_of(old);
        for cluster in first..first + old_clusters {
            self.lower(file, cluster)?;
        }
        Ok(())
    }

    /// A block from cluster `first` on with refcount 1 for each cluster below `end`.
    fn filled_block(&self, first: u64, end: u64) -> Vec<u8> {
        let mut block = vec![0; self.geo.cluster_size() as usize];
        let used = end.saturating_sub(first).min(self.geo.refcounts_per_block());
        for index in 0..used as usize {
            width::set(&mut block, self.geo.refcount_order, index, 1);
        }
        block
    }
}

/// Zeroes one cluster of the file; cheap clusters by a write, large ones by the host's means.
pub fn zero_cluster(file: &dyn Storage, host: u64, cluster_size: u64) -> Result<()> {
    match ZEROES.get(..cluster_size as usize) {
        Some(zeroes) => file.write_at(zeroes, host),
        None => file.write_zeroes(host, cluster_size),
    }
}
