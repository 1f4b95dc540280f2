//! What an image is made of, and what each block of it reads as.
//!
//! Neighbours: `template` makes the file of a recipe once and copies it;
//! `case` names recipes; `run` compares what a disk reads with them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};

use super::data::{self, Content, Kind, Random};
use super::subject::Format;
use crate::block::qcow2::{CreateOptions, Image, OpenOptions};

pub use crate::block::qcow2::Compression;

/// How the pieces of data of an image are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// As they are.
    #[default]
    Plain,
    /// Each cluster compressed with zlib; the data is text of a stated ratio.
    Zlib,
    /// Each cluster compressed with zstd; the data is text of a stated ratio.
    Zstd,
    /// As clusters that say that they are zero.
    Zero,
}

/// Where the data of an image lies on its disk: `count` pieces of `len` bytes,
/// one every `stride` bytes from 0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pieces {
    /// How many.
    pub count: u64,
    /// Bytes from the start of one to the start of the next.
    pub stride: u64,
    /// Bytes of each.
    pub len: u64,
}

impl Pieces {
    /// One range from 0 on, written in pieces of `len` bytes.
    pub fn dense(count: u64, len: u64) -> Self {
        Self { count, stride: len, len }
    }

    fn has(&self, offset: u64) -> bool {
        self.stride > 0 && offset / self.stride < self.count && offset % self.stride < self.len
    }
}

/// What an image is made of. The same recipe is the same file in each run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// The format of the file.
    pub format: Format,
    /// Bytes of the disk.
    pub size: u64,
    /// Bytes of a cluster.
    pub cluster: u64,
    /// Where there is data.
    pub pieces: Pieces,
    /// How it is stored.
    pub packing: Packing,
    /// Whether the pieces were written in a pseudo-random order, so that
    /// neighbours on the disk are none in the file.
    pub scattered: bool,
    /// Internal snapshots, taken after all was written.
    pub snapshots: u32,
    /// The image under it.
    pub below: Option<Box<Recipe>>,
}

/// Bytes of a cluster where nothing else is said.
pub const CLUSTER: u64 = 64 << 10;

impl Recipe {
    /// A qcow2 image of `size` bytes with clusters of 64 KiB and nothing in it.
    pub fn empty(size: u64) -> Self {
        Self {
            format: Format::Qcow2,
            size,
            cluster: CLUSTER,
            pieces: Pieces::default(),
            packing: Packing::Plain,
            scattered: false,
            snapshots: 0,
            below: None,
        }
    }

    /// A qcow2 image whose clusters are all allocated: `count` of them.
    pub fn full(count: u64) -> Self {
        Self { pieces: Pieces::dense(count, CLUSTER), ..Self::empty(count * CLUSTER) }
    }

    /// A raw image full of data.
    pub fn raw(size: u64) -> Self {
        let pieces = Pieces::dense(size.div_ceil(CLUSTER), CLUSTER.min(size));
        Self { format: Format::Raw, pieces, ..Self::empty(size) }
    }

    /// An empty image over this one.
    #[must_use]
    pub fn overlay(self) -> Self {
        let (size, cluster) = (self.size, self.cluster);
        Self { cluster, below: Some(Box::new(self)), ..Self::empty(size) }
    }

    /// Images below this one.
    pub fn depth(&self) -> u32 {
        self.below.as_ref().map_or(0, |below| below.depth() + 1)
    }

    /// The kind of its data.
    pub fn kind(&self) -> Kind {
        match self.packing {
            Packing::Zlib | Packing::Zstd => Kind::Text,
            Packing::Plain | Packing::Zero => Kind::Random,
        }
    }

    /// What the block at `offset` reads as; `offset` is a block's start.
    pub fn content(&self, offset: u64) -> Content {
        match (self.pieces.has(offset), &self.below) {
            (true, _) if self.packing == Packing::Zero => Content::Zero,
            (true, _) => Content::Written(self.depth()),
            (false, Some(below)) => below.content(offset),
            (false, None) => Content::Zero,
        }
    }

    /// The name of a snapshot.
    pub fn snapshot(number: u32) -> String {
        format!("snapshot{number}")
    }

    /// Makes the file. `below` is the name of the file of the image under it.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn make(&self, path: &Path, below: Option<&str>) -> Result<()> {
        match self.format {
            Format::Raw => self.make_raw(path).with_context(|| format!("cannot make {}", path.display())),
            Format::Qcow2 => self.make_qcow2(path, below),
        }
    }

    fn piece(&self, number: u64) -> (u64, Vec<u8>) {
        let offset = number * self.pieces.stride;
        let mut bytes = vec![0; self.pieces.len.min(self.size - offset) as usize];
        data::fill(self.kind(), &mut bytes, offset, self.depth());
        (offset, bytes)
    }

    fn make_raw(&self, path: &Path) -> std::io::Result<()> {
        let file = File::create_new(path)?;
        file.set_len(self.size)?;
        for number in 0..self.pieces.count {
            let (offset, bytes) = self.piece(number);
            file.write_all_at(&bytes, offset)?;
        }
        // What is still to be written would be, in the middle of a region.
        file.sync_all()
    }

    fn make_qcow2(&self, path: &Path, below: Option<&str>) -> Result<()> {
        let mut options = CreateOptions::new(self.size);
        options.cluster_size = self.cluster;
        if self.packing == Packing::Zstd {
            options.compression = Compression::Zstd;
        }
        if let (Some(name), Some(below)) = (below, &self.below) {
            let format = if below.format == Format::Raw { "raw" } else { "qcow2" };
            options.backing = Some((name.to_owned(), format.to_owned()));
        }
        Image::create(path, &options)?;
        let image = Image::open(path, &OpenOptions::new().writable(true).allow_backing(true))?;
        let mut order: Vec<u64> = (0..self.pieces.count).collect();
        if self.scattered {
            Random::new(self.pieces.count).shuffle(&mut order);
        }
        for number in order {
            let (offset, bytes) = self.piece(number);
            match self.packing {
                Packing::Plain => image.write(offset, &bytes)?,
                Packing::Zlib | Packing::Zstd => image.write_compressed(offset, &bytes)?,
                Packing::Zero => image.write_zeroes(offset, bytes.len() as u64, true)?,
            }
        }
        for number in 0..self.snapshots {
            image.create_snapshot(&Self::snapshot(number))?;
        }
        image.flush()?;
        drop(image);
        self.pad(path).with_context(|| format!("cannot pad {}", path.display()))
    }

    /// Ends a file with compressed clusters at a cluster's end, as qemu does: there are readers that
    /// want the last of them up to the end of its sector.
    fn pad(&self, path: &Path) -> std::io::Result<()> {
        if !matches!(self.packing, Packing::Zlib | Packing::Zstd) {
            return Ok(());
        }
        let file = File::options().write(true).open(path)?;
        file.set_len(file.metadata()?.len().next_multiple_of(self.cluster))?;
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reads_as_what_wrote_it_last() {
        let base = Recipe::raw(4 * CLUSTER);
        let over =
            Recipe { pieces: Pieces { count: 2, stride: 2 * CLUSTER, len: CLUSTER }, ..base.overlay() };
        assert_eq!(over.content(0), Content::Written(1));
        assert_eq!(over.content(CLUSTER), Content::Written(0));
        assert_eq!(over.content(2 * CLUSTER), Content::Written(1));
        assert_eq!(over.content(3 * CLUSTER), Content::Written(0));
        let zero = Recipe { packing: Packing::Zero, ..Recipe::full(2) };
        assert_eq!(zero.content(0), Content::Zero);
        assert_eq!(Recipe::empty(CLUSTER).content(0), Content::Zero);
    }

    /// What was made reads, through the image, as the recipe says.
    #[test]
    fn files_hold_what_the_recipe_says() {
        let dir = tempfile::tempdir().expect("a folder");
        Recipe::raw(8 * CLUSTER).make(&dir.path().join("base"), None).expect("made");
        let recipes = [
            Recipe { scattered: true, ..Recipe::full(8) },
            Recipe { packing: Packing::Zlib, ..Recipe::full(8) },
            Recipe { packing: Packing::Zstd, ..Recipe::full(8) },
            Recipe { packing: Packing::Zero, snapshots: 1, ..Recipe::full(8) },
            Recipe {
                pieces: Pieces { count: 2, stride: 4 * CLUSTER, len: CLUSTER },
                ..Recipe::raw(8 * CLUSTER).overlay()
            },
        ];
        for (number, recipe) in recipes.iter().enumerate() {
            let path = dir.path().join(format!("image{number}"));
            recipe.make(&path, recipe.below.as_ref().map(|_| "base")).expect("made");
            let image = Image::open(&path, &OpenOptions::new().allow_backing(true)).expect("open");
            let mut block = vec![0; data::BLOCK];
            for offset in (0..recipe.size).step_by(data::BLOCK) {
                image.read(offset, &mut block).expect("read");
                data::check(recipe.kind(), &block, offset, recipe.content(offset)).expect("right");
            }
            let packed = std::fs::metadata(&path).expect("there").len();
            let compressed = matches!(recipe.packing, Packing::Zlib | Packing::Zstd);
            assert!(!compressed || packed < 12 * CLUSTER, "{packed} bytes");
            assert_eq!(image.snapshots().len(), recipe.snapshots as usize);
        }
    }
}
