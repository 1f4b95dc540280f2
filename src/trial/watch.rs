//! Waits for one thing at a time: the trial that runs (or the lock that is
//! taken), its deadline, or a signal, whichever comes first.
//!
//! Neighbours: `runner` waits for trials, `flow` for the lock.

use std::any::Any;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use crate::error::{Error, Kind, Result};
use crate::sys;

/// How often a waiting run says where it is.
const TICK: Duration = Duration::from_millis(500);

enum Message {
    Signal(i32),
    /// The work with this ticket has ended; what it gave.
    Done(u64, Box<dyn Any + Send>),
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited<T> {
    /// With what was waited for.
    Done(T),
    /// The deadline passed first.
    TimedOut,
    /// A signal came first.
    Interrupted(i32),
}

/// The place where all messages to the main thread arrive.
pub struct Watch {
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    ticket: u64,
    interrupted: Option<i32>,
    ticks: bool,
}

/// Ends a wait from another thread.
pub struct Ticket<T> {
    number: u64,
    sender: Sender<Message>,
    kind: std::marker::PhantomData<fn(T)>,
}

impl<T: Send + 'static> Ticket<T> {
    /// Another ticket for the same wait: whichever is used first ends it.
    pub fn twin(&self) -> Self {
        Self { number: self.number, sender: self.sender.clone(), kind: std::marker::PhantomData }
    }

    /// What was waited for. Nothing happens when nobody waits any more.
    pub fn done(self, value: T) {
        let _ = self.sender.send(Message::Done(self.number, Box::new(value)));
    }
}

impl Watch {
    /// A watch that listens to signals; with `ticks`, waits say where they are.
    ///
    /// # Errors
    /// The signal handlers cannot be set.
    pub fn new(ticks: bool) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let signals = sender.clone();
        let first = move |signal| drop(signals.send(Message::Signal(signal)));
        sys::watch(first)
            .map_err(|error| Error::new(Kind::Missing, "signals cannot be handled").source(error))?;
        Ok(Self { sender, receiver, ticket: 0, interrupted: None, ticks })
    }

    /// A ticket for the next wait. Tickets of earlier waits are void from here on.
    pub fn ticket<T>(&mut self) -> Ticket<T> {
        self.ticket += 1;
        Ticket { number: self.ticket, sender: self.sender.clone(), kind: std::marker::PhantomData }
    }

    /// The signal that has come, if one has.
    pub fn interrupted(&mut self) -> Option<i32> {
        while let Ok(message) = self.receiver.try_recv() {
            self.note(&message);
        }
        self.interrupted
    }

    /// Waits for the last ticket, no longer than until `deadline`. `tick` is
    /// called from time to time while nothing happens.
    pub fn wait<T: 'static>(&mut self, deadline: Option<Instant>, tick: &mut dyn FnMut()) -> Waited<T> {
        loop {
            if let Some(signal) = self.interrupted {
                return Waited::Interrupted(signal);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Waited::TimedOut;
            }
            let pause = if self.ticks { TICK } else { Duration::MAX }.min(left.unwrap_or(Duration::MAX));
            let message = match self.receive(pause) {
                Some(message) => message,
                None => {
                    tick();
                    continue;
                }
            };
            self.note(&message);
            if let Message::Done(number, value) = message
                && number == self.ticket
                && let Ok(value) = value.downcast()
            {
                return Waited::Done(*value);
            }
        }
    }

    /// The next message within `pause`.
    fn receive(&self, pause: Duration) -> Option<Message> {
        if pause == Duration::MAX {
            return self.receiver.recv().ok();
        }
        self.receiver.recv_timeout(pause).ok()
    }

    fn note(&mut self, message: &Message) {
        if let Message::Signal(signal) = message {
            self.interrupted = Some(*signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        let (sender, receiver) = mpsc::channel();
        Watch { sender, receiver, ticket: 0, interrupted: None, ticks: false }
    }

    #[test]
    fn waits_for_the_last_ticket_only() {
        let mut watch = watch();
        let old = watch.ticket::<u32>();
        let new = watch.ticket::<u32>();
        old.done(1);
        new.done(2);
        assert_eq!(watch.wait::<u32>(None, &mut || ()), Waited::Done(2));
    }

    #[test]
    fn a_deadline_and_a_signal_end_the_wait() {
        let mut watch = watch();
        let _ticket = watch.ticket::<u32>();
        let past = Instant::now();
        assert_eq!(watch.wait::<u32>(Some(past), &mut || ()), Waited::TimedOut);
        watch.sender.send(Message::Signal(15)).expect("a receiver");
        assert_eq!(watch.wait::<u32>(None, &mut || ()), Waited::Interrupted(15));
        assert_eq!(watch.interrupted(), Some(15));
    }
}
