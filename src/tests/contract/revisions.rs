//! `wallgrind ab` and `bench-rev`: git revisions of a crate of two files,
//! whose bench target prints what it is started with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::{Bench, Ran, ran};

crate::tests!(
    a_revision_is_built_and_kept_and_one_that_does_not_build_is_said,
    both_sides_get_layouts_which_go_with_their_baseline,
);

const MANIFEST: &str = "[package]\nname = \"toy\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n\
                        [lib]\nbench = false\n[[bench]]\nname = \"mine\"\nharness = false\n";
/// Whose work the command does again, as it names it.
const LINKER: &str = "WALLGRIND_LINKER";
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
    ran(started(bench, arguments))
}

fn started(bench: &Bench, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
    command.args(arguments.split_whitespace()).current_dir(package(bench)).env("WALLGRIND_OUT", bench.out());
    command.env("CARGO", env!("CARGO")).env("CARGO_TARGET_DIR", bench.dir().join("target"));
    command
}

/// The crate, in a repository without a commit.
fn repository(bench: &Bench) -> PathBuf {
    let package = package(bench);
    for (file, text) in [("Cargo.toml", MANIFEST), ("benches/mine.rs", TARGET), ("src/lib.rs", "")] {
        let path = package.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    git(&package, &["init", "-q"]);
    package
}

fn a_revision_is_built_and_kept_and_one_that_does_not_build_is_said() {
    let bench = Bench::new();
    let package = repository(&bench);
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

/// A linker in the place of `cc`, which does or does not know the flag.
fn linker(bench: &Bench, knows: bool) -> PathBuf {
    let path = bench.dir().join(format!("linker-{knows}"));
    let refuses = "case \"$*\" in *--shuffle-sections*) echo 'unknown flag' >&2; exit 1;; esac\n";
    fs::write(&path, format!("#!/bin/sh\n{}exec cc \"$@\"\n", if knows { "" } else { refuses }))
        .expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    path
}

/// The files below a folder that lie in one called `<executable>.layouts`, with their contents.
fn layouts(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(layouts(&path));
        } else if path.components().any(|part| part.as_os_str().to_string_lossy().ends_with(".layouts")) {
            found.push((path.clone(), fs::read(&path).expect("read")));
        }
    }
    found.sort();
    found
}

fn both_sides_get_layouts_which_go_with_their_baseline() {
    let bench = Bench::new();
    let package = repository(&bench);
    commit(&package, "// good\n");
    let with = |knows, arguments: &str| {
        let mut command = started(&bench, arguments);
        command.env(LINKER, linker(&bench, knows));
        ran(command)
    };
    let failed = with(false, "ab --layouts=9 HEAD").exits(101);
    failed.says("no other layout of").says("rust-lld").says("HEAD does not build");
    let line = with(true, "ab --layouts=9 HEAD").exits(0).out;
    assert!(line.contains("\"--against\", \"rev-"), "{line}");
    let store = bench.out().join(".baselines");
    for place in [store.clone(), bench.out().join(".revisions/layouts-9/release/deps")] {
        let found = layouts(&place);
        assert_eq!(found.len(), 9, "{found:?}");
        assert!(found.iter().all(|(path, _)| Command::new(path).output().expect("runs").status.success()));
        assert!(found.windows(2).all(|two| two[0].1 != two[1].1), "two layouts are alike");
    }
    assert!(command(&bench, "baselines").exits(0).out.contains(" bytes, 9 layouts\n"));
    // Cargo knows nothing of the number, and yet it is another.
    with(true, "ab --layouts=8 HEAD").exits(0);
    assert!(command(&bench, "baselines").exits(0).out.contains(" bytes, 8 layouts\n"));
    // A linker that the package's own flags name makes none.
    fs::create_dir(package.join(".cargo")).expect("made");
    let own = "[build]\nrustflags = [\"-Clinker=cc\"]\n";
    fs::write(package.join(".cargo/config.toml"), own).expect("written");
    commit(&package, "// good, with a linker\n");
    with(true, "ab --layouts=8 HEAD").exits(101).says("HEAD has 0 layouts in ").says("rustflags");
    let name =
        fs::read_dir(&store).expect("read").flatten().map(|e| e.file_name().into_string().expect("a name"));
    let name = name.into_iter().find(|name| name.starts_with("rev-")).expect("a baseline");
    command(&bench, &format!("baselines delete {name}")).exits(0);
    assert!(layouts(&store).is_empty());
    command(&bench, "ab --layouts=7 HEAD").exits(101).says("8..=256");
}
