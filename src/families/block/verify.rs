//! What a disk must read as before and after the operations of a case.
//!
//! Neighbours: `recipe` knows what the image began as; `run` asks.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::case::{Action, Case, Step};
use super::data::{self, BLOCK, Content, Kind};
use super::recipe::Recipe;
use super::subject::Disk;

/// The content of a disk, block by block.
pub(super) struct Expected {
    recipe: Recipe,
    /// Blocks that the case changes: whether it writes them, or makes them zero.
    touched: BTreeMap<u64, bool>,
}

impl Expected {
    /// The generation of the first writes of a case; recipes have lower ones.
    pub const FIRST: u32 = 100;

    /// For a case with these operations.
    pub fn new(case: &Case, before: &[Step], steps: &[Step]) -> Self {
        let mut touched = BTreeMap::new();
        for step in before.iter().chain(steps) {
            let writes = match step.action {
                Action::Write => true,
                Action::Discard | Action::WriteZeroes => false,
                _ => continue,
            };
            touched.extend(blocks(step.offset, step.len).map(|block| (block, writes)));
        }
        Self { recipe: case.recipe.clone(), touched }
    }

    /// The kind of data of the case.
    pub fn kind(&self) -> Kind {
        self.recipe.kind()
    }

    /// What the block at `offset` reads as once `generation` has written; 0 is before any did.
    fn content(&self, offset: u64, generation: u32) -> Content {
        match self.touched.get(&offset) {
            Some(true) if generation > 0 => Content::Written(generation),
            Some(false) if generation > 0 => Content::Zero,
            _ => self.recipe.content(offset),
        }
    }

    /// Compares what was read from `offset` on.
    ///
    /// # Errors
    /// A byte is wrong.
    pub fn check(&self, bytes: &[u8], offset: u64, generation: u32) -> Result<()> {
        let start = offset / BLOCK as u64 * BLOCK as u64;
        for (block, at) in bytes.chunks(BLOCK).zip((start..).step_by(BLOCK)) {
            data::check(self.kind(), block, at, self.content(at, generation))?;
        }
        Ok(())
    }

    /// Reads what a step changed, and all of the clusters that it lies in, and compares.
    ///
    /// # Errors
    /// A byte is wrong, or cannot be read.
    pub fn read_back(&self, disk: &mut dyn Disk, step: &Step, generation: u32) -> Result<()> {
        let (mut start, mut end) = (step.offset, step.offset + step.len);
        match step.action {
            Action::Write | Action::Discard | Action::WriteZeroes => {
                let cluster = self.recipe.cluster;
                start = start / cluster * cluster;
                end = end.next_multiple_of(cluster).min(self.recipe.size);
            }
            // The last of the new bytes.
            Action::Resize => (start, end) = (step.offset - BLOCK as u64, step.offset),
            _ => return Ok(()),
        }
        let mut bytes = vec![0xa5; (end - start) as usize];
        disk.read(start, &mut bytes).context("reading back")?;
        self.check(&bytes, start, generation).with_context(|| format!("after {:?}", step.action))
    }
}

/// The offsets of the blocks of a range.
fn blocks(offset: u64, len: u64) -> impl Iterator<Item = u64> {
    (offset / BLOCK as u64 * BLOCK as u64..offset + len).step_by(BLOCK)
}

/// Bytes of a sector: reads are seen to have come in at this grain.
const SECTOR: usize = 512;

/// Makes sure that what a buffer held before cannot pass for what is read into it.
pub(super) fn spoil(buffer: &mut [u8]) {
    for sector in buffer.chunks_exact_mut(SECTOR) {
        for byte in &mut sector[..8] {
            *byte = !*byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::block::case::Walk;
    use crate::families::block::recipe::{CLUSTER, Recipe};

    #[test]
    fn what_was_changed_reads_as_changed_and_the_rest_as_before() {
        let case = Case::change(Recipe::full(2), Walk::along(Action::Write, 1, BLOCK as u64));
        let expected = Expected::new(&case, &[], &case.steps());
        assert_eq!(expected.content(0, 0), Content::Written(0));
        assert_eq!(expected.content(0, 100), Content::Written(100));
        assert_eq!(expected.content(BLOCK as u64, 100), Content::Written(0));
        let case = Case::change(Recipe::full(2), Walk::along(Action::Discard, 1, CLUSTER));
        let expected = Expected::new(&case, &[], &case.steps());
        assert_eq!(expected.content(0, 100), Content::Zero);
        assert_eq!(expected.content(CLUSTER, 100), Content::Written(0));
    }

    #[test]
    fn a_spoiled_buffer_is_wrong_in_every_sector() {
        let mut buffer = vec![0; BLOCK];
        data::fill(Kind::Random, &mut buffer, 0, 1);
        let good = buffer.clone();
        spoil(&mut buffer);
        for sector in 0..BLOCK / SECTOR {
            let mut one = good.clone();
            one[sector * SECTOR..][..SECTOR].copy_from_slice(&buffer[sector * SECTOR..][..SECTOR]);
            assert!(data::check(Kind::Random, &one, 0, Content::Written(1)).is_err());
        }
    }
}
