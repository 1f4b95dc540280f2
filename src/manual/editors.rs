//! A page of the manual: how test explorers and editors find scenarios; the command is `wallgrind stubs`.
#![doc = ""]
#![doc = include_str!("editors.md")]
