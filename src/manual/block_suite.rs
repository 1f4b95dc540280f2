//! A page of the manual: what the block suite measures, and how another engine is plugged in.
#![doc = ""]
#![doc = include_str!("block_suite.md")]
