//! The engine: the use cases of the broker, one per file. It decides inside transactions of the
//! store and knows no wire format and no SQL.
//!
//! Invariant: every change of state happens in one `store.write`, and waiters are notified of it
//! after the commit.

pub mod background;
pub mod declared;
pub mod directories;
pub mod error;
pub mod first;
pub mod mail;
pub mod memory;
pub mod operator;
pub mod permit;
pub mod presence;
pub mod rate;
pub mod sandboxes;
pub mod sweep;
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

use hive_core::id::TurnId;
use hive_core::limits::Limits;
use hive_core::time::WallTime;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::hints::Hints;
use crate::store::PresenceChange;
use crate::store::search::Index;
use crate::store::turn_events::TurnEvents;
use crate::store::{Effect, Store, Tx, agent, lease, log, turn as turn_rows};
pub use actor::Actor;
use background::Background;
use directories::Directories;
pub use error::Refusal;
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
use turn::end::fence_turns_of_other_boots;

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
}

/// The parts of an engine.
#[derive(Debug)]
pub struct Parts {
    /// The store of the mail.
    pub store: Store,
    /// The live turn lines.
    pub turn_events: TurnEvents,
    /// The memory that the store's commits change.
    pub memory: Arc<Memory>,
    /// The clock of the broker.
    pub clock: Arc<dyn Clock>,
    /// The limits of the hive.
    pub limits: Limits,
    /// The hive's name for itself.
    pub identity: Identity,
    /// The agents' state directories on this host.
    pub directories: Directories,
}

/// What an engine has begun on.
enum Begun {
    /// The identity of the log, and its last event.
    Log(String, u64),
    /// A backup that has replaced the database, with its newest turn.
    Replaced(Option<TurnId>),
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
    directories: Directories,
    presences: Arc<Presences>,
    sandboxes: Arc<Sandboxes>,
    buckets: Arc<Buckets>,
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
}

impl Engine {
    /// Returns an engine that continues the state of the last broker: sessions and their turns live
    /// on, and get the whole grace time to come back.
    pub async fn start(parts: Parts) -> Result<Self, Refusal> {
        let Parts { store, turn_events, memory, clock, limits, identity, directories } = parts;
        let mut engine = Self {
            log_id: Arc::default(),
            presences: Arc::clone(&memory.presences),
            turn_events: Arc::new(turn_events),
            sandboxes: Arc::default(),
            buckets: Arc::default(),
            logins: Arc::default(),
            refusals: Refusals::default(),
            background: Background::default(),
            searching: Searching::new(Index::beside(store.path())),
            checking: Checking::default(),
            handovers: Arc::new(Handovers::new(Arc::clone(&memory.hints))),
            delivery_streams: Arc::new(Streams::new(Arc::clone(&memory.hints))),
            limits: Arc::new(limits),
            draining: CancellationToken::new(),
            lines: tokio::sync::watch::Sender::new(0),
            retention: std::sync::Mutex::default(),
            keys: Arc::clone(&memory.keys),
            start_time: clock.now().wall,
            store,
            hints: Arc::clone(&memory.hints),
            memory,
            clock,
            identity,
            directories,
        };
        let mut forgotten = false;
        let (log_id, last_event) = loop {
            match engine.begin(forgotten).await? {
                Begun::Log(log_id, last_event) => break (log_id, last_event),
                Begun::Replaced(newest) => {
                    engine.forget_replaced(newest).await?;
                    forgotten = true;
                }
            }
        };
        engine.log_id = log_id.into();
        engine.hints.set_last_event(last_event);
        Ok(engine)
    }

    /// Begins or continues the log, and fences what other boots left. A replaced database has to be
    /// forgotten first. One command, because a start waits for each.
    async fn begin(&self, forgotten: bool) -> Result<Begun, Refusal> {
        let (boot_id, limits) = (self.clock.boot_id().to_owned(), Arc::clone(&self.limits));
        let begin = move |tx: &Tx<'_>| {
            if !forgotten && log::backup_time(tx)?.is_some() {
                return Ok(Begun::Replaced(turn_rows::newest(tx)?));
            }
            agent::ensure_operator(tx)?;
            let log_id = restored::log_id(tx, &limits)?;
            if hive_fault::planted!(RequestForgotten) {
                crate::store::request::forget(tx)?;
            }
            for row in agent::active(tx)? {
                let boot_id = if hive_fault::planted!(RestartEndsTurns) { "" } else { &boot_id };
                fence_turns_of_other_boots(tx, &limits, &row, boot_id)?;
                if let Some(token) = row.session_token {
                    let since = if hive_fault::planted!(NoGrace) {
                        hive_core::time::BootTime(0)
                    } else {
                        tx.now.boot
                    };
                    let awaited =
                        PresenceChange::Awaited { epoch: row.session_epoch, token, now: since };
                    tx.after_commit(Effect::Presence(row.key, awaited));
                }
            }
            Ok::<_, Refusal>(Begun::Log(log_id, crate::store::event::span(tx)?.1))
        };
        self.store.write(begin).await
    }

    /// Notes that the broker serves from now on. The grace time of harnesses that were attached to
    /// the last broker begins here, and so do the leases of consumers. The time before was the
    /// broker's own, and may be long if the host is slow or was asleep.
    pub async fn ready(&self) -> Result<(), Refusal> {
        // The writer looks itself: its connection is there, and another one reads the whole schema.
        // Nothing is leased before the broker serves, so the last commit has all leases.
        let renew = |tx: &Tx<'_>| {
            if lease::are_held(tx)? {
                Ok::<_, Refusal>(lease::renew_consumer_leases(tx)?)
            } else {
                Ok(())
            }
        };
        self.store.write(renew).await?;
        if !hive_fault::planted!(NoGrace) {
            self.presences.serving(self.clock.now().boot);
        }
        Ok(())
    }

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
