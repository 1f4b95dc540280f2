//! Bytes with holes: a long file costs only what was written to it.
//!
//! Neighbours: `file` keeps its content in it, `crash` builds images of it.

use std::collections::BTreeMap;

/// Bytes kept together.
const CHUNK: usize = 4096;

/// A growing array of bytes; what was never written is 0.
#[derive(Clone, Debug, Default)]
pub struct Sparse {
    chunks: BTreeMap<u64, Box<[u8; CHUNK]>>,
    len: u64,
}

/// The pieces of `[offset, offset + len)` by chunk: number, start within it, length.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset.saturating_add(len);
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let start = (at % CHUNK as u64) as usize;
        let count = (end - at).min((CHUNK - start) as u64) as usize;
        let piece = (at / CHUNK as u64, start, count);
        at += count as u64;
        Some(piece)
    })
}

impl Sparse {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies from `offset` into `buf`; returns the bytes before the end.
    pub fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let count = self.len.saturating_sub(offset).min(buf.len() as u64);
        let mut rest = &mut buf[..count as usize];
        for (number, start, len) in pieces(offset, count) {
            let (piece, after) = rest.split_at_mut(len);
            match self.chunks.get(&number) {
                Some(chunk) => piece.copy_from_slice(&chunk[start..start + len]),
                None => piece.fill(0),
            }
            rest = after;
        }
        count as usize
    }

    /// Copies `data` to `offset`, growing as needed.
    pub fn write(&mut self, data: &[u8], offset: u64) {
        let mut rest = data;
        for (number, start, len) in pieces(offset, data.len() as u64) {
            let (piece, after) = rest.split_at(len);
            let chunk = self.chunks.entry(number).or_insert_with(|| Box::new([0; CHUNK]));
            chunk[start..start + len].copy_from_slice(piece);
            rest = after;
        }
        if !data.is_empty() {
            self.grow(offset.saturating_add(data.len() as u64));
        }
    }

    /// Where bytes are kept, at `offset` or behind it; `None` where only a hole is left.
    pub fn next_data(&self, offset: u64) -> Option<u64> {
        let (&number, _) = self.chunks.range(offset / CHUNK as u64..).next()?;
        Some(offset.max(number * CHUNK as u64)).filter(|&data| data < self.len)
    }

    /// Zeroes `[offset, offset + len)` and frees whole chunks; the length stays.
    pub fn punch(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let touched = offset / CHUNK as u64..=end.saturating_sub(1) / CHUNK as u64;
        let numbers: Vec<u64> = match len {
            0 => Vec::new(),
            _ => self.chunks.range(touched).map(|(&number, _)| number).collect(),
        };
        for number in numbers {
            let base = number * CHUNK as u64;
            let from = offset.max(base) - base;
            let to = end.min(base + CHUNK as u64) - base;
            if to - from == CHUNK as u64 {
                self.chunks.remove(&number);
            } else if let Some(chunk) = self.chunks.get_mut(&number) {
                chunk[from as usize..to as usize].fill(0);
            }
        }
    }

    /// Makes the length at least `len`.
    pub fn grow(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    /// Sets the length; what is cut off is gone.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.punch(len, self.len - len);
        }
        self.len = len;
    }

    /// Ranges that hold data, in order: offset and bytes, cut at the length.
    pub fn data(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.chunks.iter().filter_map(|(&number, chunk)| {
            let offset = number * CHUNK as u64;
            let len = self.len.saturating_sub(offset).min(CHUNK as u64) as usize;
            (len > 0).then(|| (offset, &chunk[..len]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Punch(u64, u64),
        SetLen(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let offset = 0u64..20_000;
        // A seed for the bytes: nine thousand values of their own take Miri minutes.
        let write = (offset.clone(), 1u8.., 0usize..9000);
        let step = prop_oneof![
            write.prop_map(|(at, seed, len)| Step::Write(at, (0..len).map(|n| n as u8 ^ seed).collect())),
            (offset.clone(), 0u64..9000).prop_map(|(at, len)| Step::Punch(at, len)),
            offset.prop_map(Step::SetLen),
        ];
        prop::collection::vec(step, 1..12)
    }

    fn apply(model: &mut Vec<u8>, step: &Step) {
        match step {
            Step::Write(_, data) if data.is_empty() => {}
            Step::Write(at, data) => {
                let (at, end) = (*at as usize, *at as usize + data.len());
                model.resize(model.len().max(end), 0);
                model[at..end].copy_from_slice(data);
            }
            Step::Punch(at, len) => {
                let end = model.len().min((at + len) as usize);
                let at = end.min(*at as usize);
                model[at..end].fill(0);
            }
            Step::SetLen(len) => model.resize(*len as usize, 0),
        }
    }

    proptest! {
        #[test]
        fn it_is_an_array_of_bytes(steps in steps()) {
            let (mut sparse, mut model) = (Sparse::default(), Vec::new());
            for step in &steps {
                match step {
                    Step::Write(at, data) => sparse.write(data, *at),
                    Step::Punch(at, len) => sparse.punch(*at, *len),
                    Step::SetLen(len) => sparse.set_len(*len),
                }
                apply(&mut model, step);
                let mut all = vec![9; model.len() + 3];
                prop_assert_eq!(sparse.read(&mut all, 0), model.len());
                prop_assert_eq!(&all[..model.len()], &model[..]);
                prop_assert_eq!(sparse.len(), model.len() as u64);
            }
        }
    }
}
