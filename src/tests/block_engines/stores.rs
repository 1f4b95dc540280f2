//! Contracts of storage: a file, buffered, direct or on a tmpfs, and the one
//! in memory, all behave like an array of bytes that can fail.
//!
//! Neighbours: `subject` has the helpers; the crash states of storage in
//! memory are tested beside their code.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use tempfile::TempDir;
use wallgrind::block::align::Alignment;
use wallgrind::block::faults::{Fault, Faults, FaultyIo, Target};
use wallgrind::block::raw::IoStorage;
use wallgrind::block::{BlockFile, FileOptions, MemStorage, Storage};

use crate::subject::{Place, Skip, folder, must, or_skip};
use crate::{Contract, all};

pub const CONTRACTS: &[Contract<Store>] = &[
    ("storage_is_an_array_of_bytes", storage_is_an_array_of_bytes, all),
    ("a_fault_at_each_call_is_typed", a_fault_at_each_call_is_typed, all),
    ("short_and_interrupted_calls_are_made_whole", short_and_interrupted_calls_are_made_whole, all),
    ("storage_zeroes_without_fallocate", storage_zeroes_without_fallocate, all),
    ("threads_do_not_lose_each_others_bytes", threads_do_not_lose_each_others_bytes, all),
    ("the_length_is_never_rounded", the_length_is_never_rounded, all),
    ("no_call_beside_the_transfer", no_call_beside_the_transfer, all),
];

/// A kind of storage.
#[derive(Clone, Copy, Debug)]
pub struct Store(Place);

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "storage_{:?}", self.0)
    }
}

/// Storage, its faults, and a second look at the file.
struct Kept {
    store: Arc<dyn Storage>,
    faults: Faults,
    view: Arc<dyn Storage>,
    _folder: Option<TempDir>,
}

impl Store {
    pub fn all() -> Vec<Self> {
        use Place::{Direct, Disk, Memory, MemoryAligned, Shm};
        [Disk, Direct, Shm, Memory, MemoryAligned].map(Self).to_vec()
    }

    fn open(&self) -> Result<Kept, Skip> {
        if matches!(self.0, Place::Memory | Place::MemoryAligned) {
            return Ok(self.memory());
        }
        let folder = folder(self.0)?;
        let path = folder.path().join("image");
        let options =
            FileOptions { write: true, create: true, truncate: false, direct: self.0 == Place::Direct };
        let file = or_skip(BlockFile::open(&path, options))?;
        let faults = Faults::new();
        let io = FaultyIo::new(file, faults.clone());
        Ok(Kept {
            store: Arc::new(must(IoStorage::new(io))),
            faults,
            view: Arc::new(must(crate::subject::view(&path))),
            _folder: Some(folder),
        })
    }

    fn memory(&self) -> Kept {
        let plain = MemStorage::new();
        let align = must(Alignment::new(512, 4096).ok_or("powers of two"));
        let store = match self.0 {
            Place::MemoryAligned => plain.with_alignment(align),
            _ => MemStorage::over(plain.file().clone()),
        };
        Kept { faults: store.faults().clone(), store: Arc::new(store), view: Arc::new(plain), _folder: None }
    }
}

fn content(store: &dyn Storage) -> Vec<u8> {
    let mut bytes = vec![0xee; must(store.len()) as usize + 5];
    let read = must(store.read_at(&mut bytes, 0));
    bytes.truncate(read);
    bytes
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// One random change, done to the storage and to the model.
fn change(store: &dyn Storage, model: &mut Vec<u8>, state: &mut u64) {
    let offset = random(state) % 40_000;
    let len = random(state) % 9000 + 1;
    let end = (offset + len) as usize;
    let range = offset as usize..end;
    let grow = |model: &mut Vec<u8>| model.resize(model.len().max(end), 0);
    match random(state) % 10 {
        0..5 => {
            let data: Vec<u8> = (0..len).map(|n| (n ^ *state) as u8).collect();
            let (a, b) = data.split_at(len as usize / 3);
            must(store.writev_at(&[IoSlice::new(a), IoSlice::new(b)], offset));
            grow(model);
            model[range].copy_from_slice(&data);
        }
        5 => {
            must(store.punch(offset, len));
            let end = model.len().min(end);
            model[(offset as usize).min(end)..end].fill(0);
        }
        6 => {
            must(store.write_zeroes(offset, len));
            grow(model);
            model[range].fill(0);
        }
        7 => {
            must(store.allocate(offset, len));
            grow(model);
        }
        8 => {
            must(store.set_len(offset));
            model.resize(offset as usize, 0);
        }
        _ => must(store.sync()),
    }
}

fn storage_is_an_array_of_bytes(kind: &Store) -> Result<(), Skip> {
    let kept = kind.open()?;
    let (mut model, mut state) = (Vec::new(), 3);
    for step in 0..200 {
        change(&*kept.store, &mut model, &mut state);
        assert_eq!(must(kept.store.len()), model.len() as u64, "step {step}");
        let offset = random(&mut state) as usize % 50_000;
        let (mut a, mut b) = (vec![0xee; 1000], vec![0xee; random(&mut state) as usize % 6000]);
        let mut bufs = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)];
        let read = must(kept.store.readv_at(&mut bufs, offset as u64));
        let expected = &model[offset.min(model.len())..model.len().min(offset + 1000 + b.len())];
        a.extend_from_slice(&b);
        assert!(read == expected.len() && a[..read] == *expected, "step {step}");
    }
    assert!(content(&*kept.store) == model);
    must(kept.store.sync());
    assert!(content(&*kept.view) == model, "the file itself, after a sync");
    Ok(())
}

fn a_fault_at_each_call_is_typed(kind: &Store) -> Result<(), Skip> {
    let kept = kind.open()?;
    let errors = [Fault::Errno(libc::EIO), Fault::Errno(libc::ENOSPC), Fault::Torn(4096)];
    let script = |store: &dyn Storage| -> wallgrind::block::Result<()> {
        store.write_at(&[1; 5000], 100)?;
        store.write_zeroes(6000, 3000)?;
        store.punch(0, 300)?;
        store.allocate(9000, 1000)?;
        store.sync()?;
        store.read_at(&mut [0; 777], 33)?;
        store.set_len(4000)
    };
    // The second time the file is as each later time finds it.
    must(script(&*kept.store));
    kept.faults.reset();
    must(script(&*kept.store));
    let calls = kept.faults.calls(Target::Any);
    assert!(calls >= 7);
    for call in 0..calls {
        for fault in errors {
            kept.faults.reset();
            must(script(&*kept.store));
            kept.faults.reset();
            kept.faults.at(Target::Any, call, fault);
            let error = must(script(&*kept.store).err().ok_or("a fault is an error"));
            let errno = match fault {
                Fault::Errno(errno) => errno,
                _ => libc::EIO,
            };
            assert_eq!(error.errno(), Some(errno), "{fault:?} at call {call}: {error}");
        }
    }
    kept.faults.reset();
    must(script(&*kept.store));
    let mut bytes = [9; 4000];
    assert_eq!(must(kept.store.read_at(&mut bytes, 0)), 4000);
    assert!(bytes[..300].iter().all(|&b| b == 0) && bytes[300..].iter().all(|&b| b == 1));
    Ok(())
}

fn short_and_interrupted_calls_are_made_whole(kind: &Store) -> Result<(), Skip> {
    for cut in [1usize, 511, 4096, 8192] {
        let kept = kind.open()?;
        let direct = matches!(kind.0, Place::Direct | Place::MemoryAligned);
        if direct && cut % 4096 != 0 {
            continue;
        }
        for n in (0..400).step_by(2) {
            kept.faults.at(Target::Any, n, Fault::Errno(libc::EINTR));
        }
        kept.faults.from(Target::Any, 0, Fault::Short(cut));
        let data: Vec<u8> = (0..20_000u32).map(|n| (n / 7) as u8).collect();
        let (a, b) = data.split_at(9999);
        must(kept.store.writev_at(&[IoSlice::new(a), IoSlice::new(b)], 4096));
        must(kept.store.sync());
        kept.faults.from(Target::Any, 0, Fault::Short(cut));
        let (mut x, mut y) = (vec![0; 15_000], vec![0; 9_000]);
        let mut bufs = [IoSliceMut::new(&mut x), IoSliceMut::new(&mut y)];
        assert_eq!(must(kept.store.readv_at(&mut bufs, 4096)), 20_000, "{cut}");
        x.extend_from_slice(&y);
        assert!(x[..20_000] == data, "{cut}");
    }
    Ok(())
}

fn storage_zeroes_without_fallocate(kind: &Store) -> Result<(), Skip> {
    let kept = kind.open()?;
    must(kept.store.write_at(&[7; 10_000], 0));
    kept.faults.reset();
    kept.faults.from(Target::Fallocate, 0, Fault::Errno(libc::EOPNOTSUPP));
    must(kept.store.write_zeroes(100, 200));
    must(kept.store.punch(5000, 9000));
    must(kept.store.write_zeroes(10_000, 500));
    let mut model = vec![7; 10_500];
    model[100..300].fill(0);
    model[5000..].fill(0);
    assert!(content(&*kept.store) == model);
    Ok(())
}

/// Threads that write different sectors of the same blocks.
fn threads_do_not_lose_each_others_bytes(kind: &Store) -> Result<(), Skip> {
    let kept = kind.open()?;
    must(kept.store.write_at(&[0xff; 8 * 4096], 0));
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let store = Arc::clone(&kept.store);
            scope.spawn(move || {
                for round in 0..20u8 {
                    for block in 0..8 {
                        let offset = block * 4096 + u64::from(thread) * 1024;
                        must(store.write_at(&[round ^ thread; 1024], offset));
                    }
                }
            });
        }
    });
    let bytes = content(&*kept.store);
    for (index, part) in bytes.chunks(1024).enumerate() {
        assert!(part.iter().all(|&byte| byte == 19 ^ (index % 4) as u8), "part {index}");
    }
    Ok(())
}

fn the_length_is_never_rounded(kind: &Store) -> Result<(), Skip> {
    let kept = kind.open()?;
    must(kept.store.write_at(&[1; 700], 5000));
    assert_eq!(must(kept.store.len()), 5700);
    assert_eq!(must(kept.store.read_at(&mut [0; 4096], 5000)), 700);
    must(kept.store.sync());
    assert_eq!(must(kept.view.len()), 5700, "after a sync");
    must(kept.store.write_at(&[1; 1], 5700));
    drop(kept.store);
    assert_eq!(must(kept.view.len()), 5701, "after the storage is gone");
    Ok(())
}

fn no_call_beside_the_transfer(kind: &Store) -> Result<(), Skip> {
    let kept = kind.open()?;
    let data = crate::subject::pattern(4, 1);
    kept.faults.reset();
    must(kept.store.write_at(&data, 4096));
    let mut read = crate::subject::full(4, 0);
    assert_eq!(must(kept.store.read_at(&mut read, 4096)), data.len());
    assert_eq!(kept.faults.calls(Target::Any), 2, "one write and one read");
    must(kept.store.sync());
    assert_eq!(kept.faults.calls(Target::Any), 3);
    Ok(())
}
