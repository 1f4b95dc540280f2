//! `--scratch-dir`: where the files of bodies are, that they go away whatever
//! happens, and that a run without room for them does not start.
//!
//! Neighbours: `more` has the bodies.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wallgrind::store::{Record, Status};

use crate::bench::{Bench, Ran, Running};
use crate::more;

pub fn tests() -> Vec<libtest_mimic::Trial> {
    crate::trials(
        "scratch",
        &[
            ("files_are_where_they_were_wanted", false, where_wanted),
            ("nothing_is_left_however_a_run_ends", false, nothing_left),
            ("a_killed_run_leaves_one_folder_and_the_next_one_removes_it", false, killed),
            ("a_run_killed_under_valgrind_leaves_one_folder_too", true, killed_under_valgrind),
            ("a_run_without_room_or_folder_does_not_start", false, no_room),
            ("counts_do_not_depend_on_where_the_files_are", true, counts),
        ],
    )
}

/// A folder for scratch folders, apart from that of the bench.
fn chosen(bench: &Bench, name: &str) -> PathBuf {
    let folder = bench.dir().join("chosen").join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder.canonicalize().expect("its path")
}

fn run(bench: &Bench, argv: &str, folder: &Path) -> Ran {
    bench.run_with(&format!("{argv} --scratch-dir {}", folder.display()), &[(more::ASK, "1")])
}

fn entries(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).expect("the folder");
    all.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn where_wanted() {
    let bench = Bench::new();
    let folder = chosen(&bench, "here");
    let begins = format!("fixture: files in {}/wallgrind-run-", folder.display());
    for argv in ["files::kept", "files::kept --bench", "files::kept --bench --isolate"] {
        run(&bench, argv, &folder).exits(0).says(&begins);
    }
    let typed = [(more::ASK, "1"), ("WALLGRIND_SCRATCH_DIR", folder.to_str().expect("Unicode"))];
    bench.run_with("files::kept", &typed).exits(0).says(&begins);
    // A relative one is meant from the working directory, which is the bench's.
    bench.run_with("files::kept --scratch-dir chosen/here", &typed[..1]).exits(0).says(&begins);
    bench.run_with("files::kept", &typed[..1]).exits(0).says(&format!(
        "fixture: files in {}/wallgrind-run-",
        bench.dir().canonicalize().expect("its path").display()
    ));
    assert_eq!(entries(&folder), [] as [&str; 0]);
    if Path::new("/dev/shm").is_dir() {
        let bench = Bench::new();
        run(&bench, "files::kept --bench", Path::new("/dev/shm"))
            .exits(0)
            .says("files in /dev/shm/wallgrind-run-");
        assert_eq!(bench.records()[0].identity["scratch_file_system"], "tmpfs");
    }
}

fn nothing_left() {
    let bench = Bench::new();
    let folder = chosen(&bench, "here");
    for isolate in ["", "--isolate"] {
        run(&bench, &format!("files::kept files::then_panic --bench {isolate}"), &folder).exits(101);
        assert_eq!(entries(&folder), [] as [&str; 0], "after a panic {isolate}");
        run(&bench, &format!("files --timeout 5s --shuffle-seed 1 {isolate}"), &folder).exits(101);
        assert_eq!(entries(&folder), [] as [&str; 0], "after a time-out {isolate}");
        for (signal, code) in [(2, 130), (15, 143)] {
            let argv = format!("files --scratch-dir {} {isolate}", folder.display());
            let mut running = bench.start(&argv, &[(more::ASK, "1")]);
            running.wait_for("files::then_hang hangs");
            assert_eq!(entries(&folder).len(), 1);
            running.signal(signal);
            assert_eq!(running.end().0.code(), Some(code));
            assert_eq!(entries(&folder), [] as [&str; 0], "after signal {signal} {isolate}");
        }
    }
}

fn killed() {
    let bench = Bench::new();
    let folder = chosen(&bench, "here");
    let argv = format!("files::then_hang --scratch-dir {}", folder.display());
    let mut killed = bench.start(&argv, &[(more::ASK, "1")]);
    killed.wait_for("files::then_hang hangs");
    killed.signal(9);
    drop(killed.end());
    let left = entries(&folder);
    assert_eq!(left.len(), 1, "{left:?}");
    // Not of our naming, or somebody's who is alive: none of these is touched.
    let others = ["wallgrind-other", "wallgrind-run-", "wallgrind-run-1234567890"];
    others.iter().for_each(|name| fs::create_dir_all(folder.join(name).join("full")).expect("a folder"));
    let mut alive = bench.start(&argv, &[(more::ASK, "1")]);
    alive.wait_for("files::then_hang hangs");
    let mut found = entries(&folder);
    found.retain(|name| !others.contains(&name.as_str()));
    assert_eq!(found.len(), 1);
    assert_ne!(found, left, "the next run has not removed what the killed one left");
    run(&bench, "files::kept", &folder).exits(0);
    assert!(folder.join(&found[0]).join("image").exists(), "a run has removed the files of another one");
    alive.signal(15);
    assert_eq!(alive.end().0.code(), Some(143));
    let mut found = entries(&folder);
    found.sort();
    assert_eq!(found, others);
}

/// What children of a killed run had is in the run's folder, wherever that is; also when the
/// children were not killed themselves.
fn killed_under_valgrind() {
    for (whole_group, place) in [(false, None), (true, None), (true, Some("/tmp"))] {
        let bench = Bench::new();
        let place = place.map_or_else(|| chosen(&bench, "here"), PathBuf::from);
        let argv = format!("files::then_hang --bench --mode cachegrind --scratch-dir {}", place.display());
        let mut command = bench.command(&argv);
        command.env(more::ASK, "1").process_group(0);
        let running = Running::start(command);
        let folder = wait_for_a_body(&running);
        assert_eq!(folder.parent(), Some(&*place));
        assert_eq!(entries(&folder).iter().filter(|name| name.starts_with('w')).count(), 2, "{folder:?}");
        assert_eq!(links_to(&folder), if place == Path::new("/tmp") { 0 } else { 1 });
        match whole_group {
            true => running.signal_group(9),
            false => running.signal(9),
        }
        drop(running.end());
        assert!(folder.exists(), "a killed run cannot clean up");
        wait_until_free(&folder);
        run(&bench, "files::kept --bench --mode cachegrind --timeout 300s", &place).exits(0);
        assert!(!folder.exists(), "the next run has not removed {folder:?}");
        assert_eq!(links_to(&folder), 0);
        if place != Path::new("/tmp") {
            assert_eq!(entries(&place), [] as [&str; 0]);
        }
    }
}

/// Waits until the last process of a killed run has let go of its folder: on a busy machine some take a while
/// to die.
fn wait_until_free(folder: &Path) {
    for _ in 0..3000 {
        let lock = fs::File::open(folder.join(".lock")).expect("the lock of a run");
        if lock.try_lock().is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{folder:?} is still in use");
}

/// Waits until a body has made its file, and gives the only folder that the run has locked.
fn wait_for_a_body(running: &Running) -> PathBuf {
    let open = format!("/proc/{}/fd", running.child.id());
    for _ in 0..3000 {
        let open = fs::read_dir(&open).expect("the run goes on").flatten();
        let files = open.filter_map(|file| fs::read_link(file.path()).ok());
        let locks: Vec<PathBuf> = files.filter(|file| file.ends_with(".lock")).collect();
        assert!(locks.len() <= 1, "a run has one folder: {locks:?}");
        let folder = locks.first().and_then(|lock| lock.parent()).map(Path::to_path_buf);
        let bodies =
            folder.iter().flat_map(|folder| entries(folder).into_iter().map(|name| folder.join(name)));
        if let (true, Some(folder)) = (bodies.into_iter().any(|body| body.join("image").exists()), &folder) {
            return folder.clone();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("no body has begun within five minutes");
}

/// Links in `/tmp` that lead to `folder`.
fn links_to(folder: &Path) -> usize {
    let all = fs::read_dir("/tmp").expect("/tmp").flatten();
    all.filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == folder)).count()
}

fn no_room() {
    let bench = Bench::new();
    let folder = chosen(&bench, "here");
    for argv in ["more::too_large files::kept", "more::too_large files::kept --bench"] {
        let ran = run(&bench, argv, &folder).exits(101);
        let ran = ran.says(&format!("the scratch folder {} has room for ", folder.display()));
        let ran = ran.says("the selected trials need 1099511627776.0 MiB").says("--scratch-dir");
        assert!(!ran.err.contains("files in"), "a trial has run: {}", ran.err);
    }
    // Only what is selected has to find room.
    run(&bench, "files::kept", &folder).exits(0);
    let nowhere = folder.join("nowhere");
    let ran = run(&bench, "files::kept", &nowhere).exits(101);
    ran.says(&nowhere.display().to_string()).says("--scratch-dir").says("No such file or directory");
    assert_eq!(entries(&folder), [] as [&str; 0]);
}

fn counts() {
    let counted = |name: &str| -> Record {
        let bench = Bench::new();
        let folder = chosen(&bench, name);
        let ran = run(&bench, "files::kept --mode cachegrind --bench --timeout 300s", &folder).exits(0);
        assert_eq!(entries(&folder), [] as [&str; 0], "{}", ran.err);
        bench.records().remove(0)
    };
    let (short, long) = (counted("x"), counted(&"long".repeat(40)));
    assert_eq!((&short.status, &long.status), (&Status::Ok, &Status::Ok));
    assert_eq!(short.facts["path_bytes"], long.facts["path_bytes"]);
    assert_eq!(short.metrics, long.metrics);
}
