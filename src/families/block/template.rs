//! Images that are made once for a run, and copies of them.
//!
//! Neighbours: `recipe` makes the files; `run` takes an image or a copy of it
//! for each iteration.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use super::recipe::Recipe;
use crate::block::sys::copy::copy_file;

/// An image that is never written to.
#[derive(Debug)]
pub struct Template {
    folder: PathBuf,
    path: PathBuf,
    recipe: Recipe,
    below: Option<Arc<Template>>,
}

/// A copy of an image, which goes away with this.
#[derive(Debug)]
pub struct Copy {
    path: PathBuf,
}

/// The templates of this process, in all folders.
static MADE: Mutex<Vec<Arc<Template>>> = Mutex::new(Vec::new());

/// Numbers for the names of files.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The image of `recipe` in `folder`, made if need be, with those below it.
///
/// # Errors
/// A file cannot be made.
pub fn template(folder: &Path, recipe: &Recipe) -> Result<Arc<Template>> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.retain(|template| template.path.exists());
    find_or_make(&mut made, folder, recipe)
}

fn find_or_make(made: &mut Vec<Arc<Template>>, folder: &Path, recipe: &Recipe) -> Result<Arc<Template>> {
    let known = made.iter().find(|template| template.folder == folder && template.recipe == *recipe);
    if let Some(template) = known {
        return Ok(Arc::clone(template));
    }
    let below = match &recipe.below {
        Some(below) => Some(find_or_make(made, folder, below)?),
        None => None,
    };
    let path = new_path(&own_folder(folder)?, "template");
    recipe.make(&path, below.as_ref().and_then(|below| below.path.file_name()?.to_str()))?;
    let template = Arc::new(Template { folder: folder.to_path_buf(), path, recipe: recipe.clone(), below });
    made.push(Arc::clone(&template));
    Ok(template)
}

/// The folder of this process in `folder`, where others may put theirs.
fn own_folder(folder: &Path) -> Result<PathBuf> {
    static OWN: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    own.retain(|(_, path)| path.exists());
    if let Some((_, path)) = own.iter().find(|(of, _)| of == folder) {
        return Ok(path.clone());
    }
    // It goes away with the folder that it is in.
    let path = tempfile::Builder::new().prefix("images-").rand_bytes(8).tempdir_in(folder)?.keep();
    own.push((folder.to_path_buf(), path.clone()));
    Ok(path)
}

/// A new name, as long as any other.
fn new_path(folder: &Path, what: &str) -> PathBuf {
    folder.join(format!("{what}-{:06}", NEXT.fetch_add(1, Relaxed)))
}

impl Template {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of its file in bytes.
    pub fn bytes(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |found| found.len())
    }

    /// Its file and those under it, topmost first.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        std::iter::successors(Some(self), |template| template.below.as_deref()).map(Template::path)
    }

    /// A copy beside it, so that names of backing files mean the same.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn copy(&self) -> Result<Copy> {
        let path = new_path(self.path.parent().unwrap_or(&self.folder), "copy");
        // Made before the file, so that what is left of a failure goes away.
        let copy = Copy { path };
        copy_file(&self.path, &copy.path)
            .with_context(|| format!("cannot copy {} to {}", self.path.display(), copy.path.display()))?;
        Ok(copy)
    }
}

impl Copy {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Cut first: a descriptor that is still open would keep its pages, and
        // somebody may bring them to the device. What stays is swept with the folder.
        let _ = File::options().write(true).open(&self.path).and_then(|file| file.set_len(0));
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::block::recipe::CLUSTER;

    #[test]
    fn a_recipe_is_made_once_for_a_folder_and_copies_go_away() {
        let dir = tempfile::tempdir().expect("a folder");
        let recipe = Recipe::raw(CLUSTER).overlay();
        let first = template(dir.path(), &recipe).expect("made");
        let again = template(dir.path(), &recipe).expect("known");
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(first.files().count(), 2);
        let base = template(dir.path(), &Recipe::raw(CLUSTER)).expect("known");
        assert_eq!(Some(base.path()), first.files().nth(1));
        let copy = first.copy().expect("copied");
        let path = copy.path().to_path_buf();
        assert_eq!(fs::read(&path).expect("read"), fs::read(first.path()).expect("read"));
        drop(copy);
        assert!(!path.exists());
        let other = tempfile::tempdir().expect("a folder");
        assert!(!Arc::ptr_eq(&first, &template(other.path(), &recipe).expect("made")));
    }
}
