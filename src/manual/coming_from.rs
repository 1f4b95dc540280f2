//! A page of the manual: suites of criterion and divan, and the same with wallgrind.
#![doc = ""]
#![doc = include_str!("coming_from.md")]
