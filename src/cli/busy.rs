//! A line that says what a command does, once it takes longer than a second
//! and where there is a terminal to see it.
//!
//! The work only counts; a thread of its own draws, so that a step that is one
//! long call shows the time that it takes, too.
//! Neighbours: `progress` is the text, `term` writes it; `report` and `merge` work.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::progress::doing;
use super::term::{Color, Term};

/// What is over sooner needs no line.
const SOON: Duration = Duration::from_secs(1);

/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(100);

/// Work that goes on. Dropping it takes the line away.
#[derive(Debug)]
pub struct Busy {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    done: AtomicUsize,
    /// What is done, and of how many; 0 where that is not known.
    what: Mutex<(String, usize)>,
    ended: (Mutex<bool>, Condvar),
}

impl Busy {
    /// Begins.
    pub fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let term = Term::new(Color::Auto, dumb, true);
        let state = Arc::new(State::default());
        let draws = Arc::clone(&state);
        let thread = term.has_progress().then(|| {
            std::thread::Builder::new().name("progress".into()).spawn(move || draw(&draws, term)).ok()
        });
        Self { state, thread: thread.flatten() }
    }

    /// Begins the next step; `of` is how many things it goes through, 0 when that is not known.
    pub fn step(&self, what: &str, of: usize) {
        *self.state.what.lock().unwrap_or_else(PoisonError::into_inner) = (what.to_string(), of);
        self.state.done.store(0, Relaxed);
    }

    /// One more is done.
    pub fn one(&self) {
        self.state.done.fetch_add(1, Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.state.ended.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.ended.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing but the line, which is gone either way.
            let _ = thread.join();
        }
    }
}

/// Draws until the work has ended.
fn draw(state: &State, mut term: Term) {
    let began = Instant::now();
    let mut ended = state.ended.0.lock().unwrap_or_else(PoisonError::into_inner);
    while !*ended {
        if began.elapsed() >= SOON {
            let (what, of) = state.what.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let done = state.done.load(Relaxed);
            term.line(|width| doing(&what, (done, of), began.elapsed(), width));
        }
        let waited = state.ended.1.wait_timeout(ended, EVERY);
        ended = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    term.erase();
}
