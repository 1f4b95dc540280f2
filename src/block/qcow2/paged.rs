//! A table of 64-bit words in the file (the L1 table, the refcount table), of
//! which memory holds the pieces that somebody asked for. Opening reads none of
//! it, so that its cost does not follow the disk's size.
//!
//! Neighbours: `table` and `refcount` look words up and change them, `flush`
//! writes what changed, `survey` goes through whole tables once.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::error::{Error, ErrorKind, Result};
use super::super::storage::Storage;

/// Words in a piece, which is what one read brings into memory.
const PIECE: usize = 512;
const PIECE_BYTES: u64 = PIECE as u64 * 8;
/// Words in a sector, which is what a write changes at the least.
const SECTOR: usize = 64;
/// Most bytes of one read of a walk through the table.
const STRIDE: u64 = 64 << 10;

/// Where a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its first byte in the file.
    pub offset: u64,
    /// Words.
    pub len: usize,
    /// Bytes of it that the file has; the rest of the last cluster may be missing, and reads as zeroes.
    pub present: u64,
}

impl Place {
    /// `len` words at `offset` of a file of `file_len` bytes.
    pub fn new(offset: u64, len: usize, file_len: u64) -> Self {
        Self { offset, len, present: (len as u64 * 8).min(file_len.saturating_sub(offset)) }
    }
}

/// A table, as far as it is in memory.
#[derive(Debug, Default)]
pub struct Paged {
    place: Place,
    /// The words of each piece; none of them where all are zero.
    pieces: Vec<OnceLock<Box<[u64]>>>,
    kept: AtomicUsize,
    /// Sectors that differ from the file.
    dirty: BTreeSet<usize>,
    /// Pieces that are kept before those that are clean are forgotten.
    most: usize,
    /// Bits that are read as 0, whatever the file says.
    hidden: u64,
}

impl Paged {
    /// A table in the file; nothing is read. Memory holds about `bytes` of it at most.
    pub fn new(place: Place, bytes: u64) -> Self {
        let pieces = (0..place.len.div_ceil(PIECE)).map(|_| OnceLock::new()).collect();
        let most = (bytes / PIECE_BYTES).max(16) as usize;
        Self { place, pieces, most, ..Self::default() }
    }

    /// Words.
    pub fn len(&self) -> usize {
        self.place.len
    }

    /// The word at `index`; 0 past the end.
    pub fn get(&self, file: &dyn Storage, index: usize) -> Result<u64> {
        let Some(cell) = self.pieces.get(index / PIECE) else {
            return Ok(0);
        };
        let piece = match cell.get() {
            Some(piece) => piece,
            None => {
                let words = self.load(file, index / PIECE)?;
                self.keep(index / PIECE, &words);
                cell.get_or_init(Box::default)
            }
        };
        Ok(piece.get(index % PIECE).copied().unwrap_or(0) & !self.hidden)
    }

    /// Shows every word of the file that may be other than zero to `body`, piece by piece with the
    /// index of the first. What is in memory is not read again, nor what the file system says is a hole.
    pub fn walk(&self, file: &dyn Storage, mut body: impl FnMut(usize, &[u64])) -> Result<()> {
        let Place { offset, present, .. } = self.place;
        let (mut at, mut step) = (0, PIECE_BYTES);
        while at < present {
            let known = self.pieces.get((at / PIECE_BYTES) as usize).and_then(OnceLock::get);
            if let Some(piece) = known {
                body((at / 8) as usize, piece);
                at += PIECE_BYTES;
                continue;
            }
            if present > PIECE_BYTES {
                let Some(data) = file.next_data(offset + at)? else {
                    return Ok(());
                };
                let next = data.saturating_sub(offset) & !(PIECE_BYTES - 1);
                if next > at {
                    // Small steps where there are holes, larger ones where there are none.
                    (at, step) = (next, PIECE_BYTES);
                    continue;
                }
            }
            let words = read_words(file, offset + at, step.min(present - at))?;
            for (first, piece) in (at as usize / 8..).step_by(PIECE).zip(words.chunks(PIECE)) {
                body(first, piece);
            }
            at += step;
            step = (2 * step).min(STRIDE);
        }
        Ok(())
    }

    fn load(&self, file: &dyn Storage, number: usize) -> Result<Vec<u64>> {
        let from = number as u64 * PIECE_BYTES;
        let len = PIECE_BYTES.min(self.place.present.saturating_sub(from));
        read_words(file, self.place.offset + from, len)
    }

    /// Keeps a piece that was read, if nobody has kept it before.
    pub fn keep(&self, number: usize, words: &[u64]) {
        let used = words.iter().any(|word| *word != 0);
        let words = if used { words.into() } else { Box::default() };
        if let Some(cell) = self.pieces.get(number)
            && cell.set(words).is_ok()
            && used
        {
            self.kept.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Keeps the piece that begins at word `first`; see [`Self::keep`].
    pub fn keep_from(&self, first: usize, words: &[u64]) {
        let room = self.kept.load(Ordering::Relaxed) < self.most;
        let whole = room && words.len() == PIECE.min(self.place.present as usize / 8 - first);
        if whole && first.is_multiple_of(PIECE) {
            self.keep(first / PIECE, words);
        }
    }

    /// Changes the word at `index`, which is in the table. Nothing is changed where that fails.
    pub fn set(&mut self, file: &dyn Storage, index: usize, word: u64) -> Result<()> {
        self.get(file, index)?;
        let len = PIECE.min(self.place.len - index / PIECE * PIECE);
        if let Some(piece) = self.pieces.get_mut(index / PIECE).and_then(OnceLock::get_mut) {
            if piece.is_empty() {
                *self.kept.get_mut() += 1;
            }
            if piece.len() < len {
                let mut words = piece.to_vec();
                words.resize(len, 0);
                *piece = words.into();
            }
            piece[index % PIECE] = word;
            self.dirty.insert(index / SECTOR);
        }
        Ok(())
    }

    /// All words, those that are only in memory too.
    pub fn to_vec(&self, file: &dyn Storage) -> Result<Vec<u64>> {
        let mut all = vec![0; self.place.len];
        self.walk(file, |first, words| all[first..first + words.len()].copy_from_slice(words))?;
        for (number, piece) in self.pieces.iter().enumerate() {
            if let Some(piece) = piece.get().filter(|piece| !piece.is_empty()) {
                all[number * PIECE..][..piece.len()].copy_from_slice(piece);
            }
        }
        all.iter_mut().for_each(|word| *word &= !self.hidden);
        Ok(all)
    }

    /// Reads `bits` as 0 from now on.
    pub fn hide(&mut self, bits: u64) {
        self.hidden = bits;
    }

    /// Whether the file lacks a change.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Writes the changed sectors, neighbours in one request. They count as dirty until
    /// [`Self::mark_clean`], which belongs after the barrier.
    pub fn write_dirty(&self, file: &dyn Storage) -> Result<()> {
        let (mut start, mut bytes) = (0, Vec::new());
        for sector in &self.dirty {
            let offset = self.place.offset + (sector * SECTOR) as u64 * 8;
            if start + bytes.len() as u64 != offset {
                write_some(file, start, &bytes)?;
                bytes.clear();
                start = offset;
            }
            let index = sector * SECTOR;
            let piece = self.pieces.get(index / PIECE).and_then(OnceLock::get);
            let words = piece.and_then(|piece| piece.get(index % PIECE..)).unwrap_or_default();
            words.iter().take(SECTOR).for_each(|word| bytes.extend_from_slice(&word.to_be_bytes()));
        }
        write_some(file, start, &bytes)
    }

    /// Says that the file has what is here, also where it ended within the table before.
    pub fn mark_clean(&mut self) {
        if let Some(last) = self.dirty.last() {
            let end = ((last + 1) * SECTOR).min(self.place.len) as u64 * 8;
            self.place.present = self.place.present.max(end);
        }
        self.dirty.clear();
    }

    /// Forgets what is clean, if too much is kept.
    pub fn trim(&mut self) {
        if *self.kept.get_mut() > self.most {
            self.forget_clean();
        }
    }

    fn forget_clean(&mut self) {
        let dirty: BTreeSet<usize> = self.dirty.iter().map(|sector| sector * SECTOR / PIECE).collect();
        for (number, piece) in self.pieces.iter_mut().enumerate() {
            if !dirty.contains(&number) {
                piece.take();
            }
        }
        *self.kept.get_mut() = dirty.len();
    }

    /// Bytes of words in memory.
    pub fn bytes(&self) -> u64 {
        (self.kept.load(Ordering::Relaxed) * PIECE * 8) as u64
    }
}

fn write_some(file: &dyn Storage, start: u64, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() { Ok(()) } else { file.write_at(bytes, start) }
}

/// `len` bytes at `offset` as big-endian words.
fn read_words(file: &dyn Storage, offset: u64, len: u64) -> Result<Vec<u64>> {
    let mut bytes = vec![0; len as usize];
    if !bytes.is_empty() && file.read_at(&mut bytes, offset)? < bytes.len() {
        return Err(Error::new(ErrorKind::UnexpectedEof, "file ends within a table").with_host(offset));
    }
    let word = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
    Ok(bytes.as_chunks::<8>().0.iter().map(word).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::mem::storage::MemStorage;
    use super::*;

    /// A table of 2,000 words at 4,096, every hundredth of which is its index, cut after 1,999.
    fn table() -> (MemStorage, Paged) {
        let file = MemStorage::new();
        for index in (0..1900_u64).step_by(100) {
            file.write_at(&index.to_be_bytes(), 4096 + 8 * index).expect("write");
        }
        file.set_len(4096 + 8 * 1999).expect("length");
        let place = Place::new(4096, 2000, file.len().expect("length"));
        (file, Paged::new(place, 0))
    }

    #[test]
    fn words_are_read_when_they_are_asked_for() {
        let (file, table) = table();
        let reads = || file.faults().calls(crate::block::faults::Target::Read);
        assert_eq!((reads(), table.bytes()), (0, 0));
        assert_eq!((table.get(&file, 100).ok(), table.get(&file, 101).ok()), (Some(100), Some(0)));
        assert_eq!((reads(), table.bytes()), (1, 4096));
        assert_eq!((table.get(&file, 1999).ok(), table.get(&file, 2000).ok()), (Some(0), Some(0)));
        assert_eq!(table.get(&file, 1 << 40).ok(), Some(0));
        assert_eq!(reads(), 2);
    }

    #[test]
    fn changes_are_written_by_sectors_and_survive_a_trim() {
        let (file, mut table) = table();
        for index in [1, 64, 700, 1999] {
            table.set(&file, index, 7).expect("change");
        }
        let writes = file.faults().calls(crate::block::faults::Target::Write);
        table.forget_clean();
        assert_eq!(table.get(&file, 64).ok(), Some(7));
        let all = table.to_vec(&file).expect("words");
        assert_eq!((all[1], all[100], all[700], all[1999], all.len()), (7, 100, 7, 7, 2000));
        table.write_dirty(&file).expect("write");
        assert_eq!(file.faults().calls(crate::block::faults::Target::Write) - writes, 3);
        table.mark_clean();
        table.forget_clean();
        assert!(!table.is_dirty() && table.bytes() == 0);
        assert_eq!((table.get(&file, 700).ok(), table.get(&file, 1800).ok()), (Some(7), Some(1800)));
        assert_eq!(table.get(&file, 1999).ok(), Some(7), "the file was longer from then on");
        table.hide(3);
        assert_eq!(table.get(&file, 700).ok(), Some(4));
    }

    #[test]
    fn a_walk_sees_every_word_once() {
        let (file, table) = table();
        let mut seen = Vec::new();
        let mut end = 0;
        let walked = table.walk(&file, |first, words| {
            assert!(first >= end);
            end = first + words.len();
            seen.extend(words.iter().enumerate().filter(|(_, w)| **w > 0).map(|(at, w)| (first + at, *w)));
        });
        walked.expect("walk");
        let expected: Vec<(usize, u64)> = (100..1900).step_by(100).map(|at| (at, at as u64)).collect();
        assert_eq!((seen, end), (expected, 1999));
    }
}
