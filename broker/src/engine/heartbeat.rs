//! Heartbeats of agents: at each due time an idle agent gets a notice that asks it to look after
//! its own work.
//!
//! The due times are in memory alone, and begin again with each broker: what was due while none ran
//! is not sent later. Invariants: a due time sends at most one notice while a broker runs,
//! whichever way the clock jumps, and an agent with work that is not settled gets none. While
//! nothing is due, a sweep costs the same for any number of agents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hive_core::heartbeat::{APART_MAX, Heartbeat};
use hive_core::limits::Limits;
use hive_core::message::SystemKind;
use hive_core::name::AgentName;
use hive_core::time::WallTime;

use crate::engine::mail::notice::{self, Notice};
use crate::engine::{Engine, Refusal};
use crate::store::{Tx, agent as agents, inbox, turn as turns};

/// Most agents that one step looks at, so that it never stalls a send.
const STEP_AGENTS: usize = 50;
/// The text of the notice.
const BODY: &str = "Your heartbeat: do what the file HEARTBEAT.md in your working directory says. If nothing in it is due, nothing needs to be done.";

/// The declared heartbeats, with their next due times.
#[derive(Debug, Default)]
pub struct Heartbeats(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    agents: BTreeMap<AgentName, Entry>,
    /// The next due times in their order, each with its agent.
    due: BTreeSet<(WallTime, AgentName)>,
}

#[derive(Debug)]
struct Entry {
    heartbeat: Heartbeat,
    /// Its next due time, as in [`Table::due`].
    next: Option<WallTime>,
}

impl Heartbeats {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the heartbeats. One that is the same as before keeps its next due time.
    fn declare(&self, declared: BTreeMap<AgentName, Heartbeat>, now: WallTime) {
        let mut table = self.table();
        let mut before = std::mem::take(&mut *table).agents;
        for (agent, heartbeat) in declared {
            let next = match before.remove(&agent) {
                Some(entry) if entry.heartbeat == heartbeat => entry.next,
                Some(_) | None => heartbeat.next(now),
            };
            table.due.extend(next.map(|next| (next, agent.clone())));
            table.agents.insert(agent, Entry { heartbeat, next });
        }
    }

    /// Returns a step of the agents whose heartbeats are due, each with the due time.
    fn due(&self, now: WallTime) -> Vec<(WallTime, AgentName)> {
        let mut table = self.table();
        table.correct(now);
        table.due.iter().take_while(|(due, _)| *due <= now).take(STEP_AGENTS).cloned().collect()
    }

    /// Returns the agents of a step whose window of the day has not passed in the meantime, as
    /// after a jump of the clock.
    fn in_time(&self, step: &[(WallTime, AgentName)], now: WallTime) -> Vec<AgentName> {
        let table = self.table();
        let is_in_time = |agent: &&AgentName| {
            table.agents.get(*agent).is_some_and(|entry| entry.heartbeat.contains(now))
        };
        step.iter().map(|(_, agent)| agent).filter(is_in_time).cloned().collect()
    }

    /// Sets the due times after those of a step, unless a reload has changed them. Due times that
    /// have passed by now are left out.
    fn passed(&self, step: Vec<(WallTime, AgentName)>, now: WallTime) {
        let mut table = self.table();
        for (due, agent) in step {
            if table.agents.get(&agent).is_some_and(|entry| entry.next == Some(due)) {
                table.set(&agent, now);
            }
        }
    }

    /// Returns the next due time of all.
    fn next(&self) -> Option<WallTime> {
        self.table().due.first().map(|(due, _)| *due)
    }
}

impl Table {
    /// Computes the next due time of an agent after a time.
    fn set(&mut self, agent: &AgentName, after: WallTime) {
        let Some(entry) = self.agents.get_mut(agent) else { return };
        if let Some(old) = entry.next {
            self.due.remove(&(old, agent.clone()));
        }
        entry.next = entry.heartbeat.next(after);
        self.due.extend(entry.next.map(|next| (next, agent.clone())));
    }

    /// Computes again the due times that are further away than any can be. A clock that was set
    /// back by days has shown a time that never was, and they followed that one.
    fn correct(&mut self, now: WallTime) {
        while let Some((_, agent)) =
            self.due.last().filter(|(due, _)| due.since(now) > APART_MAX).cloned()
        {
            self.set(&agent, now);
        }
    }
}

impl Engine {
    /// Sets the heartbeats of the agents of the file to its present content.
    pub fn declare_heartbeats(&self, declared: BTreeMap<AgentName, Heartbeat>) {
        self.heartbeats.declare(declared, self.clock.now().wall);
        self.hints.wall_due.notify_one();
    }

    /// Sends the heartbeats that are due to agents that are idle; returns when the next one is due.
    pub async fn sweep_heartbeats(&self) -> Result<Option<WallTime>, Refusal> {
        let now = self.clock.now().wall;
        let step = self.heartbeats.due(now);
        if step.is_empty() {
            return Ok(self.heartbeats.next());
        }
        let agents = self.heartbeats.in_time(&step, now);
        if !agents.is_empty() {
            let limits = Arc::clone(&self.limits);
            self.store
                .write(move |tx| {
                    agents.iter().try_for_each(|agent| send_if_idle(tx, &limits, agent))
                })
                .await?;
        }
        // Afterwards: what an aborted batch did not send is still due.
        self.heartbeats.passed(step, now);
        Ok(self.heartbeats.next())
    }
}

/// Sends a heartbeat to an agent, if it is idle: it can work, and has none.
fn send_if_idle(tx: &Tx<'_>, limits: &Limits, agent: &AgentName) -> Result<(), Refusal> {
    let Some(me) = agents::by_name(tx, agent.as_str())? else { return Ok(()) };
    if me.retired || me.stopped || me.parked(tx.now).is_some() {
        return Ok(());
    }
    let counts = inbox::get(tx, me.key)?;
    if counts.ready_count > 0 || counts.leased_count > 0 || !turns::open_all(tx, me.key)?.is_empty()
    {
        return Ok(());
    }
    notice::send(tx, limits, Notice::about(&me.name, me.key, SystemKind::Heartbeat, BODY))?;
    Ok(())
}
