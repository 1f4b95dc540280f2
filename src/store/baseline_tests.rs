//! Baselines on disk: saved, added to, replaced, deleted; and all that can be
//! wrong with one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::tests::record;
use super::{Baselines, Kept};

struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }

    fn store(&self) -> Baselines {
        Baselines::of(self.dir.path())
    }

    fn program(&self, content: &str) -> PathBuf {
        let path = self.dir.path().join("program");
        fs::write(&path, content).expect("written");
        path
    }

    fn save(&self, name: &str, content: &str, scenario: &str) -> Kept {
        let records = [record(scenario, 1)];
        let identity = BTreeMap::from([("target".to_string(), "here".to_string())]);
        self.store().save((name, "s"), &self.program(content), &records, &identity).expect("saved")
    }

    fn file(&self, path: &str) -> PathBuf {
        self.dir.path().join(".baselines").join(path)
    }

    fn refusal(&self, name: &str) -> String {
        self.store().kept(name, "s").expect_err("refused").report()
    }
}

fn names(store: &Baselines, kept: &Kept) -> Vec<String> {
    store.records(kept).expect("records").into_iter().map(|r| r.scenario).collect()
}

#[test]
fn records_and_executable_come_back() {
    let scene = Scene::new();
    let saved = scene.save("main", "one", "a::x");
    let (store, kept) = (scene.store(), scene.store().kept("main", "s").expect("kept"));
    assert_eq!(
        (&kept, store.names(), store.suites("main")),
        (&saved, vec!["main".into()], vec!["s".to_string()])
    );
    assert_eq!((names(&store, &kept), kept.bytes), (vec!["a::x".to_string()], 3));
    let program = store.executable(&kept).expect("there");
    assert_eq!(fs::read_to_string(program).expect("read"), "one");
    assert!(store.disk_use() > 3);
}

#[test]
fn the_same_executable_adds_and_another_replaces() {
    let scene = Scene::new();
    scene.save("main", "one", "a::x");
    let added = scene.save("main", "one", "a::y");
    assert_eq!(names(&scene.store(), &added), ["a::x", "a::y"]);
    let replaced = scene.save("main", "two", "a::z");
    assert_eq!(names(&scene.store(), &replaced), ["a::z"]);
    let files = |path: &str| fs::read_dir(scene.file(path)).expect("a folder").count();
    assert_eq!((files("executables"), files("main")), (1, 2), "what was replaced is left behind");
}

#[test]
fn one_executable_is_kept_once_and_goes_with_its_last_name() {
    let scene = Scene::new();
    scene.save("main", "one", "a::x");
    scene.save("other", "one", "a::x");
    let files = || fs::read_dir(scene.file("executables")).expect("a folder").count();
    assert_eq!(files(), 1);
    scene.store().delete("main").expect("deleted");
    assert_eq!((files(), scene.store().names()), (1, vec!["other".to_string()]));
    assert!(scene.store().delete("other").expect("deleted") > 0);
    assert_eq!((files(), scene.store().names().len()), (0, 0));
    assert!(scene.store().delete("other").is_err_and(|e| e.report().contains("no baseline other")));
}

#[test]
fn what_is_wrong_with_one_is_said() {
    let scene = Scene::new();
    assert!(scene.refusal("main").contains("there is no baseline main"));
    let kept = scene.save("main", "one", "a::x");
    assert!(
        scene.store().kept("main", "t").expect_err("refused").report().contains("holds s, and nothing of t")
    );
    let file = scene.file("main/s.json");
    let text = fs::read_to_string(&file).expect("read");
    for (bad, says) in [
        (text[..text.len() / 2].to_string(), "not a whole baseline"),
        (text.replace("\"schema_version\":\"1.0\"", "\"schema_version\":\"2.0\""), "has schema 2.0"),
        (text.replace(&kept.executable, "../../x"), "names no executable"),
    ] {
        fs::write(&file, bad).expect("written");
        assert!(scene.refusal("main").contains(says), "{}", scene.refusal("main"));
    }
    fs::remove_file(&file).expect("removed");
    assert!(scene.refusal("main").contains("was never finished"), "{}", scene.refusal("main"));
    for bad in ["", "..", "a/b", ".lock", "executables"] {
        let saved = scene.store().save((bad, "s"), Path::new("/dev/null"), &[], &BTreeMap::new());
        assert!(saved.is_err(), "{bad:?} was taken");
    }
}

#[test]
fn an_executable_that_changed_or_went_is_refused() {
    let scene = Scene::new();
    let kept = scene.save("main", "one", "a::x");
    let path = scene.store().executable(&kept).expect("there");
    fs::write(&path, "another").expect("written");
    assert!(scene.store().executable(&kept).expect_err("refused").report().contains("has changed"));
    // Saving again repairs it.
    scene.save("main", "one", "a::x");
    assert!(scene.store().executable(&kept).is_ok());
    fs::remove_file(&path).expect("removed");
    assert!(scene.store().executable(&kept).expect_err("refused").report().contains("cannot be read"));
}

#[test]
fn two_that_save_at_once_both_end_up_in_it() {
    let scene = Scene::new();
    let program = scene.program("one");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (scene, program) = (&scene, &program);
            scope.spawn(move || {
                for n in 0..5 {
                    let records = [record(&format!("a::w{writer}n{n}"), 1)];
                    let saved = scene.store().save(("main", "s"), program, &records, &BTreeMap::new());
                    saved.expect("saved");
                }
            });
        }
    });
    let kept = scene.store().kept("main", "s").expect("kept");
    assert_eq!(names(&scene.store(), &kept).len(), 20);
}

#[test]
fn builds_that_save_at_once_leave_one_of_them_whole() {
    let scene = Scene::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let scene = &scene;
            scope.spawn(move || {
                let program = scene.dir.path().join(format!("program-{writer}"));
                fs::write(&program, format!("build {writer}")).expect("written");
                for _ in 0..10 {
                    let records = [record(&format!("a::w{writer}"), 1)];
                    scene.store().save(("main", "s"), &program, &records, &BTreeMap::new()).expect("saved");
                }
            });
        }
    });
    let (store, kept) = (scene.store(), scene.store().kept("main", "s").expect("kept"));
    let build = fs::read_to_string(store.executable(&kept).expect("its executable")).expect("read");
    let own = build.replace("build ", "a::w");
    assert!(names(&store, &kept).iter().all(|name| *name == own), "records of another build");
}
