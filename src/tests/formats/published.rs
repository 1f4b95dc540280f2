//! The JSON Schema that is published, held against records of every version
//! and against what this version writes; and the exports of the command.
//!
//! Neighbours: `main` has the files of every schema.

use std::fs;
use std::process::{Command, Output};

use jsonschema::Validator;
use serde_json::{Value, json};
use wallgrind::store::{JSON_SCHEMA, from_json, to_json};

use super::fixture;

fn schema() -> Value {
    serde_json::from_str(JSON_SCHEMA).expect("JSON")
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).expect("a schema of draft 2020-12")
}

/// Every record that is kept as a fixture.
fn records() -> Vec<Value> {
    let mut files: Vec<_> =
        fs::read_dir(fixture(".")).expect("the fixtures").flatten().map(|e| e.path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "json"));
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    let read = |file| serde_json::from_str(&fs::read_to_string(file).expect("a file")).expect("JSON");
    files.into_iter().map(read).collect()
}

/// The same schema, which takes nothing that it does not name.
fn strict(schema: &Value) -> Value {
    let mut strict = schema.clone();
    close(&mut strict);
    strict
}

fn close(value: &mut Value) {
    if let Value::Object(object) = value {
        // `if` and `then` look at a part of an object only.
        object
            .iter_mut()
            .filter(|(key, _)| *key != "if" && *key != "then")
            .for_each(|(_, inner)| close(inner));
        if object.get("properties").is_some_and(Value::is_object) && object.get("type").is_some() {
            object.insert("additionalProperties".into(), json!(false));
        }
    } else if let Value::Array(array) = value {
        array.iter_mut().for_each(close);
    }
}

#[test]
fn the_schema_is_one() {
    assert!(jsonschema::meta::is_valid(&schema()));
}

#[test]
fn records_of_every_version_are_valid() {
    let validator = validator(&schema());
    for record in records() {
        let faults: Vec<String> = validator.iter_errors(&record).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{}: {faults:?}", record["scenario"]);
    }
}

#[test]
fn everything_that_is_written_is_in_it() {
    let (validator, mut seen) = (validator(&strict(&schema())), 0);
    for record in records() {
        let record = from_json("a fixture", &record.to_string()).expect("a record");
        let written: Value = serde_json::from_str(&to_json(&record).expect("JSON")).expect("JSON");
        let faults: Vec<String> = validator.iter_errors(&written).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{}: {faults:?}", record.scenario);
        seen += record.metrics.len() + record.histograms.len();
        let mut more = written.clone();
        more["new_field"] = json!(1);
        assert!(!validator.is_valid(&more), "the strict form takes anything");
    }
    assert!(seen > 5, "no numbers were looked at");
}

#[test]
fn what_is_no_record_is_not_valid() {
    let validator = validator(&schema());
    let good = records().into_iter().find(|r| r["schema_version"] == "1.1").expect("a record of 1.1");
    assert!(validator.is_valid(&good));
    let changes: [(&str, Value); 12] = [
        ("/schema_version", json!("2.0")),
        ("/attempt", json!(0)),
        ("/status", json!({ "outcome": "failed" })),
        ("/status", json!({ "outcome": "failed", "reason": "but it has metrics" })),
        ("/status", json!({ "outcome": "lucky" })),
        ("/started", json!("yesterday")),
        ("/metrics/0/unit", json!("long miles")),
        ("/metrics/0/better", json!("sideways")),
        ("/metrics/0/samples/0", json!([0, 5])),
        ("/metrics/0/samples/0", json!([1, 5, 7])),
        ("/metrics/0/summary/median", json!("fast")),
        ("/histograms/0/buckets/0", json!([1])),
    ];
    for (place, value) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(place).expect("a place") = value;
        assert!(!validator.is_valid(&bad), "{place} may be {}", bad.pointer(place).expect("it"));
    }
    for field in schema()["required"].as_array().expect("a list") {
        let mut bad = good.clone();
        bad.as_object_mut().expect("an object").remove(field.as_str().expect("a name"));
        assert!(!validator.is_valid(&bad), "{field} may be missing");
    }
}

fn wallgrind(arguments: &[&str], folder: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wallgrind"));
    command.arg("--out").arg(folder).args(arguments).current_dir(folder).output().expect("the command")
}

#[test]
fn a_run_is_exported_in_each_format_and_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    fs::create_dir(&run).expect("a folder");
    for name in ["record-1.0.json", "record-1.1.json", "record-1.0-failed.json"] {
        fs::copy(fixture(name), run.join(name)).expect("copied");
    }
    let text = |format: &str| {
        let output = wallgrind(&["export", format, "run", "-"], folder.path());
        assert!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let all: Vec<Value> = serde_json::from_str(&text("json")).expect("JSON");
    let lines: Vec<Value> = text("jsonl").lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!((all.len(), &all), (3, &lines));
    // A head, metrics and two rates of each, and a line of the failed one.
    assert_eq!(text("csv").lines().count(), 1 + (3 + 2) + (8 + 2) + 1);
    assert!(text("junit").contains("tests=\"2\" failures=\"1\""));
    assert!(text("bencher").contains("\"latency\""));
    assert_eq!(String::from_utf8_lossy(&wallgrind(&["schema"], folder.path()).stdout), JSON_SCHEMA);
    // There and back again.
    let (there, back) = (
        ["export", "github-action-benchmark", "run", "list.json"],
        ["import", "github-action-benchmark", "list.json", "--run-id", "again"],
    );
    for arguments in [&there[..], &back[..]] {
        assert!(wallgrind(arguments, folder.path()).status.success(), "{arguments:?}");
    }
    let shown = wallgrind(&["show", "again"], folder.path());
    assert!(String::from_utf8_lossy(&shown.stdout).contains("read_4k"), "{shown:?}");
    let bigger = text("github-action-benchmark-bigger");
    assert!(bigger.contains("disk::read_4k bytes_moved") && !bigger.contains("\"ns\""), "{bigger}");
    let output = wallgrind(&["export", "criterion", "run", "crit"], folder.path());
    assert!(output.status.success() && folder.path().join("crit/disk__read_4k/run/estimates.json").is_file());
}
