//! The manual: long prose, one page a module.
//!
//! - [`methodology`]: what each number means, where it is biased, and when not to trust it.
//! - [`counts`]: how instruction counts come to be equal to the last digit.
//! - [`verdicts`]: slower, faster, same, or not known: baselines, builds in turn, error rates.
//! - [`finding_out_why`]: time, counts, caches, system calls and heap side by side; flame graphs.
//! - [`reports`]: the page and the comment of a pull request, and workflows that make them.
//! - [`many_machines`]: shards, merging them into one run, and a workflow with a matrix of runners.
//! - [`ci_recipes`]: what to run in continuous integration, and what to trust there.
//! - [`bare_metal`]: governor, isolation, pinning: a machine that is quiet.
//! - [`writing_a_suite`]: scenarios, set-up, checks, parties, needs.
//! - [`coming_from`]: criterion's and divan's forms beside ours.
//! - [`editors`]: test explorers, lenses, settings.
//! - [`block_suite`]: what its scenarios measure, and how another engine is plugged in.
//! - [`block_layer`]: what its operations cost, and that it does not follow the disk's size.
//! - [`formats`]: what is on disk, and what the lines on the terminal are.
//! - [`faq`]: what is asked often.

pub mod bare_metal;
pub mod block_layer;
pub mod block_suite;
pub mod ci_recipes;
pub mod coming_from;
pub mod counts;
pub mod editors;
pub mod faq;
pub mod finding_out_why;
pub mod formats;
pub mod many_machines;
pub mod methodology;
pub mod reports;
pub mod verdicts;
pub mod writing_a_suite;
