//! A page of the manual: why a trial costs what it costs; [`counts`](super::counts) says how the counts come about.
#![doc = ""]
#![doc = include_str!("finding_out_why.md")]
