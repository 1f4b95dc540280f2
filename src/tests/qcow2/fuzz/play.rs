//! The operations. An image that was sound stays so; one that was not may fail
//! in every typed way.
//!
//! Neighbours: `model` is what it compares with.

use wallgrind::block::faults::{Fault, Faults, Target};
use wallgrind::block::mem::crash::Crash;
use wallgrind::block::qcow2::{CacheSettings, GuestOffset, Image, OpenOptions, Report};
use wallgrind::block::{Error, ErrorKind, MemStorage, Result};

use super::bases::{BASES, Files, pattern};
use super::damage;
use super::input::Input;
use super::model::Model;

/// Most operations of one run.
const STEPS: usize = 40;
/// Most bytes of one operation.
const LONGEST: u64 = 48 * 1024;

/// Plays what `bytes` say.
pub fn play(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let files = BASES[input.choice(BASES.len())].clone();
    let damaged = damage::apply(&mut input, &files);
    let flags = input.byte();
    if flags & 1 != 0 {
        files.file.start_journal();
        files.data.iter().for_each(|data| data.start_journal());
    }
    let mut play = Play {
        files,
        damaged,
        sound: !damaged,
        leaky: false,
        armed: false,
        repairing: false,
        model: None,
        faults: Faults::new(),
        version: 10,
    };
    let Some(mut image) = play.open(&mut input) else {
        return;
    };
    play.trust(&image);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match play.step(image, &mut input) {
            Some(next) => image = next,
            None => return,
        }
    }
    play.faults.reset();
    play.verify(&image);
    drop(image);
    let Ok(image) = play.files.open(&OpenOptions::new()) else {
        assert!(!play.sound, "a sound image does not open any more");
        return;
    };
    play.verify(&image);
}

struct Play {
    files: Files,
    /// The files were changed behind the image's back.
    damaged: bool,
    /// Nothing is wrong with the image: it must not become corrupt.
    sound: bool,
    /// Something was cut off: clusters may have leaked.
    leaky: bool,
    /// A call will fail, or did.
    armed: bool,
    /// It is open to be repaired: until then it is what a cut left, and no guest may write.
    repairing: bool,
    /// What the disk holds, as long as that is known.
    model: Option<Model>,
    faults: Faults,
    version: u8,
}

impl Play {
    fn open(&mut self, input: &mut Input<'_>) -> Option<Image> {
        let flags = input.byte();
        let cache = CacheSettings { slice_bytes: if flags & 1 == 0 { 512 } else { 4096 }, slices: 2 };
        let mut options = OpenOptions::new().cache(cache).writable(flags & 0x0e != 0x0e);
        self.repairing = flags & 0x70 == 0x70;
        if self.repairing {
            options = options.for_repair(true);
        }
        let store = MemStorage::over(self.files.file.clone());
        self.faults = store.faults().clone();
        let opened = self.files.parts(store).and_then(|parts| Image::from_parts(parts, &options));
        match opened {
            Ok(image) => Some(image),
            Err(error) => {
                assert!(!self.sound, "a sound image does not open: {error:?}");
                None
            }
        }
    }

    /// Begins to hold the image to its promises, if it is sound.
    fn trust(&mut self, image: &Image) {
        let report = image.check();
        match report {
            // The corrupt bit: it may not be written, whatever a check says.
            Ok(report) if report.is_clean() && image.header().incompatible & 2 == 0 => {
                self.sound = true;
                self.learn(image);
                assert!(self.damaged || self.model.is_some(), "a sound image does not read");
            }
            report => {
                assert!(!self.sound || self.leaky, "{report:?}");
                if self.sound {
                    assert!(image.header().incompatible & 2 == 0, "marked corrupt");
                    self.judge(image, report);
                    self.learn(image);
                }
            }
        }
    }

    /// Reads what there is. A check decodes nothing: a compressed cluster that does not decode is
    /// found only here, and marks the image corrupt.
    fn learn(&mut self, image: &Image) {
        match Model::of(image, &self.files) {
            Ok(model) => self.model = model,
            Err(error) => {
                assert!(self.damaged, "a sound image does not read: {error:?}");
                (self.model, self.sound) = (None, false);
            }
        }
    }

    /// Fails if a sound image is corrupt.
    fn judge(&self, image: &Image, report: Result<Report>) {
        if !self.sound {
            return;
        }
        let report = report.expect("check of a sound image");
        let header = image.header();
        let dirty = (self.repairing || !image.is_writable()) && header.incompatible & 1 != 0;
        // Version 2 has no dirty bit: COPIED flags may be unset.
        // Where two guest clusters shared one, which a check allows, the last one has no COPIED flag
        // after the other was written: nobody knows where it is. It costs a copy, no data.
        let unset = |message: &String| {
            let word = message.strip_prefix("L2 entry 0x")?.strip_suffix(": COPIED is wrong")?;
            u64::from_str_radix(word, 16).ok().filter(|word| word >> 63 == 0)
        };
        let shared = self.damaged
            && report.messages.len() as u64 == report.corruptions
            && report.messages.iter().all(|message| unset(message).is_some());
        let excused = dirty || shared || (header.version == 2 && self.leaky);
        assert!(excused || report.corruptions + report.check_errors == 0, "{report:?}");
        assert!(self.leaky || report.leaks == 0, "{report:?}");
    }

    fn verify(&self, image: &Image) {
        self.judge(image, image.check());
        if let (true, Some(model)) = (self.sound, &self.model) {
            model.assert_read(image, &self.files);
        }
    }

    /// What the outcome of an operation means for what is known.
    fn note<T>(&mut self, result: Result<T>, effect: impl FnOnce(&mut Model, T)) {
        match (result, &mut self.model) {
            (Ok(value), Some(model)) => effect(model, value),
            (Ok(_), None) => {}
            (Err(error), _) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &Error) {
        match error.kind() {
            // Nothing was done.
            ErrorKind::InvalidInput | ErrorKind::Unsupported => {}
            ErrorKind::Exhausted | ErrorKind::Io if self.armed || self.damaged => {
                (self.model, self.leaky) = (None, true);
            }
            _ => {
                assert!(self.damaged, "a sound image failed: {error:?}");
                (self.model, self.sound) = (None, false);
            }
        }
    }

    /// Does one thing; gives the image back, or the one that is open then.
    fn step(&mut self, image: Image, input: &mut Input<'_>) -> Option<Image> {
        self.version = self.version.wrapping_add(1);
        match input.byte() % 24 {
            0..=4 => self.write(&image, input),
            5 | 6 => self.compress(&image, input),
            7 | 8 => self.zero(&image, input),
            9 | 10 => self.discard(&image, input),
            11 => self.read(&image, input),
            12 => {
                let flushed = image.flush();
                self.note(flushed, |_, ()| {});
            }
            13 => self.check(&image, input),
            14 => self.repair(&image),
            15 | 16 => self.snapshot(&image),
            17 => self.delete(&image, input),
            18 => self.apply(&image, input),
            19 => self.resize(&image, input),
            20 => return self.reopen(image, input),
            21 => {
                let call = self.faults.calls(Target::Any) + u64::from(input.byte() % 32);
                let fault = match input.byte() % 3 {
                    0 => Fault::Errno(libc::EIO),
                    1 => Fault::Errno(libc::ENOSPC),
                    _ => Fault::Torn(512),
                };
                self.faults.at(Target::Any, call, fault);
                self.armed = true;
            }
            22 => return self.crash(image, input),
            _ => self.verify_now(&image),
        }
        Some(image)
    }

    /// A range of the disk, mostly aligned to something.
    fn range(image: &Image, input: &mut Input<'_>) -> (u64, u64) {
        let (place, length, how) = (u64::from(input.half()), u64::from(input.half()), input.byte());
        let size = image.size();
        let at = ((u128::from(size) * u128::from(place)) >> 16) as u64;
        let unit = [1, 512, 4096, image.cluster_size()][usize::from(how % 4)];
        let at = at / unit * unit;
        let len = match how / 4 % 8 {
            0 => image.cluster_size(),
            1 => size - at,
            2 => 1 + length % 512,
            3 => 1 + length % 5000,
            _ => (length + unit) / unit * unit,
        };
        // Now and then one that does not fit the disk.
        let most = if how > 250 { u64::MAX } else { size - at };
        (at, len.min(LONGEST).min(most))
    }

    fn write(&mut self, image: &Image, input: &mut Input<'_>) {
        let (at, len) = Self::range(image, input);
        let data = pattern(at, len as usize, self.version);
        let written = image.write(at, &data);
        self.note(written, |model, ()| model.put(at, &data));
    }

    fn compress(&mut self, image: &Image, input: &mut Input<'_>) {
        let size = image.cluster_size();
        let at = u64::from(input.byte()) * size % image.size().next_multiple_of(size).max(1);
        let len = size.min(image.size().saturating_sub(at));
        let noise = input.byte();
        let mut data = pattern(at, len as usize, self.version);
        if noise & 1 != 0 {
            let noisy = data.iter_mut().enumerate().take(usize::from(noise) * 64);
            noisy.for_each(|(at, byte)| *byte ^= (at as u32).wrapping_mul(0x9e37_79b1).to_le_bytes()[3]);
        }
        let written = image.write_compressed(at, &data);
        self.note(written, |model, ()| model.put(at, &data));
    }

    fn zero(&mut self, image: &Image, input: &mut Input<'_>) {
        let (at, len) = Self::range(image, input);
        let zeroed = image.write_zeroes(at, len, input.byte() & 1 == 0);
        self.note(zeroed, |model, ()| model.clear(at, len));
    }

    fn discard(&mut self, image: &Image, input: &mut Input<'_>) {
        let (at, len) = Self::range(image, input);
        let first = at.next_multiple_of(image.cluster_size());
        let done = image.discard(at, len);
        self.note(done, |model, bytes| {
            if bytes > 0 {
                model.clear(first, bytes);
            }
        });
    }

    fn read(&mut self, image: &Image, input: &mut Input<'_>) {
        let (at, len) = Self::range(image, input);
        let mut buf = vec![1; len as usize];
        let read = image.read(at, &mut buf);
        self.note(read, |model, ()| {
            assert!(buf == model.disk[at as usize..][..len as usize], "read at {at:#x}")
        });
    }

    fn check(&mut self, image: &Image, input: &mut Input<'_>) {
        let (at, len) = Self::range(image, input);
        let mapped = image.map(GuestOffset(at), len);
        self.note(mapped, |_, extents| assert_eq!(extents.iter().map(|e| e.len).sum::<u64>(), len));
        let report = image.check();
        if !self.armed {
            self.judge(image, report);
        } else if let Err(error) = report {
            self.failed(&error);
        }
    }

    fn repair(&mut self, image: &Image) {
        match image.repair() {
            Ok(report) if report.is_clean() && !self.armed => {
                let sound = self.sound;
                (self.sound, self.leaky) = (true, false);
                if !sound || self.model.is_none() {
                    self.learn(image);
                }
            }
            Ok(report) if !self.armed => self.judge(image, Ok(report)),
            Ok(_) => {}
            Err(error) => self.failed(&error),
        }
    }

    fn snapshot(&mut self, image: &Image) {
        if image.snapshots().len() > 6 {
            return;
        }
        let made = image.create_snapshot(&format!("s{}", self.version));
        self.change_snapshots(made, |model, id| model.snapshots.push((id, model.disk.clone())));
    }

    /// Like [`Self::note`]; when refcounts are too narrow nothing is done.
    fn change_snapshots<T>(&mut self, result: Result<T>, effect: impl FnOnce(&mut Model, T)) {
        match result {
            Err(error) if error.kind() == ErrorKind::Exhausted && !self.armed && !self.damaged => {}
            result => self.note(result, effect),
        }
    }

    fn pick(image: &Image, input: &mut Input<'_>) -> Option<String> {
        let snapshots = image.snapshots();
        let at = input.choice(snapshots.len());
        snapshots.into_iter().nth(at).map(|snapshot| snapshot.id)
    }

    fn delete(&mut self, image: &Image, input: &mut Input<'_>) {
        let Some(id) = Self::pick(image, input) else {
            return;
        };
        let gone = image.delete_snapshot(&id);
        self.note(gone, |model, ()| model.snapshots.retain(|(known, _)| *known != id));
    }

    fn apply(&mut self, image: &Image, input: &mut Input<'_>) {
        let Some(id) = Self::pick(image, input) else {
            return;
        };
        let applied = image.apply_snapshot(&id);
        let mut known = true;
        self.change_snapshots(applied, |model, ()| {
            match model.snapshots.iter().find(|(other, _)| *other == id) {
                Some((_, disk)) => model.disk = disk.clone(),
                None => known = false,
            }
        });
        if !known {
            self.model = None;
        }
    }

    fn resize(&mut self, image: &Image, input: &mut Input<'_>) {
        let (by, down) = (u64::from(input.half()) * 3, input.byte() & 1 == 1);
        let old = image.size();
        let size = if down { old.saturating_sub(by) } else { old.saturating_add(by) };
        if size > 1 << 20 && !self.damaged {
            return;
        }
        let resized = image.resize(size, down);
        self.note(resized, |model, ()| model.disk.resize(size as usize, 0));
    }

    fn reopen(&mut self, image: Image, input: &mut Input<'_>) -> Option<Image> {
        if self.armed {
            // What a failing flush of the drop leaves is as after a cut.
            (self.model, self.leaky) = (None, true);
        }
        drop(image);
        self.armed = false;
        let image = self.open(input)?;
        if self.model.is_none() {
            self.trust(&image);
        } else {
            self.verify_now(&image);
        }
        Some(image)
    }

    fn crash(&mut self, image: Image, input: &mut Input<'_>) -> Option<Image> {
        let way = |input: &mut Input<'_>| match input.byte() % 4 {
            0 => Crash::Nothing,
            1 => Crash::First(input.byte().into()),
            2 => Crash::TornAfter(input.byte().into(), 1),
            _ => Crash::Sectors(input.word()),
        };
        let file = self.files.file.after(way(input));
        let data = self.files.data.as_ref().map(|data| data.after(way(input)));
        drop(image);
        (self.files.file, self.files.data) = (file, data);
        self.files.file.start_journal();
        self.files.data.iter().for_each(|data| data.start_journal());
        (self.model, self.leaky, self.armed) = (None, true, false);
        let image = self.open(input)?;
        self.trust(&image);
        Some(image)
    }

    fn verify_now(&mut self, image: &Image) {
        if !self.armed {
            self.verify(image);
        }
    }
}
