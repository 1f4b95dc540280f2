//! A page of the manual: a run over many machines: shards, merging, and a workflow with a matrix of runners.
#![doc = ""]
#![doc = include_str!("many_machines.md")]
#![doc = "\n```yaml"]
#![doc = include_str!("ci/github-shards.yml")]
#![doc = "```"]
