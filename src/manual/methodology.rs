//! A page of the manual: what the numbers mean; [`counts`](super::counts) has the second meter.
#![doc = ""]
#![doc = include_str!("methodology.md")]
