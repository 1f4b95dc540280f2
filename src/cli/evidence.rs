//! Finds what is known of one scenario, and measures what is missing: the
//! executable is started once a meter, and what it gave is kept under
//! `.explain` beside the runs, by the executable's content.
//!
//! Neighbours: `explain` asks; `revision` builds bench targets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::commands::{folder_of, run_names};
use super::names::meant;
use super::revision;
use super::term::say;
use crate::error::{Error, Kind, Result};
use crate::report::{Evidence, Stacks};
use crate::store::{Baselines, Found, Record, RunDir, Status, digest};

/// The folder of what was measured here, beside the runs.
const FOLDER: &str = ".explain";

/// Variables that may reach an executable that is started here; the others of
/// ours would make it another kind of run.
const PASSED_ON: [&str; 8] =
    ["LOCK", "SCRATCH_DIR", "TIME", "SAMPLES", "TIMEOUT", "JOBS", "CPU", "CPU_FEATURES"];

/// What names a build.
pub(super) const BUILDS: &str =
    "give the path of a bench executable (cargo bench --no-run prints them), or a baseline's name";

/// Where a side comes from.
pub(super) enum Side<'a> {
    /// The latest runs that have it, and the bench target of the present tree.
    Latest,
    /// The bench target of the present tree that has it, whatever runs say.
    Tree,
    /// A run, a folder with records, or a baseline with its executable.
    Stored(&'a str),
    /// The executable of a baseline.
    BuildOf(&'a str),
    /// An executable.
    Program(PathBuf),
    /// A bench target, which cargo builds.
    Bench(&'a str),
}

/// Finds and measures one scenario.
pub(super) struct Finder<'a> {
    out: PathBuf,
    trial: &'a str,
    measures: bool,
    again: bool,
}

/// A record, and the folder of its run.
type Kept = (Record, PathBuf);

/// A meter: its name, what it is called, and its flags.
struct Meter {
    mode: &'static str,
    title: &'static str,
    flags: &'static [&'static str],
}

const TIME: Meter = Meter { mode: "walltime", title: "wall time", flags: &[] };
const COUNTS: Meter = Meter {
    mode: "cachegrind",
    title: "instructions and caches, with stacks of calls",
    flags: &["--stacks", "--cache-sim", "--branch-sim"],
};
const HEAP: Meter = Meter { mode: "dhat", title: "heap use", flags: &[] };

impl<'a> Finder<'a> {
    /// Looks under `out` for `trial`.
    ///
    /// # Errors
    /// The folder has no absolute path.
    pub(super) fn new(out: &Path, trial: &'a str, measures: bool, again: bool) -> Result<Self> {
        let failed = |e| Error::new(Kind::Io, format!("the folder {}", out.display())).source(e);
        let out = std::path::absolute(out).map_err(failed)?;
        Ok(Self { out, trial, measures, again })
    }

    /// All that is known of one side.
    ///
    /// # Errors
    /// There is no such run, trial or executable.
    pub(super) fn side(&self, side: Side<'_>) -> Result<Evidence> {
        match side {
            Side::Latest => {
                let found = self.latest()?;
                let suite = found.first().map(|(record, _)| record.suite.clone());
                let build = || match &suite {
                    Some(suite) if self.measures => self.built(suite).map(Some),
                    _ => Ok(None),
                };
                self.complete("the latest runs", found, &build)
            }
            Side::Tree => {
                let found = self.latest()?;
                let suite = found.first().map(|(record, _)| record.suite.clone()).unwrap_or_default();
                let program = self.built(&suite)?;
                self.complete(&suite, Vec::new(), &|| Ok(Some(program.clone())))
            }
            Side::Stored(name) => {
                let found = self.stored(name)?;
                let is_baseline = self.is_baseline(name);
                let kept = || if is_baseline { self.build_of(name).map(Some) } else { Ok(None) };
                self.complete(name, found, &kept)
            }
            Side::BuildOf(name) => {
                let program = self.build_of(name)?;
                self.complete(name, Vec::new(), &|| Ok(Some(program.clone())))
            }
            Side::Program(program) => {
                let program = self.checked(program)?;
                let label = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.complete(&label, Vec::new(), &|| Ok(Some(program.clone())))
            }
            Side::Bench(name) => {
                let program = self.built(name)?;
                self.complete(name, Vec::new(), &|| Ok(Some(program.clone())))
            }
        }
    }

    /// Measures what `found` lacks. `program` is asked only if something is missing.
    fn complete(
        &self,
        label: &str,
        mut found: Vec<Kept>,
        program: &dyn Fn() -> Result<Option<PathBuf>>,
    ) -> Result<Evidence> {
        let (mut gaps, mut failed) = (Vec::new(), 0);
        if self.again || [&TIME, &COUNTS, &HEAP].into_iter().any(|meter| has(meter, &found).is_none()) {
            let program = match program() {
                // What is known already is worth telling.
                Err(error) if !found.is_empty() => {
                    let lacks =
                        [&TIME, &COUNTS, &HEAP].into_iter().filter(|meter| has(meter, &found).is_none());
                    gaps.extend(lacks.map(|meter| format!("{}: {}", meter.title, error.in_one_line())));
                    failed = gaps.len();
                    None
                }
                program => program?,
            };
            match program {
                Some(program) => {
                    if self.again {
                        found.clear();
                    }
                    gaps = self.measured_with(&program, &mut found)?;
                    failed = gaps.len();
                }
                None if self.measures && failed == 0 => gaps.push(format!(
                    "what {label} does not hold: only a baseline keeps the executable, to measure it again"
                )),
                None => {}
            }
        }
        let mut evidence = Evidence { label: label.into(), gaps, failed, ..Evidence::default() };
        let take = |meter: &Meter| found.iter().find(|(record, _)| record.mode == meter.mode).cloned();
        evidence.time = take(&TIME).map(|(record, _)| record);
        evidence.heap = take(&HEAP).map(|(record, _)| record);
        if let Some((record, folder)) = has(&COUNTS, &found).cloned().or_else(|| take(&COUNTS)) {
            evidence.stacks = stacks(&record, &folder)?;
            if record.facts.get("method").is_some_and(|how| how == "toggle") && varies(&record) {
                evidence.gaps.push(
                    "counts of functions and stacks: of the thread that enters the region alone, and this \
                     trial has more"
                        .into(),
                );
            }
            evidence.counts = Some(record);
        }
        if !self.measures {
            let missing = [&TIME, &COUNTS, &HEAP].into_iter().filter(|meter| take(meter).is_none());
            evidence.gaps.extend(missing.map(|meter| format!("{}: no record", meter.title)));
        }
        Ok(evidence)
    }

    /// Adds what an earlier `explain` has measured of the executable, and
    /// measures the rest; gives what could not be measured, and why.
    fn measured_with(&self, program: &Path, found: &mut Vec<Kept>) -> Result<Vec<String>> {
        let unreadable = |e| Error::new(Kind::Io, format!("{} cannot be read", program.display())).source(e);
        let (sum, _) = digest(program).map_err(unreadable)?;
        let (out, run) = (self.out.join(FOLDER), &sum[..16]);
        let folder = out.join(run);
        if !self.again {
            found.extend(self.of_folder(&folder));
        }
        let mut gaps = Vec::new();
        for meter in [&TIME, &COUNTS, &HEAP] {
            if !self.measures || has(meter, found).is_some() {
                continue;
            }
            say(&format!("measuring {}: {}", self.trial, meter.title));
            match self.measure(program, (&out, run), meter)? {
                Ok(record) => found.insert(0, (record, folder.clone())),
                Err(why) => gaps.push(format!("{}: {why}", meter.title)),
            }
        }
        Ok(gaps)
    }

    /// Starts the executable under one meter. What keeps it from a number is
    /// no error here: the other meters may have one.
    fn measure(
        &self,
        program: &Path,
        (out, run): (&Path, &str),
        meter: &Meter,
    ) -> Result<std::result::Result<Record, String>> {
        let before = self.all(&out.join(run), meter).len();
        let mut bench = self.command(program);
        bench.args([self.trial, "--exact", "--bench", "--mode", meter.mode]).args(meter.flags);
        bench.arg("--out").arg(out).args(["--run-id", run]);
        let ended = bench.output().map_err(|e| no_start(program, e))?;
        let mut records = self.all(&out.join(run), meter);
        if records.len() <= before {
            let said = String::from_utf8_lossy(&ended.stderr);
            let said: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
            return Ok(Err(format!("{} ({})", said.join("; "), ended.status)));
        }
        let last = records.pop().map(|(record, _)| record);
        Ok(match last.map(|record| (record.status.clone(), record)) {
            Some((Status::Ok, record)) => Ok(record),
            Some((Status::Failed(why) | Status::TimedOut(why) | Status::Ignored(why), _)) => Err(why),
            None => Err("no record was left".into()),
        })
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let ours = text.strip_prefix("WALLGRIND_");
            if ours.is_some_and(|ours| !PASSED_ON.contains(&ours)) || text.starts_with("NEXTEST") {
                command.env_remove(&name);
            }
        }
        command.stdin(Stdio::null());
        command
    }

    /// All records of the trial, however they ended, in their order.
    fn named(&self, folder: &Path) -> Vec<Kept> {
        // A damaged file of another trial is no reason to refuse this one.
        let records = RunDir::scan(folder).map(|found| found.records).unwrap_or_default();
        let ours = records.into_iter().filter(|record| record.scenario == self.trial);
        ours.map(|record| (record, folder.to_path_buf())).collect()
    }

    /// Those of them under a meter.
    fn all(&self, folder: &Path, meter: &Meter) -> Vec<Kept> {
        self.named(folder).into_iter().filter(|(record, _)| record.mode == meter.mode).collect()
    }

    /// What was measured of the trial in a folder, the latest first.
    fn of_folder(&self, folder: &Path) -> Vec<Kept> {
        let mut all = self.named(folder);
        all.retain(|(record, _)| record.status == Status::Ok && !record.facts.contains_key("steps_per_pair"));
        all.reverse();
        all
    }

    /// From the latest runs on, until there is a record of each meter.
    fn latest(&self) -> Result<Vec<Kept>> {
        let mut found = Vec::new();
        let mut names = Vec::new();
        for name in run_names(&self.out)?.iter().rev() {
            let folder = self.out.join(name);
            found.extend(self.of_folder(&folder));
            if [&TIME, &COUNTS, &HEAP].into_iter().all(|meter| has(meter, &found).is_some()) {
                break;
            }
            if found.is_empty() {
                let records = RunDir::scan(&folder).map(|found| found.records).unwrap_or_default();
                names.extend(records.into_iter().map(|record| record.scenario));
            }
        }
        if found.is_empty() {
            return Err(self.no_such(&names, &format!("no run under {} has", self.out.display())));
        }
        Ok(found)
    }

    fn is_baseline(&self, name: &str) -> bool {
        Baselines::of(&self.out).names().iter().any(|known| known == name)
    }

    /// What a baseline, a run or a folder has of the trial.
    fn stored(&self, name: &str) -> Result<Vec<Kept>> {
        if !self.is_baseline(name) {
            let folder = folder_of(&self.out, Some(name))?;
            let found = self.of_folder(&folder);
            if found.is_empty() {
                let Found { records, faults } = RunDir::scan(&folder)?;
                let names: Vec<String> = records.into_iter().map(|record| record.scenario).collect();
                let error = self.no_such(&names, &format!("{name} has no measured"));
                // It may stand in a file that is damaged.
                return Err(match faults.into_iter().next() {
                    Some(fault) => error.source(fault),
                    None => error,
                });
            }
            return Ok(found);
        }
        let store = Baselines::of(&self.out);
        let mut found = Vec::new();
        for suite in store.suites(name) {
            let records = store.records(&store.kept(name, &suite)?)?;
            let ours = |r: &Record| r.scenario == self.trial && r.status == Status::Ok;
            found.extend(records.into_iter().filter(ours).map(|record| (record, PathBuf::new())));
        }
        found.reverse();
        Ok(found)
    }

    /// The executable of a baseline that has the trial.
    fn build_of(&self, name: &str) -> Result<PathBuf> {
        let store = Baselines::of(&self.out);
        let mut names = Vec::new();
        for suite in store.suites(name) {
            let program = store.executable(&store.kept(name, &suite)?)?;
            let listed = self.listed(&program)?;
            if listed.iter().any(|known| known == self.trial) {
                return Ok(program);
            }
            names.extend(listed);
        }
        Err(self.no_such(&names, &format!("no executable of the baseline {name} has")))
    }

    fn built(&self, suite: &str) -> Result<PathBuf> {
        let mut names = Vec::new();
        for program in revision::build_here(Some(suite))? {
            let listed = self.listed(&program)?;
            if listed.iter().any(|known| known == self.trial) {
                return Ok(program);
            }
            names.extend(listed);
        }
        Err(self.no_such(&names, &format!("the bench target {suite} has")))
    }

    /// An executable that has the trial.
    fn checked(&self, program: PathBuf) -> Result<PathBuf> {
        if !program.is_file() {
            return Err(Error::new(
                Kind::Io,
                format!("there is no executable or baseline {}", program.display()),
            )
            .hint(BUILDS));
        }
        let program = std::path::absolute(&program)
            .map_err(|e| Error::new(Kind::Io, format!("the path {}", program.display())).source(e))?;
        let listed = self.listed(&program)?;
        if !listed.iter().any(|known| known == self.trial) {
            return Err(self.no_such(&listed, &format!("{} has", program.display())));
        }
        Ok(program)
    }

    /// The names of an executable's trials.
    fn listed(&self, program: &Path) -> Result<Vec<String>> {
        let output = self.command(program).args(["--list", "--format", "terse"]).output();
        let output = output.map_err(|e| no_start(program, e))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names: Vec<String> =
            text.lines().filter_map(|line| line.strip_suffix(": benchmark")).map(str::to_string).collect();
        if names.is_empty() {
            return Err(Error::new(Kind::Format, format!("{} lists no trials", program.display()))
                .hint("a bench executable of wallgrind's is needed"));
        }
        Ok(names)
    }

    fn no_such(&self, names: &[String], whose: &str) -> Error {
        // "no run has" and "x has": the sentence ends the same way.
        let no = if whose.contains("no ") { "" } else { "no " };
        let error = Error::new(Kind::Usage, format!("{whose} {no}trial {}", self.trial));
        if names.iter().any(|name| name == self.trial) {
            return error
                .hint("it was not measured by itself there: `wallgrind show` says what became of it");
        }
        match meant(self.trial, names.iter().map(String::as_str)) {
            Some(meant) => error.hint(meant),
            None => error.hint("wallgrind show lists those of a run; --bench NAME measures a bench target's"),
        }
    }
}

fn no_start(program: &Path, error: std::io::Error) -> Error {
    Error::new(Kind::Missing, format!("{} cannot be started", program.display())).source(error)
}

/// The first record that has all that is wanted of a meter.
fn has<'k>(meter: &Meter, found: &'k [Kept]) -> Option<&'k Kept> {
    found.iter().find(|(record, folder)| {
        record.mode == meter.mode
            && (meter.mode != COUNTS.mode
                || record.metrics.iter().any(|m| m.series.metric == "d1_misses")
                    && stack_files(record, folder).iter().all(|(_, file)| file.is_file()))
    })
}

/// Whether a record says that its counts vary, as those with threads do.
fn varies(record: &Record) -> bool {
    record.params.iter().any(|(key, value)| key == "counts" && value == "vary")
}

/// Where the stacks of each party of a record are.
fn stack_files(record: &Record, folder: &Path) -> Vec<(Option<String>, PathBuf)> {
    let mut parties: Vec<Option<String>> = Vec::new();
    for metric in record.metrics.iter().filter(|m| m.series.metric == "instructions") {
        parties.extend(metric.series.party.is_some().then(|| metric.series.party.clone()));
    }
    if parties.is_empty() {
        parties.push(None);
    }
    let attempt = if record.attempt > 1 { format!(".attempt{}", record.attempt) } else { String::new() };
    let below = folder.join("valgrind").join(record.scenario.replace("::", "."));
    let file = |party: &Option<String>| {
        let party = party.as_ref().map(|party| format!(".{party}")).unwrap_or_default();
        below.join(format!("callgrind{attempt}{party}.folded"))
    };
    parties.into_iter().map(|party| (party.clone(), file(&party))).collect()
}

/// The stacks of a record; none where they were not taken.
fn stacks(record: &Record, folder: &Path) -> Result<Vec<(Option<String>, Stacks)>> {
    let files = stack_files(record, folder);
    if !record.facts.contains_key("stack_depth_calls") || files.iter().any(|(_, file)| !file.is_file()) {
        return Ok(Vec::new());
    }
    let read = |(party, file): (Option<String>, PathBuf)| {
        let named = |error: Error| {
            Error::new(Kind::Format, format!("{} is damaged", file.display()))
                .source(error)
                .hint("measure it again: --again")
        };
        let unreadable = |e| Error::new(Kind::Io, format!("{} cannot be read", file.display())).source(e);
        let text = fs::read_to_string(&file).map_err(unreadable)?;
        Ok((party, Stacks::parse(&text).map_err(named)?))
    };
    files.into_iter().map(read).collect()
}
