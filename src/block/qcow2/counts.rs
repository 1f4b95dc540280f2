//! How often each host cluster is referred to, in memory that follows the
//! references and not the file's length.
//!
//! Neighbours: `check` fills it, `repair` and `snapshot_ops` apply it.

use std::collections::BTreeMap;

/// Clusters that share one allocation.
const CHUNK: u64 = 64;

/// References by host cluster.
#[derive(Debug, Default)]
pub struct Counts {
    chunks: BTreeMap<u64, Box<[u64; CHUNK as usize]>>,
}

impl Counts {
    /// Adds `times` references to `cluster`.
    pub fn add(&mut self, cluster: u64, times: u64) {
        let chunk = self.chunks.entry(cluster / CHUNK).or_insert_with(|| Box::new([0; CHUNK as usize]));
        let count = &mut chunk[(cluster % CHUNK) as usize];
        *count = count.saturating_add(times);
    }

    /// References to `cluster`.
    pub fn get(&self, cluster: u64) -> u64 {
        self.chunks.get(&(cluster / CHUNK)).map_or(0, |chunk| chunk[(cluster % CHUNK) as usize])
    }

    /// Every cluster that is referred to, in ascending order, with its count.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.chunks.iter().flat_map(|(key, chunk)| {
            let counted = chunk.iter().enumerate().filter(|(_, count)| **count > 0);
            counted.map(move |(at, count)| (key * CHUNK + at as u64, *count))
        })
    }

    /// One past the last cluster that is referred to.
    pub fn end(&self) -> u64 {
        let last = self.chunks.iter().next_back();
        last.and_then(|(key, chunk)| {
            let at = chunk.iter().rposition(|count| *count > 0)?;
            Some(key * CHUNK + at as u64 + 1)
        })
        .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_in_order() {
        let mut counts = Counts::default();
        counts.add(1 << 40, 2);
        counts.add(3, 1);
        counts.add(3, 1);
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(3, 2), (1 << 40, 2)]);
        assert_eq!((counts.end(), counts.get(4)), ((1 << 40) + 1, 0));
    }
}
