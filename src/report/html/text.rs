//! Text that cannot be taken for markup: names can hold any character.
//!
//! Neighbours: `page` and `rows` write nothing else; `detail` goes into JSON.

use serde::Serialize;

use crate::report::terminal::plain;

/// A text as it may stand in an element or a quoted attribute. Control
/// characters and colours of terminals are taken out.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// A value as JSON on one line, as it may stand in a `script` element: with no
/// `<` in it, nothing can end that element or begin a comment.
pub fn json<T: Serialize>(value: &T) -> String {
    // Names, numbers and lists of them: nothing here that JSON does not have.
    serde_json::to_string(value).unwrap_or_else(|_| "null".into()).replace('<', "\\u003c")
}
