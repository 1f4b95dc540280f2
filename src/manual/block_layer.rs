//! A page of the manual: what the block layer's operations cost, and why.
#![doc = ""]
#![doc = include_str!("block_layer.md")]
