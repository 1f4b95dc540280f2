//! Faults on demand: a script says which system call fails, is cut short or
//! is torn, counted from the last reset.
//!
//! Neighbours: [`FaultyIo`] puts a script under anything that does [`FileIo`]
//! (a file in memory, a real file); `faulty_driver` does the same for engines.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex};

use super::align::Alignment;
use super::io::{Fallocate, FileIo};
use super::lock::lock;

/// What happens instead of the whole call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this errno, and nothing is done.
    Errno(i32),
    /// A read or write moves at most this many bytes and says so; other calls are whole.
    Short(usize),
    /// A read or write moves this many bytes and then fails with EIO; other calls fail.
    Torn(usize),
}

/// Which calls a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every call.
    Any,
    /// Reads, vectored or not.
    Read,
    /// Writes, vectored or not.
    Write,
    /// `fallocate` in any mode.
    Fallocate,
    /// `fdatasync`.
    Sync,
    /// `ftruncate`.
    Truncate,
    /// Asking for the length.
    Size,
}

const TARGETS: usize = 7;

/// A fault for the calls `first..=last` of a target.
#[derive(Clone, Copy, Debug)]
struct Rule {
    target: Target,
    first: u64,
    last: u64,
    fault: Fault,
}

#[derive(Debug, Default)]
struct Script {
    counts: [u64; TARGETS],
    rules: Vec<Rule>,
}

/// A script of faults. Clones are the same script, so that a test keeps one
/// while the code under test runs with another.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Script>>);

impl Faults {
    /// A script without faults, which counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// The call number `n` of `target` (from 0, since the last reset) has `fault`.
    pub fn at(&self, target: Target, n: u64, fault: Fault) {
        self.add(target, n, n, fault);
    }

    /// The call number `n` of `target` and all later ones have `fault`.
    pub fn from(&self, target: Target, n: u64, fault: Fault) {
        self.add(target, n, u64::MAX, fault);
    }

    fn add(&self, target: Target, first: u64, last: u64, fault: Fault) {
        lock(&self.0).rules.push(Rule { target, first, last, fault });
    }

    /// Drops all rules and counts from 0 again.
    pub fn reset(&self) {
        *lock(&self.0) = Script::default();
    }

    /// Calls of `target` since the last reset.
    pub fn calls(&self, target: Target) -> u64 {
        lock(&self.0).counts[target as usize]
    }

    /// Counts a call of `target`, and says which fault it has.
    pub(crate) fn next(&self, target: Target) -> Option<Fault> {
        let mut script = lock(&self.0);
        let any = script.counts[Target::Any as usize];
        let own = script.counts[target as usize];
        script.counts[Target::Any as usize] += 1;
        script.counts[target as usize] += 1;
        let meets = |rule: &&Rule| {
            let number = if rule.target == Target::Any { any } else { own };
            (rule.target == Target::Any || rule.target == target)
                && (rule.first..=rule.last).contains(&number)
        };
        script.rules.iter().find(meets).map(|rule| rule.fault)
    }

    /// For calls that move no bytes: whole, or failed.
    fn whole(&self, target: Target) -> io::Result<()> {
        match self.next(target) {
            Some(Fault::Errno(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Fault::Torn(_)) => Err(io::Error::from_raw_os_error(libc::EIO)),
            Some(Fault::Short(_)) | None => Ok(()),
        }
    }
}

/// A file whose calls go through a script of faults.
#[derive(Clone, Debug)]
pub struct FaultyIo<I> {
    inner: I,
    faults: Faults,
}

impl<I> FaultyIo<I> {
    /// Puts `faults` over `inner`.
    pub fn new(inner: I, faults: Faults) -> Self {
        Self { inner, faults }
    }

    /// The file under it.
    pub fn inner(&self) -> &I {
        &self.inner
    }

    /// Its script.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

/// How many bytes of each of `lens` belong to the first `limit` bytes.
fn shares(lens: impl Iterator<Item = usize>, limit: usize) -> impl Iterator<Item = usize> {
    lens.scan(limit, |rest, len| {
        let share = len.min(*rest);
        *rest -= share;
        Some(share)
    })
}

/// The errno, or the bytes to move and whether an error follows.
fn split(fault: Fault) -> io::Result<(usize, bool)> {
    match fault {
        Fault::Errno(errno) => Err(io::Error::from_raw_os_error(errno)),
        Fault::Short(limit) => Ok((limit, false)),
        Fault::Torn(limit) => Ok((limit, true)),
    }
}

fn then(moved: usize, fails: bool) -> io::Result<usize> {
    match fails {
        true => Err(io::Error::from_raw_os_error(libc::EIO)),
        false => Ok(moved),
    }
}

impl<I: FileIo> FileIo for FaultyIo<I> {
    fn preadv(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let Some(fault) = self.faults.next(Target::Read) else {
            return self.inner.preadv(bufs, offset);
        };
        let (limit, fails) = split(fault)?;
        let lens: Vec<usize> = shares(bufs.iter().map(|buf| buf.len()), limit).collect();
        let cut = bufs.iter_mut().zip(lens).filter(|(_, len)| *len > 0);
        let mut cut: Vec<_> = cut.map(|(buf, len)| IoSliceMut::new(&mut buf[..len])).collect();
        then(self.inner.preadv(&mut cut, offset)?, fails)
    }

    fn pwritev(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let Some(fault) = self.faults.next(Target::Write) else {
            return self.inner.pwritev(bufs, offset);
        };
        let (limit, fails) = split(fault)?;
        let lens = shares(bufs.iter().map(|buf| buf.len()), limit);
        let cut = bufs.iter().zip(lens).filter(|(_, len)| *len > 0);
        let cut: Vec<_> = cut.map(|(buf, len)| IoSlice::new(&buf[..len])).collect();
        then(self.inner.pwritev(&cut, offset)?, fails)
    }

    fn fallocate(&self, how: Fallocate, offset: u64, len: u64) -> io::Result<()> {
        self.faults.whole(Target::Fallocate)?;
        self.inner.fallocate(how, offset, len)
    }

    fn fdatasync(&self) -> io::Result<()> {
        self.faults.whole(Target::Sync)?;
        self.inner.fdatasync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.faults.whole(Target::Truncate)?;
        self.inner.truncate(len)
    }

    fn size(&self) -> io::Result<u64> {
        self.faults.whole(Target::Size)?;
        self.inner.size()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.inner.next_data(offset)
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }
}
