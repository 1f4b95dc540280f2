//! The images that random sequences start from: made by qemu and by us, over
//! all of the format's options.
//!
//! Neighbours: `qcow2_oracle` runs sequences over each; `qemu` makes half of them.

use std::path::{Path, PathBuf};

use wallgrind::block::qcow2::{Compression, CreateOptions, Image, Preallocation};

use super::qemu;

/// An image to start from.
pub struct Base {
    /// Names the trial.
    pub name: &'static str,
    /// Virtual size in bytes.
    pub size: u64,
    /// Compressed clusters and internal snapshots are possible.
    pub internal: bool,
    /// Makes it in an empty folder; returns its path.
    pub make: fn(&Path, u64) -> PathBuf,
}

const K: u64 = 1024;
const M: u64 = 1024 * K;

fn by_qemu(dir: &Path, size: u64, options: &str) -> PathBuf {
    let size = size.to_string();
    let mut args = vec!["qemu-img", "create", "-q", "-f", "qcow2"];
    if !options.is_empty() {
        args.extend(["-o", options]);
    }
    args.extend(["image.qcow2", &size]);
    qemu::ok(dir, &args);
    dir.join("image.qcow2")
}

fn by_us(dir: &Path, size: u64, change: impl FnOnce(&mut CreateOptions)) -> PathBuf {
    let mut options = CreateOptions::new(size);
    change(&mut options);
    let path = dir.join("image.qcow2");
    Image::create(&path, &options).expect("create");
    path
}

/// Bytes that compress to about a half.
pub fn text(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut out = Vec::with_capacity(len);
    while out.len() < len {
        let word = rng.u64(..).to_le_bytes();
        out.extend_from_slice(&word);
        out.extend_from_slice(b"and play");
        out.extend_from_slice(&word);
    }
    out.truncate(len);
    out
}

/// A raw file in `dir` with content.
pub fn raw(dir: &Path, name: &str, len: u64, seed: u64) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text(len as usize, seed)).expect("write");
    path
}

fn qcow2_backing(dir: &Path, len: u64, options: &str) {
    raw(dir, "source.raw", len, 5);
    qemu::ok(
        dir,
        &["qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-o", options, "source.raw", "backing.qcow2"],
    );
}

fn converted(dir: &Path, size: u64, options: &str) -> PathBuf {
    raw(dir, "source.raw", size, 9);
    qemu::ok(
        dir,
        &[
            "qemu-img",
            "convert",
            "-c",
            "-f",
            "raw",
            "-O",
            "qcow2",
            "-o",
            options,
            "source.raw",
            "image.qcow2",
        ],
    );
    dir.join("image.qcow2")
}

fn overlay(dir: &Path, size: u64, backing: &str, format: &str, options: &str) -> PathBuf {
    let size = size.to_string();
    let mut args = vec!["qemu-img", "create", "-q", "-f", "qcow2", "-b", backing, "-F", format];
    if !options.is_empty() {
        args.extend(["-o", options]);
    }
    args.extend(["image.qcow2", &size]);
    qemu::ok(dir, &args);
    dir.join("image.qcow2")
}

fn our_overlay(
    dir: &Path,
    size: u64,
    backing: (&str, &str),
    change: impl FnOnce(&mut CreateOptions),
) -> PathBuf {
    by_us(dir, size, |options| {
        options.backing = Some((backing.0.to_owned(), backing.1.to_owned()));
        change(options);
    })
}

macro_rules! base {
    ($name:literal, $size:expr, $internal:expr, $make:expr) => {
        Base { name: $name, size: $size, internal: $internal, make: $make }
    };
}

/// All of them.
pub fn all() -> Vec<Base> {
    let mut bases = plain();
    bases.extend(layered());
    bases
}

fn plain() -> Vec<Base> {
    vec![
        base!("ours", 4 * M, true, |d, s| by_us(d, s, |_| {})),
        base!("qemu", 4 * M + 512, true, |d, s| by_qemu(d, s, "")),
        base!("qemu_v2", 4 * M, true, |d, s| by_qemu(d, s, "compat=0.10")),
        base!("ours_v2", 4 * M, true, |d, s| by_us(d, s, |o| o.version = 2)),
        base!("ours_512", 256 * K, true, |d, s| by_us(d, s, |o| o.cluster_size = 512)),
        base!("qemu_512_w1", 256 * K, true, |d, s| by_qemu(d, s, "cluster_size=512,refcount_bits=1")),
        base!("ours_512_w64", 512 * K, true, |d, s| by_us(d, s, |o| {
            (o.cluster_size, o.refcount_bits) = (512, 64);
        })),
        base!("ours_1k_w64", 512 * K, true, |d, s| by_us(d, s, |o| {
            (o.cluster_size, o.refcount_bits) = (1024, 64);
        })),
        base!("qemu_4k_w8", M, true, |d, s| by_qemu(d, s, "cluster_size=4k,refcount_bits=8")),
        base!("ours_4k_w1", M, true, |d, s| by_us(d, s, |o| {
            (o.cluster_size, o.refcount_bits) = (4096, 1);
        })),
        base!("ours_4k_w2", M, true, |d, s| by_us(d, s, |o| {
            (o.cluster_size, o.refcount_bits) = (4096, 2);
        })),
        base!("ours_4k_w4", M, true, |d, s| by_us(d, s, |o| {
            (o.cluster_size, o.refcount_bits) = (4096, 4);
        })),
        base!("qemu_4k_w32", M, true, |d, s| by_qemu(d, s, "cluster_size=4k,refcount_bits=32")),
        base!("qemu_2m", 16 * M, true, |d, s| by_qemu(d, s, "cluster_size=2M")),
        base!("ours_2m", 15 * M, true, |d, s| by_us(d, s, |o| o.cluster_size = 2 * M)),
        base!("qemu_zstd", 2 * M, true, |d, s| by_qemu(d, s, "compression_type=zstd")),
        base!("ours_zstd_16k", 2 * M, true, |d, s| by_us(d, s, |o| {
            (o.cluster_size, o.compression) = (16 * K, Compression::Zstd);
        })),
        base!("qemu_subclusters", 4 * M, true, |d, s| by_qemu(d, s, "extended_l2=on")),
        base!("ours_subclusters_16k", 2 * M, true, |d, s| by_us(d, s, |o| {
            (o.cluster_size, o.extended_l2) = (16 * K, true);
        })),
        base!("qemu_lazy", 2 * M, true, |d, s| by_qemu(d, s, "lazy_refcounts=on")),
        base!("qemu_preallocated", 2 * M, true, |d, s| by_qemu(d, s, "preallocation=metadata")),
        base!("ours_preallocated", 2 * M, true, |d, s| by_us(d, s, |o| {
            o.preallocation = Preallocation::Falloc;
        })),
        base!("qemu_compressed", 2 * M, true, |d, s| converted(d, s, "cluster_size=64k")),
        base!("qemu_compressed_zstd", 4 * M, true, |d, s| {
            converted(d, s, "compression_type=zstd,cluster_size=512k")
        }),
    ]
}

fn layered() -> Vec<Base> {
    vec![
        base!("qemu_over_raw_odd", 2 * M, true, |d, s| {
            raw(d, "backing.raw", M + 12345, 1);
            overlay(d, s, "backing.raw", "raw", "")
        }),
        base!("ours_over_qcow2", 2 * M, true, |d, s| {
            qcow2_backing(d, M, "cluster_size=4k");
            our_overlay(d, s, ("backing.qcow2", "qcow2"), |o| o.cluster_size = 16 * K)
        }),
        base!("ours_over_larger", M, true, |d, s| {
            raw(d, "backing.raw", 3 * M, 2);
            our_overlay(d, s, ("backing.raw", "raw"), |o| o.cluster_size = 4096)
        }),
        base!("qemu_subclusters_over_raw", 2 * M, true, |d, s| {
            raw(d, "backing.raw", 2 * M, 3);
            overlay(d, s, "backing.raw", "raw", "extended_l2=on,cluster_size=128k")
        }),
        base!("qemu_chain", 2 * M, true, |d, s| {
            qcow2_backing(d, M, "cluster_size=64k");
            qemu::ok(
                d,
                &[
                    "qemu-img",
                    "create",
                    "-q",
                    "-f",
                    "qcow2",
                    "-b",
                    "backing.qcow2",
                    "-F",
                    "qcow2",
                    "middle.qcow2",
                ],
            );
            qemu::ok(d, &["qemu-io", "-f", "qcow2", "-c", "write -P 7 100k 200k", "middle.qcow2"]);
            overlay(d, s, "middle.qcow2", "qcow2", "cluster_size=4k")
        }),
        base!("qemu_v2_over_raw", M, true, |d, s| {
            raw(d, "backing.raw", M, 4);
            overlay(d, s, "backing.raw", "raw", "compat=0.10")
        }),
        base!("qemu_data_file", 2 * M, false, |d, s| by_qemu(d, s, "data_file=data.raw")),
        base!("ours_data_file_raw", 2 * M, false, |d, s| by_us(d, s, |o| {
            o.data_file = Some("data.raw".to_owned());
            o.data_file_raw = true;
        })),
    ]
}
