//! A folder that goes away with its process, or with the next one of its kind
//! when a process was killed: a lock in it says whether somebody still lives.
//! And links to it, which go away in the same way.
//!
//! Neighbours: `trial` makes one for a run, with the files of bodies in it, and
//! `measure::valgrind` puts those of measured children there; `store` makes one
//! of which a run becomes; `lock` is the lock.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use tempfile::{TempDir, TempPath};

use super::lock::{Held, Lock};

/// What the names of the folders of runs begin with.
pub const RUN_PREFIX: &str = "wallgrind-run-";
/// The lock file in a folder, held as long as its process lives.
const LOCK: &str = ".lock";
/// Random letters and digits behind the prefix of a name.
const RANDOM: usize = 8;
/// An empty folder younger than this may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);
/// Tries to make a folder before another process takes it for abandoned.
const TRIES: usize = 8;
/// Tries to remove a folder into which something is still being written.
const REMOVALS: usize = 5;

/// A locked folder of this process. Dropping it removes it.
#[derive(Debug)]
pub struct RunFolder {
    dir: TempDir,
    /// It has become something that stays, elsewhere.
    moved: bool,
    /// `None` on a file system without locks; nobody sweeps there either.
    _held: Option<Held>,
}

impl RunFolder {
    /// Makes a folder `prefix` + eight letters and digits in `parent`, and
    /// removes those of the same prefix and owner whose processes are gone.
    ///
    /// # Errors
    /// `parent` is no folder, or cannot be written.
    pub fn make_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        let mut taken = Err(io::Error::other("each new folder was taken away at once"));
        for _ in 0..TRIES {
            let dir = tempfile::Builder::new().prefix(prefix).rand_bytes(RANDOM).tempdir_in(parent)?;
            match lock(dir.path()) {
                Ok(Some(held)) => taken = Ok(Self { dir, moved: false, _held: Some(held) }),
                // Somebody swept it between its making and its locking.
                Ok(None) => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(_) => taken = Ok(Self { dir, moved: false, _held: None }),
            }
            break;
        }
        let folder = taken?;
        let owner = folder.path().metadata()?.uid();
        sweep(parent, prefix, owner);
        Ok(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Gives it the name `target`, under which it stays. A folder with
    /// something in it is not replaced.
    ///
    /// # Errors
    /// It cannot be renamed; then it goes away.
    pub fn keep_as(mut self, target: &Path) -> io::Result<()> {
        fs::rename(self.dir.path(), target)?;
        self.moved = true;
        self.dir.disable_cleanup(true);
        // In this order: without a lock nobody would sweep it if this process were killed here.
        let _ = fs::remove_file(target.join(LOCK));
        Ok(())
    }
}

/// A second name for a folder, in another place. Dropping it removes it.
#[derive(Debug)]
pub struct RunLink(TempPath);

impl RunLink {
    /// Makes a link `prefix` + eight letters and digits to `folder` in `parent`, and removes those of
    /// the same prefix and owner that lead to folders of killed processes, with these folders.
    ///
    /// # Errors
    /// `parent` is no folder, or cannot be written.
    pub fn make_in(parent: &Path, prefix: &str, folder: &Path) -> io::Result<Self> {
        let link = tempfile::Builder::new()
            .prefix(prefix)
            .rand_bytes(RANDOM)
            .make_in(parent, |path| symlink(folder, path))?
            .into_temp_path();
        let owner = link.symlink_metadata()?.uid();
        sweep(parent, prefix, owner);
        Ok(Self(link))
    }

    /// The link.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Whether `folder` is one that [`RunFolder::make_in`] has made with this prefix.
pub fn is_run_folder(folder: &Path, prefix: &str) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| is_our_name(name, prefix)) && folder.join(LOCK).is_file()
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if self.moved {
            return;
        }
        // A thread of a body may be writing still; what cannot be removed is
        // swept by a later run.
        for _ in 0..REMOVALS {
            match fs::remove_dir_all(self.dir.path()) {
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                _ => break,
            }
        }
    }
}

/// Takes the lock of a new folder; `None` when a sweeper was faster.
fn lock(folder: &Path) -> io::Result<Option<Held>> {
    let path = folder.join(LOCK);
    let Ok(held) = Lock::open(&path)?.try_take()? else { return Ok(None) };
    let same = fs::metadata(&path)?.ino() == held.file().metadata()?.ino();
    Ok(same.then_some(held))
}

/// Removes the folders of processes that have been killed.
fn sweep(parent: &Path, prefix: &str, owner: u32) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| is_our_name(name, prefix));
        // Of the entry itself, not of what a link leads to.
        let data = entry.metadata().ok().filter(|data| data.uid() == owner);
        match data.filter(|_| ours) {
            Some(data) if data.is_dir() => remove_if_abandoned(&entry.path(), &data),
            Some(data) if data.is_symlink() => remove_link_if_abandoned(&entry.path(), prefix, owner),
            _ => {}
        }
    }
}

/// Removes a link to a folder of a process that was killed, with the folder.
/// A link to anything else than such a folder is somebody else's.
fn remove_link_if_abandoned(link: &Path, prefix: &str, owner: u32) {
    let Ok(folder) = fs::read_link(link) else { return };
    let name = folder.file_name().and_then(|name| name.to_str());
    if !name.is_some_and(|name| is_our_name(name, prefix)) {
        return;
    }
    let data = |folder: &Path| fs::symlink_metadata(folder);
    if let Ok(data) = data(&folder)
        && data.is_dir()
        && data.uid() == owner
    {
        remove_if_abandoned(&folder, &data);
    }
    if data(&folder).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let _ = fs::remove_file(link);
    }
}

/// Whether a name is `prefix` and the random part, and nothing else.
fn is_our_name(name: &str, prefix: &str) -> bool {
    let random = name.strip_prefix(prefix);
    random.is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn remove_if_abandoned(folder: &Path, data: &Metadata) {
    let lock = folder.join(LOCK);
    if fs::symlink_metadata(&lock).is_ok_and(|data| data.is_file()) {
        // Held while it is removed: its maker, if there is one still, sees that.
        if let Ok(Ok(_held)) = Lock::open(&lock).and_then(Lock::try_take) {
            // What cannot be removed now is tried again by the next run.
            let _ = fs::remove_dir_all(folder);
        }
        return;
    }
    let age = data.modified().ok().and_then(|at| at.elapsed().ok());
    if age.is_some_and(|age| age > YOUNG) {
        // Its process was killed before it had a lock: only an empty one goes.
        let _ = fs::remove_dir(folder);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    use super::*;

    const PREFIX: &str = "wallgrind-test-";

    /// A folder as a killed process leaves it, with something in it.
    fn left(parent: &Path, name: &str) -> std::path::PathBuf {
        let folder = parent.join(name);
        fs::create_dir_all(folder.join("below")).expect("a folder");
        fs::write(folder.join(LOCK), "").expect("a lock file");
        folder
    }

    fn make(parent: &Path) -> RunFolder {
        RunFolder::make_in(parent, PREFIX).expect("a folder")
    }

    #[test]
    fn goes_away_with_its_process_or_with_the_next_one() {
        let parent = tempfile::tempdir().expect("a folder");
        let alive = make(parent.path());
        let killed = left(parent.path(), &format!("{PREFIX}killed00"));
        let next = make(parent.path());
        assert!(!killed.exists(), "what a killed run left is still there");
        assert!(alive.path().exists(), "one that is in use has been removed");
        assert_eq!(alive.path().as_os_str().len(), next.path().as_os_str().len());
        let path = next.path().to_path_buf();
        fs::create_dir(path.join("full")).expect("a folder");
        drop(next);
        assert!(!path.exists() && alive.path().exists());
    }

    #[test]
    fn nothing_else_is_ever_removed() {
        let parent = tempfile::tempdir().expect("a folder");
        let others = [
            left(parent.path(), &format!("{PREFIX}short")),
            left(parent.path(), &format!("{PREFIX}toolong00")),
            left(parent.path(), &format!("{PREFIX}with.dot")),
            left(parent.path(), "other-killed00"),
        ];
        let target = left(parent.path(), "target");
        symlink(&target, parent.path().join(format!("{PREFIX}linked00"))).expect("a link");
        let unlocked = parent.path().join(format!("{PREFIX}nolock00"));
        fs::create_dir_all(unlocked.join("below")).expect("a folder");
        let made = make(parent.path());
        assert!(others.iter().all(|path| path.exists()) && target.join("below").exists());
        assert!(unlocked.exists(), "one without a lock is somebody else's");
        drop(made);
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        File::open(&unlocked).and_then(|folder| folder.set_modified(long_ago)).expect("its time");
        make(parent.path());
        assert!(unlocked.exists(), "it is old, but not empty");
        fs::remove_dir(unlocked.join("below")).expect("emptied");
        make(parent.path());
        assert!(unlocked.exists(), "it is empty, but was just changed");
        File::open(&unlocked).and_then(|folder| folder.set_modified(long_ago)).expect("its time");
        make(parent.path());
        assert!(!unlocked.exists());
    }

    #[test]
    fn one_that_is_kept_stays_and_has_no_lock() {
        let parent = tempfile::tempdir().expect("a folder");
        let (made, target) = (make(parent.path()), parent.path().join("kept"));
        fs::write(made.path().join("file"), "x").expect("written");
        let path = made.path().to_path_buf();
        made.keep_as(&target).expect("kept");
        assert!(!path.exists() && target.join("file").is_file() && !target.join(LOCK).exists());
        let late = make(parent.path());
        let path = late.path().to_path_buf();
        late.keep_as(&target).expect_err("there is something already");
        assert!(!path.exists() && target.join("file").is_file());
    }

    #[test]
    fn links_go_with_the_folders_of_killed_processes() {
        let [short, long] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let alive = make(long.path());
        let link = |folder: &Path| RunLink::make_in(short.path(), PREFIX, folder).expect("a link");
        let kept = link(alive.path());
        assert!(is_run_folder(kept.path(), PREFIX) && is_run_folder(alive.path(), PREFIX));
        assert!(!is_run_folder(long.path(), PREFIX));
        let killed = left(long.path(), &format!("{PREFIX}killed00"));
        let gone = long.path().join(format!("{PREFIX}gone0000"));
        let other = left(long.path(), "other-killed00");
        let names = ["left0000", "dangling", "others00"].map(|n| short.path().join(format!("{PREFIX}{n}")));
        for (folder, name) in [&killed, &gone, &other].into_iter().zip(&names) {
            symlink(folder, name).expect("a link");
        }
        let next = link(alive.path());
        assert!(!killed.exists(), "found by the link to it");
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        assert_eq!(names.each_ref().map(|name| is_there(name)), [false, false, true]);
        assert!(other.exists() && alive.path().exists() && is_there(kept.path()));
        let path = next.path().to_path_buf();
        drop(next);
        assert!(!is_there(&path) && alive.path().exists());
    }

    #[test]
    fn many_at_once_do_not_take_each_others_folders_away() {
        let parent = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let folder = make(parent.path());
                        fs::write(folder.path().join("file"), "x").expect("the folder is there");
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(parent.path()).expect("the parent").count(), 0);
    }
}
