//! Files read by several threads, a block at a time and in their order: runs of many
//! thousand scenarios have as many files, and most of the time is that of parsing.
//!
//! Neighbours: `dir` reads runs with it, and so does whoever looks at each file once.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

/// Files that are read before the first of them is used: what is read waits in memory.
const BLOCK: usize = 512;
/// Files that are worth a thread.
const WORTH: usize = 64;

/// Shows what `read` makes of each file to `each`, in the order of the files.
///
/// # Errors
/// Whatever `each` says; no file behind that block is read then.
pub fn side_by_side<T: Send, E>(
    files: &[PathBuf],
    read: impl Fn(&Path) -> T + Sync,
    mut each: impl FnMut(&Path, T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    for block in files.chunks(BLOCK) {
        let share = block.len().div_ceil(threads).max(WORTH);
        let part = |part: &[PathBuf]| part.iter().map(|file| read(file)).collect::<Vec<T>>();
        let all: Vec<T> = if block.len() <= share {
            part(block)
        } else {
            thread::scope(|scope| {
                let parts: Vec<_> =
                    block.chunks(share).map(|files| scope.spawn(move || part(files))).collect();
                let ended =
                    parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
                ended.flatten().collect()
            })
        };
        block.iter().zip(all).try_for_each(|(file, read)| each(file, read))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_their_order_and_the_first_error_ends_it() {
        let files: Vec<PathBuf> = (0..3 * BLOCK + 7).map(|n| n.to_string().into()).collect();
        let number = |file: &Path| file.display().to_string().parse::<usize>().ok();
        let mut seen = Vec::new();
        let whole: Result<(), ()> = side_by_side(&files, number, |file, read| {
            assert_eq!(number(file), read);
            seen.extend(read);
            Ok(())
        });
        assert_eq!((whole, seen), (Ok(()), (0..files.len()).collect()));
        let mut count = 0;
        let ended = side_by_side(&files, number, |_, read| {
            count += 1;
            if read == Some(BLOCK + 1) { Err("it") } else { Ok(()) }
        });
        assert_eq!((ended, count), (Err("it"), BLOCK + 2));
        assert_eq!(side_by_side(&[], number, |_, _| Err("none")), Ok(()));
    }
}
