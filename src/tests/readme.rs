//! What the README shows must exist: scenarios, flags, targets, folders, and
//! the lines of output in the form that the program prints.
//!
//! Neighbours: `layout` holds the README's map of modules and scripts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use wallgrind::Suite;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The words of the README, split where a name can end.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "`()|,;".contains(c)).filter(|word| !word.is_empty())
}

fn is_scenario(word: &str) -> bool {
    word.starts_with("tls::") || word.starts_with("block::")
}

#[test]
fn scenarios_that_are_shown_are_registered() {
    let mut suite = Suite::new();
    wallgrind::families::tls::register(&mut suite);
    wallgrind::families::block::register(&mut suite);
    let scenarios = suite.finish().expect("a valid suite");
    let names: BTreeSet<&str> = scenarios.iter().map(|s| s.id().as_str()).collect();
    let readme = read("README.md");
    let shown: Vec<&str> =
        words(&readme).filter(|w| is_scenario(w) && w.matches("::").count() == 2).collect();
    assert!(shown.len() >= 16, "only {} scenarios are shown", shown.len());
    for name in shown {
        assert!(names.contains(name), "the README shows {name}, which is no scenario");
    }
}

/// The paths of the functions marked as tests.
fn stubs(items: &[syn::Item], prefix: &str, found: &mut BTreeSet<String>) {
    for item in items {
        match item {
            syn::Item::Mod(module) => {
                let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                stubs(inner, &format!("{prefix}{}::", module.ident), found);
            }
            syn::Item::Fn(function) if function.attrs.iter().any(|a| a.path().is_ident("test")) => {
                assert!(found.insert(format!("{prefix}{}", function.sig.ident)), "two of one name");
            }
            _ => {}
        }
    }
}

/// Providers that are left out or added are scenarios that are, too.
#[test]
#[cfg_attr(
    not(all(feature = "ring", feature = "aws-lc-rs")),
    ignore = "stubs are those of the default features"
)]
#[cfg_attr(
    any(feature = "graviola", feature = "rustcrypto", feature = "peers"),
    ignore = "stubs are those of the default features"
)]
fn stubs_for_explorers_are_the_scenarios() {
    let file = syn::parse_file(&read("benches/smoke.rs")).expect("Rust");
    let mut found = BTreeSet::new();
    stubs(&file.items, "", &mut found);
    let mut suite = Suite::new();
    wallgrind::families::tls::register(&mut suite);
    wallgrind::families::block::register(&mut suite);
    let scenarios = suite.finish().expect("a valid suite");
    let names: BTreeSet<String> = scenarios.iter().map(|s| s.id().to_string()).collect();
    let differ: Vec<&String> = names.symmetric_difference(&found).collect();
    assert!(differ.is_empty(), "write them anew, as benches/smoke.rs says: {differ:?}");
}

/// The manual shows the bench files that are built and run, and nothing else.
#[test]
fn files_for_those_who_come_from_elsewhere_are_shown_as_they_are() {
    let page = read("src/manual/coming_from.md");
    let mut shown = 0;
    for block in page.split("```rust,ignore\n// benches/").skip(1) {
        let (name, rest) = block.split_once('\n').expect("a name");
        let (code, _) = rest.split_once("```").expect("an end");
        let file = read(&format!("fixtures/coming_from/benches/{name}"));
        let (_, body) = file.split_once("\n\n").expect("a head");
        assert_eq!(code, body, "{name}");
        shown += 1;
    }
    assert_eq!(shown, 4);
}

#[test]
fn flags_that_are_named_are_taken() {
    let sources = [
        "src/cli/args.rs",
        "src/cli/commands.rs",
        "src/cli/doctor.rs",
        "src/cli/baselines.rs",
        "src/cli/report.rs",
        "src/cli/merge.rs",
        "src/cli/explain.rs",
        "src/cli/revision.rs",
        "benches/harness.rs",
        "benches/block.rs",
    ]
    .map(read)
    .concat();
    // Cargo's own, and what clap adds by itself.
    let foreign = ["--features", "--bench", "--benches", "--test", "--open", "--bin", "--help"];
    let readme = read("README.md");
    let flags: BTreeSet<&str> = words(&readme).filter(|w| w.starts_with("--") && w.len() > 2).collect();
    assert!(flags.len() > 5, "only {flags:?} were found");
    for flag in flags.into_iter().filter(|flag| !foreign.contains(flag)) {
        let field = flag.trim_start_matches('-').replace('-', "_");
        let is_taken = sources.contains(&format!("{field}:")) || sources.contains(flag);
        assert!(is_taken, "the README names {flag}, which nothing takes");
    }
}

/// Every flag of a bench target has a twin in the environment.
#[test]
fn variables_and_flags_of_the_workflows_are_taken() {
    let (bench, command) = (read("src/cli/args.rs"), read("src/cli/report.rs"));
    let merge = read("src/cli/merge.rs");
    let workflows = ["github.yml", "github-shards.yml", "gitlab.yml"];
    for workflow in workflows.map(|name| read(&format!("src/manual/ci/{name}"))) {
        let split = |c: char| !(c.is_ascii_uppercase() || c == '_');
        let names: BTreeSet<&str> =
            workflow.split(split).filter_map(|word| word.strip_prefix("WALLGRIND_")).collect();
        assert!(names.len() >= 5, "only {names:?} were found");
        // A secret of the pipeline's own.
        for name in names.into_iter().filter(|name| *name != "TOKEN") {
            let field = format!("pub {}:", name.to_lowercase());
            assert!(bench.contains(&field), "no flag has the twin WALLGRIND_{name}");
        }
        let reports = workflow.lines().filter(|line| line.trim_start().starts_with("wallgrind report "));
        let flags: Vec<&str> = reports.flat_map(words).filter_map(|word| word.strip_prefix("--")).collect();
        assert!(flags.len() >= 2, "only {flags:?} were found");
        for flag in flags {
            assert!(command.contains(&format!(" {flag}:")), "wallgrind report takes no --{flag}");
        }
        let merges = workflow.lines().filter(|line| line.trim_start().starts_with("wallgrind merge "));
        for flag in merges.flat_map(words).filter_map(|word| word.strip_prefix("--")) {
            let field = flag.replace('-', "_");
            assert!(merge.contains(&format!(" {field}:")), "wallgrind merge takes no --{flag}");
        }
    }
}

/// Pages of the manual with their text.
fn manual() -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join("src/manual")).expect("the manual");
    let names = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut pages: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    pages.sort();
    pages.into_iter().map(|name| (name.clone(), read(&format!("src/manual/{name}")))).collect()
}

#[test]
fn commands_and_variables_of_the_manual_exist() {
    let (bench, command) = (read("src/cli/args.rs"), read("src/cli/commands.rs"));
    let linker = read("src/cli/linker.rs");
    let pages = manual();
    assert!(pages.len() >= 12, "only {} pages", pages.len());
    let mut found = 0;
    for (page, text) in pages.into_iter().chain([("README".to_string(), read("README.md"))]) {
        // In code, a command follows the program's name.
        for piece in
            text.split(['`', '\n']).filter_map(|p| p.trim_start_matches("$ ").strip_prefix("wallgrind "))
        {
            let name: String = piece.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            if !name.starts_with(|c: char| c.is_ascii_lowercase())
                || !piece.starts_with(&format!("{name} ")) && piece != name
            {
                continue;
            }
            let variant: String = name.split('-').map(capital).collect();
            let is_one = [',', '(', ' '].iter().any(|c| command.contains(&format!("    {variant}{c}")));
            assert!(is_one, "{page}: there is no command wallgrind {name}");
            found += 1;
        }
        let split = |c: char| !(c.is_ascii_uppercase() || c == '_');
        for name in text.split(split).filter_map(|word| word.strip_prefix("WALLGRIND_")) {
            let field = format!("pub {}:", name.to_lowercase());
            // Those of tests and scripts, and the one without a flag.
            let others = ["", "RUN", "FUZZ_RUNS", "FUZZ_SEED", "CRASH_QEMU", "SEQUENCES", "RUNS", "TOKEN"];
            let of_linker = linker.contains(&format!(" = \"WALLGRIND_{name}\""));
            assert!(
                others.contains(&name) || bench.contains(&field) || of_linker,
                "{page}: WALLGRIND_{name}"
            );
        }
    }
    assert!(found >= 30, "only {found} commands were found");
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_ascii_uppercase() + rest
}

#[test]
fn targets_and_folders_that_are_named_exist() {
    let (readme, manifest) = (read("README.md"), read("Cargo.toml"));
    let all: Vec<&str> = words(&readme).collect();
    for pair in all.windows(2).filter(|pair| pair[0] == "--bench" || pair[0] == "--test") {
        let target = pair[1];
        let is_target = target.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit());
        if is_target && pair[0] == "--bench" || target.contains('_') {
            assert!(
                manifest.contains(&format!("name = \"{target}\"")),
                "{} {target}: no such target",
                pair[0]
            );
        }
    }
    for folder in all.iter().filter(|w| w.starts_with("fixtures/") || w.starts_with(".ci/")) {
        assert!(root().join(folder).exists(), "the README names {folder}");
    }
}

#[test]
fn lines_of_output_have_the_form_that_is_printed() {
    let readme = read("README.md");
    let lines: Vec<&str> =
        readme.lines().filter(|l| l.starts_with("test ")).filter(|l| l.contains("bench:")).collect();
    assert_eq!(lines.len(), 8);
    for line in lines {
        let (_, value) = line.split_once(" ... bench: ").expect("a measured trial");
        let (number, rest) = value.split_once(' ').expect("a number and its unit");
        assert!(number.replace(',', "").parse::<u64>().is_ok(), "{line}");
        assert!(rest.starts_with("ns/iter (+/- ") || rest.starts_with("instructions/iter (+/- 0)"), "{line}");
    }
    assert_eq!(readme.matches("4 measured; 92 filtered out").count(), 2);
}
