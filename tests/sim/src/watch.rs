//! The watch: while the run lasts, no waiter may wait while its mail is ready.
//!
//! Silent: while the broker is down or its disk is bad, and about agents that were parked or
//! stopped a moment ago. Invariant: it reads, and sends no hints.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hive_core::delivery::State;

use crate::serve::{caller, name};
use crate::world::World;

/// Maximum time that ready mail may stay unserved while a waiter waits for it, in ms. Parks that
/// end by the wall clock are noticed within a minute.
const PATIENCE: u64 = 2_000;
/// The period between checks, in ms.
const PERIOD: u64 = 60_000;

/// The waiters at the broker: by their call.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: BTreeMap<u64, String>,
}

impl World {
    /// Registers a call that reached the broker and may wait; it is a waiter until the result is
    /// dropped.
    pub(crate) fn waits(self: &Rc<Self>, call: u64, agent: &str) -> Waits {
        self.waiters.borrow_mut().waiting.insert(call, agent.to_owned());
        Waits { world: Rc::clone(self), call }
    }

    /// Checks all waiters once per period.
    pub(crate) async fn watch(self: Rc<Self>) {
        let parked = Cell::new(BTreeSet::new());
        while !self.finished.get() {
            // A park that the last check did not see may have ended a moment ago.
            if self.calm > 1 {
                self.sleep(PERIOD * (self.calm - 1)).await;
                parked.set(self.unserved().await.1);
            }
            self.sleep(PERIOD).await;
            let before = parked.take();
            let (first, now_parked) = self.unserved().await;
            if !first.is_empty() {
                self.sleep(PATIENCE).await;
                let idles = self.idles.get();
                self.sleep(PATIENCE).await;
                let (second, _) = self.unserved().await;
                // Time that passed without a poll of any task does not count.
                if self.idles.get() > idles + 1 {
                    for (call, agent, message) in second.intersection(&first) {
                        if !before.contains(agent) && !now_parked.contains(agent) {
                            self.wrong(format!(
                                "Liveness: call {call} waits for mail of {agent}, and message {message} is there"
                            ));
                        }
                    }
                }
            }
            parked.set(now_parked);
        }
    }

    /// Returns the waiters with due mail, and the parked and stopped agents.
    async fn unserved(&self) -> (BTreeSet<(u64, String, u64)>, BTreeSet<String>) {
        let (mut found, mut parked) = (BTreeSet::new(), BTreeSet::new());
        let waiting = self.waiters.borrow().waiting.clone();
        let Some((broker, engine)) = self.serving() else { return (found, parked) };
        if broker.is_faulted() || self.host.is_bad() {
            return (found, parked);
        }
        for (call, agent) in waiting {
            let Ok(seen) = engine.get_agent(name(&agent)).await else { continue };
            if seen.park.is_some() || seen.stopped {
                parked.insert(agent);
                continue;
            }
            if seen.ready_count == 0 {
                continue;
            }
            let wall = engine.clock().now().wall;
            let listed = engine
                .list_deliveries(caller("operator"), agent.clone(), vec![State::Ready], None, 50)
                .await;
            let Ok((deliveries, _)) = listed else { continue };
            let due = deliveries
                .iter()
                .find(|delivery| delivery.not_before.is_none_or(|time| time < wall));
            if let Some(delivery) = due {
                found.insert((call, agent, delivery.message.id.get()));
            }
        }
        (found, parked)
    }
}

/// A registered waiter.
#[derive(Debug)]
pub(crate) struct Waits {
    world: Rc<World>,
    call: u64,
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.world.waiters.borrow_mut().waiting.remove(&self.call);
    }
}
