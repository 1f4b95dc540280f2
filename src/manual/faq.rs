//! A page of the manual: what is asked often.
#![doc = ""]
#![doc = include_str!("faq.md")]
