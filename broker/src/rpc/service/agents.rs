//! The watch of agents, a part of `TopologyService`.
//!
//! Invariant: a change costs a watch a few rows, however many agents there are. The end of a park
//! is no change of a row, so the watch waits for the ends of the parks that it has shown.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use hive_core::time::WallTime;
use hive_proto::convert::IntoWire;
use hive_proto::v1;
use hive_proto::v1::watch_agents_response::Step;
use tokio::time::Instant;

use super::watching::{self, Out, Told};
use crate::engine::operator::view::bytes_of;
use crate::engine::operator::watched::{ChangedAgents, Keyed};
use crate::engine::{Engine, Refusal};
use crate::store::AgentKey;

/// Agents that are read at once.
const WATCH_ROWS: u32 = 64;
/// The shortest wait for the end of a park: clocks may differ by a little.
const PARK_WAIT_MIN: Duration = Duration::from_secs(1);

/// What a watcher knows.
#[derive(Debug)]
struct Watcher<'e> {
    engine: &'e Engine,
    scope: Option<AgentKey>,
    /// Agents that it was shown, and when their parks end.
    shown: HashMap<AgentKey, Option<Instant>>,
    /// The same ends, the earliest first.
    ends: BTreeSet<(Instant, AgentKey)>,
}

impl Watcher<'_> {
    /// Notes agents that are shown; returns them without their keys.
    fn show(&mut self, agents: Keyed) -> Vec<hive_core::agent::Agent> {
        let now = self.engine.clock().now().wall;
        let shown = agents.into_iter().map(|(key, agent)| {
            let until = agent.park.as_ref().and_then(|park| park.until);
            let end = until.map(|until| Instant::now() + wait_for(until, now));
            self.forget(key);
            self.shown.insert(key, end);
            self.ends.extend(end.map(|end| (end, key)));
            agent
        });
        shown.collect()
    }

    /// Forgets an agent; returns whether it was shown.
    fn forget(&mut self, key: AgentKey) -> bool {
        let known = self.shown.remove(&key);
        if let Some(Some(end)) = known {
            self.ends.remove(&(end, key));
        }
        known.is_some()
    }

    /// Returns when the next park ends.
    fn next_end(&self) -> Option<Instant> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Adds the agents whose parks have ended.
    fn add_ended(&self, keys: &mut Vec<AgentKey>) {
        let now = Instant::now();
        let ended = self.ends.iter().take_while(|(end, _)| *end <= now).map(|(_, key)| *key);
        let changed: HashSet<AgentKey> = keys.iter().copied().collect();
        keys.extend(ended.filter(|key| !changed.contains(key)));
    }

    /// Reads changed agents; returns the ones that are shown, and the names of those that left.
    async fn read(
        &mut self,
        keys: Vec<AgentKey>,
    ) -> Result<(Vec<hive_core::agent::Agent>, Vec<String>), Refusal> {
        let ChangedAgents { shown, others } = self.engine.agents_changed(self.scope, keys).await?;
        let mut gone = Vec::new();
        for (key, name) in others {
            if self.forget(key) {
                gone.push(name);
            }
        }
        Ok((self.show(shown), gone))
    }
}

/// Returns how long to wait for the end of a park.
fn wait_for(until: WallTime, now: WallTime) -> Duration {
    let ms = u64::try_from(until.0.saturating_sub(now.0)).unwrap_or_default();
    Duration::from_millis(ms).max(PARK_WAIT_MIN)
}

fn wire(agents: Vec<hive_core::agent::Agent>) -> Vec<v1::Agent> {
    agents.into_iter().map(IntoWire::into_wire).collect()
}

/// Waits until a time; forever without one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Sends the snapshot, then changed agents, until the watcher disconnects or the broker ends.
pub(super) async fn watch(
    engine: &Engine,
    scope: Option<AgentKey>,
    out: &Out<v1::WatchAgentsResponse>,
) -> Result<(), Refusal> {
    let send =
        async |step| out.send(Ok(v1::WatchAgentsResponse { step: Some(step) })).await.is_ok();
    let (mut changed, mut log) = (engine.hints().changes.subscribe(), engine.hints().last_event());
    // Read before the agents: they include everything up to here.
    drop(log.borrow_and_update());
    let begin = engine.hints().noted_event();
    let mut place = *changed.borrow_and_update();
    let mut watcher = Watcher { engine, scope, shown: HashMap::new(), ends: BTreeSet::new() };
    let part = |agents, complete| {
        let log_id = engine.log_id().to_owned();
        let agents = wire(agents);
        Step::Snapshot(v1::AgentSnapshot { agents, complete, log_id, sequence: begin })
    };
    let mut after = String::new();
    loop {
        let agents = engine.agents_now(scope, after, WATCH_ROWS).await?;
        let Some((_, last)) = agents.last() else { break };
        after = last.name.to_string();
        for agents in watching::parts(watcher.show(agents), bytes_of) {
            if !send(part(agents, false)).await {
                return Ok(());
            }
        }
    }
    if !send(part(Vec::new(), true)).await {
        return Ok(());
    }
    let mut told = Told::new(begin);
    loop {
        drop(changed.borrow_and_update());
        // Read before the journal, which has every change up to it.
        drop(log.borrow_and_update());
        let position = engine.hints().noted_event();
        let (mut keys, next) = engine.changes_after(place, WATCH_ROWS as usize)?;
        let more = keys.len() == WATCH_ROWS as usize;
        watcher.add_ended(&mut keys);
        place = next;
        let (agents, gone) = watcher.read(keys).await?;
        if !agents.is_empty() || !gone.is_empty() {
            let known = told.sequence();
            let mut gone = Some(gone);
            let mut parts = watching::parts(agents, bytes_of).into_iter().peekable();
            while let Some(agents) = parts.next() {
                // Only the last part has everything up to the new position.
                let sequence = if more || parts.peek().is_some() { known } else { position };
                let gone = gone.take().unwrap_or_default();
                let batch = v1::AgentBatch { agents: wire(agents), gone, sequence };
                if !send(Step::Batch(batch)).await {
                    return Ok(());
                }
            }
            if !more {
                told = Told::new(position);
            }
        } else if told.is_overdue(position) {
            if !send(Step::Progress(watching::progress(engine, position))).await {
                return Ok(());
            }
            told = Told::new(position);
        }
        if more {
            continue;
        }
        let knows = told.sequence() == position;
        tokio::select! {
            changed = changed.changed() => if changed.is_err() { return Ok(()) },
            // Only until the log moves: then the minute begins.
            moved = log.changed(), if knows => if moved.is_err() { return Ok(()) },
            () = told.is_due(position) => {}
            () = until(watcher.next_end()) => {}
            () = out.closed() => return Ok(()),
            () = engine.draining().cancelled() => return Err(Refusal::Draining),
        }
    }
}
