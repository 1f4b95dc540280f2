//! A page of the manual: a machine that is quiet; `wallgrind doctor` says what it lacks.
#![doc = ""]
#![doc = include_str!("bare_metal.md")]
