//! What lies behind the rows as text: a line of JSON for each, and behind them
//! one with the parts that many rows share. That is what keeps a page of many
//! thousand rows at a size that a browser opens.
//!
//! A part (a list of cells, an axis, a title) that was there before stands as
//! its number in the shared list; parts themselves are never numbers.
//!
//! Neighbours: `detail` makes what is written here, `page.js` reads it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::detail::{Detail, Table};
use super::text::json;
use crate::report::plot::{Layer, Plot};

/// The shortest part that is worth a number.
const SHORT: usize = 8;

/// The lines of a page, as they come.
#[derive(Debug, Default)]
pub struct Data {
    /// The page up to here.
    page: String,
    /// Parts that were there once.
    seen: HashSet<u64>,
    /// Parts that were there again, with their places in the list.
    known: HashMap<String, usize>,
    parts: Vec<String>,
    tables: BTreeMap<Table, usize>,
}

impl Data {
    /// Lines that are to follow on this text. They are written to its end at
    /// once: of many thousand rows there is no second copy.
    pub fn after(page: String) -> Self {
        Self { page, ..Self::default() }
    }

    /// Adds the line of a row; `identity` is the table that it shares with others.
    pub fn add(&mut self, detail: &Detail, identity: Option<Table>) {
        let next = self.tables.len();
        let identity = identity.map(|table| *self.tables.entry(table).or_insert(next));
        let plots = self.plots(&detail.plots);
        let tables: Vec<String> = detail.tables.iter().map(|table| self.table(table)).collect();
        let notes: Vec<String> = detail.notes.iter().map(|note| self.part(json(note))).collect();
        let all = [list(&notes), list(&plots), list(&tables), json(&identity)];
        self.page.push_str(&list(&all));
        self.page.push('\n');
    }

    /// All of it, with what is shared on the last line.
    pub fn page(mut self) -> String {
        let mut tables: Vec<(usize, Table)> =
            std::mem::take(&mut self.tables).into_iter().map(|(table, at)| (at, table)).collect();
        tables.sort_by_key(|(at, _)| *at);
        let tables: Vec<String> = tables.iter().map(|(_, table)| self.table(table)).collect();
        self.page.push_str(&list(&[list(&self.parts), list(&tables)]));
        self.page.push('\n');
        self.page
    }

    /// Title, words, both axes, layers, note. Words that are those of the plot
    /// before are left out: most plots of a trial show the same samples.
    fn plots(&mut self, plots: &[Plot]) -> Vec<String> {
        let mut before = "";
        let mut all = Vec::new();
        for plot in plots {
            let text = if plot.text == before { "" } else { &plot.text };
            before = &plot.text;
            let layer = |Layer(class, path): &Layer| list(&[json(class), json(path)]);
            let layers: Vec<String> = plot.layers.iter().map(layer).collect();
            let title = self.part(json(&plot.title));
            let (x, y) = (self.part(json(&(&plot.x, &plot.xs))), self.part(json(&(&plot.y, &plot.ys))));
            let note = self.part(json(&plot.note));
            all.push(list(&[title, json(&text), x, y, list(&layers), note]));
        }
        all
    }

    /// Caption, titles, rows, which of them are marked, and whether it is folded.
    fn table(&mut self, table: &Table) -> String {
        let (caption, head) = (self.part(json(&table.caption)), self.part(json(&table.head)));
        let rows: Vec<String> = table.rows.iter().map(|row| self.part(json(row))).collect();
        list(&[caption, head, list(&rows), json(&table.marked), u8::from(table.folded).to_string()])
    }

    /// A part in JSON, or its number.
    fn part(&mut self, part: String) -> String {
        if part.len() < SHORT {
            return part;
        }
        if let Some(at) = self.known.get(&part) {
            return at.to_string();
        }
        let mut hasher = DefaultHasher::new();
        part.hash(&mut hasher);
        if self.seen.insert(hasher.finish()) {
            return part;
        }
        let at = self.parts.len();
        self.parts.push(part.clone());
        self.known.insert(part, at);
        at.to_string()
    }
}

fn list(parts: &[String]) -> String {
    format!("[{}]", parts.join(","))
}
