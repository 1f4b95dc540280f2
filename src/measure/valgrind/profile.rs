//! What cachegrind and callgrind write: counts by file, function and line, in
//! one grammar of which callgrind uses more (names and positions shortened,
//! calls with their inclusive costs, which are skipped).
//!
//! The formats are described in the manual of callgrind ("Callgrind Format
//! Specification") and in cachegrind's chapter of the Valgrind manual.
//!
//! Neighbours: `readings` subtracts profiles and sums them up, `annotate`
//! reads the files that are kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counts of each event, in the order of [`Profile::events`].
pub type Costs = Vec<u64>;

/// Counts by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Names of the events, such as `Ir`.
    pub events: Vec<String>,
    /// Costs by (file, function), then line.
    pub places: BTreeMap<(String, String), BTreeMap<u64, Costs>>,
    /// Totals of all events, as the tool states them.
    pub totals: Costs,
}

impl Profile {
    /// Reads an output file of cachegrind or callgrind.
    ///
    /// # Errors
    /// In words: the file is cut short, or not in a known format, or its lines
    /// do not add up to the totals it states.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader::new(text.starts_with("# callgrind format"));
        for (number, line) in text.lines().enumerate() {
            reader.line(line).map_err(|reason| format!("line {}: {reason}", number + 1))?;
        }
        reader.finish()
    }

    /// The totals with the names of their events.
    pub fn named_totals(&self) -> impl Iterator<Item = (&str, u64)> {
        self.events.iter().map(String::as_str).zip(self.totals.iter().copied())
    }

    /// Counts of the first event by function, over all files, largest first
    /// (equal ones by name); functions without any are left out.
    pub fn functions(&self) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, function), lines) in &self.places {
            let sum = lines.values().filter_map(|costs| costs.first()).sum::<u64>();
            *sums.entry(function).or_default() += sum;
        }
        let mut sums: Vec<_> = sums.into_iter().filter(|(_, n)| *n > 0).collect();
        sums.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        sums.into_iter().map(|(name, n)| (name.to_string(), n)).collect()
    }

    /// What was counted after `before`, an earlier state of the same process.
    ///
    /// Each snapshot also holds the few instructions by which its process ends.
    /// They are the same in both and cancel out, but the caches that they find
    /// are not: there, misses of the earlier snapshot may exceed the later one's.
    /// Such a line has missed nothing in the region.
    ///
    /// # Errors
    /// In words: the two do not belong together.
    pub fn since(mut self, before: &Self) -> Result<Self, String> {
        if self.events != before.events {
            return Err("the two snapshots count different events".into());
        }
        let depends_on_state: Vec<bool> = self.events.iter().map(|name| is_simulated(name)).collect();
        for (place, lines) in &before.places {
            let mine = self.places.get_mut(place).ok_or("a function is missing in the later snapshot")?;
            for (line, costs) in lines {
                let left = mine.get_mut(line).ok_or("a line is missing in the later snapshot")?;
                subtract(left, costs, &depends_on_state)?;
            }
        }
        for lines in self.places.values_mut() {
            lines.retain(|_, costs| costs.iter().any(|n| *n > 0));
        }
        self.places.retain(|_, lines| !lines.is_empty());
        self.totals = vec![0; self.events.len()];
        for costs in self.places.values().flat_map(BTreeMap::values) {
            self.totals.iter_mut().zip(costs).for_each(|(total, n)| *total += n);
        }
        Ok(self)
    }

    /// A file in cachegrind's format, for its own `cg_annotate`.
    pub fn to_cachegrind(&self, description: &str, command: &str) -> String {
        let mut text = format!("desc: {description}\ncmd: {command}\nevents: {}\n", self.events.join(" "));
        let mut last_file = None;
        for ((file, function), lines) in &self.places {
            if last_file != Some(file) {
                let _ = writeln!(text, "fl={file}");
                last_file = Some(file);
            }
            let _ = writeln!(text, "fn={function}");
            for (line, costs) in lines {
                let _ = writeln!(text, "{line} {}", joined(costs));
            }
        }
        let _ = writeln!(text, "summary: {}", joined(&self.totals));
        text
    }
}

fn joined(costs: &[u64]) -> String {
    costs.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// Whether an event is a miss of the simulated caches or of the branch
/// predictor, which hangs on what ran before.
fn is_simulated(event: &str) -> bool {
    event.ends_with("mr") || event.ends_with("mw") || event.ends_with('m')
}

fn subtract(from: &mut [u64], what: &[u64], depends_on_state: &[bool]) -> Result<(), String> {
    for ((a, b), simulated) in from.iter_mut().zip(what).zip(depends_on_state) {
        let left = if *simulated { Some(a.saturating_sub(*b)) } else { a.checked_sub(*b) };
        *a = left.ok_or("the later snapshot counts less than the earlier one")?;
    }
    Ok(())
}

/// The state of reading a file, line by line.
struct Reader {
    callgrind: bool,
    profile: Profile,
    names: BTreeMap<(&'static str, u64), String>,
    file: String,
    function: String,
    position: u64,
    after_calls: bool,
    is_complete: bool,
}

impl Reader {
    fn new(callgrind: bool) -> Self {
        Self {
            callgrind,
            profile: Profile::default(),
            names: BTreeMap::new(),
            file: String::new(),
            function: String::new(),
            position: 0,
            after_calls: false,
            is_complete: false,
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let first = line.bytes().next();
        match first {
            None | Some(b'#') => Ok(()),
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => self.costs(line),
            _ => self.word(line),
        }
    }

    fn word(&mut self, line: &str) -> Result<(), String> {
        if let Some((key, value)) =
            line.split_once('=').filter(|(key, _)| key.len() <= 5 && !key.contains(':'))
        {
            return self.name(key, value);
        }
        let (key, value) = line.split_once(':').ok_or_else(|| format!("{line:?} is not understood"))?;
        match key {
            "events" => self.profile.events = value.split_whitespace().map(str::to_string).collect(),
            "positions" if value.trim() != "line" => {
                return Err(format!("positions are {}, not line", value.trim()));
            }
            // Callgrind states 0 here when it was switched on later; `totals` is right.
            "summary" if !self.callgrind => self.totals(value)?,
            "totals" => self.totals(value)?,
            _ => {}
        }
        Ok(())
    }

    fn totals(&mut self, value: &str) -> Result<(), String> {
        self.profile.totals = numbers(value.split_whitespace(), self.profile.events.len())?;
        self.is_complete = true;
        Ok(())
    }

    fn name(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "fl" | "fi" | "fe" => self.file = self.resolve("file", value)?,
            "fn" => self.function = self.resolve("function", value)?,
            "cfn" => drop(self.resolve("function", value)?),
            "cfi" | "cfl" => drop(self.resolve("file", value)?),
            "ob" | "cob" => {}
            "calls" => self.after_calls = true,
            "jump" | "jcnd" | "jfi" | "jfn" | "rcalls" => {}
            _ => return Err(format!("{key}= is not understood")),
        }
        Ok(())
    }

    /// Callgrind writes `(7) name` the first time and `(7)` from then on.
    fn resolve(&mut self, kind: &'static str, value: &str) -> Result<String, String> {
        if !self.callgrind {
            return Ok(value.to_string());
        }
        let Some((id, name)) = value.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
            return Ok(value.to_string());
        };
        let Ok(id) = id.parse::<u64>() else { return Ok(value.to_string()) };
        if let Some(name) = name.strip_prefix(' ') {
            self.names.insert((kind, id), name.to_string());
            return Ok(name.to_string());
        }
        self.names.get(&(kind, id)).cloned().ok_or_else(|| format!("{kind} {id} has no name"))
    }

    fn costs(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        self.position = self.moved(words.next().unwrap_or_default())?;
        if std::mem::take(&mut self.after_calls) {
            return Ok(());
        }
        let costs = numbers(words, self.profile.events.len())?;
        let place = (self.file.clone(), self.function.clone());
        let sums = self.profile.places.entry(place).or_default().entry(self.position);
        let sums = sums.or_insert_with(|| vec![0; costs.len()]);
        sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        Ok(())
    }

    fn moved(&self, word: &str) -> Result<u64, String> {
        let wrong = || format!("{word:?} is not a line number");
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| wrong());
        match word.split_at_checked(1) {
            Some(("+", digits)) => Ok(self.position.wrapping_add(number(digits)?)),
            Some(("-", digits)) => Ok(self.position.wrapping_sub(number(digits)?)),
            Some(("*", "")) => Ok(self.position),
            _ => number(word),
        }
    }

    fn finish(self) -> Result<Profile, String> {
        if self.profile.events.is_empty() {
            return Err("it names no events: it is not an output file of cachegrind or callgrind".into());
        }
        if !self.is_complete {
            return Err("it ends before its totals: it was cut short".into());
        }
        let mut sums = vec![0; self.profile.events.len()];
        for costs in self.profile.places.values().flat_map(BTreeMap::values) {
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        }
        if sums != self.profile.totals {
            let (sums, totals) = (joined(&sums), joined(&self.profile.totals));
            return Err(format!("its lines add up to {sums}, but it states {totals}"));
        }
        Ok(self.profile)
    }
}

/// Missing numbers at the end of a line are zero in both formats.
fn numbers<'a>(words: impl Iterator<Item = &'a str>, wanted: usize) -> Result<Costs, String> {
    let mut costs = Vec::with_capacity(wanted);
    for word in words {
        // Cachegrind 3.19 and older write a dot for an event that cannot occur.
        let number = if word == "." { Ok(0) } else { word.parse() };
        costs.push(number.map_err(|_| format!("{word:?} is not a count"))?);
    }
    if costs.len() > wanted {
        return Err(format!("{} counts for {wanted} events", costs.len()));
    }
    costs.resize(wanted, 0);
    Ok(costs)
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
