//! Reads the source tree and answers what the rules ask: imports, functions
//! and their lengths, whether a file is an index only.
//!
//! Neighbours: `main` holds the rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A Rust file of the repository.
pub struct File {
    /// Path from the top level, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The top level of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files under `src`, `benches`, `fixtures` and `fuzz`.
pub fn all_files() -> Vec<File> {
    let mut files: Vec<File> = ["src", "benches", "fixtures", "fuzz"]
        .iter()
        .flat_map(|dir| walk(&root().join(dir)))
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .map(|path| {
            let relative = path.strip_prefix(root()).expect("under the top level");
            let text = fs::read_to_string(&path).expect("a source file");
            File { path: relative.to_string_lossy().into_owned(), text }
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(files.len() > 20, "only {} files were found", files.len());
    files
}

/// All files that may hold text, build folders and git's own left out.
pub fn text_files(dir: &Path) -> Vec<PathBuf> {
    walk(dir).into_iter().filter(|p| p.file_name().is_none_or(|n| n != "Cargo.lock")).collect()
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|e| e.expect("an entry").path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && name != ".git" {
            found.extend(walk(&path));
        } else if path.is_file() && name != ".git" {
            found.push(path);
        }
    }
    found
}

impl File {
    fn parse(&self) -> syn::File {
        syn::parse_file(&self.text).unwrap_or_else(|e| panic!("{}: {e}", self.path))
    }

    /// The top-level module that the file belongs to.
    pub fn module(&self) -> String {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let first = inside.split('/').next().unwrap_or(inside);
        first.trim_end_matches(".rs").to_string()
    }

    /// The top-level modules of this crate that code outside of tests names.
    pub fn imports(&self) -> BTreeSet<String> {
        let mut visitor = Imports { depth: self.depth(), found: BTreeSet::new() };
        visitor.visit_file(&self.parse());
        visitor.found
    }

    /// How many `super` lead from this file to the root of the crate.
    fn depth(&self) -> usize {
        let parts = self.path.strip_prefix("src/").unwrap_or(&self.path).split('/').count();
        if self.path.ends_with("/mod.rs") { parts - 1 } else { parts }
    }

    /// Name and length in lines of every function.
    pub fn functions(&self) -> Vec<(String, usize)> {
        let mut visitor = Functions(Vec::new());
        visitor.visit_file(&self.parse());
        visitor.0
    }

    /// Whether the file holds modules, re-exports and docs only.
    pub fn is_index(&self) -> bool {
        self.parse().items.iter().all(|item| match item {
            syn::Item::Mod(module) => module.content.is_none(),
            syn::Item::Use(_) => true,
            _ => false,
        })
    }
}

struct Imports {
    depth: usize,
    found: BTreeSet<String>,
}

impl Imports {
    /// Takes note of a path given by its segments, when it leads to the root.
    fn note(&mut self, segments: &[String]) {
        let supers = segments.iter().take_while(|s| *s == "super").count();
        let target = match segments.first().map(String::as_str) {
            Some("crate") => segments.get(1),
            Some("super") if supers == self.depth => segments.get(supers),
            _ => None,
        };
        self.found.extend(target.filter(|t| starts_lower(t)).cloned());
    }

    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                let mut segments = before.to_vec();
                segments.push(path.ident.to_string());
                self.tree(&segments, &path.tree);
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(before, item)),
            syn::UseTree::Name(name) => self.leaf(before, &name.ident),
            syn::UseTree::Rename(name) => self.leaf(before, &name.ident),
            syn::UseTree::Glob(_) => self.note(before),
        }
    }

    fn leaf(&mut self, before: &[String], ident: &syn::Ident) {
        let mut segments = before.to_vec();
        segments.push(ident.to_string());
        self.note(&segments);
    }
}

/// Modules are in lower case; types re-exported at the root are not modules.
fn starts_lower(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_test_only(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|a| {
        a.path().is_ident("cfg") && a.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if is_test_only(&module.attrs) {
            return;
        }
        self.depth += 1;
        visit::visit_item_mod(self, module);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if segments.len() > 1 {
            self.note(&segments);
        }
        visit::visit_path(self, path);
    }
}

struct Functions(Vec<(String, usize)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, whole: impl Spanned) {
        let lines = whole.span().end().line - signature.span().start().line + 1;
        self.0.push((signature.ident.to_string(), lines));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}
