//! What parent and child say to each other, for both sides.
//!
//! The parent starts this same program with [`FLAG`] as its only argument and
//! a socket as descriptor [`CONTROL`]. It sends one [`Job`], and the child
//! answers with one [`Report`]: JSON behind a length of four bytes.
//! Standard input and output of a party are the wire to the other party.
//!
//! Neighbours: `launch` speaks for the parent, `child` for the child.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::RawFd;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of all that is in this file.
pub(super) const VERSION: u32 = 2;
/// The only argument of a child.
pub(super) const FLAG: &str = "--wallgrind-measured-child";
/// The descriptor on which a child finds its job.
/// Far above the lowest free ones, which the standard library uses between fork and exec.
pub(super) const CONTROL: RawFd = 100;

/// Longest message, in bytes.
const LONGEST: usize = 1 << 20;

/// How the tool is told where the region begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    /// Totals at the beginning and at the end of the region, subtracted.
    Difference,
    /// Cachegrind's requests (3.22 and later).
    Requests,
    /// Callgrind's toggle.
    Toggle,
}

impl Method {
    /// The name, as it is stored.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Difference => "difference",
            Self::Requests => "requests",
            Self::Toggle => "toggle",
        }
    }
}

/// What a child is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    /// The parent's [`VERSION`].
    pub version: u32,
    /// What to run.
    pub task: Task,
    /// How to mark the region.
    pub method: Method,
    /// Iterations before the region.
    pub warm: usize,
    /// Iterations in the region; never 0.
    pub iterations: usize,
    /// Bytes to hold while the region runs, so that the greatest heap of the
    /// process falls into the region; 0 for counts.
    pub ballast: usize,
}

/// What a child runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Task {
    /// A region whose count is known.
    Canary {
        /// Loops of the canary.
        loops: u64,
    },
    /// A scenario, or one party of it.
    Scenario {
        /// Its name.
        name: String,
        /// The index of the party.
        party: Option<usize>,
    },
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// It ran, and all checks held.
    Done(Done),
    /// It did not.
    Failed {
        /// The reason, with all causes.
        reason: String,
        /// A panic.
        panicked: bool,
        /// Only because the other party was gone.
        abandoned: bool,
    },
}

/// What a child that is done says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    /// The process ids in the names of the snapshots, in their order.
    pub snapshots: Vec<i64>,
    /// What one iteration gets done.
    pub bytes: Vec<u64>,
    /// What one iteration gets done.
    pub elements: Vec<u64>,
    /// What the body has stated.
    pub facts: BTreeMap<String, String>,
    /// What the gauges of the body rose by in the region.
    pub gauges: Vec<Risen>,
    /// Processor features that the child sees.
    pub features: Vec<String>,
    /// Address randomisation could be switched off.
    pub randomisation_off: bool,
}

/// What a gauge rose by in the region, all iterations together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Risen {
    /// The metric.
    pub metric: String,
    /// The symbol of its unit.
    pub unit: String,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// By how much.
    pub total: u64,
}

/// Sends one message.
///
/// # Errors
/// The other side is gone.
pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&frame)
}

/// Receives one message.
///
/// # Errors
/// The other side is gone ([`io::ErrorKind::UnexpectedEof`]), or talks rubbish
/// ([`io::ErrorKind::InvalidData`]).
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        let text = format!("a message of {length} bytes was announced, more than {LONGEST}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    serde_json::from_slice(&body).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_through_and_rubbish_does_not() {
        let report = Report::Failed { reason: "x\n\"y\"".into(), panicked: true, abandoned: false };
        let mut bytes = Vec::new();
        send(&mut bytes, &report).expect("a vector takes everything");
        assert_eq!(receive::<Report>(&mut &bytes[..]).expect("the same"), report);
        let kind = |bytes: &[u8]| receive::<Report>(&mut &bytes[..]).map_err(|e| e.kind());
        assert_eq!(kind(&bytes[..bytes.len() - 1]), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(kind(b"hello, world"), Err(io::ErrorKind::InvalidData));
        assert_eq!(kind(b"\x02\0\0\0{}"), Err(io::ErrorKind::InvalidData));
    }
}
