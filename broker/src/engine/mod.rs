//! The engine: the use cases of the broker, one per file. It decides inside transactions of the
//! store and knows no wire format and no SQL.
//!
//! Invariant: every change of state happens in one `store.write`, and waiters are notified of it
//! after the commit.

pub mod action;
pub mod approval;
pub mod background;
pub mod declared;
pub mod directories;
pub mod error;
pub mod first;
pub mod heartbeat;
pub mod launch;
pub mod mail;
pub mod memory;
pub mod operator;
pub mod permit;
pub mod presence;
pub mod rate;
pub mod sandboxes;
pub mod schedule;
pub mod start;
pub mod sweep;
pub mod trace;
pub mod turn;
pub mod wait;

mod actor;
mod keys;
mod once;
mod refused;
mod restored;
mod token;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use hive_core::action::Actions;
use hive_core::limits::Limits;
use hive_core::time::WallTime;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::hints::Hints;
use crate::store::Store;
use crate::store::turn_events::TurnEvents;
pub use actor::Actor;
use background::Background;
use directories::Directories;
pub use error::Refusal;
use heartbeat::Heartbeats;
use mail::handover::Handovers;
use mail::search::Searching;
use mail::stream::Streams;
use memory::Memory;
use operator::backup::Checking;
use operator::login::Logins;
use presence::Presences;
use rate::Buckets;
use refused::Refusals;
use sandboxes::Sandboxes;

/// The configuration of the hive as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name of the hive; empty if none.
    pub hive_name: String,
    /// Domain of the hive; empty if none.
    pub hive_domain: String,
    /// Swarm of the hive; empty if none.
    pub swarm_name: String,
    /// Pronouns of the operator; empty for the default.
    pub operator_pronouns: String,
    /// Whether the operator accepts agents that are not isolated.
    pub isolation_accepted: bool,
    /// The units of the host whose journal agents may read, if their policy lets them.
    pub journal_units: Vec<String>,
}

/// The parts of an engine.
#[derive(Debug)]
pub struct Parts {
    /// The store of the mail.
    pub store: Store,
    /// The live turn lines.
    pub turn_events: Arc<TurnEvents>,
    /// The memory that the store's commits change.
    pub memory: Arc<Memory>,
    /// The clock of the broker.
    pub clock: Arc<dyn Clock>,
    /// The limits of the hive.
    pub limits: Limits,
    /// The hive's name for itself.
    pub identity: Identity,
    /// The actions that agents may ask for.
    pub actions: Actions,
    /// The agents' state directories on this host.
    pub directories: Directories,
    /// What is known of the agents' sandboxes.
    pub sandboxes: Arc<Sandboxes>,
}

/// The engine of a broker.
#[derive(Debug)]
pub struct Engine {
    store: Store,
    turn_events: Arc<TurnEvents>,
    memory: Arc<Memory>,
    hints: Arc<Hints>,
    clock: Arc<dyn Clock>,
    limits: Arc<Limits>,
    identity: Identity,
    journal_units: Arc<[String]>,
    actions: Arc<Actions>,
    directories: Directories,
    presences: Arc<Presences>,
    sandboxes: Arc<Sandboxes>,
    buckets: Arc<Buckets>,
    heartbeats: Heartbeats,
    logins: Arc<Logins>,
    refusals: Refusals,
    background: Background,
    searching: Searching,
    checking: Checking,
    handovers: Arc<Handovers>,
    delivery_streams: Arc<Streams>,
    draining: CancellationToken,
    lines: tokio::sync::watch::Sender<u64>,
    /// The cursor at which the next step of retention begins.
    retention: std::sync::Mutex<Option<crate::store::retention::Cursor>>,
    keys: Arc<keys::Keys>,
    start_time: WallTime,
    /// The identity of the event log.
    log_id: Arc<str>,
    /// Whether anything was leased when the engine started.
    leases_were_held: bool,
}

impl Engine {
    /// Returns the limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the agents' state directories.
    #[must_use]
    pub fn directories(&self) -> &Directories {
        &self.directories
    }

    /// Returns the hive's name for itself.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the sandboxes of the agents.
    #[must_use]
    pub fn sandboxes(&self) -> &Arc<Sandboxes> {
        &self.sandboxes
    }

    /// Returns the hints of the waiters.
    #[must_use]
    pub fn hints(&self) -> &Arc<Hints> {
        &self.hints
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the identity of the event log.
    #[must_use]
    pub fn log_id(&self) -> &str {
        &self.log_id
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns when this broker started.
    #[must_use]
    pub fn start_time(&self) -> WallTime {
        self.start_time
    }

    /// Returns the token that is cancelled once the broker shuts down.
    #[must_use]
    pub fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// Refuses new work from now on; waiting calls end with the same refusal.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    fn check_open(&self) -> Result<(), Refusal> {
        if self.draining.is_cancelled() { Err(Refusal::Draining) } else { Ok(()) }
    }
}
