//! The disk and its snapshots as plain arrays.
//!
//! Neighbours: `play` keeps it up to date and compares.

use wallgrind::block::Result;
use wallgrind::block::qcow2::{Image, OpenOptions};

use super::bases::Files;

/// The largest disk that is kept as an array.
const MOST: u64 = 1 << 20;

/// What has to be read.
#[derive(Clone)]
pub struct Model {
    /// The disk.
    pub disk: Vec<u8>,
    /// Snapshots by their id.
    pub snapshots: Vec<(String, Vec<u8>)>,
}

/// The whole disk; `None` where it is too large.
fn contents(image: &Image) -> Result<Option<Vec<u8>>> {
    let size = image.size();
    if size > MOST {
        return Ok(None);
    }
    let mut disk = vec![1; size as usize];
    image.read(0, &mut disk)?;
    Ok(Some(disk))
}

fn at_snapshot(files: &Files, id: &str) -> Option<Vec<u8>> {
    contents(&files.open(&OpenOptions::new().snapshot(id)).ok()?).ok()?
}

impl Model {
    /// What is there now; `None` where the disk is too large, an error where it does not read.
    /// Snapshots that cannot be read are left out.
    pub fn of(image: &Image, files: &Files) -> Result<Option<Self>> {
        let Some(disk) = contents(image)? else {
            return Ok(None);
        };
        let ids: Vec<String> = image.snapshots().into_iter().map(|s| s.id).collect();
        let unique = |id: &String| ids.iter().filter(|other| *other == id).count() == 1;
        let all = ids.iter().filter(|id| unique(id)).take(8);
        let snapshots = all.filter_map(|id| Some((id.clone(), at_snapshot(files, id)?))).collect();
        Ok(Some(Self { disk, snapshots }))
    }

    /// Puts bytes into the disk.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        self.disk[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Puts zeroes into the disk.
    pub fn clear(&mut self, at: u64, len: u64) {
        self.disk[at as usize..][..len as usize].fill(0);
    }

    /// Panics unless the image has this content.
    pub fn assert_read(&self, image: &Image, files: &Files) {
        assert_eq!(image.size(), self.disk.len() as u64, "size");
        let disk = contents(image).expect("the disk reads").expect("its size is known");
        if let Some(at) = disk.iter().zip(&self.disk).position(|(a, b)| a != b) {
            panic!("the disk differs at {at:#x}: {:#x} for {:#x}", disk[at], self.disk[at]);
        }
        for (id, content) in &self.snapshots {
            let there = at_snapshot(files, id).unwrap_or_else(|| panic!("snapshot {id} does not read"));
            assert!(there == *content, "snapshot {id} changed");
        }
    }
}
