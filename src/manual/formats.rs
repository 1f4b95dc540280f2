//! A page of the manual: what is on disk and on the terminal; the types are in [`store`](crate::store).
#![doc = ""]
#![doc = include_str!("formats.md")]
