//! Header extensions: parsed, kept byte for byte when unknown, written back
//! (specification: "Header extensions").
//!
//! Neighbours: `header` places them in the first cluster; `open` acts on the known ones.

use super::super::error::{Error, ErrorKind, Result};

/// End of the extension area.
pub const END: u32 = 0;
/// Format name of the backing file.
pub const BACKING_FORMAT: u32 = 0xe279_2aca;
/// Names of feature bits.
pub const FEATURE_NAMES: u32 = 0x6803_f857;
/// Persistent bitmaps.
pub const BITMAPS: u32 = 0x2385_2875;
/// Ours, for the place of one that was dropped: readers skip what they do not know.
pub const NOTHING: u32 = 0x6e6f_7468;
/// Name of the external data file.
pub const DATA_FILE: u32 = 0x4441_5441;

/// One header extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its type.
    pub kind: u32,
    /// Its data without padding.
    pub data: Vec<u8>,
}

impl Extension {
    /// Bytes that it takes in the file.
    pub(super) fn stored_len(&self) -> u64 {
        8 + (self.data.len() as u64).next_multiple_of(8)
    }
}

/// Reads the extension area. `bounded` says that the area ends at a backing file name, where old
/// writers left out the end mark when nothing else fitted.
pub fn parse(area: &[u8], bounded: bool) -> Result<Vec<Extension>> {
    let mut found: Vec<Extension> = Vec::new();
    let mut rest = area;
    loop {
        let Some((head, tail)) = rest.split_first_chunk::<8>() else {
            if bounded {
                return Ok(found);
            }
            return Err(corrupt("header extensions have no end mark"));
        };
        let kind = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let len = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if kind == END {
            return Ok(found);
        }
        let Some(data) = tail.get(..len) else {
            return Err(corrupt("header extension longer than the header cluster"));
        };
        if kind != NOTHING && found.iter().any(|e| e.kind == kind) {
            return Err(corrupt("header extension occurs twice"));
        }
        found.push(Extension { kind, data: data.to_vec() });
        rest = tail.get(len.next_multiple_of(8)..).unwrap_or(&[]);
    }
}

/// Writes the extension area with its end mark.
pub fn encode(extensions: &[Extension], out: &mut Vec<u8>) {
    for extension in extensions {
        out.extend_from_slice(&extension.kind.to_be_bytes());
        out.extend_from_slice(&(extension.data.len() as u32).to_be_bytes());
        out.extend_from_slice(&extension.data);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out.extend_from_slice(&[0; 8]);
}

/// The text of a string extension, where it is there and is UTF-8.
pub fn text(extensions: &[Extension], kind: u32) -> Result<Option<String>> {
    let Some(extension) = extensions.iter().find(|e| e.kind == kind) else {
        return Ok(None);
    };
    String::from_utf8(extension.data.clone()).map(Some).map_err(|_| corrupt("header extension is not UTF-8"))
}

/// The name that the feature name table has for a bit; `class` 0 is incompatible.
pub fn feature_name(extensions: &[Extension], class: u8, bit: u32) -> Option<String> {
    let table = extensions.iter().find(|e| e.kind == FEATURE_NAMES)?;
    let entry = table.data.chunks_exact(48).find(|e| e[0] == class && u32::from(e[1]) == bit)?;
    let name = entry[2..].split(|b| *b == 0).next().unwrap_or(&[]);
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The feature name table for the bits that this implementation knows.
pub fn feature_names() -> Extension {
    let names: [(u8, u8, &str); 8] = [
        (0, 0, "dirty bit"),
        (0, 1, "corrupt bit"),
        (0, 2, "external data file"),
        (0, 3, "compression type"),
        (0, 4, "extended L2 entries"),
        (1, 0, "lazy refcounts"),
        (2, 0, "bitmaps"),
        (2, 1, "raw external data"),
    ];
    let mut data = Vec::with_capacity(48 * names.len());
    for (class, bit, name) in names {
        data.extend_from_slice(&[class, bit]);
        data.extend_from_slice(name.as_bytes());
        data.resize(data.len().next_multiple_of(48), 0);
    }
    Extension { kind: FEATURE_NAMES, data }
}

fn corrupt(message: &str) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parsing_never_panics(area in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&area, false);
            let _ = parse(&area, true);
        }

        #[test]
        fn round_trips(data in proptest::collection::vec(any::<u8>(), 0..50), kind in 1_u32..) {
            let extensions = vec![Extension { kind, data }];
            let mut out = Vec::new();
            encode(&extensions, &mut out);
            prop_assert_eq!(parse(&out, false).map_err(|e| TestCaseError::fail(e.to_string()))?, extensions);
        }
    }

    #[test]
    fn names_are_found() {
        assert_eq!(feature_name(&[feature_names()], 0, 4).as_deref(), Some("extended L2 entries"));
        assert_eq!(feature_name(&[feature_names()], 0, 9), None);
    }
}
