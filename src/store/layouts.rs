//! Layouts: the same build linked again and again, its functions in another
//! order each time. Where code lies decides how long it takes, as what it does
//! decides; a comparison that draws a layout for each pair of processes does
//! not take the one for the other.
//!
//! ```text
//! <executable>.layouts/<sha256 of it, cut>/1, 2, …
//! ```
//!
//! Under the sum of the executable, so that one that was linked again without
//! layouts is never measured as the one before.
//!
//! Neighbours: `baseline` keeps them with an executable, `cli` has them made,
//! `flow` asks for them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::baseline::digest;
use crate::error::{Error, Kind, Result};

/// Fewer layouts than this say too little of what luck is in them.
pub const LEAST_LAYOUTS: u32 = 8;

/// What follows the name of an executable in that of their folder.
pub(super) const SUFFIX: &str = ".layouts";

/// Digits of the sum in the name of a folder.
const DIGITS: usize = 16;

/// The layouts of an executable, in order; none where none were made.
///
/// # Errors
/// There are some, and they or the executable cannot be read.
pub fn layouts_of(program: &Path) -> Result<Vec<PathBuf>> {
    let all = all_of(program);
    if !all.is_dir() {
        return Ok(Vec::new());
    }
    folder_of(program).and_then(|folder| numbered(&folder)).map_err(|error| {
        Error::new(Kind::Io, format!("the layouts of {} cannot be read", program.display()))
            .hint(format!("remove {}, and build it again", all.display()))
            .source(error)
    })
}

/// The layouts of an executable whose sum is known, in order.
pub(super) fn numbered_of(program: &Path, sum: &str) -> io::Result<Vec<PathBuf>> {
    numbered(&all_of(program).join(&sum[..DIGITS]))
}

/// The files of a folder that are called by numbers, in order; none without a folder.
fn numbered(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers.into_iter().map(|number| folder.join(number.to_string())).collect())
}

/// Has layouts of an executable made, in place of what there was: `link`
/// writes the one of a number (from 1 to `count`) to a path.
///
/// # Errors
/// One cannot be made; then there are none.
pub fn make_layouts(
    program: &Path,
    count: u32,
    mut link: impl FnMut(u32, &Path) -> io::Result<()>,
) -> io::Result<()> {
    replace(program, |folder| {
        (1..=count).try_for_each(|number| link(number, &folder.join(number.to_string())))
    })
}

/// Copies the layouts of an executable to those of a copy of it.
///
/// # Errors
/// They cannot be read or written; then the copy has none.
pub(super) fn copy_layouts(from: &Path, to: &Path) -> Result<()> {
    let layouts = layouts_of(from)?;
    if layouts.is_empty() || layouts_of(to)?.len() == layouts.len() {
        return Ok(());
    }
    let copied = replace(to, |folder| {
        let name = |path: &Path| path.file_name().map(|name| folder.join(name)).unwrap_or_default();
        layouts.iter().try_for_each(|path| fs::copy(path, name(path)).map(drop))
    });
    copied.map_err(|error| {
        Error::new(Kind::Io, format!("the layouts of {} cannot be copied", from.display()))
            .hint("make room on that disk, or choose another folder with --out")
            .source(error)
    })
}

/// Fills the folder of an executable's layouts elsewhere, and puts it in
/// place when it is whole.
fn replace(program: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let all = all_of(program);
    match fs::remove_dir_all(&all) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(&all)?,
    }
    let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(&all)?;
    fill(unfinished.path())?;
    let whole = unfinished.keep();
    fs::rename(whole, folder_of(program)?)
}

fn all_of(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

fn folder_of(program: &Path) -> io::Result<PathBuf> {
    let (sum, _) = digest(program)?;
    Ok(all_of(program).join(&sum[..DIGITS]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(folder: &Path, name: &str) -> PathBuf {
        let program = folder.join(name);
        fs::write(&program, "a build").expect("written");
        program
    }

    fn make(program: &Path, count: u32) -> io::Result<()> {
        make_layouts(program, count, |number, path| fs::write(path, format!("layout {number}")))
    }

    fn texts(program: &Path) -> Vec<String> {
        let read = |path: PathBuf| fs::read_to_string(path).expect("read");
        layouts_of(program).expect("readable").into_iter().map(read).collect()
    }

    #[test]
    fn layouts_come_back_in_order_and_only_for_the_executable_they_are_of() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = program(dir.path(), "tls-1");
        assert!(texts(&program).is_empty());
        make(&program, 12).expect("made");
        let expected: Vec<String> = (1..=12).map(|number| format!("layout {number}")).collect();
        assert_eq!(texts(&program), expected);
        make(&program, 2).expect("made");
        assert_eq!(texts(&program).len(), 2, "what there was before is left");
        fs::write(&program, "linked again").expect("written");
        assert!(texts(&program).is_empty(), "layouts of another build");
    }

    #[test]
    fn a_link_that_fails_leaves_none() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = program(dir.path(), "tls-1");
        make(&program, 3).expect("made");
        let fails = |number, path: &Path| {
            fs::write(path, "x")?;
            if number == 2 { Err(io::Error::other("no")) } else { Ok(()) }
        };
        assert!(make_layouts(&program, 3, fails).is_err());
        assert!(texts(&program).is_empty());
        let left = fs::read_dir(all_of(&program)).expect("a folder").count();
        assert_eq!(left, 0, "half of them are left behind");
    }

    #[test]
    fn a_copy_has_the_layouts_of_what_it_is_a_copy_of() {
        let dir = tempfile::tempdir().expect("a folder");
        let (from, to) = (program(dir.path(), "from"), program(dir.path(), "to"));
        copy_layouts(&from, &to).expect("nothing to copy");
        assert!(texts(&to).is_empty());
        make(&from, 3).expect("made");
        copy_layouts(&from, &to).expect("copied");
        assert_eq!(texts(&to), texts(&from));
    }
}
