//! An image of every kind, made once, with data, compressed data, zeroes,
//! holes, shared clusters and snapshots in it.
//!
//! Neighbours: `damage` changes them, `play` opens them.

use std::sync::{Arc, LazyLock};

use wallgrind::block::mem::file::MemFile;
use wallgrind::block::qcow2::{Backing, Compression, CreateOptions, Image, OpenOptions, Parts, create};
use wallgrind::block::{MemStorage, Result, Storage};

/// The disks' size in bytes: no whole number of clusters in most of them.
pub const SIZE: u64 = 160 * 1024 - 1536;

/// The files of an image. Clones share nothing.
pub struct Files {
    /// The image itself.
    pub file: MemFile,
    /// Its external data file.
    pub data: Option<MemFile>,
    /// Its backing file, and whether that is an image too.
    pub backing: Option<(MemFile, bool)>,
}

impl Clone for Files {
    fn clone(&self) -> Self {
        let copy = |file: &MemFile| MemFile::from_sparse(file.content());
        Self {
            file: copy(&self.file),
            data: self.data.as_ref().map(copy),
            backing: self.backing.as_ref().map(|(file, image)| (copy(file), *image)),
        }
    }
}

impl Files {
    /// Storage over each, for [`Image::from_parts`]. `file` is the image's own.
    pub fn parts(&self, file: MemStorage) -> Result<Parts> {
        let over = |file: &MemFile| Box::new(MemStorage::over(file.clone())) as Box<dyn Storage>;
        let backing = match &self.backing {
            None => None,
            Some((file, false)) => Some(Backing::raw(over(file))?),
            Some((file, true)) => {
                let parts = Parts { file: over(file), data: None, backing: None };
                Some(Backing::Qcow2(Arc::new(Image::from_parts(parts, &OpenOptions::new())?)))
            }
        };
        Ok(Parts { file: Box::new(file), data: self.data.as_ref().map(over), backing })
    }

    /// Opens the image with these options.
    pub fn open(&self, options: &OpenOptions) -> Result<Image> {
        Image::from_parts(self.parts(MemStorage::over(self.file.clone()))?, options)
    }
}

type Change = fn(&mut CreateOptions);

/// Every kind: what it is like, and what lies under it. Clusters are small, so that tables are
/// quickly walked, and there is more than one of them.
const KINDS: &[(Change, Under)] = &[
    (|o| o.cluster_size = 4096, Under::Nothing),
    (|o| (o.cluster_size, o.version) = (4096, 2), Under::Nothing),
    (|o| (o.cluster_size, o.refcount_bits) = (512, 64), Under::Nothing),
    (|o| (o.cluster_size, o.refcount_bits) = (512, 1), Under::Nothing),
    (|o| o.cluster_size = 1024, Under::Nothing),
    (|o| (o.cluster_size, o.extended_l2) = (16384, true), Under::Nothing),
    (|o| (o.cluster_size, o.refcount_bits, o.compression) = (4096, 8, Compression::Zstd), Under::Nothing),
    (|o| o.cluster_size = 4096, Under::Raw),
    (|o| (o.cluster_size, o.extended_l2) = (16384, true), Under::Raw),
    (|o| (o.cluster_size, o.refcount_bits) = (1024, 4), Under::Image),
    (|o| (o.cluster_size, o.version) = (4096, 2), Under::Raw),
    (|o| o.cluster_size = 4096, Under::Data { raw: false }),
    (|o| (o.cluster_size, o.extended_l2) = (16384, true), Under::Data { raw: true }),
    (|o| (o.cluster_size, o.refcount_bits, o.lazy_refcounts) = (2048, 2, true), Under::Nothing),
    (|o| o.cluster_size = 4096, Under::Bitmaps),
    (|o| (o.cluster_size, o.extended_l2, o.compression) = (16384, true, Compression::Zstd), Under::Image),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Under {
    Nothing,
    Raw,
    Image,
    Data { raw: bool },
    Bitmaps,
}

/// All of them.
pub static BASES: LazyLock<Vec<Files>> =
    LazyLock::new(|| KINDS.iter().map(|&(change, under)| make(change, under)).collect());

fn make(change: Change, under: Under) -> Files {
    let mut options = CreateOptions::new(SIZE);
    change(&mut options);
    let mut files = Files { file: MemFile::new(), data: None, backing: None };
    let name = |name: &str| Some((name.to_owned(), if name == "image" { "qcow2" } else { "raw" }.to_owned()));
    match under {
        Under::Nothing | Under::Bitmaps => {}
        Under::Raw => {
            options.backing = name("raw");
            let bytes: Vec<u8> = (0..SIZE / 2 + 777).map(|at| (at / 100) as u8 | 1).collect();
            files.backing = Some((MemStorage::from_bytes(&bytes).file().clone(), false));
        }
        Under::Image => {
            options.backing = name("image");
            files.backing = Some((make(|o| o.cluster_size = 1024, Under::Nothing).file, true));
        }
        Under::Data { raw } => {
            (options.data_file, options.data_file_raw) = (Some("data".to_owned()), raw);
            files.data = Some(MemFile::new());
        }
    }
    let data = files.data.clone().map(MemStorage::over);
    let data = data.as_ref().map(|data| data as &dyn Storage);
    create(&MemStorage::over(files.file.clone()), data, &options).expect("create");
    populate(&files);
    if under == Under::Bitmaps {
        let places = super::bitmap::add(&files.file, 0);
        // The end mark: the names of features were there.
        MemStorage::over(files.file.clone()).write_at(&[0; 8], places.extension + 32).expect("write");
    }
    files
}

/// Bytes that compress, different for each `version`.
pub fn pattern(at: u64, len: usize, version: u8) -> Vec<u8> {
    (at..at + len as u64).map(|place| (place / 48) as u8 ^ version.wrapping_mul(29)).collect()
}

fn populate(files: &Files) {
    let image = files.open(&OpenOptions::new().writable(true)).expect("open");
    let size = image.cluster_size();
    let write = |at: u64, len: u64, version: u8| {
        image.write(at, &pattern(at, len as usize, version)).expect("write");
    };
    write(0, 20_000, 1);
    write(70_000, 9000, 2);
    image.write_zeroes(30_000, 8192, false).expect("zero");
    if files.data.is_none() {
        for at in [40_960_u64.next_multiple_of(size), 40_960_u64.next_multiple_of(size) + size] {
            if at + size <= SIZE {
                image.write_compressed(at, &pattern(at, size as usize, 3)).expect("compress");
            }
        }
        // Refcounts of one bit hold no snapshot.
        let _ = image.create_snapshot("a");
    }
    write(600, 9000, 4);
    image.write_zeroes(12_288, 4096, true).expect("zero");
    image.discard(70_000, 8192).expect("discard");
    write(100_000, 3000, 5);
    if files.data.is_none() {
        let _ = image.create_snapshot("b");
    }
    write(2048, 512, 6);
    image.flush().expect("flush");
}
