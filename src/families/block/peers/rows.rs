//! The rows of the table: what ours and the peers do, and what bare system
//! calls do for the same.
//!
//! Neighbours: `table` measures them.

use super::qemu::Bench;
use crate::families::block::reference::{TABLE, sparse};
use crate::families::block::{Action, Case, Fate, Io, Order, Packing, Recipe, Walk, Way};

const KIB: u64 = 1024;
const SMALL: u64 = 4 * KIB;
const CLUSTER: u64 = 64 * KIB;

/// A row of the table.
pub(super) struct Row {
    pub label: &'static str,
    /// For the subjects.
    pub case: Case,
    /// For the floor.
    pub floor: Case,
    /// Operations that the time is divided by.
    pub operations: u64,
    pub qemu: Option<Bench>,
}

impl Row {
    /// The label as a part of a scenario's name, which begins with a letter: a size goes to the end.
    pub fn slug(&self) -> String {
        let lower = self.label.to_ascii_lowercase();
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let mut words: Vec<&str> = words.collect();
        if words.first().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
            words.rotate_left(2);
        }
        words.join("_")
    }
}

/// Clusters of the images.
const CLUSTERS: u64 = 512;

/// L2 tables of the sparse image.
const TABLES: u64 = 256;

/// Requests that `qemu-img` is given where they can be repeated.
const MANY: u64 = 40_000;

fn raw(bytes: u64) -> Recipe {
    Recipe::raw(bytes)
}

fn hole(bytes: u64) -> Recipe {
    Recipe { pieces: Default::default(), ..Recipe::raw(bytes) }
}

fn kept(case: Case) -> Case {
    Case { fate: Fate::Kept, ..case }
}

fn bench(walk: &Walk, count: u64, writes: bool) -> Option<Bench> {
    let step = match walk.order {
        Order::Strided(step) => step * walk.stride,
        _ => walk.stride,
    };
    Some(Bench { count, len: walk.len, step, writes, uring: false })
}

/// All rows.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = reads();
    rows.extend(writes());
    rows.extend(queues());
    rows
}

fn reads() -> Vec<Row> {
    let bytes = CLUSTERS * CLUSTER;
    let along = |count, len| Walk::along(Action::Read, count, len);
    let dense = |label, walk: Walk| Row {
        label,
        case: Case::read(Recipe::full(CLUSTERS), walk),
        floor: Case::read(raw(bytes), walk),
        operations: walk.count,
        qemu: bench(&walk, MANY * SMALL / walk.len.max(SMALL) + 2000, false),
    };
    // Into the same memory again and again, as `qemu-img bench` does: a processor's cache has room for it,
    // and with this length the time is that of copying. The threads are what qemu has below its queue.
    let large = |label, way| {
        let mut row = dense(label, along(CLUSTERS / 8, 8 * CLUSTER));
        for case in [&mut row.case, &mut row.floor] {
            (case.way, case.reuses) = (way, true);
        }
        row
    };
    let random = Walk { order: Order::Strided(3_001), ..along(2048, SMALL).among(bytes / SMALL) };
    let packed = |label, packing| {
        let walk = along(64, CLUSTER);
        Row {
            label,
            case: Case::read(Recipe { packing, ..Recipe::full(64) }, walk),
            floor: Case::read(raw(64 * CLUSTER), walk),
            operations: 64,
            qemu: bench(&walk, 640, false),
        }
    };
    let cold = along(TABLES, CLUSTER);
    let cyclic = along(4 * TABLES, SMALL).among(TABLES);
    vec![
        dense("64 KiB sequential read", along(CLUSTERS, CLUSTER)),
        dense("4 KiB random read", random),
        large("512 KiB read", Way::Each),
        large("512 KiB read, 2 threads", Way::Threads(2)),
        Row {
            label: "cold L2 table + 64 KiB read",
            case: Case { fate: Fate::Reopened, ..Case::read(sparse(TABLES), cold.every(TABLE)) },
            floor: Case::read(raw(TABLES * CLUSTER), cold),
            operations: TABLES,
            qemu: bench(&cold.every(TABLE), TABLES, false),
        },
        Row {
            label: "4 KiB reads cycling 256 L2 tables",
            case: Case::read(sparse(TABLES), cyclic.every(TABLE)),
            floor: Case::read(raw(TABLES * CLUSTER), cyclic.every(CLUSTER)),
            operations: 4 * TABLES,
            qemu: bench(&cyclic.every(TABLE), MANY, false),
        },
        packed("64 KiB zlib cluster, text", Packing::Zlib),
        packed("64 KiB zstd cluster, text", Packing::Zstd),
    ]
}

fn writes() -> Vec<Row> {
    let bytes = CLUSTERS * CLUSTER;
    let along = |count, len| Walk::along(Action::Write, count, len);
    let allocating = |label, walk: Walk| Row {
        label,
        case: Case::change(Recipe::empty(bytes), walk),
        floor: Case::change(hole(bytes), walk),
        operations: walk.count,
        qemu: bench(&walk, walk.count, true),
    };
    let over = Walk { order: Order::Strided(3_001), ..along(2048, SMALL).among(bytes / SMALL) };
    let part = along(CLUSTERS, SMALL).every(CLUSTER);
    let whole = along(CLUSTERS, CLUSTER);
    let flushed = |case: Case| {
        let before = case.walks.clone();
        Case { before, walks: Vec::new(), flushes: true, ..case }
    };
    vec![
        allocating("64 KiB allocating write", whole),
        allocating("4 KiB allocating write", along(4096, SMALL)),
        Row {
            label: "4 KiB overwrite",
            case: kept(Case::change(Recipe::full(CLUSTERS), over)),
            floor: kept(Case::change(raw(bytes), over)),
            operations: over.count,
            qemu: bench(&over, MANY, true),
        },
        Row {
            label: "4 KiB copy-on-write (copies 60 KiB)",
            case: Case::change(Recipe::raw(bytes).overlay(), part),
            // The rest of a cluster is read, then the whole of it is written.
            floor: Case {
                walks: vec![
                    Walk { action: Action::Read, ..along(CLUSTERS, CLUSTER - SMALL).every(CLUSTER) },
                    Walk { shift: bytes, ..whole },
                ],
                ..Case::change(Recipe { size: 2 * bytes, ..raw(bytes) }, whole)
            },
            operations: CLUSTERS,
            qemu: bench(&part, CLUSTERS, true),
        },
        Row {
            label: "flush after 512 allocating 64 KiB writes",
            case: flushed(Case::change(Recipe::empty(bytes), whole)),
            floor: flushed(Case::change(hole(bytes), whole)),
            operations: 1,
            qemu: None,
        },
    ]
}

fn queues() -> Vec<Row> {
    let bytes = CLUSTERS * CLUSTER;
    let random = Walk { order: Order::Strided(3_001), ..Walk::along(Action::Read, 2048, SMALL) };
    let random = random.among(bytes / SMALL);
    let queue = |label, io| Row {
        label,
        case: Case::read(Recipe::full(CLUSTERS), random).queued(io, 32, Way::Batches(32)),
        floor: Case::read(raw(bytes), random).queued(io, 32, Way::Batches(32)),
        operations: random.count,
        // Its AIO wants O_DIRECT.
        qemu: bench(&random, MANY, false)
            .filter(|_| io == Io::Uring)
            .map(|bench| Bench { uring: true, ..bench }),
    };
    vec![
        queue("4 KiB random read, AIO, depth 32", Io::Aio),
        queue("4 KiB random read, io_uring, depth 32", Io::Uring),
    ]
}
