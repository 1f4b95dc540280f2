//! What DHAT writes: heap use by allocation point, in JSON.
//!
//! Neighbours: `readings` compares the snapshots of a child.

use serde::Deserialize;

/// The version of DHAT's format that is read; later ones may differ.
const VERSION: u64 = 2;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "dhatFileVersion")]
    version: u64,
    mode: String,
    pps: Vec<Point>,
}

/// One allocation point: bytes and blocks in all, at the greatest heap, at the end.
#[derive(Deserialize)]
struct Point {
    tb: u64,
    tbk: u64,
    gb: u64,
    gbk: u64,
    eb: u64,
    ebk: u64,
}

/// Bytes and blocks of heap memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub bytes: u64,
    pub blocks: u64,
}

impl Amount {
    /// What is left without `other`; never below nothing.
    pub(super) fn without(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            blocks: self.blocks.saturating_sub(other.blocks),
        }
    }
}

/// The heap of a process, from its start to the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heap {
    /// All that was ever allocated.
    pub total: Amount,
    /// What was held when the most bytes were.
    pub peak: Amount,
    /// What is held at the end.
    pub held: Amount,
}

impl Heap {
    /// Reads an output file of DHAT.
    ///
    /// # Errors
    /// In words: the file is cut short, or from another version or mode.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|e| {
            if e.is_eof() {
                "it was cut short".to_string()
            } else {
                format!("it is not an output file of DHAT: {e}")
            }
        })?;
        if file.version != VERSION || file.mode != "heap" {
            let File { version, mode, .. } = file;
            return Err(format!("it has version {version} and mode {mode}; {VERSION} and heap are read"));
        }
        let mut heap = Self::default();
        for p in &file.pps {
            add(&mut heap.total, p.tb, p.tbk);
            add(&mut heap.peak, p.gb, p.gbk);
            add(&mut heap.held, p.eb, p.ebk);
        }
        Ok(heap)
    }
}

fn add(to: &mut Amount, bytes: u64, blocks: u64) {
    to.bytes += bytes;
    to.blocks += blocks;
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true
        ,"tu":"instrs","Mtu":"Minstr","tuth":500,"cmd":"x","pid":1,"te":900,"tg":800
        ,"pps":[{"tb":472,"tbk":1,"tl":7,"mb":472,"mbk":1,"gb":0,"gbk":0,"eb":0,"ebk":0,"rb":1,"wb":1,"fs":[1]}
               ,{"tb":100,"tbk":2,"tl":7,"mb":60,"mbk":1,"gb":60,"gbk":1,"eb":40,"ebk":1,"rb":1,"wb":1,"fs":[1]}]
        ,"ftbl":["[root]","x"]}"#;

    #[test]
    fn sums_up_the_allocation_points() {
        let heap = Heap::parse(TEXT).expect("valid");
        let amount = |bytes, blocks| Amount { bytes, blocks };
        assert_eq!(heap, Heap { total: amount(572, 3), peak: amount(60, 1), held: amount(40, 1) });
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        let error = |text: &str| Heap::parse(text).expect_err("wrong");
        assert!(error(&TEXT[..TEXT.len() - 30]).contains("cut short"));
        assert!(error(&TEXT.replace(":2,", ":3,")).contains("version 3"));
        assert!(error(&TEXT.replace("heap", "ad-hoc")).contains("ad-hoc"));
        assert!(error("hello").contains("not an output file"));
    }
}
