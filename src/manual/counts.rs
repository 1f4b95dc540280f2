//! A page of the manual: how instruction counts come to be equal to the last digit; [`methodology`](super::methodology) is its wall-time twin.
#![doc = ""]
#![doc = include_str!("counts.md")]
