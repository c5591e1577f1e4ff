//! What a launcher has to carry out: how each agent is wanted.
//!
//! Invariant: a step reads a few rows for each agent that it is about, however many there are.

use std::sync::Arc;

use hive_core::agent::Wanted;
use hive_core::time::BootTime;

use super::leave::{Work, work};
use crate::engine::{Engine, Refusal};
use crate::launches::Launcher;
use crate::store::agent::{self, AgentRow};
use crate::store::{AgentKey, purge};

/// How an agent is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The agent.
    pub key: AgentKey,
    /// The name, unique among the active agents.
    pub name: String,
    /// How it is wanted.
    pub wanted: Wanted,
    /// How many restarts were requested.
    pub restart_count: u64,
    /// Whether there is work for it, and no harness.
    pub start_now: bool,
    /// When there may be work, if it runs on demand and has no harness.
    pub look_again: Option<BootTime>,
}

/// Agents of one step.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Those that are wanted in some way.
    pub listed: Vec<Listed>,
    /// Those that were retired or purged, with their names.
    pub gone: Vec<(AgentKey, String)>,
}

impl Engine {
    /// Attaches a launcher, until the value is dropped; `None` if another one is attached.
    pub fn attach_launcher(&self) -> Option<Launcher> {
        self.hints.launches.attach()
    }

    /// Returns whether a launcher is attached.
    #[must_use]
    pub fn has_launcher(&self) -> bool {
        self.hints.launches.is_attached()
    }

    /// Returns the keys of active agents by name, after a name, with the last name.
    pub async fn agents_after(
        &self,
        after: String,
        rows: u32,
    ) -> Result<(Vec<AgentKey>, Option<String>), Refusal> {
        self.store
            .read(move |conn, _| {
                let rows = agent::page(conn, &after, false, rows)?;
                let last = rows.last().map(|row| row.name.clone());
                Ok((rows.into_iter().map(|row| row.key).collect(), last))
            })
            .await
    }

    /// Returns how these agents are wanted, and tells the launcher who sleeps.
    pub async fn list_wanted(
        &self,
        launcher: &Launcher,
        keys: Vec<AgentKey>,
    ) -> Result<Listing, Refusal> {
        let presences = Arc::clone(&self.presences);
        // In the writer, which knows of each delivery how it is. Nothing is written.
        let listing = self
            .store
            .write(move |tx| {
                let mut listing = Listing::default();
                for key in keys.into_iter().filter(|key| *key != AgentKey::OPERATOR) {
                    let row = agent::by_key(tx, key)?;
                    if row.retired {
                        listing.gone.push((key, agent::name_of(tx, key)?));
                        continue;
                    }
                    let sleeps = row.wanted() == Wanted::OnDemand && !presences.is_live_in(tx, key);
                    let work = if sleeps { work(tx, &row)? } else { Work::None };
                    listing.listed.push(listed(&row, work));
                }
                Ok::<_, Refusal>(listing)
            })
            .await?;
        for one in &listing.listed {
            // A harness that attaches or ends after this is a change.
            let is_asleep = !self.presences.is_live(one.key);
            launcher.known(one.key, (one.wanted == Wanted::OnDemand).then_some(is_asleep));
        }
        for (key, _) in &listing.gone {
            launcher.known(*key, None);
        }
        Ok(listing)
    }

    /// Returns all purges whose directories are not deleted yet.
    pub async fn all_purges(&self) -> Result<Vec<purge::PurgeRow>, Refusal> {
        self.store.read(move |conn, _| Ok(purge::after(conn, 0, u32::MAX)?)).await
    }
}

fn listed(row: &AgentRow, work: Work) -> Listed {
    Listed {
        key: row.key,
        name: row.name.clone(),
        wanted: row.wanted(),
        restart_count: row.restart_count,
        start_now: work == Work::Now,
        look_again: match work {
            Work::At(time) => Some(time),
            Work::Now | Work::None => None,
        },
    }
}
