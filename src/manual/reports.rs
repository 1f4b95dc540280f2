//! A page of the manual: reports for people, and for pull requests, with a workflow for each of two hosts.
#![doc = ""]
#![doc = include_str!("reports.md")]
#![doc = "\n## A workflow for GitHub Actions\n\n```yaml"]
#![doc = include_str!("ci/github.yml")]
#![doc = "```\n\n## A pipeline for GitLab\n\n```yaml"]
#![doc = include_str!("ci/gitlab.yml")]
#![doc = "```"]
