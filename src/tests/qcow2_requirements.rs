//! What a qcow2 implementation must survive, one test for each requirement,
//! by its number.
//!
//! Neighbours: the other `qcow2_*` targets try the same at random.

#[path = "qcow2/fuzz/bitmap.rs"]
#[allow(dead_code, reason = "shared with the fuzzer, which uses other parts")]
mod bitmap;
#[path = "qcow2/image.rs"]
mod image;
#[path = "qcow2/kept.rs"]
mod kept;
#[path = "qcow2/req_guest.rs"]
mod req_guest;
#[path = "qcow2/req_mapping.rs"]
mod req_mapping;
#[path = "qcow2/req_opening.rs"]
mod req_opening;
#[path = "qcow2/req_writing.rs"]
mod req_writing;
