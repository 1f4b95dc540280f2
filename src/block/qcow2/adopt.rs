//! What a writer has to do with an image before its first write: repair after
//! a crash, and give up what it does not maintain (specification:
//! "incompatible_features", "autoclear_features").
//!
//! Neighbours: `open` calls it; `repair` and `check` do the work.

use super::super::error::Result;
use super::counts::Counts;
use super::extension;
use super::header::{self, AUTOCLEAR_BITMAPS, AUTOCLEAR_RAW};
use super::image::{Image, State};
use super::sync::lock;

impl Image {
    pub(super) fn adopt(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let header = &state.header.header;
        if header.incompatible & header::DIRTY != 0 {
            self.repair_state(&mut state)?;
            self.set_incompatible(&mut state, header::DIRTY, false)?;
        }
        let header = &state.header.header;
        let bitmaps = state.extensions.iter().any(|e| e.kind == extension::BITMAPS);
        if header.version >= 3 && (bitmaps || header.autoclear & !AUTOCLEAR_RAW != 0) {
            self.clear_autoclear(&mut state)?;
        }
        Ok(())
    }

    /// Drops the bitmaps, which a write would make wrong, and gives their clusters back. When they
    /// cannot be followed, their clusters leak and the image stays right.
    fn clear_autoclear(&self, state: &mut State) -> Result<()> {
        let file = &*self.file;
        let mut counts = Counts::default();
        let consistent = state.header.header.autoclear & AUTOCLEAR_BITMAPS != 0;
        let followed = consistent && self.count_bitmaps(state, &mut counts).is_ok();
        let mut extensions = state.extensions.clone();
        extensions.retain(|e| e.kind != extension::BITMAPS);
        let mut header = state.header.header.clone();
        header.autoclear &= AUTOCLEAR_RAW;
        let bytes = header.encode_all(&extensions, &state.backing_name)?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
        state.header.header = header;
        state.extensions = extensions;
        if !followed {
            return Ok(());
        }
        for (cluster, times) in counts.iter() {
            let known = self.maps().meta.get(cluster).is_some();
            for _ in 0..if known { 0 } else { times } {
                if state.refs.get(file, cluster)? > 0 {
                    state.refs.lower(file, cluster)?;
                }
            }
        }
        Ok(())
    }
}
