//! The command `wallgrind report`: what it writes, and what it says of run
//! folders that are empty, damaged, or of another version. No browser needed.
//!
//! Neighbours: `scene` makes the records.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};

use super::same;
use super::scene::Scene;
use wallgrind::store::{Record, RunDir};

/// A test in a folder with both runs.
type InFolder = fn(&Path) -> Result<(), String>;

pub fn trials() -> Vec<Trial> {
    let all: [(&str, InFolder); 8] = [
        ("both_reports_are_written", both),
        ("an_empty_run_folder_is_named", empty),
        ("a_run_that_is_partly_written_is_reported_and_fails", partly),
        ("a_newer_schema_is_named_and_the_rest_reported", newer),
        ("what_is_not_there_is_named", absent),
        ("a_page_that_cannot_be_written_is_named", unwritable),
        ("a_dash_is_standard_output_where_it_can_be", dash),
        ("an_import_of_nothing_makes_no_run", nothing_to_import),
    ];
    let trial = |(name, test): (&'static str, InFolder)| {
        Trial::test(name, move || -> Result<(), Failed> {
            let dir = tempfile::tempdir()?;
            let scene = Scene::new();
            write(dir.path(), "before", &scene.before)?;
            write(dir.path(), "after", &scene.after)?;
            Ok(test(dir.path())?)
        })
    };
    all.into_iter().map(trial).collect()
}

fn write(out: &Path, run: &str, records: &[Record]) -> Result<(), String> {
    let dir = RunDir::open(out, run).map_err(|error| error.report())?;
    records.iter().try_for_each(|record| dir.write(record).map(drop)).map_err(|error| error.report())
}

fn report(out: &Path, arguments: &[&str]) -> Result<Output, String> {
    wallgrind(out, &[&["report"], arguments].concat())
}

fn wallgrind(out: &Path, arguments: &[&str]) -> Result<Output, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
    command.arg("--out").arg(out).args(arguments).current_dir(out);
    command.output().map_err(|error| error.to_string())
}

/// The command fails with 101 and says all of `says`.
fn fails(output: &Output, says: &[&str]) -> Result<(), String> {
    let text = String::from_utf8_lossy(&output.stderr);
    same("exit code", output.status.code(), Some(101))?;
    says.iter().try_for_each(|words| {
        if text.contains(words) { Ok(()) } else { Err(format!("{words:?} is missing in {text}")) }
    })
}

fn read(out: &Path, name: &str) -> Result<String, String> {
    fs::read_to_string(out.join(name)).map_err(|error| format!("{name}: {error}"))
}

fn both(out: &Path) -> Result<(), String> {
    let arguments = ["after", "--baseline", "before", "--html", "a.html", "--markdown", "a.md"];
    let output = report(out, &arguments)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    same("what it says", said.as_str(), "9 trials in a.html\n9 trials in a.md\n")?;
    same("exit code", output.status.code(), Some(0))?;
    let page = read(out, "a.html")?;
    same("a page", page.starts_with("<!DOCTYPE html>") && page.contains("disk::<wbr>read"), true)?;
    let comment = read(out, "a.md")?;
    same("a comment", comment.contains("▲ 2 slower") && comment.contains("+150.0 %"), true)
}

fn empty(out: &Path) -> Result<(), String> {
    fs::create_dir(out.join("nothing")).map_err(|error| error.to_string())?;
    fails(&report(out, &["nothing", "--html", "a.html"])?, &["nothing holds no records", "hint: "])?;
    let other = ["after", "--baseline", "nothing", "--html", "a.html"];
    fails(&report(out, &other)?, &["nothing holds no records"])?;
    same("no page", out.join("a.html").exists(), false)
}

/// The first file of a run.
fn a_file(out: &Path, run: &str) -> Result<std::path::PathBuf, String> {
    let entries = fs::read_dir(out.join(run)).map_err(|error| error.to_string())?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.into_iter().next().ok_or_else(|| "no file".into())
}

fn partly(out: &Path) -> Result<(), String> {
    let file = a_file(out, "after")?;
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    fs::write(&file, &text[..text.len() / 2]).map_err(|error| error.to_string())?;
    let output = report(out, &["after", "--html", "a.html"])?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    fails(&output, &["is not a whole record", &name, "1 file of the run could not be read"])?;
    same("the others", String::from_utf8_lossy(&output.stdout).as_ref(), "7 trials in a.html\n")
}

fn newer(out: &Path) -> Result<(), String> {
    let file = a_file(out, "after")?;
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let text = text.replace("\"schema_version\":\"1.", "\"schema_version\":\"2.");
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let output = report(out, &["after", "--html", "a.html"])?;
    fails(&output, &["has schema 2.", "reads up to 1.x", "hint: read it with the wallgrind that wrote it"])?;
    // Nothing at all can be read: nothing is written.
    for entry in fs::read_dir(out.join("after")).map_err(|error| error.to_string())?.flatten() {
        if entry.path() != file {
            fs::remove_file(entry.path()).map_err(|error| error.to_string())?;
        }
    }
    fails(&report(out, &["after", "--html", "b.html"])?, &["has schema 2."])?;
    same("no page", out.join("b.html").exists(), false)
}

fn absent(out: &Path) -> Result<(), String> {
    fails(&report(out, &["aftr", "--html", "a.html"])?, &["there is no run aftr", "did you mean after?"])?;
    let output = report(out, &["after", "--history", "none", "--html", "a.html"])?;
    fails(&output, &["the history none cannot be used"])?;
    fails(&report(out, &["after"])?, &["--html"])
}

fn unwritable(out: &Path) -> Result<(), String> {
    fails(&report(out, &["after", "--html", "no/folder/a.html"])?, &["no/folder/a.html cannot be written"])
}

fn dash(out: &Path) -> Result<(), String> {
    let output = report(out, &["after", "--markdown", "-"])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    same(
        "a comment alone",
        text.starts_with("<!-- wallgrind report -->") && !text.contains("trials in"),
        true,
    )?;
    // Two texts have no room in one place, and a folder of files none on standard output.
    fails(&report(out, &["after", "--markdown", "-", "--html", "-"])?, &["name the same file", "hint: "])?;
    fails(&report(out, &["after", "--markdown", "a", "--html", "a"])?, &["name the same file"])?;
    for format in ["criterion", "rustls-ci"] {
        fails(&wallgrind(out, &["export", format, "after", "-"])?, &[format, "name a folder"])?;
    }
    same("nothing is called -", out.join("-").exists() || out.join("a").exists(), false)
}

fn nothing_to_import(out: &Path) -> Result<(), String> {
    fs::write(out.join("list.json"), "[]").map_err(|error| error.to_string())?;
    let import = ["import", "github-action-benchmark", "list.json", "--run-id", "new"];
    fails(&wallgrind(out, &import)?, &["list.json holds no results"])?;
    same("no run", out.join("new").exists(), false)
}
