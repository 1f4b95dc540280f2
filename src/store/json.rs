//! Records as JSON text, with the check of the schema version in front.
//!
//! Neighbours: `schema` is the form, `dir` the files.

use serde::Deserialize;

use super::record::Record;
use super::schema::{MAJOR, RecordV1};
use crate::error::{Error, Kind, Result};

/// The text of a record: one line, in the newest schema.
///
/// # Errors
/// [`Kind::Format`] when a value cannot be written as JSON.
pub fn to_json(record: &Record) -> Result<String> {
    let mut text = serde_json::to_string(&RecordV1::from(record)).map_err(|error| {
        Error::new(Kind::Format, format!("the record of {} cannot be written as JSON", record.scenario))
            .source(error)
    })?;
    text.push('\n');
    Ok(text)
}

/// The record in `text`; `name` is that of its file, for errors.
///
/// # Errors
/// [`Kind::Format`] when the text is cut short or not a record, or when it was
/// written by a newer major version of the schema.
pub fn from_json(name: &str, text: &str) -> Result<Record> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: String,
    }
    let corrupt = |cause: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(Kind::Format, format!("{name} is not a whole record"))
            .hint("delete the file, or measure that scenario again")
            .source(cause)
    };
    // A record of our own form is read once; what is none may still say whose it is.
    let (version, read) = match serde_json::from_str::<RecordV1>(text) {
        Ok(record) => (record.version().to_string(), Ok(record)),
        Err(error) => {
            let version = serde_json::from_str::<Version>(text).map_err(|e| corrupt(e.into()))?;
            (version.schema_version, Err(error))
        }
    };
    match major(&version) {
        Some(1) => {}
        Some(newer) if newer > MAJOR => {
            return Err(Error::new(
                Kind::Format,
                format!("{name} has schema {version}, and this wallgrind reads up to {MAJOR}.x"),
            )
            .hint("read it with the wallgrind that wrote it, or a newer one"));
        }
        _ => return Err(corrupt(format!("no such schema version: {version:?}").into())),
    }
    read.map_err(|e| corrupt(e.into()))?.into_record().map_err(|e| corrupt(e.into()))
}

fn major(version: &str) -> Option<u64> {
    let (major, minor) = version.split_once('.')?;
    minor.parse::<u64>().ok()?;
    major.parse().ok()
}
