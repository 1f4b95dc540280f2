//! The command `stubs`: the functions by which test explorers find scenarios.
//!
//! An explorer reads source and lists functions marked as tests; it lists no
//! bench target. So a test target has an empty function for each scenario, in
//! modules that make its path the scenario's name; what runs is the suite.
//!
//! Neighbours: `commands` calls it; `listing` writes the lists that it reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::term::print;
use super::whole::write_whole;
use crate::error::{Error, Kind, Result};
use crate::scenario::ScenarioId;

/// Between these two lines stubs are written.
const BEGIN: &str = "// stubs: begin";
const END: &str = "// stubs: end";

/// What a stub does if it is ever run: the compiler takes it away where the target has
/// `harness = false`, and nothing may seem to pass where it has not.
const BODY: &str = "{ unreachable!(\"harness = false\") }";

/// The way to the list, for hints.
const PIPE: &str = "cargo test --test TARGET -- --list --format terse | wallgrind stubs FILE";

/// Words that no function can be called.
const KEYWORDS: [&str; 51] = [
    "_", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while",
];

/// What is to be written where.
#[derive(Debug, clap::Args)]
pub struct Stubs {
    /// The source file with the lines `// stubs: begin` and `// stubs: end`, or - for standard output
    file: PathBuf,
    /// Write nothing, and fail where the file has other stubs
    #[arg(long)]
    check: bool,
}

/// Reads a list of trials from standard input, and writes a stub for each.
///
/// # Errors
/// [`Kind::Usage`]: nothing was listed, or a name can be no function;
/// [`Kind::Format`]: the file has no place for stubs, or (`--check`) other stubs;
/// [`Kind::Io`]: it cannot be read or written.
pub fn stubs(wanted: &Stubs) -> Result<()> {
    if wanted.check && wanted.file == Path::new("-") {
        let error = Error::new(Kind::Usage, "--check compares with a file, and - is none");
        return Err(error.hint("name the file with the stubs"));
    }
    let text = stubs_of(&names(&standard_input()?)?)?;
    if wanted.file == Path::new("-") {
        return print(&text);
    }
    let name = wanted.file.display();
    let read = fs::read_to_string(&wanted.file);
    let old = read.map_err(|error| Error::new(Kind::Io, format!("{name} cannot be read")).source(error))?;
    let new = splice(&old, &text).ok_or_else(|| {
        Error::new(Kind::Format, format!("{name} has no place for stubs"))
            .hint(format!("put the lines `{BEGIN}` and `{END}` into it, in this order, each once"))
    })?;
    if new == old {
        return Ok(());
    }
    if wanted.check {
        let error = Error::new(Kind::Format, format!("the stubs of {name} are not those of the suite"));
        return Err(error.hint(format!("write them anew: {PIPE}")));
    }
    write_whole(&wanted.file, new.as_bytes())
}

fn standard_input() -> Result<String> {
    let mut input = std::io::stdin();
    let nothing = || Error::new(Kind::Usage, "no list of trials is on standard input").hint(PIPE);
    if input.is_terminal() {
        return Err(nothing());
    }
    let mut text = String::new();
    let read = input.read_to_string(&mut text);
    read.map_err(|error| Error::new(Kind::Io, "standard input cannot be read").source(error))?;
    // An empty list would empty the file.
    if text.trim().is_empty() { Err(nothing()) } else { Ok(text) }
}

/// The names in a list in the terse form, and nothing else.
fn names(list: &str) -> Result<Vec<ScenarioId>> {
    let name = |line: &str| {
        let name = line.strip_suffix(": benchmark").or_else(|| line.strip_suffix(": test"));
        let name = name.ok_or_else(|| {
            Error::new(Kind::Usage, format!("{line:?} is no line of a list in the terse form")).hint(PIPE)
        })?;
        ScenarioId::new(name)
    };
    list.lines().filter(|line| !line.trim().is_empty()).map(name).collect()
}

/// A module of stubs.
#[derive(Default)]
struct Module<'a> {
    functions: Vec<&'a str>,
    modules: BTreeMap<&'a str, Module<'a>>,
}

/// The functions, in modules that make the path of each the name of a scenario.
fn stubs_of(names: &[ScenarioId]) -> Result<String> {
    let mut root = Module::default();
    for name in names {
        let mut segments: Vec<&str> = name.as_str().split("::").collect();
        if let Some(word) = segments.iter().find(|segment| KEYWORDS.contains(*segment)) {
            let text = format!("{name} can have no stub: `{word}` is a word of Rust, and no function's name");
            return Err(Error::new(Kind::Usage, text).hint("give the scenario another name"));
        }
        let last = segments.pop().unwrap_or_default();
        let module =
            segments.into_iter().fold(&mut root, |at, segment| at.modules.entry(segment).or_default());
        if module.functions.contains(&last) {
            let error = Error::new(Kind::Usage, format!("{name} is listed twice"));
            return Err(error.hint("list one target, or targets whose scenarios have names of their own"));
        }
        module.functions.push(last);
    }
    let mut text = String::new();
    write(&root, 0, &mut text);
    Ok(text)
}

/// A line for each, so that a long list is not longer still.
fn write(module: &Module<'_>, depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth);
    let skip = if depth == 0 { "#[rustfmt::skip]\n" } else { "" };
    for name in &module.functions {
        let _ = writeln!(text, "{skip}{indent}#[test] fn {name}() {BODY}");
    }
    for (name, inner) in &module.modules {
        let _ = writeln!(text, "{skip}{indent}mod {name} {{");
        write(inner, depth + 1, text);
        let _ = writeln!(text, "{indent}}}");
    }
}

/// The file with these stubs; `None` where it has no place for them.
fn splice(file: &str, stubs: &str) -> Option<String> {
    let once = |mark: &str| file.lines().filter(|line| *line == mark).count() == 1;
    if !once(BEGIN) || !once(END) {
        return None;
    }
    // Whole lines: a mark at the end of some other line is none.
    let place = |mark: &str| {
        let mut at = 0;
        file.split_inclusive('\n').find_map(|line| {
            let here = at;
            at += line.len();
            (line.trim_end_matches(['\r', '\n']) == mark).then_some((here, at))
        })
    };
    let ((_, from), (to, _)) = (place(BEGIN)?, place(END)?);
    (from <= to).then(|| format!("{}{stubs}{}", &file[..from], &file[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_at_the_end_of_a_line_is_none() {
        let file = format!("//! Keep the marks {BEGIN}\nfn main() {{}}\n{BEGIN}\nold\n{END}\nrest {END}\n");
        let new = splice(&file, "new\n").expect("a place");
        assert_eq!(new, file.replace("old", "new"));
        assert_eq!(splice(&format!("{END}\n{BEGIN}\n"), "new\n"), None, "in the wrong order");
        assert_eq!(splice(&format!("{BEGIN}\n{END}"), "new\n"), Some(format!("{BEGIN}\nnew\n{END}")));
    }

    #[test]
    fn a_name_twice_is_refused() {
        let twice = made("a::x: benchmark\na::x: benchmark\n").expect_err("refused");
        assert!(twice.contains("a::x is listed twice"), "{twice}");
    }

    fn made(list: &str) -> std::result::Result<String, String> {
        names(list).and_then(|names| stubs_of(&names)).map_err(|error| error.report())
    }

    #[test]
    fn the_path_of_a_stub_is_the_name_of_its_scenario() {
        let list =
            "io::read::qd001: benchmark\nalone: test\nio::write: benchmark\nio::read::qd128: benchmark\n";
        let text = made(list).expect("stubs");
        let expected = "\
#[rustfmt::skip]
#[test] fn alone() BODY
#[rustfmt::skip]
mod io {
    #[test] fn write() BODY
    mod read {
        #[test] fn qd001() BODY
        #[test] fn qd128() BODY
    }
}
";
        assert_eq!(text, expected.replace("BODY", BODY));
        syn::parse_file(&text).expect("Rust");
    }

    #[test]
    fn what_is_no_list_or_no_function_is_said() {
        let said = |list: &str| made(list).expect_err("it is wrong");
        assert!(said("Compiling x v1").contains("\"Compiling x v1\" is no line of a list"));
        assert!(said("a::B: benchmark").contains("\"a::B\" is not a path"));
        for word in ["self", "move", "type", "_"] {
            assert!(said(&format!("a::{word}: benchmark")).contains(&format!("`{word}` is a word of Rust")));
        }
        for word in KEYWORDS {
            assert!(syn::parse_str::<syn::Ident>(word).is_err() || word == "gen", "{word}");
        }
    }

    #[test]
    fn only_what_is_between_the_marks_is_written() {
        let file = |inside: &str| format!("fn main() {{}}\n{BEGIN}\n{inside}{END}\n// more\n");
        assert_eq!(splice(&file("old\nlines\n"), "new\n"), Some(file("new\n")));
        assert_eq!(splice(&file(""), "new\n"), Some(file("new\n")));
        assert_eq!(splice(&format!("{BEGIN}\n{END}"), "new\n"), Some(format!("{BEGIN}\nnew\n{END}")));
        for none in ["", BEGIN, &format!("{END}\n{BEGIN}\n"), &file("").repeat(2)] {
            assert_eq!(splice(none, "new\n"), None, "{none:?}");
        }
    }
}
