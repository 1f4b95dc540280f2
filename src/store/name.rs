//! Names of files and folders of the store.
//!
//! Neighbours: `dir` uses them.

use super::record::Record;

/// The longest stem, in bytes. Linux takes 255 for a whole name; the rest is
/// for a number and the extension.
const LONGEST: usize = 200;

/// The name of a record's file without extension: suite, scenario (`::` as
/// `.`), meter and attempt, such as `tls.tls.handshake.ring.walltime.1`.
/// What a file name should not hold becomes `_`; a name that is too long is
/// cut and told apart by a hash of the whole.
pub(super) fn file_stem(record: &Record) -> String {
    let Record { suite, scenario, mode, attempt, .. } = record;
    let whole = format!("{suite}.{}.{mode}.{attempt}", scenario.replace("::", "."));
    let mut stem = plain(&whole);
    if stem.starts_with('.') {
        stem.insert(0, '_');
    }
    if stem.len() > LONGEST {
        let tail = format!("-{:016x}.{mode}.{attempt}", fnv1a(whole.as_bytes()));
        stem.truncate(LONGEST.saturating_sub(tail.len()));
        stem.extend(tail.chars().map(|c| if is_plain(c) { c } else { '_' }));
    }
    stem
}

/// The name of the file of a record's history: as above, without the attempt.
pub(super) fn history_stem(record: &Record) -> String {
    let once = Record { attempt: 1, ..record.clone() };
    file_stem(&once).trim_end_matches(".1").to_string()
}

/// Whether a run id can name a folder: no separators, no parent, not hidden.
pub(super) fn plain_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && !name.starts_with('.') && name.chars().all(is_plain)
}

/// A text with `_` for what a file name should not hold.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// FNV-1a, 64 bits (Fowler, Noll and Vo): names only, no security in it.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
