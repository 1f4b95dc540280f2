//! The meters under Valgrind on a thread of their own, so that the main
//! thread can hear signals while children run.
//!
//! Neighbours: `runner` asks for one outcome after the other.

use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use super::body::{Verdict, message};
use super::watch::{Ticket, Waited, Watch};
use crate::error::{Error, Kind, Result};
use crate::measure::Failure;
use crate::measure::valgrind::{self, Counter};
use crate::plan::Plan;
use crate::scenario::Scenario;

type Order = (&'static Scenario, Ticket<Verdict>);

/// The counter, behind its thread.
pub struct Counting {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Counting {
    /// Ends all children and the counter with its scratch files, whatever it is doing.
    fn drop(&mut self) {
        self.orders = None;
        valgrind::kill_all();
        // A counter that panicked has said so already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Counting {
    /// Probes Valgrind and starts the children of `selected`, in that order.
    /// A signal that comes meanwhile gives `Interrupted`.
    ///
    /// # Errors
    /// Valgrind cannot be used.
    pub fn start(plan: &Plan, selected: Vec<&'static Scenario>, watch: &mut Watch) -> Result<Waited<Self>> {
        let (orders, queue) = mpsc::channel::<Order>();
        let ready = watch.ticket::<Result<()>>();
        let plan = plan.clone();
        let work = move || match Counter::start(&plan, &selected) {
            Err(error) => ready.done(Err(error)),
            Ok(mut counter) => {
                ready.done(Ok(()));
                for (scenario, ticket) in queue {
                    ticket.done(measure(&mut counter, scenario));
                }
            }
        };
        let thread = thread::Builder::new().name("counter".into()).spawn(work).map_err(|error| {
            Error::new(Kind::Missing, "a thread for the meter cannot be started").source(error)
        })?;
        // Dropped, and so ended, when a signal comes before it is ready.
        let counting = Self { orders: Some(orders), thread: Some(thread) };
        Ok(match watch.wait::<Result<()>>(None, &mut || ()) {
            Waited::Done(started) => Waited::Done(started.map(|()| counting)?),
            Waited::TimedOut => Waited::TimedOut,
            Waited::Interrupted(signal) => Waited::Interrupted(signal),
        })
    }

    /// Asks for the outcome of one of the selected scenarios.
    pub fn order(&self, scenario: &'static Scenario, ticket: Ticket<Verdict>) {
        let order = (scenario, ticket);
        let refused = match &self.orders {
            Some(orders) => orders.send(order).err().map(|mpsc::SendError(order)| order),
            None => Some(order),
        };
        if let Some((_, ticket)) = refused {
            ticket.done(Err(Failure::Failed("the meter under Valgrind has ended early".into())));
        }
    }
}

fn measure(counter: &mut Counter, scenario: &Scenario) -> Verdict {
    let measure = std::panic::AssertUnwindSafe(|| counter.measure(scenario));
    std::panic::catch_unwind(measure).unwrap_or_else(|panic| Err(Failure::Panicked(message(&*panic))))
}
