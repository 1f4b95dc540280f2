//! What a scenario does, as plain data: an image, how it is opened, and the
//! operations on it.
//!
//! Neighbours: `reference` and `beyond` write cases down; `run` carries them out.

use super::data::Random;
use super::recipe::{Packing, Recipe};
use super::subject::{Feature, Format, Io, PageCache, Setting};

/// What one operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Gives the range back.
    Discard,
    /// Makes the range read as zeroes.
    WriteZeroes,
    /// Makes all of it durable.
    Flush,
    /// Makes an internal snapshot; its number is the offset.
    CreateSnapshot,
    /// Removes an internal snapshot; its number is the offset.
    DeleteSnapshot,
    /// Makes the disk longer; the new length is the offset.
    Resize,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What.
    pub action: Action,
    /// Where it starts, in bytes.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// The order in which places are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending, and from the start again.
    Ascending,
    /// A fixed pseudo-random order in which no place comes twice.
    Shuffled,
    /// Ascending, then descending, and so on: what was used last comes first.
    ThereAndBack,
    /// So many places on each time, and from the start again.
    Strided(u64),
}

/// Operations of one kind (or of two) over places at equal distances.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// What each does.
    pub action: Action,
    /// How many operations.
    pub count: u64,
    /// Bytes of each.
    pub len: u64,
    /// Bytes from one place to the next.
    pub stride: u64,
    /// Places; `count` where it is 0.
    pub places: u64,
    /// Bytes from a place to the operation.
    pub shift: u64,
    /// The order of places.
    pub order: Order,
    /// How many of ten operations write, where `action` is a read.
    pub writes_in_ten: u64,
}

impl Walk {
    /// `count` operations of `len` bytes, one behind the other.
    pub fn along(action: Action, count: u64, len: u64) -> Self {
        Self {
            action,
            count,
            len,
            stride: len,
            places: 0,
            shift: 0,
            order: Order::Ascending,
            writes_in_ten: 0,
        }
    }

    /// The same in a fixed pseudo-random order.
    #[must_use]
    pub fn shuffled(self) -> Self {
        Self { order: Order::Shuffled, ..self }
    }

    /// The same at places that are `stride` bytes apart.
    #[must_use]
    pub fn every(self, stride: u64) -> Self {
        Self { stride, ..self }
    }

    /// The same, with these places to choose from.
    #[must_use]
    pub fn among(self, places: u64) -> Self {
        Self { places, ..self }
    }

    fn place(&self, index: u64, places: u64) -> u64 {
        match self.order {
            Order::ThereAndBack if index / places % 2 == 1 => places - 1 - index % places,
            Order::Strided(step) => index * step % places,
            _ => index % places,
        }
    }

    /// The operations.
    pub fn steps(&self) -> Vec<Step> {
        let places = if self.places == 0 { self.count } else { self.places };
        let mut order: Vec<u64> = (0..places).collect();
        let mut random = Random::new(self.count ^ (self.len << 20) ^ (places << 40));
        if self.order == Order::Shuffled {
            random.shuffle(&mut order);
        }
        (0..self.count)
            .map(|index| {
                let offset = order[self.place(index, places) as usize] * self.stride + self.shift;
                let writes = self.writes_in_ten > 0 && random.below(10) < self.writes_in_ten;
                let action = if writes { Action::Write } else { self.action };
                Step { action, offset, len: self.len }
            })
            .collect()
    }
}

/// How operations are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One after the other, by the methods that wait.
    Each,
    /// All submitted one by one, then all taken.
    SubmitEach,
    /// In batches of this size: each is submitted at once, then all of it is taken.
    Batches(u32),
    /// All have been submitted and have landed; only taking them is measured.
    Drain,
    /// By as many threads, each with its own part.
    Threads(u32),
    /// Opening the image is all there is; no operations.
    Open,
}

/// The image of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Open from one iteration to the next: what an iteration does is undone by doing it again.
    Kept,
    /// Opened anew for each iteration, so that nothing is in the subject's memory.
    Reopened,
    /// A copy of its own for each iteration.
    Fresh,
}

/// What a scenario does.
#[derive(Clone, Debug)]
pub struct Case {
    /// The image.
    pub recipe: Recipe,
    /// How it is opened.
    pub setting: Setting,
    /// What happens in set-up.
    pub before: Vec<Walk>,
    /// What is measured.
    pub walks: Vec<Walk>,
    /// Whether a flush ends the region.
    pub flushes: bool,
    /// How operations are handed over.
    pub way: Way,
    /// Whether all reads (of a thread) go into one buffer, which a processor's cache may keep. What the last
    /// of them brought is looked at. For reads of one length that are waited for.
    pub reuses: bool,
    /// The image of an iteration.
    pub fate: Fate,
}

impl Case {
    /// Reads in `way` of an image that is opened once.
    pub fn read(recipe: Recipe, walk: Walk) -> Self {
        let setting = Setting {
            format: recipe.format,
            io: Io::Sync,
            depth: 1,
            cache: PageCache::Warm,
            writable: false,
            l2_tables: None,
        };
        Self {
            recipe,
            setting,
            before: Vec::new(),
            walks: vec![walk],
            flushes: false,
            way: Way::Each,
            reuses: false,
            fate: Fate::Kept,
        }
    }

    /// Changes of a new copy for each iteration.
    pub fn change(recipe: Recipe, walk: Walk) -> Self {
        let mut case = Self::read(recipe, walk);
        case.setting.writable = true;
        case.fate = Fate::Fresh;
        case
    }

    /// The same over a queue.
    #[must_use]
    pub fn queued(mut self, io: Io, depth: u32, way: Way) -> Self {
        self.setting.io = io;
        self.setting.depth = depth;
        self.way = way;
        self
    }

    /// The same with the page cache in this state.
    #[must_use]
    pub fn cache(mut self, cache: PageCache) -> Self {
        self.setting.cache = cache;
        self
    }

    /// The measured operations.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.walks.iter().flat_map(Walk::steps).collect();
        if self.flushes {
            steps.push(Step { action: Action::Flush, offset: 0, len: 0 });
        }
        steps
    }

    /// The operation whose bytes each buffer has in the end.
    pub(super) fn last_steps(&self) -> Vec<Step> {
        let steps = self.steps();
        let share = match (self.reuses, self.way) {
            (false, _) => 1,
            (true, Way::Threads(threads)) => steps.len().div_ceil(threads as usize),
            (true, _) => steps.len(),
        };
        steps.chunks(share.max(1)).filter_map(|part| part.last().copied()).collect()
    }

    /// What happens in set-up.
    pub fn steps_before(&self) -> Vec<Step> {
        self.before.iter().flat_map(Walk::steps).collect()
    }

    /// What it needs beyond reading and writing.
    pub fn features(&self) -> Vec<Feature> {
        let mut features = Vec::new();
        let mut need = |feature, needed: bool| {
            if needed && !features.contains(&feature) {
                features.push(feature);
            }
        };
        need(Feature::Queue, self.setting.io != Io::Sync);
        need(Feature::CacheSize, self.setting.l2_tables.is_some());
        need(Feature::Threads, matches!(self.way, Way::Threads(_)));
        let mut below = Some(&self.recipe);
        while let Some(recipe) = below {
            need(Feature::Backing, recipe.below.is_some());
            need(Feature::Zlib, recipe.packing == Packing::Zlib);
            need(Feature::Zstd, recipe.packing == Packing::Zstd);
            need(Feature::Snapshots, recipe.snapshots > 0);
            below = recipe.below.as_deref();
        }
        for walk in self.before.iter().chain(&self.walks) {
            match walk.action {
                Action::Discard => need(Feature::Discard, true),
                Action::WriteZeroes => need(Feature::WriteZeroes, true),
                Action::CreateSnapshot | Action::DeleteSnapshot => need(Feature::SnapshotOps, true),
                Action::Resize => need(Feature::Resize, true),
                Action::Read | Action::Write | Action::Flush => {}
            }
        }
        features
    }

    /// Operations in the region and the bytes that they read and write.
    pub fn amount(&self) -> (u64, u64) {
        let count = self.walks.iter().map(|walk| walk.count).sum::<u64>() + u64::from(self.flushes);
        let moves = |walk: &&Walk| matches!(walk.action, Action::Read | Action::Write);
        (count, self.walks.iter().filter(moves).map(|walk| walk.count * walk.len).sum())
    }

    /// Why the instruction counts of this case differ from run to run with any subject, if they do.
    pub fn varies(&self) -> Option<&'static str> {
        matches!(self.way, Way::Threads(_)).then_some("threads take turns as the system lets them")
    }

    /// Whether the image is raw.
    pub fn is_raw(&self) -> bool {
        self.recipe.format == Format::Raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn offsets(walk: Walk) -> Vec<u64> {
        walk.steps().iter().map(|step| step.offset).collect()
    }

    #[test]
    fn walks_visit_what_they_say() {
        let along = Walk::along(Action::Read, 4, 10);
        assert_eq!(offsets(along), [0, 10, 20, 30]);
        assert_eq!(offsets(along.every(100)), [0, 100, 200, 300]);
        assert_eq!(offsets(along.among(3)), [0, 10, 20, 0]);
        let back = Walk { count: 7, order: Order::ThereAndBack, ..along.among(3) };
        assert_eq!(offsets(back), [0, 10, 20, 20, 10, 0, 0]);
        let shuffled = Walk::along(Action::Write, 64, 4096).among(2048).shuffled();
        let distinct: BTreeSet<u64> = offsets(shuffled).into_iter().collect();
        assert_eq!(distinct.len(), 64);
        assert!(distinct.iter().all(|offset| offset % 4096 == 0 && offset / 4096 < 2048));
        assert_eq!(offsets(shuffled), offsets(shuffled));
    }

    #[test]
    fn three_of_ten_write() {
        let walk = Walk { writes_in_ten: 3, ..Walk::along(Action::Read, 1000, 512) };
        let writes = walk.steps().iter().filter(|step| step.action == Action::Write).count();
        assert!((250..350).contains(&writes), "{writes} of 1000");
    }
}
