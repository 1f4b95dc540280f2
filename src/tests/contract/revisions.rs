//! `wallgrind ab` and `bench-rev`: git revisions of a crate of two files,
//! whose bench target prints what it is started with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::{Bench, Ran, ran};

crate::tests!(a_revision_is_built_and_kept_and_one_that_does_not_build_is_said);

const MANIFEST: &str = "[package]\nname = \"toy\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n\
                        [lib]\nbench = false\n[[bench]]\nname = \"mine\"\nharness = false\n";
const TARGET: &str = "fn main() { println!(\"ran {:?}\", std::env::args().skip(1).collect::<Vec<_>>()); }\n";

/// The crate, below the top of its repository.
fn package(bench: &Bench) -> PathBuf {
    bench.dir().join("repository/sub")
}

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=n", "-c", "user.email=e@example.invalid"];
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(identity).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(command.status().expect("git").success(), "git {arguments:?}");
}

fn commit(package: &Path, library: &str) {
    fs::write(package.join("src/lib.rs"), library).expect("written");
    git(package, &["add", "-A"]);
    git(package, &["commit", "-q", "-m", "a change"]);
}

fn command(bench: &Bench, arguments: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
    command.args(arguments.split_whitespace()).current_dir(package(bench)).env("WALLGRIND_OUT", bench.out());
    command.env("CARGO", env!("CARGO")).env("CARGO_TARGET_DIR", bench.dir().join("target"));
    ran(command)
}

fn a_revision_is_built_and_kept_and_one_that_does_not_build_is_said() {
    let bench = Bench::new();
    let package = package(&bench);
    for (file, text) in [("Cargo.toml", MANIFEST), ("benches/mine.rs", TARGET), ("src/lib.rs", "")] {
        let path = package.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    git(&package, &["init", "-q"]);
    commit(&package, "// good\n");
    commit(&package, "fn broken( {\n");
    commit(&package, "// good again\n");
    let all = command(&bench, "ab HEAD~1 HEAD~2 nonsense -- some_filter").exits(101);
    let all =
        all.says("unclosed delimiter").says("HEAD~1 does not build").says("HEAD~2 is kept as baseline rev-");
    let all = all.says("nonsense^{commit}").says("2 of 3 revisions failed: HEAD~1, nonsense");
    let line = all.out.lines().find(|line| line.starts_with("ran ")).expect("the bench ran");
    assert!(
        line.contains("\"--against\", \"rev-") && line.contains("\"some_filter\", \"--bench\""),
        "{line}"
    );
    let listed = command(&bench, "baselines").exits(0).out;
    assert!(listed.contains("  mine  saved ") && listed.lines().count() == 2, "{listed}");
    // Measured and kept by itself: the bench target is told where and as what.
    let kept = command(&bench, "bench-rev HEAD -- some_filter").exits(0);
    let line = kept.out.lines().find(|line| line.starts_with("ran ")).expect("the bench ran");
    assert!(line.starts_with("ran [\"--bench\", \"--save-baseline\", \"rev-"), "{line}");
    command(&bench, "ab").exits(101);
    // The repository knows of no worktree any more.
    let trees = Command::new("git").arg("-C").arg(&package).args(["worktree", "list"]).output().expect("git");
    assert_eq!(String::from_utf8_lossy(&trees.stdout).lines().count(), 1);
}
