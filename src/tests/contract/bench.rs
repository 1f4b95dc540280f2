//! Starts the bench target as cargo and its clients do, in a folder of its
//! own, with records and a lock of its own.
//!
//! Neighbours: `fixture` is what it starts; all tests use it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use wallgrind::store::{Record, RunDir, Status};

use crate::fixture;

/// A place for runs of the bench target.
pub struct Bench {
    dir: tempfile::TempDir,
}

/// What a run gave.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Bench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The folder for records.
    pub fn out(&self) -> PathBuf {
        self.dir().join("out")
    }

    /// The command, with an environment in which nothing of the outside is set.
    pub fn command(&self, argv: &str) -> Command {
        let exe = std::env::current_exe().expect("this executable");
        let mut command = Command::new(exe);
        command.args(argv.split_whitespace()).current_dir(self.dir()).env(fixture::ASK, "1");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["WALLGRIND_", "NEXTEST", "__NEXTEST", "RUST_", "NO_COLOR"].iter().any(|p| text.starts_with(p))
            {
                command.env_remove(&name);
            }
        }
        let settings = [("TIME", "2ms"), ("SAMPLES", "2..5"), ("TIMEOUT", "none")];
        for (name, value) in settings {
            command.env(format!("WALLGRIND_{name}"), value);
        }
        command.env("WALLGRIND_OUT", self.out()).env("WALLGRIND_LOCK", self.dir().join("lock"));
        command.env("TMPDIR", self.dir()).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, argv: &str) -> Ran {
        ran(self.command(argv))
    }

    /// Runs it with variables set.
    pub fn run_with(&self, argv: &str, env: &[(&str, &str)]) -> Ran {
        let mut command = self.command(argv);
        command.envs(env.iter().copied());
        ran(command)
    }

    /// Starts it; its standard error is read line by line.
    pub fn start(&self, argv: &str, env: &[(&str, &str)]) -> Running {
        let mut command = self.command(argv);
        command.envs(env.iter().copied());
        Running::start(command)
    }

    /// All records of the only run in the folder, by name.
    pub fn records(&self) -> Vec<Record> {
        let runs: Vec<PathBuf> = std::fs::read_dir(self.out())
            .map(|entries| entries.map(|entry| entry.expect("an entry").path()).collect())
            .unwrap_or_default();
        assert!(runs.len() <= 1, "one run was expected: {runs:?}");
        let mut records: Vec<Record> =
            runs.iter().flat_map(|run| RunDir::read(run).expect("readable records")).collect();
        records.sort_by(|a, b| a.scenario.cmp(&b.scenario));
        records
    }

    /// What is left in the folder, apart from records and lock.
    pub fn leftovers(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir()).expect("the folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "out" && name != "lock").collect()
    }
}

/// The names of records with a status, in words.
pub fn statuses(records: &[Record]) -> Vec<(&str, &'static str)> {
    let word = |status: &Status| match status {
        Status::Ok => "ok",
        Status::Failed(_) => "failed",
        Status::TimedOut(_) => "timed out",
        Status::Ignored(_) => "ignored",
    };
    records.iter().map(|record| (record.scenario.as_str(), word(&record.status))).collect()
}

pub fn ran(mut command: impl std::borrow::BorrowMut<Command>) -> Ran {
    let output = command.borrow_mut().output().expect("the bench target");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("Unicode");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Ran {
    /// Asserts the exit code, and shows all of it when it is another.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Asserts that standard output has a line.
    pub fn has_line(self, line: &str) -> Self {
        assert!(self.out.lines().any(|l| l == line), "no line {line:?} in {}\n{}", self.out, self.err);
        self
    }

    /// Asserts that standard error has a text.
    pub fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} in {}", self.err);
        self
    }

    /// The objects of the JSON stream; every line must be one.
    pub fn events(&self) -> Vec<serde_json::Value> {
        let parse =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        self.out.lines().map(parse).collect()
    }
}

/// A bench target that runs. Dropping it kills it.
pub struct Running {
    pub child: Child,
    err: BufReader<ChildStderr>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended, which is no failure of the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the bench target");
        let err = BufReader::new(child.stderr.take().expect("standard error"));
        Self { child, err }
    }

    /// Reads standard error up to a line with `text`, and gives the line.
    pub fn wait_for(&mut self, text: &str) -> String {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            let read = self.err.read_line(&mut line).expect("standard error");
            assert!(read > 0, "{text:?} was never said, but: {seen}");
            if line.contains(text) {
                return line.trim_end().to_string();
            }
            seen.push_str(&line);
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        Self::signal_to(signal, &self.child.id().to_string());
    }

    /// Sends a signal to its process group, where it leads one.
    pub fn signal_group(&self, signal: i32) {
        Self::signal_to(signal, &format!("-{}", self.child.id()));
    }

    fn signal_to(signal: i32, whom: &str) {
        let status = Command::new("kill").args([&format!("-{signal}"), "--", whom]).status().expect("kill");
        assert!(status.success());
    }

    /// Waits for the end; gives status, standard output, and the rest of standard error.
    pub fn end(mut self) -> (ExitStatus, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.err.read_to_string(&mut err).expect("standard error");
        self.child.stdout.take().expect("standard output").read_to_string(&mut out).expect("Unicode");
        (self.child.wait().expect("the end"), out, err)
    }
}
