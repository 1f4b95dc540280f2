//! A page of the manual: the public interface, by example; the types are in [`scenario`](crate::scenario).
#![doc = ""]
#![doc = include_str!("writing_a_suite.md")]
