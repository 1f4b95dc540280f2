//! A page of the manual: what to run in continuous integration, and what to trust there; [`reports`](super::reports) has whole workflows.
#![doc = ""]
#![doc = include_str!("ci_recipes.md")]
