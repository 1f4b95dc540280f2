//! What a writer has to do with an image before its first write: repair after
//! a crash, and give up what it does not maintain (specification:
//! "incompatible_features", "autoclear_features").
//!
//! Neighbours: `open` and `repair` call it; `check` counts for it. Each write
//! to the header cluster is within a sector, so that a cut leaves the old one
//! or the new one.

use super::super::error::Result;
use super::check::Report;
use super::counts::Counts;
use super::extension::{self, Extension};
use super::header::{self, AUTOCLEAR_BITMAPS, AUTOCLEAR_RAW};
use super::image::{Image, State};
use super::sync::lock;

impl Image {
    pub(super) fn adopt(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let header = &state.header.header;
        let bitmaps = state.extensions.iter().any(|e| e.kind == extension::BITMAPS);
        if header.autoclear & !AUTOCLEAR_RAW == 0 && header.incompatible & header::DIRTY == 0 && !bitmaps {
            return Ok(());
        }
        // Before the first change, so that an image that is refused is left as it was.
        self.intact()?;
        self.clear_autoclear(&mut state)?;
        if state.header.header.incompatible & header::DIRTY != 0 {
            self.repair_state(&mut state)?;
            self.set_incompatible(&mut state, header::DIRTY, false)?;
        }
        Ok(())
    }

    /// Gives up what a write would make wrong: bits that are not known, and bitmaps, whose clusters
    /// are given back. When those cannot be followed, they leak and the image stays right.
    pub(super) fn clear_autoclear(&self, state: &mut State) -> Result<()> {
        let header = &state.header.header;
        if header.version < 3 {
            return Ok(());
        }
        let bitmaps = state.extensions.iter().position(|e| e.kind == extension::BITMAPS);
        let unknown = header.autoclear & !AUTOCLEAR_RAW != 0;
        let freed = if bitmaps.is_some() { self.bitmaps_alone(state) } else { Counts::default() };
        if unknown {
            state.header.update(&*self.file, |header| header.autoclear &= AUTOCLEAR_RAW)?;
        }
        if let Some(at) = bitmaps {
            self.drop_extension(state, at)?;
        }
        for (cluster, times) in freed.iter() {
            for _ in 0..times {
                state.refs.lower(&*self.file, cluster)?;
            }
        }
        Ok(())
    }

    /// The clusters that only the bitmaps refer to, as far as the refcounts say the same. Nothing
    /// where the image has to be repaired anyway, which frees them too.
    fn bitmaps_alone(&self, state: &mut State) -> Counts {
        let (mut bitmaps, mut alone) = (Counts::default(), Counts::default());
        let header = &state.header.header;
        let followed = header.incompatible & header::DIRTY == 0
            && header.autoclear & AUTOCLEAR_BITMAPS != 0
            && self.count_bitmaps(state, &mut bitmaps).is_ok();
        if !followed {
            return alone;
        }
        let all = self.references(state, &mut Report::default()).and_then(|all| all.complete());
        let Ok(all) = all else {
            return alone;
        };
        for (cluster, times) in bitmaps.iter() {
            let stored = state.refs.get(&*self.file, cluster).unwrap_or(0);
            if all.counts.get(cluster) == times && stored == times {
                alone.add(cluster, times);
            }
        }
        alone
    }

    /// Takes an extension out of the file. The last one gives its place to the end mark; another one
    /// becomes one that says nothing, because those behind it cannot move within one sector.
    fn drop_extension(&self, state: &mut State, at: usize) -> Result<()> {
        let before = state.extensions.iter().take(at).map(Extension::stored_len).sum::<u64>();
        let offset = u64::from(state.header.header.header_length) + before;
        if at + 1 == state.extensions.len() {
            self.file.write_at(&[0; 8], offset)?;
            state.extensions.truncate(at);
        } else {
            self.file.write_at(&extension::NOTHING.to_be_bytes(), offset)?;
            state.extensions[at].kind = extension::NOTHING;
        }
        self.file.sync()
    }
}
