//! A page of the manual: how "did it get slower?" is answered, how often that is wrong, and when not to trust it; [`methodology`](super::methodology) is about the numbers themselves.
#![doc = ""]
#![doc = include_str!("verdicts.md")]
