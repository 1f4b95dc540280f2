//! The meters under Valgrind on a thread of their own, so that the main
//! thread can hear signals while children run.
//!
//! Neighbours: `runner` asks for one outcome after the other.

use std::sync::mpsc::{self, Sender};
use std::thread;

use super::body::{Verdict, message};
use super::watch::{Ticket, Waited, Watch};
use crate::error::{Error, Kind, Result};
use crate::measure::Failure;
use crate::measure::valgrind::Counter;
use crate::plan::Plan;
use crate::scenario::Scenario;

type Order = (&'static Scenario, Ticket<Verdict>);

/// The counter, behind its thread.
pub struct Counting {
    orders: Sender<Order>,
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
        thread::Builder::new().name("counter".into()).spawn(work).map_err(|error| {
            Error::new(Kind::Missing, "a thread for the meter cannot be started").source(error)
        })?;
        Ok(match watch.wait::<Result<()>>(None, &mut || ()) {
            Waited::Done(started) => Waited::Done(started.map(|()| Self { orders })?),
            Waited::TimedOut => Waited::TimedOut,
            Waited::Interrupted(signal) => Waited::Interrupted(signal),
        })
    }

    /// Asks for the outcome of one of the selected scenarios.
    pub fn order(&self, scenario: &'static Scenario, ticket: Ticket<Verdict>) {
        if let Err(mpsc::SendError((_, ticket))) = self.orders.send((scenario, ticket)) {
            ticket.done(Err(Failure::Failed("the meter under Valgrind has ended early".into())));
        }
    }
}

fn measure(counter: &mut Counter, scenario: &Scenario) -> Verdict {
    let measure = std::panic::AssertUnwindSafe(|| counter.measure(scenario));
    std::panic::catch_unwind(measure).unwrap_or_else(|panic| Err(Failure::Panicked(message(&*panic))))
}
