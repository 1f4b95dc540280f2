//! Steps of a random sequence, and the plain array that says what they mean.
//!
//! Neighbours: `trials` runs them; `bases` has the images, `disk_guest` a guest
//! whose requests are in flight together.

use std::path::Path;

use proptest::prelude::*;
use wallgrind::block::ErrorKind;
use wallgrind::block::qcow2::{CacheSettings, FileOpener, Image, OpenOptions, Opener};

use super::bases::{Base, text};
use super::qemu;

/// One step. Places are fractions of the disk, so that they fit every base.
#[derive(Clone, Debug)]
pub enum Step {
    /// Write so many bytes; aligned to 512 or not.
    Write(f64, u32, bool),
    /// Write zeroes; unmap or not.
    Zero(f64, u32, bool),
    /// Discard.
    Discard(f64, u32),
    /// Write a cluster compressed.
    Compress(f64),
    /// Read and compare.
    Read(f64, u32),
    /// Take a snapshot.
    Snapshot,
    /// Delete the snapshot with this place in the list.
    Delete(u8),
    /// Go back to a snapshot.
    Apply(u8),
    /// Flush.
    Flush,
    /// Close and open.
    Reopen,
    /// Make the disk longer by so many bytes.
    Grow(u32),
    /// Make it shorter.
    Shrink(u32),
}

/// Sequences of up to 24 steps.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0.0..1.0_f64;
    let step = prop_oneof![
        6 => (at.clone(), len(), any::<bool>()).prop_map(|(a, l, u)| Step::Write(a, l, u)),
        2 => (at.clone(), len(), any::<bool>()).prop_map(|(a, l, u)| Step::Zero(a, l, u)),
        2 => (at.clone(), len()).prop_map(|(a, l)| Step::Discard(a, l)),
        2 => at.clone().prop_map(Step::Compress),
        2 => (at, len()).prop_map(|(a, l)| Step::Read(a, l)),
        2 => Just(Step::Snapshot),
        1 => any::<u8>().prop_map(Step::Delete),
        1 => any::<u8>().prop_map(Step::Apply),
        2 => Just(Step::Flush),
        1 => Just(Step::Reopen),
        1 => (1_u32..200_000).prop_map(Step::Grow),
        1 => (1_u32..200_000).prop_map(Step::Shrink),
    ];
    proptest::collection::vec(step, 1..24)
}

fn len() -> impl Strategy<Value = u32> {
    prop_oneof![1_u32..5000, 5000_u32..300_000, Just(65536), Just(4096)]
}

/// The disk and its snapshots as plain arrays.
struct Model {
    disk: Vec<u8>,
    snapshots: Vec<(String, Vec<u8>)>,
    count: u64,
}

impl Model {
    /// The range that a place and a length mean; `None` on an empty disk.
    fn range(&self, at: f64, len: u32, align: u64) -> Option<(u64, usize)> {
        let size = self.disk.len() as u64;
        let start = ((size as f64 * at) as u64) / align * align;
        let len = u64::from(len).min(size.checked_sub(start)?);
        (len > 0).then_some((start, len as usize))
    }
}

/// Opens an image for writing, through `opener`, with a cache so small that slices leave it.
pub fn open_with(opener: &dyn Opener, path: &Path) -> Image {
    let cache = CacheSettings { slice_bytes: 512, slices: 3 };
    let options = OpenOptions::new().writable(true).allow_backing(true).allow_data_file(true);
    Image::open_with(opener, path, &options.cache(cache)).expect("open")
}

/// What plays the guest's part of a sequence. Results may be checked later, but what is asked for
/// later happens later.
pub trait Guest: Sized {
    /// Opens the image at `path`.
    fn open(path: &Path) -> Self;
    /// The image, when nothing is in flight.
    fn image(&mut self) -> &Image;
    /// Writes.
    fn write(&mut self, at: u64, data: Vec<u8>);
    /// Writes zeroes, or gives clusters back.
    fn zero(&mut self, at: u64, len: u64, unmap: bool);
    /// Discards; returns start and length of what reads as zeroes then.
    fn discard(&mut self, at: u64, len: u64) -> (u64, u64);
    /// Reads what must be `expected`.
    fn read(&mut self, at: u64, expected: &[u8]);
    /// Flushes.
    fn flush(&mut self);
    /// Closes and opens.
    fn reopen(self, path: &Path) -> Self;
    /// Closes; the file at `path` is what was made of it.
    fn close(self, path: &Path);
}

/// A guest that calls the image's own methods.
pub struct Calls(Image);

impl Guest for Calls {
    fn open(path: &Path) -> Self {
        Self(open_with(&FileOpener, path))
    }

    fn image(&mut self) -> &Image {
        &self.0
    }

    fn write(&mut self, at: u64, data: Vec<u8>) {
        self.0.write(at, &data).expect("write");
    }

    fn zero(&mut self, at: u64, len: u64, unmap: bool) {
        self.0.write_zeroes(at, len, unmap).expect("zero");
    }

    fn discard(&mut self, at: u64, len: u64) -> (u64, u64) {
        let done = self.0.discard(at, len).expect("discard");
        (at.next_multiple_of(self.0.cluster_size()), done)
    }

    fn read(&mut self, at: u64, expected: &[u8]) {
        let mut buf = vec![1; expected.len()];
        self.0.read(at, &mut buf).expect("read");
        assert!(buf == expected, "read at {at}");
    }

    fn flush(&mut self) {
        self.0.flush().expect("flush");
    }

    fn reopen(self, path: &Path) -> Self {
        drop(self);
        Self::open(path)
    }

    fn close(self, _: &Path) {}
}

/// Plays the steps over a new image of `base` and asks qemu about the result.
pub fn play<G: Guest>(base: &Base, steps: &[Step]) {
    let dir = tempfile::tempdir().expect("scratch folder");
    let path = (base.make)(dir.path(), base.size);
    let mut guest = G::open(&path);
    let mut disk = vec![0; base.size as usize];
    guest.image().read(0, &mut disk).expect("read");
    let mut model = Model { disk, snapshots: Vec::new(), count: 0 };
    for step in steps {
        model.count += 1;
        match step {
            Step::Reopen => guest = guest.reopen(&path),
            step => apply(base, &mut guest, &mut model, step),
        }
    }
    compare(guest.image(), &model);
    let report = guest.image().check().expect("check");
    assert!(report.is_clean(), "{report:?}");
    guest.close(&path);
    judge(&path, &model, &report);
}

/// A step that the guest does, or one that an administrator does while nothing is in flight.
fn apply(base: &Base, guest: &mut impl Guest, model: &mut Model, step: &Step) {
    match *step {
        Step::Write(at, len, unaligned) => {
            if let Some((start, len)) = model.range(at, len, if unaligned { 1 } else { 512 }) {
                let data = text(len, model.count);
                model.disk[start as usize..][..len].copy_from_slice(&data);
                guest.write(start, data);
            }
        }
        Step::Zero(at, len, unmap) => {
            if let Some((start, len)) = model.range(at, len, 512) {
                guest.zero(start, len as u64, unmap);
                model.disk[start as usize..][..len].fill(0);
            }
        }
        Step::Discard(at, len) => {
            if let Some((start, len)) = model.range(at, len, 512) {
                let (start, len) = guest.discard(start, len as u64);
                if len > 0 {
                    model.disk[start as usize..(start + len) as usize].fill(0);
                }
            }
        }
        Step::Read(at, len) => {
            if let Some((start, len)) = model.range(at, len, 1) {
                guest.read(start, &model.disk[start as usize..][..len]);
            }
        }
        Step::Flush => guest.flush(),
        ref step => administer(base, guest.image(), model, step),
    }
}

fn administer(base: &Base, image: &Image, model: &mut Model, step: &Step) {
    match *step {
        Step::Compress(at) => compress(base, image, model, at),
        Step::Snapshot | Step::Delete(_) | Step::Apply(_) if !base.internal => {}
        Step::Snapshot => snapshot(image, model),
        Step::Delete(n) if !model.snapshots.is_empty() => {
            let (name, _) = model.snapshots.remove(n as usize % model.snapshots.len());
            image.delete_snapshot(&name).expect("delete snapshot");
        }
        Step::Apply(n) if !model.snapshots.is_empty() => {
            let (name, disk) = &model.snapshots[n as usize % model.snapshots.len()];
            match image.apply_snapshot(name) {
                Ok(()) => model.disk = disk.clone(),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}"),
            }
        }
        Step::Grow(by) => {
            let size = model.disk.len() + by as usize;
            image.resize(size as u64, false).expect("grow");
            model.disk.resize(size, 0);
        }
        Step::Shrink(by) => {
            let size = model.disk.len().saturating_sub(by as usize);
            image.resize(size as u64, true).expect("shrink");
            model.disk.truncate(size);
        }
        _ => {}
    }
}

fn compress(base: &Base, image: &Image, model: &mut Model, at: f64) {
    let size = image.cluster_size();
    let Some((start, len)) = model.range(at, size as u32, size).filter(|_| base.internal) else {
        return;
    };
    let data = text(len, model.count);
    image.write_compressed(start, &data).expect("write compressed");
    model.disk[start as usize..][..len].copy_from_slice(&data);
}

fn snapshot(image: &Image, model: &mut Model) {
    let name = format!("s{}", model.count);
    match image.create_snapshot(&name) {
        Ok(_) => model.snapshots.push((name, model.disk.clone())),
        // Narrow refcounts hold only so many snapshots.
        Err(error) => assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}"),
    }
}

fn compare(image: &Image, model: &Model) {
    assert_eq!(image.size(), model.disk.len() as u64);
    let mut buf = vec![1; model.disk.len()];
    image.read(0, &mut buf).expect("read");
    if buf != model.disk {
        let differs = buf.iter().zip(&model.disk).position(|(a, b)| a != b);
        panic!("first difference in the disk: {differs:?}");
    }
}

fn judge(path: &Path, model: &Model, report: &wallgrind::block::qcow2::Report) {
    qemu::assert_clean(path);
    qemu::assert_same_report(path, report);
    assert_same(&qemu::contents(path, None), &model.disk, "the disk");
    for (name, disk) in &model.snapshots {
        let options = OpenOptions::new().allow_backing(true).snapshot(name);
        let image = Image::open(path, &options).expect("open at snapshot");
        let mut buf = vec![1; disk.len()];
        image.read(0, &mut buf).expect("read snapshot");
        assert!(buf == *disk, "snapshot {name} changed");
    }
    if let Some((name, disk)) = model.snapshots.first() {
        // qemu cuts a snapshot to the size of the disk as it is now.
        let len = disk.len().min(model.disk.len());
        assert_same(&qemu::contents(path, Some(name)), &disk[..len], name);
    }
}

/// qemu counts in sectors: it leaves out the last one if that is not whole.
fn assert_same(theirs: &[u8], ours: &[u8], what: &str) {
    let len = ours.len() / 512 * 512;
    if theirs.get(..len) != Some(&ours[..len]) {
        let differs = theirs.iter().zip(ours).position(|(a, b)| a != b);
        panic!("qemu reads {what} differently at {differs:?}, {} for {} bytes", theirs.len(), ours.len());
    }
}
