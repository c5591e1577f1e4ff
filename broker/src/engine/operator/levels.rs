//! Levels: how full the inboxes are, and what the harnesses do, for metrics.
//!
//! Invariant: the fullest inboxes are named, so the cost of storing the numbers is bounded, however
//! many agents there are; the sums have all of them.

use std::sync::Arc;
use std::time::Duration;

use hive_core::agent::HarnessState;
use hive_core::park;
use hive_core::time::Now;

use crate::engine::{Engine, Refusal};
use crate::store::AgentKey;
use crate::store::level::{self, Level};

/// The numbers of an inbox, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Unsettled deliveries.
    pub unsettled: u64,
    /// Leased deliveries.
    pub leased: u64,
    /// The age of the oldest ready message; zero if there is none.
    pub oldest_ready: Duration,
}

impl Depth {
    fn add(&mut self, level: &Level) {
        self.unsettled += u64::from(level.unsettled);
        self.leased += u64::from(level.leased);
    }
}

/// The levels of a hive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The fullest inboxes with the names of their owners, the fullest one first.
    pub fullest: Vec<(String, Depth)>,
    /// All other inboxes together, and their number.
    pub others: (Depth, u64),
    /// Active agents by the state of their harness, for each state.
    pub states: Vec<(HarnessState, u64)>,
    /// Ready, leased and held deliveries of agents, and their dead letters.
    pub deliveries: [(&'static str, u64); 4],
}

/// Returns the state of an agent's harness, as others see it.
fn state(level: &Level, is_live: bool, now: Now) -> HarnessState {
    if level.stopped && !level.ends_turn {
        return HarnessState::Stopped;
    }
    match (level.parked(now), is_live) {
        (_, false) => HarnessState::Offline,
        (Some(cause), true) => park::state_of(cause),
        (None, true) => level.harness_state,
    }
}

impl Engine {
    /// Returns the levels, with so many inboxes by name.
    pub async fn levels(&self, named: usize) -> Result<Levels, Refusal> {
        let presences = Arc::clone(&self.presences);
        self.store
            .read(move |conn, now| {
                let mut levels = level::levels(conn)?;
                let mut states: Vec<_> =
                    HarnessState::ALL.iter().map(|state| (*state, 0)).collect();
                let (mut ready, mut leased) = (0, 0);
                let agents = levels.iter().filter(|level| level.key != AgentKey::OPERATOR);
                let live = presences.live();
                for level in agents {
                    let shown = state(level, live.contains(&level.key), now);
                    let count = states.iter_mut().find(|(state, _)| *state == shown);
                    count.into_iter().for_each(|(_, count)| *count += 1);
                    ready += u64::from(level.ready);
                    leased += u64::from(level.leased);
                }
                let (held, dead) = level::apart(conn)?;
                levels.sort_unstable_by(|a, b| {
                    b.unsettled.cmp(&a.unsettled).then_with(|| a.name.cmp(&b.name))
                });
                let rest = levels.split_off(named.min(levels.len()));
                let age = |oldest: Option<i64>| -> Result<Duration, Refusal> {
                    let Some(oldest) = oldest else { return Ok(Duration::ZERO) };
                    let accepted = level::accept_time(conn, oldest)?;
                    Ok(accepted.map_or(Duration::ZERO, |accepted| now.wall.since(accepted)))
                };
                let mut others = Depth::default();
                rest.iter().for_each(|level| others.add(level));
                // Numbers of messages are in the order of their acceptance.
                others.oldest_ready =
                    age(rest.iter().filter_map(|level| level.oldest_ready).min())?;
                let fullest = levels.into_iter().map(|level| {
                    let mut depth = Depth::default();
                    depth.add(&level);
                    depth.oldest_ready = age(level.oldest_ready)?;
                    Ok((level.name, depth))
                });
                Ok(Levels {
                    fullest: fullest.collect::<Result<_, Refusal>>()?,
                    others: (others, u64::try_from(rest.len()).unwrap_or(u64::MAX)),
                    states,
                    deliveries: [
                        ("ready", ready),
                        ("leased", leased),
                        ("held", held),
                        ("dead", dead),
                    ],
                })
            })
            .await
    }
}
