//! The progress line: which trial runs, how many are left, and for how long.
//! Pure: it gives the text, `term` writes it.
//!
//! Neighbours: `term` owns it, `flow` feeds it.

use std::time::{Duration, Instant};

/// Where a run is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Trials in all.
    pub total: usize,
    /// Trials that have ended.
    pub done: usize,
    /// The trial that runs.
    pub name: String,
    /// What one trial takes, by what is known.
    pub each: Duration,
    /// When the trial began.
    pub began: Option<Instant>,
    drawn: bool,
}

/// To the start of the line, and erase it.
const ERASE: &str = "\r\x1b[2K";

impl Progress {
    /// The control text that puts a text where the line is.
    pub fn redraw(&mut self, text: &str) -> String {
        self.drawn = true;
        format!("{ERASE}{text}")
    }

    /// The control text that takes the line away, if it is there.
    pub fn erase(&mut self) -> &'static str {
        if std::mem::take(&mut self.drawn) { ERASE } else { "" }
    }

    /// The line, cut to `width` columns, over the one before.
    pub fn draw(&mut self, width: usize) -> String {
        self.drawn = true;
        let now = self.began.map(|began| began.elapsed()).unwrap_or_default();
        // One column is left free: a full line would wrap.
        format!("{ERASE}{}", self.text(now, width.saturating_sub(1)))
    }

    /// What the line says when the trial has run for `now`.
    fn text(&self, now: Duration, width: usize) -> String {
        let count = format!("[{}/{}] ", (self.done + 1).min(self.total), self.total);
        let tail = format!(" {}, about {} left", short(now), short(self.left(now)));
        let room = width.saturating_sub(count.len() + tail.len());
        if room >= 8 {
            return format!("{count}{}{tail}", cut(&self.name, room));
        }
        // A narrow terminal: the count and the end of the name say the most.
        let line = format!("{count}{}", cut(&self.name, width.saturating_sub(count.len())));
        line.chars().take(width).collect()
    }

    /// How long the rest will take.
    fn left(&self, now: Duration) -> Duration {
        let after = u32::try_from(self.total.saturating_sub(self.done + 1)).unwrap_or(u32::MAX);
        self.each.saturating_sub(now).saturating_add(self.each.saturating_mul(after))
    }
}

/// What the line of a command says: how much of a step is done (of 0: not
/// known), and for how long the command has run.
pub fn doing(what: &str, (done, of): (usize, usize), since: Duration, width: usize) -> String {
    let grouped = |n: usize| crate::units::grouped(n as u64);
    let count = if of > 0 { format!("[{}/{}] ", grouped(done.min(of)), grouped(of)) } else { String::new() };
    let line = format!("{count}{what} {}", short(since));
    line.chars().take(width.saturating_sub(1)).collect()
}

/// The end of a name that is too long: its head is a prefix shared by many.
fn cut(name: &str, room: usize) -> String {
    let length = name.chars().count();
    if length <= room {
        return name.to_string();
    }
    let tail: String = name.chars().skip(length - room.saturating_sub(1)).collect();
    if room == 0 { String::new() } else { format!("…{tail}") }
}

/// A duration in whole seconds or minutes.
fn short(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(width: usize) -> String {
        let progress = Progress {
            total: 64,
            done: 12,
            name: "tls::handshake_tickets::ring_1_3_rsa_aes".into(),
            each: Duration::from_secs(2),
            ..Progress::default()
        };
        progress.text(Duration::from_secs(1), width)
    }

    #[test]
    fn says_which_how_many_and_how_long() {
        let text = line(99);
        assert_eq!(text, "[13/64] tls::handshake_tickets::ring_1_3_rsa_aes 1 s, about 2 min left");
    }

    #[test]
    fn is_never_wider_than_the_terminal() {
        for width in 0..100 {
            assert!(line(width).chars().count() <= width, "{width}: {}", line(width));
        }
        assert!(line(50).contains("…"), "{}", line(50));
    }

    #[test]
    fn a_command_says_what_it_does() {
        let say = |of, width| doing("reading records", (1_200, of), Duration::from_secs(3), width);
        assert_eq!(say(20_000, 80), "[1,200/20,000] reading records 3 s");
        assert_eq!(say(0, 80), "reading records 3 s");
        for width in 0..40 {
            assert!(say(20_000, width).chars().count() <= width.saturating_sub(1));
        }
    }

    #[test]
    fn erases_once() {
        let mut progress = Progress::default();
        assert_eq!(progress.erase(), "");
        assert!(progress.draw(40).starts_with(ERASE));
        assert_eq!(progress.erase(), ERASE);
        assert_eq!(progress.erase(), "");
    }
}
