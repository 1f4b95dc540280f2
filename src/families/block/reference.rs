//! The scenarios of Cloud Hypervisor's block micro-benchmarks under our names:
//! `micro_block_qcow_read_128_us` is `block::qcow_read::n128`.
//!
//! Neighbours: `register` registers them; `beyond` has the others.

use super::case::{Action, Case, Fate, Walk, Way};
use super::recipe::{CLUSTER, Packing, Pieces, Recipe};
use super::subject::Io;

/// The stems of the names, in the order of the reference.
pub(super) const STEMS: [&str; 20] = [
    "raw_aio_drain",
    "qcow_read",
    "qcow_random_read",
    "qcow_write",
    "qcow_punch_hole",
    "qcow_fsync",
    "qcow_backing_read",
    "qcow_cow_write",
    "qcow_compressed_read",
    "qcow_multi_cluster_read",
    "qcow_l2_cache_miss",
    "qcow_async_read",
    "qcow_batch_read",
    "qcow_async_random_read",
    "qcow_async_multi_cluster_read",
    "qcow_async_backing_read",
    "qcow_async_compressed_read",
    "qcow_async_write",
    "qcow_async_l2_cache_miss",
    "qcow_batch_write",
];

/// Numbers of operations.
pub(super) const SIZES: [u64; 2] = [128, 256];

/// Bytes of an AIO operation.
const BLOCK: u64 = 4096;

/// Clusters of a read over several of them.
const CLUSTERS_TOGETHER: u64 = 8;

/// Bytes of the disk that one L2 table maps: 8,192 entries.
pub(super) const TABLE: u64 = CLUSTER * (CLUSTER / 8);

/// Our name and the reference's, for each of the 40.
pub fn reference_names() -> Vec<(String, String)> {
    let of = |stem: &str, n| (format!("block::{stem}::n{n}"), format!("micro_block_{stem}_{n}_us"));
    STEMS.iter().flat_map(|stem| SIZES.map(|n| of(stem, n))).collect()
}

/// The reference's name for a scenario of ours, if it has it.
pub fn to_reference(ours: &str) -> Option<String> {
    reference_names().into_iter().find_map(|(name, reference)| (name == ours).then_some(reference))
}

/// Our name for a scenario of the reference, if there is one.
pub fn from_reference(reference: &str) -> Option<String> {
    reference_names().into_iter().find_map(|(ours, name)| (name == reference).then_some(ours))
}

/// An image with one allocated cluster for each of `tables` L2 tables.
pub(super) fn sparse(tables: u64) -> Recipe {
    let pieces = Pieces { count: tables, stride: TABLE, len: CLUSTER };
    Recipe { pieces, ..Recipe::empty(tables * TABLE) }
}

/// What a stem does with `n` operations; `None` for another stem.
pub(super) fn case(stem: &str, n: u64) -> Option<Case> {
    let along = |action| Walk::along(action, n, CLUSTER);
    let (read, write) = (along(Action::Read), along(Action::Write));
    let together = Walk::along(Action::Read, n / CLUSTERS_TOGETHER, CLUSTERS_TOGETHER * CLUSTER);
    let compressed = || Recipe { packing: Packing::Zlib, ..Recipe::full(n) };
    let overlay = || Recipe::raw(n * CLUSTER).overlay();
    let empty = || Recipe::empty(n * CLUSTER);
    // A ring of n, as in the reference.
    let ring = |case: Case, way| case.queued(Io::Uring, n as u32, way);
    let asynchronous = |case| ring(case, Way::SubmitEach);
    let batch = |case| ring(case, Way::Batches(n as u32));
    Some(match stem {
        "raw_aio_drain" => {
            let write = Walk::along(Action::Write, n, BLOCK);
            let drain = Case::change(Recipe::raw(n * BLOCK), write).queued(Io::Aio, n as u32, Way::Drain);
            Case { fate: Fate::Kept, ..drain }
        }
        "qcow_read" => Case::read(Recipe::full(n), read),
        "qcow_random_read" => Case::read(Recipe::full(n), read.shuffled()),
        "qcow_write" => Case::change(empty(), write),
        // Clusters are given back with the flush, so it is a part of it.
        "qcow_punch_hole" => Case { flushes: true, ..Case::change(Recipe::full(n), along(Action::Discard)) },
        "qcow_fsync" => {
            Case { before: vec![write], walks: vec![], flushes: true, ..Case::change(empty(), write) }
        }
        "qcow_backing_read" => Case::read(overlay(), read),
        "qcow_cow_write" => Case::change(overlay(), write),
        "qcow_compressed_read" => Case::read(compressed(), read),
        "qcow_multi_cluster_read" => Case::read(Recipe::full(n), together),
        "qcow_l2_cache_miss" => Case { fate: Fate::Reopened, ..Case::read(sparse(n), read.every(TABLE)) },
        "qcow_async_read" => asynchronous(Case::read(Recipe::full(n), read)),
        "qcow_async_random_read" => asynchronous(Case::read(Recipe::full(n), read.shuffled())),
        "qcow_async_multi_cluster_read" => asynchronous(Case::read(Recipe::full(n), together)),
        "qcow_async_backing_read" => asynchronous(Case::read(overlay(), read)),
        "qcow_async_compressed_read" => asynchronous(Case::read(compressed(), read)),
        "qcow_async_write" => asynchronous(Case::change(empty(), write)),
        "qcow_async_l2_cache_miss" => {
            asynchronous(Case { fate: Fate::Reopened, ..Case::read(sparse(n), read.every(TABLE)) })
        }
        "qcow_batch_read" => batch(Case::read(Recipe::full(n), read)),
        "qcow_batch_write" => batch(Case::change(empty(), write)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn all_40_go_there_and_back() {
        let names = reference_names();
        assert_eq!(names.len(), 40);
        for (ours, reference) in &names {
            assert_eq!(to_reference(ours).as_ref(), Some(reference));
            assert_eq!(from_reference(reference).as_ref(), Some(ours));
        }
        let distinct: BTreeSet<&String> = names.iter().flat_map(|(a, b)| [a, b]).collect();
        assert_eq!(distinct.len(), 80);
        for ours in ["block::qcow_read::n64", "block::qcow_open::n128", "block::qcow_read::imago::n128"] {
            assert_eq!(to_reference(ours), None, "{ours}");
        }
        assert_eq!(from_reference("micro_block_qcow_read_512_us"), None);
    }

    #[test]
    fn every_stem_has_a_case_of_n_operations() {
        for stem in STEMS {
            for n in SIZES {
                let case = case(stem, n).expect("a case");
                let (operations, bytes) = case.amount();
                let expected = match stem {
                    "qcow_fsync" => (1, 0),
                    "qcow_punch_hole" => (n + 1, 0),
                    "raw_aio_drain" => (n, n * BLOCK),
                    "qcow_multi_cluster_read" | "qcow_async_multi_cluster_read" => (n / 8, n * CLUSTER),
                    _ => (n, n * CLUSTER),
                };
                assert_eq!((operations, bytes), expected, "{stem}");
                assert_eq!(case.steps().len() as u64, operations, "{stem}");
                assert_eq!(case.is_raw(), stem.starts_with("raw"), "{stem}");
            }
        }
        assert!(case("qcow_other", 128).is_none());
    }
}
