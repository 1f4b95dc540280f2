//! Scenarios that the reference does not have.
//!
//! Neighbours: `register` registers them; `reference` has the others.

use super::case::{Action, Case, Fate, Order, Walk, Way};
use super::recipe::{CLUSTER, Packing, Pieces, Recipe};
use super::reference::{TABLE, sparse};
use super::subject::{Io, PageCache};

/// Bytes of a small request.
const SMALL: u64 = 4096;

/// Operations of a scenario where nothing else is said.
const OPERATIONS: u64 = 128;

/// Bytes of the disks of scenarios with random requests.
const DISK: u64 = 16 << 20;

/// Submitted before the first is taken.
const DEPTHS: [u32; 4] = [1, 8, 32, 128];

/// Past the page cache a request takes 60 µs instead of one: fewer depths.
const DIRECT_DEPTHS: [u32; 3] = [1, 8, 32];

/// L2 tables that a cache with a limit may hold, as many as the reference's.
const TABLES: usize = 100;

/// Names and cases.
pub(super) fn cases() -> Vec<(String, Case)> {
    let mut all = Vec::new();
    queues(&mut all);
    clusters(&mut all);
    contents(&mut all);
    chains(&mut all);
    snapshots(&mut all);
    sizes(&mut all);
    tables(&mut all);
    threads(&mut all);
    all
}

type Cases = Vec<(String, Case)>;

/// Random requests of 4 KiB through every engine at several depths.
fn queues(all: &mut Cases) {
    for (format, recipe) in [("raw", Recipe::raw(DISK)), ("qcow", Recipe::full(DISK / CLUSTER))] {
        for (name, action, writes_in_ten) in [
            ("rand_read", Action::Read, 0),
            ("rand_write", Action::Write, 0),
            ("rand_mixed", Action::Read, 3),
        ] {
            let walk = Walk::along(action, OPERATIONS, SMALL).among(DISK / SMALL).shuffled();
            let walk = Walk { writes_in_ten, ..walk };
            let mut case = Case { fate: Fate::Kept, ..Case::change(recipe.clone(), walk) };
            case.setting.writable = action == Action::Write || writes_in_ten > 0;
            let mut add = |io: Io, depth: u32, cache: PageCache| {
                let case = case.clone().queued(io, depth, Way::Batches(depth)).cache(cache);
                all.push((format!("{format}_{name}::{}_{}_qd{depth:03}", cache.name(), io.name()), case));
            };
            for io in Io::ALL {
                DEPTHS.iter().for_each(|depth| add(io, *depth, PageCache::Warm));
                DIRECT_DEPTHS.iter().for_each(|depth| add(io, *depth, PageCache::Direct));
            }
        }
        let walk = Walk::along(Action::Read, 32, SMALL).among(DISK / SMALL).shuffled();
        for io in Io::ALL {
            let case = Case { fate: Fate::Reopened, ..Case::read(recipe.clone(), walk) };
            let case = case.queued(io, 32, Way::Batches(32)).cache(PageCache::Cold);
            all.push((format!("{format}_rand_read::cold_{}_qd032", io.name()), case));
        }
    }
}

/// Sizes of clusters.
fn clusters(all: &mut Cases) {
    for (label, cluster, disk) in [("c4k", 4 << 10, 4 << 20), ("c64k", CLUSTER, DISK), ("c2m", 2 << 20, DISK)]
    {
        let full = Recipe { cluster, pieces: Pieces::dense(disk / cluster, cluster), ..Recipe::empty(disk) };
        let empty = Recipe { cluster, ..Recipe::empty(disk) };
        let small = |action| Walk::along(action, OPERATIONS, SMALL).among(disk / SMALL).shuffled();
        all.push((format!("qcow_cluster_rand_read::{label}"), Case::read(full, small(Action::Read))));
        let along = Walk::along(Action::Write, OPERATIONS, SMALL);
        all.push((format!("qcow_cluster_append::{label}"), Case::change(empty, along)));
        // A write of 4 KiB into each cluster; the rest of it comes from below.
        let base = Recipe { cluster, ..Recipe::raw(disk) };
        let (count, shift) = (OPERATIONS.min(disk / cluster), if cluster > SMALL { SMALL } else { 0 });
        let partial = Walk { shift, ..Walk::along(Action::Write, count, SMALL).every(cluster) };
        all.push((format!("qcow_partial_cow::{label}"), Case::change(base.overlay(), partial)));
    }
}

/// What clusters hold.
fn contents(all: &mut Cases) {
    let read = Walk::along(Action::Read, OPERATIONS, CLUSTER);
    let write = Walk::along(Action::Write, OPERATIONS, CLUSTER);
    let packed = |packing| Recipe { packing, ..Recipe::full(OPERATIONS) };
    let mut add = |name: &str, case| all.push((name.to_owned(), case));
    let zstd = Case::read(packed(Packing::Zstd), read);
    add("qcow_zstd_read::sync", zstd.clone());
    add("qcow_zstd_read::uring", zstd.queued(Io::Uring, OPERATIONS as u32, Way::Batches(OPERATIONS as u32)));
    for (label, packing) in [("zlib", Packing::Zlib), ("zstd", Packing::Zstd)] {
        let small = Walk::along(Action::Read, 32, SMALL).every(CLUSTER).among(OPERATIONS).shuffled();
        add(&format!("qcow_compressed_part_read::{label}"), Case::read(packed(packing), small));
        let over = Walk { count: 32, len: SMALL, ..write };
        add(
            &format!("qcow_compressed_part_write::{label}"),
            Case::change(packed(packing), over.every(CLUSTER)),
        );
    }
    add("qcow_zero_read::whole", Case::read(packed(Packing::Zero), read));
    add("qcow_zero_write::whole", Case::change(packed(Packing::Zero), write));
    let part = Walk::along(Action::Write, OPERATIONS, SMALL).every(CLUSTER);
    add("qcow_zero_write::partial", Case::change(packed(Packing::Zero), part));
    let zeroes = Walk::along(Action::WriteZeroes, OPERATIONS, CLUSTER);
    add("qcow_write_zeroes::whole", Case::change(packed(Packing::Plain), zeroes));
    let long = Walk::along(Action::Read, OPERATIONS / 32, 32 * CLUSTER);
    add("qcow_long_read::contiguous", Case::read(packed(Packing::Plain), long));
    let scattered = Recipe { scattered: true, ..packed(Packing::Plain) };
    add("qcow_long_read::scattered", Case::read(scattered, long));
}

/// Images over images.
fn chains(all: &mut Cases) {
    for depth in [1, 2, 8] {
        let mut recipe = Recipe::full(OPERATIONS);
        for _ in 0..depth {
            recipe = recipe.overlay();
        }
        let read = Walk::along(Action::Read, OPERATIONS, SMALL).every(CLUSTER);
        all.push((format!("qcow_chain_read::d{depth:02}"), Case::read(recipe.clone(), read)));
        let write = Walk::along(Action::Write, OPERATIONS, SMALL).every(CLUSTER);
        all.push((format!("qcow_chain_cow::d{depth:02}"), Case::change(recipe, write)));
    }
}

/// Internal snapshots.
fn snapshots(all: &mut Cases) {
    let one = Recipe { snapshots: 1, ..Recipe::full(OPERATIONS) };
    let mut add = |name: &str, recipe: &Recipe, walk, flushes| {
        all.push((name.to_owned(), Case { flushes, ..Case::change(recipe.clone(), walk) }));
    };
    add("qcow_shared_write::whole", &one, Walk::along(Action::Write, OPERATIONS, CLUSTER), false);
    let part = Walk::along(Action::Write, OPERATIONS, SMALL).every(CLUSTER);
    add("qcow_shared_write::partial", &one, part, false);
    add("qcow_shared_discard::whole", &one, Walk::along(Action::Discard, OPERATIONS, CLUSTER), true);
    let number = |action, first| Walk { shift: first, ..Walk::along(action, 1, 0) };
    add("qcow_snapshot::create", &Recipe::full(OPERATIONS), number(Action::CreateSnapshot, 7), false);
    add("qcow_snapshot::delete", &one, number(Action::DeleteSnapshot, 0), false);
}

/// Opening and resizing.
fn sizes(all: &mut Cases) {
    let nothing = Walk::along(Action::Read, 0, 0);
    let open = |recipe| Case { way: Way::Open, ..Case::read(recipe, nothing) };
    all.push(("qcow_open::small".into(), open(Recipe::full(OPERATIONS))));
    let huge = Recipe { size: 1 << 40, ..sparse(OPERATIONS) };
    all.push(("qcow_open::sparse_1tib".into(), open(huge)));
    let mut chain = Recipe::full(OPERATIONS);
    for _ in 0..8 {
        chain = chain.overlay();
    }
    all.push(("qcow_open::chain_d08".into(), open(chain)));
    // To 16 times the size the L1 table stays where it is; to 1 TiB it moves.
    for (name, len) in [("in_place", 16 * DISK), ("moves_l1", 8 << 40)] {
        let resize = Walk { shift: len, ..Walk::along(Action::Resize, 1, 0) };
        all.push((format!("qcow_resize::{name}"), Case::change(Recipe::full(OPERATIONS), resize)));
    }
}

/// More L2 tables than stay in memory, and many that are dirty.
fn tables(all: &mut Cases) {
    for (name, order) in [("cyclic", Order::Ascending), ("there_and_back", Order::ThereAndBack)] {
        let walk = Walk { order, ..Walk::along(Action::Read, 512, SMALL).every(TABLE).among(256) };
        let mut case = Case::read(sparse(256), walk);
        case.setting.l2_tables = Some(TABLES);
        all.push((format!("qcow_l2_eviction::{name}"), case));
    }
    for count in [1, 16, 256] {
        let write = Walk::along(Action::Write, count, SMALL).every(TABLE);
        let mut case = Case::change(sparse(256), Walk { shift: CLUSTER, ..write });
        case.before = std::mem::take(&mut case.walks);
        case.flushes = true;
        all.push((format!("qcow_flush::dirty_l2_{count:03}"), case));
    }
}

/// Several threads on one image.
fn threads(all: &mut Cases) {
    for count in [1, 2, 4] {
        let small = |action| Walk::along(action, 1024, SMALL).among(DISK / SMALL).shuffled();
        let read = Case::read(Recipe::full(DISK / CLUSTER), small(Action::Read));
        all.push((format!("qcow_threads_read::t{count:02}"), Case { way: Way::Threads(count), ..read }));
        let write = Case::change(Recipe::full(DISK / CLUSTER), small(Action::Write));
        let write = Case { fate: Fate::Kept, way: Way::Threads(count), ..write };
        all.push((format!("qcow_threads_write::t{count:02}"), write));
    }
}
