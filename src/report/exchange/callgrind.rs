//! A profile in callgrind's format, as `callgrind_annotate` and rustls' tools
//! read it, from one in cachegrind's: the same grammar with another head and foot.
//!
//! Neighbours: `export` names the files.

use crate::error::{Error, Kind, Result};

/// The text of a callgrind file with the counts of a cachegrind file.
///
/// # Errors
/// [`Kind::Format`] when the text is not a whole cachegrind file.
pub fn from_cachegrind(text: &str) -> Result<String> {
    let wrong = |what: &str| Error::new(Kind::Format, format!("a profile in cachegrind's format {what}"));
    let head = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let events = head("events:").ok_or_else(|| wrong("names no events"))?;
    let totals = head("summary:").ok_or_else(|| wrong("was cut short: it has no totals"))?;
    let mut out = format!(
        "# callgrind format\nversion: 1\ncreator: wallgrind {}\ncmd: {}\npart: 1\n\npositions: line\n\
         events: {events}\nsummary: {totals}\n\n",
        env!("CARGO_PKG_VERSION"),
        head("cmd:").unwrap_or_default()
    );
    let is_body = |line: &&str| {
        line.starts_with("fl=") || line.starts_with("fn=") || line.starts_with(|c: char| c.is_ascii_digit())
    };
    for line in text.lines().filter(is_body) {
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(&format!("\ntotals: {totals}\n"));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::from_cachegrind;

    #[test]
    fn keeps_the_counts_and_states_the_totals_twice() {
        let text = "desc: x\ncmd: tls::a\nevents: Ir\nfl=a.rs\nfn=main\n3 7\n4 2\nfn=f\n9 1\nsummary: 10\n";
        let out = from_cachegrind(text).expect("a whole file");
        assert!(out.starts_with("# callgrind format\n"));
        assert!(out.contains("cmd: tls::a\n") && out.contains("positions: line\nevents: Ir\nsummary: 10\n"));
        assert!(out.ends_with("fl=a.rs\nfn=main\n3 7\n4 2\nfn=f\n9 1\n\ntotals: 10\n"), "{out}");
        assert!(from_cachegrind(&text[..40]).is_err_and(|e| e.report().contains("cut short")));
    }
}
