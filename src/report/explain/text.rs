//! What was explained, as text and as JSON.
//!
//! Neighbours: `parts` has the rows; numbers are written as in the tables.

use std::fmt::Write as _;

use super::parts::{Explained, Part, Row};
use crate::report::format::{percent, signed_percent, value};
use crate::units::{Direction, Unit};

impl Explained {
    /// Whether there is any number.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The parts as tables, numbers in front and names, which may be long, behind.
    pub fn text(&self) -> String {
        let mut text =
            format!("{}, one iteration; lower is better unless a row says otherwise\n", self.trial);
        if let (Some(before), after) = &self.labels {
            let _ = writeln!(text, "before: {before}; after: {after}");
        }
        for part in &self.parts {
            text.push('\n');
            self.write_part(part, &mut text);
        }
        text.push('\n');
        self.notes.iter().for_each(|note| text.push_str(&format!("{note}\n")));
        text
    }

    fn write_part(&self, part: &Part, text: &mut String) {
        let two = self.labels.0.is_some();
        let common = part.rows.first().map(|row| row.unit);
        let common = common.filter(|unit| part.rows.iter().all(|row| row.unit == *unit));
        let unit = common.map(|unit| format!(", {}", unit.symbol())).unwrap_or_default();
        let _ = writeln!(text, "{}{unit}", part.title);
        let mut lines: Vec<Vec<String>> = Vec::new();
        if two {
            lines.push(["before", "after", "difference", ""].map(String::from).into());
        }
        lines.extend(part.rows.iter().map(|row| cells(row, part.total, two)));
        let columns = lines.first().map_or(0, Vec::len);
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let names = two.then(String::new).into_iter().chain(part.rows.iter().map(|row| name(row, common)));
        for (line, name) in lines.iter().zip(names) {
            let cells = line.iter().zip(&widths).map(|(cell, width)| {
                format!("  {}{cell}", " ".repeat(width.saturating_sub(cell.chars().count())))
            });
            let _ = writeln!(text, "{}", format!("{}  {name}", cells.collect::<String>()).trim_end());
        }
        if part.more > 0 {
            let _ = writeln!(text, "  ({} more)", part.more);
        }
    }

    /// The same as one object; each row has its unit and which way it is better.
    pub fn json(&self) -> serde_json::Value {
        let row = |row: &Row| {
            serde_json::json!({
                "name": row.name, "party": row.party, "unit": row.unit.symbol(),
                "better": row.direction.word(), "before": row.before, "after": row.after,
            })
        };
        let part = |part: &Part| {
            serde_json::json!({
                "title": part.title, "rows": part.rows.iter().map(row).collect::<Vec<_>>(),
                "left_out_rows": part.more,
            })
        };
        serde_json::json!({
            "trial": self.trial, "before": self.labels.0, "after": self.labels.1,
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(), "notes": self.notes,
        })
    }
}

/// The numbers of a row: value and share, or both sides and what is between them.
fn cells(row: &Row, total: Option<f64>, two: bool) -> Vec<String> {
    let show = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| value(v, row.unit, false));
    if !two {
        let share = total.filter(|total| *total > 0.0);
        let share = share.map(|total| percent(row.after.unwrap_or(0.0) / total));
        return vec![show(row.after), share.unwrap_or_default()];
    }
    let difference = row.difference();
    let signed = |d: f64| {
        let sign = if d > 0.0 { "+" } else { "" };
        format!("{sign}{}", value(d, row.unit, false))
    };
    let share = match (difference, row.before) {
        (Some(0.0), _) | (None, _) | (_, None) => String::new(),
        // From zero there is no share.
        (_, Some(0.0)) => "new".into(),
        (Some(_), Some(_)) if row.after == Some(0.0) => "gone".into(),
        (Some(d), Some(before)) => signed_percent(d / before),
    };
    vec![show(row.before), show(row.after), difference.map(signed).unwrap_or_default(), share]
}

fn name(row: &Row, common: Option<Unit>) -> String {
    let mut name = row.name.clone();
    if common.is_none() && row.unit != Unit::Nanoseconds {
        let _ = write!(name, ", {}", row.unit.symbol());
    }
    if let Some(party) = &row.party {
        let _ = write!(name, ", {party}");
    }
    if row.direction == Direction::HigherIsBetter {
        name.push_str(" (higher is better)");
    }
    name
}
