//! Holds the house: imports run one way, files and functions stay small,
//! every file says what it is for, every dependency has its reason, and the
//! top level holds nothing unexpected.
//!
//! Neighbours: `source` reads and parses the tree; the rules are here.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use source::{File, all_files, root};

/// Which module may import which others. A module that is missing here fails
/// the test, so that its place is decided when it is made.
const IMPORTS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("error", &[]),
    ("block", &[]),
    ("tls", &[]),
    ("stats", &["units"]),
    ("samples", &["units"]),
    ("machine", &["units", "error"]),
    ("scenario", &["units", "error"]),
    ("plan", &["units", "error", "scenario", "compare"]),
    // `stats` for the intervals in the table of peers.
    ("families", &["scenario", "units", "tls", "block", "stats"]),
    ("measure", &["scenario", "samples", "stats", "plan", "sys", "units", "error"]),
    ("sys", &[]),
    // `sys` for the lock on what two runs may write at once.
    ("store", &["samples", "stats", "machine", "sys", "units", "error"]),
    ("compare", &["store", "stats", "samples", "units"]),
    ("report", &["compare", "store", "stats", "samples", "units", "error"]),
    (
        "trial",
        &[
            "scenario", "measure", "store", "plan", "compare", "samples", "stats", "machine", "sys", "units",
            "error",
        ],
    ),
    // `families` for the reference's names of its scenarios only, `block` for
    // what only trying it tells of a machine.
    (
        "cli",
        &[
            "plan", "sys", "families", "block", "scenario", "store", "compare", "report", "samples", "stats",
            "machine", "units", "error",
        ],
    ),
    // The one function of the flow, and the crate's root, see everything.
    ("flow", &["*"]),
    ("manual", &["*"]),
    ("lib", &["*"]),
    ("main", &["*"]),
];

const MOST_LINES_OF_A_FILE: usize = 500;
const MOST_LINES_OF_A_FUNCTION: usize = 80;

/// What may stand at the top level of the repository.
const TOP: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "benches",
    "src",
    "fixtures",
    // Where cargo-fuzz looks for its targets.
    "fuzz",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "build.rs",
    "rustfmt.toml",
    "clippy.toml",
    "target",
];

/// Collects the complaints of one rule and fails with all of them at once.
fn none(rule: &str, complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{rule}:\n  {}", complaints.join("\n  "));
}

fn library_files() -> Vec<File> {
    all_files().into_iter().filter(|f| !f.path.starts_with("src/tests/")).collect()
}

#[test]
fn imports_run_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = IMPORTS.iter().copied().collect();
    let mut complaints = Vec::new();
    for file in library_files().iter().filter(|f| f.path.starts_with("src/")) {
        let module = file.module();
        let Some(may) = allowed.get(module.as_str()) else {
            complaints.push(format!("{}: module `{module}` has no row in the import table", file.path));
            continue;
        };
        for import in file.imports() {
            if import != module && !may.contains(&import.as_str()) && !may.contains(&"*") {
                complaints.push(format!("{}: `{module}` imports `{import}`", file.path));
            }
        }
    }
    none("imports run one way", complaints);
}

#[test]
fn the_import_table_names_only_modules_that_exist() {
    let modules: BTreeSet<String> = library_files().iter().map(File::module).collect();
    let stale = IMPORTS.iter().map(|(m, _)| *m).filter(|m| !modules.contains(*m));
    none("rows of modules that do not exist", stale.map(str::to_string).collect());
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = all_files().into_iter().filter(|f| !f.text.starts_with("//!"));
    none("files that do not open with `//!`", silent.map(|f| f.path).collect());
}

#[test]
fn files_and_functions_stay_small() {
    let mut complaints = Vec::new();
    for file in all_files() {
        let lines = file.text.lines().count();
        if lines >= MOST_LINES_OF_A_FILE {
            complaints.push(format!("{}: {lines} lines", file.path));
        }
        for (name, lines) in file.functions() {
            if lines >= MOST_LINES_OF_A_FUNCTION {
                complaints.push(format!("{}: fn {name}: {lines} lines", file.path));
            }
        }
    }
    none("too long", complaints);
}

#[test]
fn most_functions_are_short() {
    let mut lengths: Vec<usize> =
        library_files().iter().flat_map(File::functions).map(|(_, lines)| lines).collect();
    lengths.sort_unstable();
    assert!(lengths.len() > 100, "only {} functions were found: the parser missed the tree", lengths.len());
    let (median, p90) = (lengths[lengths.len() / 2], lengths[lengths.len() * 9 / 10]);
    assert!((3..=15).contains(&median), "the median function has {median} lines");
    assert!(p90 < 40, "one function in ten has {p90} lines or more");
}

#[test]
fn mod_files_hold_docs_and_re_exports_only() {
    let mods = all_files().into_iter().filter(|f| f.path.ends_with("/mod.rs"));
    none("mod.rs with code in it", mods.filter(|f| !f.is_index()).map(|f| f.path).collect());
}

#[test]
fn every_dependency_has_its_reason() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let mut section = "";
    let mut before = "";
    let mut complaints = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]") && line.contains('=') && !before.starts_with('#') {
            complaints.push(line.to_string());
        }
        before = line;
    }
    none("dependencies without a reason in the line above", complaints);
}

#[test]
fn nothing_unexpected_stands_at_the_top() {
    let entries = fs::read_dir(root()).expect("the top level");
    let names = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    let unexpected = names.filter(|n| !n.starts_with('.') && !TOP.contains(&n.as_str()));
    none("unexpected at the top level", unexpected.collect());
}

#[test]
fn the_readme_names_each_developer_script() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let scripts = fs::read_dir(root().join(".ci")).expect(".ci");
    let names = scripts.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    let unnamed = names.filter(|n| !readme.contains(&format!(".ci/{n}")));
    none("scripts that the README's developer section does not name", unnamed.collect());
}

#[test]
fn the_readme_maps_each_module() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let files = library_files().into_iter().filter(|f| f.path.starts_with("src/"));
    let modules: BTreeSet<String> = files.map(|f| f.module()).collect();
    let unnamed = modules.into_iter().filter(|m| m != "lib" && m != "main");
    let unnamed = unnamed.filter(|m| !readme.contains(&format!("`{m}`")));
    none("modules that the README's map does not name", unnamed.collect());
}

#[test]
fn no_path_of_one_machine_stands_in_the_tree() {
    // Written in two halves, so that this file is not its own finding.
    let homes = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];
    let mut complaints = Vec::new();
    for path in source::text_files(&root()) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if let Some(home) = homes.iter().find(|home| text.contains(**home)) {
            complaints.push(format!("{}: {home}", display(&path)));
        }
    }
    none("paths of one machine", complaints);
}

fn display(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[test]
fn the_parser_sees_what_the_rules_are_about() {
    let file = File {
        path: "src/measure/x.rs".into(),
        text: "//! x\nuse crate::store::{a, b};\nfn f() {\n    super::super::cli::g();\n}\n\
               #[cfg(test)]\nmod tests { use crate::report::x; }\n"
            .into(),
    };
    assert_eq!(file.module(), "measure");
    assert_eq!(file.imports(), BTreeSet::from(["store".to_string(), "cli".to_string()]));
    assert_eq!(file.functions(), [("f".to_string(), 3)]);
    assert!(!file.is_index());
    let index = File { path: "src/a/mod.rs".into(), text: "//! a\nmod b;\npub use b::c;\n".into() };
    assert!(index.is_index());
}
